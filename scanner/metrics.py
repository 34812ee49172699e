"""What the scanner counts. Ids never become labels."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation

from reminders.model.entry import Kind
from reminders.ports import ClaimAnswer, Copy

Age = Callable[[], timedelta]

_meter = metrics.get_meter("tocsin.scanner")


class Metrics:
    """Counters and the lateness of claims."""

    def __init__(self) -> None:
        self._claims = _meter.create_counter(
            "tocsin_claims", description="Entries by the answer that their claim got"
        )
        self._lateness = _meter.create_histogram(
            "tocsin_claim_lateness",
            unit="s",
            description="From the promised time to the claim",
            explicit_bucket_boundaries_advisory=[
                0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300,
            ],
        )  # fmt: skip
        self._closed = _meter.create_counter(
            "tocsin_entries_closed", description="Entries that ended without ringing, by reason"
        )
        self._reopened = _meter.create_counter(
            "tocsin_entries_reopened",
            description="Entries that the trailing scan found open, by action",
        )
        self._leads = _meter.create_up_down_counter(
            "tocsin_leads", description="Shards that this process leads"
        )

    def watch(self, *, oldest_due: Age, unsettled: Age, refused: Callable[[], int]) -> None:
        """Two ages that grow when nothing moves, whatever the reason, and how many watermarks may
        not go on at all: what to alarm on.
        """
        _meter.create_observable_gauge(
            "tocsin_watermarks_refused",
            callbacks=[lambda _: [Observation(refused())]],
            description="Shards led here whose watermark stands before a minute that may have lost "
            "entries: run `tocsin rebuild`",
        )
        _meter.create_observable_gauge(
            "tocsin_oldest_due_age",
            callbacks=[_observed(oldest_due)],
            unit="s",
            description="How long the oldest entry whose time has come waits for its claim here",
        )
        _meter.create_observable_gauge(
            "tocsin_unsettled_age",
            callbacks=[_observed(unsettled)],
            unit="s",
            description="How far the slowest shard led here is settled behind the clock",
        )

    def claimed(
        self, copies: Sequence[Copy], answers: Sequence[ClaimAnswer], now: datetime
    ) -> None:
        """A batch of claims was answered."""
        for answer, count in Counter(answers).items():
            self._claims.add(count, {"answer": answer.name.lower()})
        for copy, answer in zip(copies, answers, strict=True):
            if answer is ClaimAnswer.CLAIMED:
                entry = copy.state.entry
                promised = entry.kind is Kind.OCCURRENCE  # the others are late on purpose
                expected_at = entry.promised_at if promised else entry.key.ring_at
                late_s = (now - expected_at).total_seconds()
                self._lateness.record(max(late_s, 0.0))  # most are claimed ahead of their time

    def closed(self, reason: str) -> None:
        """An entry ended without ringing."""
        self._closed.add(1, {"reason": reason})

    def reopened(self, action: str) -> None:
        """The trailing scan took an entry up again."""
        self._reopened.add(1, {"action": action})

    def leads(self, change: int) -> None:
        """Shards won (+) or lost (-)."""
        self._leads.add(change)


def _observed(age: Age) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda _: [Observation(age().total_seconds())]

"""What the scanner counts. Ids never become labels."""

from datetime import datetime

from opentelemetry import metrics

from reminders.ports import ClaimAnswer, Copy

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

    def claimed(self, copy: Copy, answer: ClaimAnswer, now: datetime) -> None:
        """One entry's claim was answered."""
        self._claims.add(1, {"answer": answer.name.lower()})
        if answer is ClaimAnswer.CLAIMED:
            self._lateness.record((now - copy.state.entry.promised_at).total_seconds())

    def closed(self, reason: str) -> None:
        """An entry ended without ringing."""
        self._closed.add(1, {"reason": reason})

    def reopened(self, action: str) -> None:
        """The trailing scan took an entry up again."""
        self._reopened.add(1, {"action": action})

    def leads(self, change: int) -> None:
        """Shards won (+) or lost (-)."""
        self._leads.add(change)

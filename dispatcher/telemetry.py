"""Where facts go: a log line and the metrics. Ids never become labels."""

from collections import Counter
from collections.abc import Sequence

import structlog
from msgspec.structs import asdict
from opentelemetry import metrics

from dispatcher.breaker import BreakerState
from dispatcher.channels import Outcome
from dispatcher.facts import Event, Fact
from dispatcher.standing import Change

_BUCKETS_S = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0),
)
_COUNTED_ATTEMPTS = 12
"""Attempt numbers above share one label."""

_METER = metrics.get_meter("tocsin.dispatcher")


class Reporter:
    """Tells what happened."""

    def __init__(self, meter: metrics.Meter = _METER) -> None:
        # Bound here and not for each line, which would cost as much as the line itself.
        self._log = structlog.get_logger().bind()
        self._attempts = meter.create_counter(
            "tocsin_delivery_attempts",
            description="Attempts by outcome, attempt number, channel kind and error class",
        )
        self._lateness = meter.create_histogram(
            "tocsin_delivery_lateness",
            unit="s",
            description="From the promised time to the start of the first attempt",
            explicit_bucket_boundaries_advisory=_BUCKETS_S,
        )
        self._queue_age = meter.create_histogram(
            "tocsin_delivery_queue_age",
            unit="s",
            description="From the claim to the start of the attempt",
            explicit_bucket_boundaries_advisory=_BUCKETS_S,
        )
        self._duration = meter.create_histogram(
            "tocsin_delivery_duration",
            unit="s",
            description="Of an attempt, by channel kind",
            explicit_bucket_boundaries_advisory=_BUCKETS_S,
        )
        counters = {
            Event.SUPPRESSED: ("tocsin_duplicates_suppressed", "Jobs for what was done already"),
            Event.OUTCOME_UNKNOWN: ("tocsin_delivery_repeats", "Attempts that may be repeats"),
            Event.REQUEUED: ("tocsin_delivery_requeued", "Retries written again after a crash"),
            Event.PARKED: ("tocsin_delivery_parked", "Deliveries put off, by reason"),
            Event.WAITING: ("tocsin_delivery_waiting", "Deliveries that quiet hours put off"),
            Event.ENDED: ("tocsin_delivery_ended", "Deliveries given up, by reason"),
            Event.POISONED: ("tocsin_delivery_poison", "Deliveries that took processes down"),
        }
        self._breakers = meter.create_counter(
            "tocsin_destination_breakers",
            description="Circuit breakers of destinations that opened, half-opened and closed",
        )
        self._counters = {
            event: meter.create_counter(name, description=description)
            for event, (name, description) in counters.items()
        }

    def breaker(self, change: Change) -> None:
        """One has moved."""
        self._breakers.add(1, {"state": change.state.value})
        said = self._log.warning if change.state is BreakerState.OPEN else self._log.info
        said("destination.breaker", **asdict(change))

    def report(self, facts: Sequence[Fact]) -> None:
        """Facts in their order; attempts of one kind are counted together, which is cheaper."""
        attempts: Counter[tuple[str, str, int, str]] = Counter()
        for fact in facts:
            self._write(fact)
            if fact.event is Event.ATTEMPTED:
                number = min(fact.attempt, _COUNTED_ATTEMPTS)
                attempts[fact.channel_kind, fact.outcome, number, fact.error_class or "none"] += 1
                self._time(fact)
                if fact.outcome == Outcome.UNKNOWN and fact.next_attempt_at is not None:
                    labels = {"channel": fact.channel_kind, "reason": "answer_lost"}
                    self._counters[Event.OUTCOME_UNKNOWN].add(1, labels)
            else:
                labels = {"channel": fact.channel_kind, "reason": fact.reason or "none"}
                self._counters[fact.event].add(1, labels)
        for (channel, outcome, number, error_class), count in attempts.items():
            self._attempts.add(
                count,
                {
                    "channel": channel,
                    "outcome": outcome,
                    "attempt": str(number),
                    "error_class": error_class,
                },
            )

    def _write(self, fact: Fact) -> None:
        fields = asdict(fact)
        event = fields.pop("event")
        if fact.next_attempt_at is not None:
            fields["next_attempt_at"] = fact.next_attempt_at.isoformat()
        if fact.event is Event.POISONED:
            self._log.error(event.value, **fields)
        else:
            self._log.info(event.value, **fields)

    def _time(self, fact: Fact) -> None:
        channel = {"channel": fact.channel_kind}
        if fact.attempt == 1:
            self._lateness.record(fact.lateness_ms / 1000, channel)
        self._queue_age.record(fact.queue_age_ms / 1000, channel)
        self._duration.record(fact.duration_ms / 1000, channel)

"""One fact for each change of a delivery's state: a log line and the metrics (R-OPS-2, R-OPS-3)."""

from datetime import timedelta
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from structlog.testing import capture_logs

from dispatcher.facts import Event, Fact
from dispatcher.telemetry import Reporter

REQUIRED = {
    "reminder_id",
    "occurrence_id",
    "channel_id",
    "subscriber_id",
    "delivery_key",
    "provider_event_id",
    "attempt",
    "queue_age_ms",
    "lateness_ms",
    "error_class",
    "state",
}


async def test_an_attempt_is_one_line_with_all_that_an_operator_asks_for(world: Any) -> None:
    """Under a constant event name."""
    entry = await world.reminder()
    world.sender.results = [world.BUSY]
    with capture_logs() as lines:
        world.clock.advance(timedelta(milliseconds=250))
        await world.runner().run(world.job(entry))
    (line,) = lines
    assert line["event"] == "delivery.attempted"
    assert line.keys() >= REQUIRED
    assert line["delivery_key"] == world.sender.sent[0].delivery_key
    assert (line["state"], line["outcome"]) == ("retrying", "transient")
    assert (line["attempt"], line["error_class"], line["status_code"]) == (1, "http_429", 429)
    assert (line["lateness_ms"], line["queue_age_ms"]) == (250.0, 250.0)
    assert line["next_attempt_at"].startswith("2026-12-01T09:00:0")


async def test_a_repeat_is_two_lines_and_a_duplicate_one(world: Any) -> None:
    """The doubt is an event of its own; a suppressed duplicate names what stands."""
    entry = await world.reminder()
    with capture_logs() as lines:
        await world.runner().run(world.job(entry, deliveries=2))
        await world.runner().run(world.job(entry, deliveries=3))
    assert [(line["event"], line["state"], line["attempt"]) for line in lines] == [
        ("delivery.outcome_unknown", "sending", 1),
        ("delivery.attempted", "confirmed", 2),
        ("delivery.suppressed", "confirmed", 2),
    ]


async def test_poison_is_an_alarm(world: Any) -> None:
    """At error level, with the reason."""
    entry = await world.reminder()

    async def die(_outgoing: Any) -> None:
        raise world.Crash

    world.sender.on_send = die
    with capture_logs() as lines:
        for deliveries in range(1, 7):
            world.clock.advance(timedelta(seconds=30))
            try:
                await world.runner().run(world.job(entry, deliveries=deliveries))
            except world.Crash:
                continue
    assert lines[-1]["event"] == "delivery.poisoned"
    assert (lines[-1]["log_level"], lines[-1]["reason"]) == ("error", "poison")


def fact(event: Event, **fields: Any) -> Fact:
    """With values that do not matter here."""
    defaults = {
        "reminder_id": "r1",
        "occurrence_id": "o",
        "channel_id": "hook",
        "channel_kind": "webhook",
        "subscriber_id": "",
        "delivery_key": "dlv_1",
        "attempt": 1,
        "state": "confirmed",
        "queue_age_ms": 5.0,
        "lateness_ms": 20.0,
    }
    return Fact(event=event, **{**defaults, **fields})


def test_facts_are_counted_without_ids_as_labels() -> None:
    """Attempts by outcome and number, lateness of first attempts, the rest by event."""
    reader = InMemoryMetricReader()
    reporter = Reporter(MeterProvider([reader]).get_meter("test"))
    reporter.report([fact(Event.ATTEMPTED, outcome="ok")])
    late = [
        fact(Event.ATTEMPTED, outcome="transient", error_class="timeout", attempt=number)
        for number in range(12, 15)
    ]
    reporter.report([fact(Event.ATTEMPTED, outcome="ok", attempt=2), *late])
    reporter.report([fact(event) for event in Event if event is not Event.ATTEMPTED])
    counted = points(reader)
    attempts = {
        (p.attributes["outcome"], p.attributes["attempt"], p.attributes["error_class"]): p.value
        for p in counted["tocsin_delivery_attempts"]
    }
    assert attempts == {
        ("ok", "1", "none"): 1,
        ("ok", "2", "none"): 1,
        ("transient", "12", "timeout"): 3,
    }
    assert [p.count for p in counted["tocsin_delivery_lateness"]] == [1]
    assert [p.count for p in counted["tocsin_delivery_queue_age"]] == [5]
    for name in (
        "tocsin_duplicates_suppressed",
        "tocsin_delivery_repeats",
        "tocsin_delivery_parked",
        "tocsin_delivery_poison",
        "tocsin_delivery_ended",
        "tocsin_delivery_requeued",
    ):
        assert [p.value for p in counted[name]] == [1]
    labels = {name for each in counted.values() for p in each for name in p.attributes}
    assert labels == {"channel", "outcome", "attempt", "error_class", "reason"}


def points(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    """Data points by metric."""
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: list(metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }

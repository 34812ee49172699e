"""An answer that was lost: tried again under the same key, marked in the ledger, and counted."""

from datetime import timedelta
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dispatcher.channels.port import Outcome, Result
from dispatcher.telemetry import Reporter
from reminders.model.definition import Retry
from reminders.model.ledger import DeliveryStatus

LOST = Result(outcome=Outcome.UNKNOWN, error_class="timeout")
LIMITED = Result(
    outcome=Outcome.RATE_LIMITED,
    status_code=429,
    error_class="http_429",
    retry_after=timedelta(seconds=15),
)


async def test_a_lost_answer_is_retried_under_the_same_key_and_marked(world: Any) -> None:
    """Of the attempt it is on record that it may have arrived; the next one then ends it."""
    entry = await world.reminder()
    world.sender.results = [LOST, world.OK]
    await world.runner().run(world.job(entry))
    row = await world.row()
    assert row.delivery is DeliveryStatus.RETRYING
    assert [(a.number, a.error_class, a.outcome_unknown) for a in row.attempts] == [
        (1, "timeout", True)
    ]
    (retry,) = await world.waiting()
    world.clock.advance(row.next_attempt_at - world.clock.now())
    await world.runner().run(world.job(retry))
    row = await world.row()
    assert row.delivery is DeliveryStatus.CONFIRMED
    assert [a.outcome_unknown for a in row.attempts] == [True, False]
    assert len({each.delivery_key for each in world.sender.sent}) == 1


async def test_lost_answers_use_up_attempts(world: Any) -> None:
    """Only a crash of ours does not: a receiver that is silent for ever must come to an end."""
    entry = await world.reminder(retry=Retry(max_attempts=2))
    world.sender.results = [LOST, LOST]
    await world.runner().run(world.job(entry))
    (retry,) = await world.waiting()
    world.clock.advance(retry.key.ring_at - world.clock.now())
    await world.runner().run(world.job(retry))
    row = await world.row()
    assert (row.delivery, row.reason) == (DeliveryStatus.FAILED, "attempts_exhausted")
    assert row.attempts[-1].outcome_unknown


async def test_a_limit_is_no_repeat_and_waits_as_asked(world: Any) -> None:
    """It was not taken."""
    entry = await world.reminder()
    world.sender.results = [LIMITED]
    await world.runner().run(world.job(entry))
    row = await world.row()
    assert not row.attempts[0].outcome_unknown
    assert row.next_attempt_at >= world.clock.now() + timedelta(seconds=15)


@pytest.mark.parametrize(("result", "repeats"), [(LOST, 1), (LIMITED, 0)])
async def test_a_retry_after_a_lost_answer_counts_as_a_possible_repeat(
    world: Any, monkeypatch: pytest.MonkeyPatch, result: Result, repeats: int
) -> None:
    """G3: repeats are counted."""
    reader = InMemoryMetricReader()
    meter = MeterProvider(metric_readers=[reader]).get_meter("test")
    entry = await world.reminder()
    world.sender.results = [result]
    runner = world.runner()
    runner.settler._reporter = Reporter(meter)
    await runner.run(world.job(entry))
    data = reader.get_metrics_data()
    points = {
        (metric.name, str(point.attributes.get("reason"))): point.value  # type: ignore[union-attr]
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "tocsin_delivery_repeats"
        for point in metric.data.data_points
    }
    assert points.get(("tocsin_delivery_repeats", "answer_lost"), 0) == repeats

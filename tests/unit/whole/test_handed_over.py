"""Claimed a little ahead, sent at the very instant: never early, and late by no hand-over."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader

from dispatcher.channels.port import Outcome, Result
from dispatcher.hold import GRAIN
from reminders.model.definition import At, Channel, Email, Schedule
from tests.unit.lifecycle.world import NOON, SECOND, World, every
from tests.unit.whole.harness import OK, everything

MS = timedelta(milliseconds=1)
AHEAD = 20 * MS
LEAST = 16 * MS
"""The scanner waits a little for others."""
BUSY = Result(outcome=Outcome.TRANSIENT, status_code=503, error_class="http_503")


@pytest.fixture
def world() -> World:
    """At noon, with one shard; entries are claimed ahead."""
    return World(claim_ahead=AHEAD)


@pytest.mark.parametrize("schedule", [At(instant=NOON + 40 * SECOND), every("FREQ=SECONDLY")])
async def test_it_is_claimed_ahead_and_sent_at_its_time(world: World, schedule: Schedule) -> None:
    """The ledger says when it was claimed."""
    name = await world.create(schedule)
    async with everything(world) as receiver:
        await world.clock.run_until(NOON + 45 * SECOND)
    assert receiver.attempts
    for one in receiver.attempts:
        assert receiver.came[one.occurrence.occurrence_id] == [one.occurrence.fire_at]
    claimed = {
        row.occurrence.fire_at - row.claimed_at
        for row in await world.ledger(name)
        if row.claimed_at is not None and row.occurrence.fire_at > NOON + SECOND
    }
    assert claimed == {LEAST}


async def test_a_retry_is_sent_at_its_time_too(world: World) -> None:
    """Not a moment before the receiver asked for, and within a grain of it."""
    await world.create(At(instant=NOON + 40 * SECOND))
    asked = replace(BUSY, retry_after=15 * SECOND)
    async with everything(world) as receiver:
        receiver.answer = lambda sent: asked if sent.attempt == 1 else OK
        await world.clock.run_until(NOON + 120 * SECOND)
    (times,) = receiver.came.values()
    first, second = times
    assert first == NOON + 40 * SECOND
    assert NOON + 55 * SECOND <= second <= NOON + 55 * SECOND + GRAIN


async def test_each_channel_of_it_is_sent_then(world: World) -> None:
    """Several legs are one job."""
    channels = tuple(
        Channel(channel_id=name, target=Email(to=f"{name}@example.org")) for name in ("a", "b")
    )
    at = NOON + 40 * SECOND
    await world.create(At(instant=at), channels=channels)
    async with everything(world) as receiver:
        await world.clock.run_until(at + SECOND)
    (times,) = receiver.came.values()
    assert times == [at, at]


@pytest.mark.parametrize(
    ("before", "fired"), [(21 * MS, False), (LEAST, True), (MS, True), (500 * MS, False)]
)
async def test_a_cancel_within_that_time_is_too_late_and_says_so(
    world: World, before: timedelta, fired: bool
) -> None:
    """What it answers is what happens."""
    at = NOON + 40 * SECOND
    name = await world.create(At(instant=at))
    async with everything(world) as receiver:
        await world.clock.run_until(at - before)
        cancelled = await world.cancel(name)
        assert cancelled.was_fired is fired
        await world.clock.run_until(at + 10 * SECOND)
    assert bool(receiver.attempts) is fired


async def test_what_is_claimed_ahead_is_measured_as_on_time(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A histogram takes no negative lateness, and says so in the log for each."""
    reader = InMemoryMetricReader()
    meter = MeterProvider(metric_readers=[reader]).get_meter("test")
    monkeypatch.setattr("scanner.metrics._meter", meter)
    await world.create(At(instant=NOON + 40 * SECOND))
    async with everything(world) as receiver:
        await world.clock.run_until(NOON + 45 * SECOND)
    assert receiver.attempts
    found = reader.get_metrics_data()
    assert found is not None
    (measured,) = (
        metric.data.data_points
        for resource in found.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "tocsin_claim_lateness"
    )
    points = [point for point in measured if isinstance(point, HistogramDataPoint)]
    assert [(point.count, point.sum) for point in points] == [(1, 0.0)]
    assert "non-negative" not in caplog.text

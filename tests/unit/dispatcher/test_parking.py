"""For how long an attempt is parked, and when it is not parked any more."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dispatcher.breaker import BreakerPolicy
from dispatcher.channels.port import Outcome, Result
from dispatcher.requeue import parking
from dispatcher.standing import BUSY, Terms, TurnedAway
from dispatcher.work import LegWork, Work
from reminders.model.codec import decode_body
from reminders.model.definition import RETRY_SCHEDULE
from reminders.model.entry import Kind
from reminders.model.ledger import DeliveryStatus
from reminders.model.record import Status

SECOND = timedelta(seconds=1)
PARK_FOR = 5 * SECOND
REFUSED = Result(outcome=Outcome.TRANSIENT, error_class="connect")


async def leg_of(world: Any, *, attempt: int = 1, parked: int = 0, **made: Any) -> LegWork:
    """A leg that was parked so often."""
    entry = replace(await world.reminder(**made), parked=parked)
    body = decode_body(entry.body)
    work = Work(
        job=world.job(entry),
        entry=entry,
        occurrence=entry.occurrence,
        raw_body=entry.body,
        body=body,
    )
    return LegWork(work=work, channel=body.channels[0], target="", attempt=attempt)


async def test_a_named_time_is_kept_to(world: Any) -> None:
    """A token's exactly, however often it was parked; who asked for peace is not met early."""
    leg = await leg_of(world, parked=3)
    rate = TurnedAway(reason="rate", wait_s=0.7)
    assert parking(leg, rate, PARK_FOR, RETRY_SCHEDULE) == timedelta(seconds=0.7)
    asked = parking(leg, TurnedAway(reason="asked", wait_s=60), PARK_FOR, RETRY_SCHEDULE)
    assert 60 * SECOND <= asked <= 66 * SECOND


async def test_a_place_aside_is_not_looked_for_before_there_may_be_one(world: Any) -> None:
    """Nor sooner than the back-off: who was told may have been told wrong."""
    leg = await leg_of(world, parked=1)
    later = TurnedAway(reason="slow", wait_s=42)
    assert parking(leg, later, PARK_FOR, RETRY_SCHEDULE) == 42 * SECOND
    sooner = TurnedAway(reason="slow", wait_s=0.1)
    assert parking(leg, sooner, PARK_FOR, RETRY_SCHEDULE) >= 5 * SECOND


async def test_without_one_it_backs_off(world: Any) -> None:
    """5, 10, 20, 40, 80, 80 s at most, and half of it at least."""
    for parked, longest_s in enumerate((5, 10, 20, 40, 80, 80)):
        leg = await leg_of(world, parked=parked, reminder_id=f"r{parked}")
        wait = parking(leg, BUSY, PARK_FOR, RETRY_SCHEDULE)
        assert longest_s / 2 <= wait.total_seconds() <= longest_s


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parked=st.integers(0, 12),
    attempt=st.integers(1, 8),
    open_s=st.floats(0.1, 3600),
    schedule=st.lists(st.integers(0, 86_400), min_size=1, max_size=8),
)
async def test_a_breaker_delays_no_longer_than_failures_would_have(
    worlds: Any, parked: int, attempt: int, open_s: float, schedule: list[int]
) -> None:
    """Each park lasts at most what the retry schedule has for as many failures, or the back-off."""
    waits = tuple(timedelta(seconds=each) for each in schedule)
    leg = await leg_of(worlds(), attempt=attempt, parked=parked)
    opened = TurnedAway(reason="open", wait_s=open_s)
    wait = parking(leg, opened, PARK_FOR, waits)
    backoff = PARK_FOR * 2 ** min(parked, 4)
    assert wait <= max(backoff, waits[min(attempt + parked, len(waits) - 1)])
    assert wait >= backoff / 2


async def test_what_is_parked_meets_an_open_breaker_and_is_delivered_once_it_closed(
    worlds: Any,
) -> None:
    """Not an attempt, and never lost: each time a due entry, the last of which is sent."""
    terms = Terms(breaker=BreakerPolicy(failures=1, open_s=30))
    world = worlds(terms=terms)
    runner = world.runner()
    world.sender.results = [REFUSED]
    await runner.run(world.job(await world.reminder("first")))
    entry = await world.reminder()
    await runner.run(world.job(entry))
    times = []
    while (await world.row()).delivery is not DeliveryStatus.CONFIRMED:
        entry = next(
            each
            for each in await world.waiting()
            if each.reminder_id == "r1" and each.key != entry.key and each.kind is Kind.PARKED
        )
        times.append((entry.key.ring_at - world.AT).total_seconds())
        world.clock.move_to(entry.key.ring_at)
        await runner.run(world.job(entry))
    assert len(world.sender.sent) == 2
    assert (await world.row()).attempt_count == 1
    assert times[-1] >= 30
    assert times[-2:-1] == [] or times[-2] < 30


@pytest.mark.parametrize("way", ["expired", "cancelled"])
async def test_what_nobody_wants_any_more_ends_instead_of_being_parked(
    worlds: Any, way: str
) -> None:
    """However long its destination stays away."""
    terms = Terms(breaker=BreakerPolicy(failures=1, open_s=10**7, longest_s=10**7))
    world = worlds(terms=terms)
    runner = world.runner()
    world.sender.results = [REFUSED]
    await runner.run(world.job(await world.reminder("first")))
    entry = await world.reminder()
    parked = replace(
        entry,
        kind=Kind.PARKED,
        parked=9,
        key=replace(entry.key, entry_id="r1.20261201T090000.hook.a1!9"),
    )
    if way == "expired":
        world.clock.advance(timedelta(days=4))
    else:
        await world.change(status=Status.CANCELLED)
    await runner.run(world.job(parked))
    assert (await world.row()).delivery is DeliveryStatus(way)
    assert len(world.sender.sent) == 1

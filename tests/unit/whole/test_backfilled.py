"""A backfill, through scanner, expander and dispatcher: what has not rung rings, once, in turn."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from dispatcher.channels.port import Outcome, Outgoing, Result
from reminders.lifecycle import Backfilled
from reminders.lifecycle.requests import Call
from reminders.model.definition import Policies, Retry
from reminders.model.entry import Kind, Origin
from reminders.model.ledger import OccurrenceStatus
from tests.unit.lifecycle.world import DAY, HOUR, MINUTE, NOON, SECOND, World, every
from tests.unit.whole.harness import OK, Receiver, everything

DOWN = 5 * HOUR


@pytest.fixture
def world() -> World:
    """At noon, with one shard."""
    return World()


async def backfill(world: World, name: str, start: datetime, **options: Any) -> Backfilled:
    """As the edge calls it."""
    given: dict[str, Any] = {"end": None, "validate_only": False, "request_id": None} | options
    return await world.reminders.backfill("ns", name, start=start, **given)


async def after_downtime(world: World, **policies: Any) -> str:
    """A rule every ten minutes that missed five hours; the services are up and have caught up."""
    name = await world.create(every("FREQ=MINUTELY;INTERVAL=10"), policies=Policies(**policies))
    world.clock.advance(DOWN + 5 * MINUTE)
    return name


async def run(world: World, span: timedelta) -> None:
    """So long."""
    await world.clock.run_until(world.now + span)


async def test_what_was_skipped_rings_once_in_order_and_the_rule_goes_on(world: World) -> None:
    """31 were due; the latest rang by catch-up, the others by the backfill: never expired, never
    superseded, never twice.
    """
    name = await after_downtime(world)
    async with everything(world) as receiver:
        await run(world, MINUTE)
        assert receiver.ids == ["20260601T170000"]
        answer = await backfill(world, name, NOON)
        assert (answer.count, answer.capped, len(answer.first)) == (31, False, 31)
        await run(world, 2 * SECOND)
        assert len(receiver.ids) == 31
        order = [one.occurrence.occurrence_id for one in receiver.attempts[1:]]
        assert order == sorted(order)
        assert {one.attempt for one in receiver.attempts[1:]} == {1}
        await run(world, 20 * MINUTE)
    assert len(receiver.ids) == len(set(receiver.ids)) == 33
    keys = {one.delivery_key for one in receiver.attempts}
    assert len(keys) == 33


async def test_each_is_in_the_ledger_as_backfilled(world: World) -> None:
    """Where the run of skipped ones began, that stays on record as well."""
    name = await after_downtime(world)
    async with everything(world):
        await run(world, MINUTE)
        await backfill(world, name, NOON, end=NOON + HOUR)
        await run(world, 2 * SECOND)
    page = await world.reminders.occurrences("ns", name, limit=100, token="")
    found = {one.occurrence.occurrence_id: one for one in page.items}
    for minute in range(0, 60, 10):
        one = found[f"20260601T12{minute:02}00"]
        assert (one.status, one.reason) == (OccurrenceStatus.COMPLETED, ""), one
        assert one.occurrence.origin is Origin.BACKFILL
    (run_of_skipped,) = [one for one in page.items if one.skipped_count]
    assert run_of_skipped.skipped_through is not None
    assert run_of_skipped.skipped_through.occurrence_id == "20260601T165000"


async def test_a_second_backfill_rings_nothing_again(world: World) -> None:
    """Also long after Redis has forgotten the claims: the ledger decides."""
    name = await after_downtime(world)
    async with everything(world) as receiver:
        await run(world, MINUTE)
        await backfill(world, name, NOON, end=NOON + HOUR)
        await run(world, 5 * SECOND)
        before = len(receiver.ids)
        world.coordination.lose_everything()
        await run(world, 5 * SECOND)
        await backfill(world, name, NOON, end=NOON + HOUR)
        await backfill(world, name, NOON, end=NOON + 2 * HOUR)
        await run(world, 10 * SECOND)
    assert len(receiver.ids) == len(set(receiver.ids)) == before + 6


async def test_a_long_one_keeps_its_pace_and_what_is_due_its_time(world: World) -> None:
    """1,000 occurrences, a hundred a second; one that is due meanwhile is on time."""
    name = await world.create(every("FREQ=SECONDLY"))
    world.clock.advance(1030 * SECOND)
    async with everything(world) as receiver:
        await run(world, 2 * MINUTE)
        begun, before = world.now, len(receiver.attempts)
        await backfill(world, name, NOON, end=NOON + 1000 * SECOND)
        due = await world.create(every("FREQ=SECONDLY", start_local=None))
        await run(world, 20 * SECOND)
        back = [
            (one, receiver.came[one.occurrence.occurrence_id][-1])
            for one in receiver.attempts[before:]
            if one.occurrence.origin is Origin.BACKFILL
        ]
        own = [one for one in receiver.attempts if one.reminder_id == due]
    assert len(back) == 1000
    for second in range(15):
        since = begun + second * SECOND
        assert sum(since <= at < since + SECOND for _, at in back) <= 200
    assert max(at for _, at in back) - begun >= 9 * SECOND
    assert len(own) >= 18
    assert max(receiver.came[o.occurrence.occurrence_id][0] - o.occurrence.fire_at for o in own) < (
        SECOND
    )


@pytest.mark.parametrize("change", ["cancel", "pause", "update"])
async def test_a_change_ends_it(world: World, change: str) -> None:
    """What is not sent yet stays silent, and can be backfilled again: it has no ledger row."""
    name = await world.create(every("FREQ=SECONDLY"))
    world.clock.advance(1030 * SECOND)
    async with everything(world) as receiver:
        await run(world, 2 * MINUTE)
        await backfill(world, name, NOON, end=NOON + 1000 * SECOND)
        await run(world, 3 * SECOND)
        if change == "cancel":
            await world.cancel(name)
        elif change == "pause":
            await world.reminders.pause(Call(namespace="ns", reminder_id=name), "")
        else:
            await world.reschedule(name, every("FREQ=SECONDLY"))
        rung = backfilled(receiver)
        assert 100 < len(rung) < 600
        await run(world, MINUTE)
        assert backfilled(receiver) == rung
        if change == "update":
            await backfill(world, name, NOON, end=NOON + 1000 * SECOND)
            await run(world, 20 * SECOND)
            assert len(set(backfilled(receiver))) == len(backfilled(receiver)) == 1000
        await run(world, 6 * MINUTE)
        assert await world.settled_through() > world.now - 4 * MINUTE


def backfilled(receiver: Receiver) -> list[str]:
    """What came of backfills."""
    return [
        one.occurrence.occurrence_id
        for one in receiver.attempts
        if one.occurrence.origin is Origin.BACKFILL
    ]


async def test_a_failed_one_is_tried_again_as_from_now(world: World) -> None:
    """Its age counts from the claim: by its own time it would be too old for any retry."""
    name = await after_downtime(world, retry=Retry(max_age=MINUTE))
    busy = Result(outcome=Outcome.TRANSIENT, status_code=503, error_class="http_5xx")
    async with everything(world) as receiver:
        await run(world, MINUTE)
        receiver.answer = lambda outgoing: busy if outgoing.attempt == 1 else OK
        await backfill(world, name, NOON, end=NOON + MINUTE)
        await run(world, 10 * SECOND)
    ends = [(o.occurrence.occurrence_id, o.attempt) for o in receiver.attempts[1:]]
    assert ends == [("20260601T120000", 1), ("20260601T120000", 2)]


async def test_a_large_body_is_made_of_the_record(world: World) -> None:
    """A page's entries stay small on disk."""
    params = '{"x":"' + "y" * 5000 + '"}'
    name = await world.create(every("FREQ=MINUTELY;INTERVAL=10"), params_json=params)
    world.clock.advance(DOWN)
    async with everything(world) as receiver:
        await run(world, MINUTE)
        sent: list[Outgoing] = []

        async def note(outgoing: Outgoing) -> None:
            sent.append(outgoing)

        receiver.on_send = note
        await backfill(world, name, NOON, end=NOON + HOUR)
        await run(world, 2 * SECOND)
    assert [one.params_json for one in sent] == [params] * 6
    states = [s for s in await world.entries(name) if s.entry.kind is Kind.BACKFILLED]
    assert [s.entry.body for s in states] == [b""] * 6


async def test_while_jobs_are_not_taken_it_waits(world: World, monkeypatch: Any) -> None:
    """Behind everything that is due: a page is put off, and goes on when there is room."""
    name = await after_downtime(world, catch_up_max_age=DAY)
    async with everything(world) as receiver:
        await run(world, MINUTE)
        monkeypatch.setattr("reminders.lifecycle.backfilling.BUSY", -1)
        await backfill(world, name, NOON, end=NOON + HOUR)
        await run(world, 30 * SECOND)
        assert backfilled(receiver) == []
        monkeypatch.undo()
        await run(world, 10 * SECOND)
        assert len(backfilled(receiver)) == 6
        await run(world, 6 * MINUTE)
        assert await world.settled_through() > world.now - 4 * MINUTE

"""Replays are claimed behind all that is on time, so many a second."""

import pytest
from msgspec.structs import replace

from reminders.model.codec import encode
from reminders.model.definition import At
from reminders.model.entry import DueEntry, EntryState, Kind, Leg, Replay
from reminders.ports import Copy
from scanner.lead import CLAIM_BATCH, MOST_REPLAYS, REPLAYED, Lead
from tests.unit.lifecycle.world import MINUTE, NOON, SECOND, World, running
from tests.unit.scanner.harness import Claimed, a_lead


@pytest.fixture
def world() -> World:
    """At noon, with one shard."""
    return World()


async def copies(world: World, kind: Kind, count: int) -> list[Copy]:
    """Due now, in the hands of a scanner."""
    name = await world.create(At(instant=NOON + MINUTE))
    entry = (await world.stored(name)).current[0]
    return [_copy(world, entry, kind, number) for number in range(count)]


def _copy(world: World, entry: DueEntry, kind: Kind, number: int) -> Copy:
    replay = Replay(replay_id="p", asked_at=world.now, after=1, stood="failed")
    leg = Leg(channel_id=f"c{number}", attempt=2, replay=replay if kind is Kind.REPLAY else None)
    key = replace(entry.key, ring_at=world.now, entry_id=f"{kind}{number}")
    one = replace(entry, key=key, kind=kind, leg=leg)
    return Copy(state=EntryState(entry=one, raw=encode(one)), read_at=world.now)


def ring(lead: Lead, found: list[Copy]) -> None:
    """Their time has come."""
    for copy in found:
        assert lead.take(copy)
        lead.ring(copy)


async def test_what_is_on_time_goes_first_however_many_replays_wait(world: World) -> None:
    """Those come a hundred a second, in their order."""
    lead, claimed = await a_lead(world), Claimed(world)
    replays = await copies(world, Kind.REPLAY, 3 * REPLAYED)
    retries = await copies(world, Kind.RETRY, CLAIM_BATCH + 5)
    ring(lead, replays)
    ring(lead, retries)
    async with running(lead.run()):
        await world.clock.run_until(world.now)
        names = [name for _, name, _ in claimed.answers]
        on_time = [copy.state.entry.dedupe_id for copy in retries]
        later = [copy.state.entry.dedupe_id for copy in replays]
        assert names == on_time + later[:REPLAYED]
        assert lead.oldest_due is None
        await world.clock.run_until(world.now + 2 * SECOND)
        names = [name for _, name, _ in claimed.answers]
        assert names == on_time + later


async def test_more_than_can_be_held_is_left_to_the_trailing_scan(world: World) -> None:
    """And what is on time is read all the same."""
    lead = await a_lead(world)
    found = await copies(world, Kind.REPLAY, MOST_REPLAYS + 1)
    ring(lead, found)
    assert lead.under_way(found[0].state.entry)
    assert not lead.under_way(found[-1].state.entry)
    assert not lead.full

"""Hints: what was written for a time that a scanner may have read already."""

import asyncio

from reminders.model.codec import encode
from tests.contract.coordination.support import LONG, MS, NO_WAIT, World, state_of


async def test_a_tail_sees_what_comes_after_last(world: World) -> None:
    """In order, with the encoded entry and the writer's clock; not again after the id it gave."""
    hints = world.coordination.hints
    now = world.now().replace(microsecond=123_000)
    entries = [state_of(now, shard=4).entry for _ in range(3)]
    await hints.announce(entries[:1], written_from=now)
    last = await hints.last(4)
    await hints.announce(entries[1:], written_from=now - MS)
    found = await hints.tail({4: last}, wait=NO_WAIT)
    assert [(raw, at) for _, raw, at in found[4]] == [(encode(e), now - MS) for e in entries[1:]]
    assert await hints.last(4) == found[4][-1][0]
    assert await hints.tail({4: found[4][0][0]}, wait=NO_WAIT) == {4: found[4][1:]}
    assert await hints.tail({4: found[4][-1][0]}, wait=NO_WAIT) == {}


async def test_a_shard_without_hints_is_tailed_from_its_beginning(world: World) -> None:
    """So nothing that comes after `last` is missed."""
    hints = world.coordination.hints
    last = await hints.last(0)
    await hints.announce([state_of(world.now()).entry], written_from=world.now())
    assert len((await hints.tail({0: last}, wait=NO_WAIT))[0]) == 1


async def test_hints_go_to_the_shard_of_the_entry(world: World) -> None:
    """A tail of several shards tells them apart and leaves out silent ones."""
    hints = world.coordination.hints
    entries = [state_of(world.now(), shard=shard).entry for shard in (1, 2)]
    await hints.announce(entries, written_from=world.now())
    found = await hints.tail({1: "0-0", 2: "0-0", 3: "0-0"}, wait=NO_WAIT)
    assert {shard: [raw for _, raw, _ in hints] for shard, hints in found.items()} == {
        1: [encode(entries[0])],
        2: [encode(entries[1])],
    }


async def test_a_tail_waits_for_the_first_hint(world: World) -> None:
    """Every scanner of the shard sees it."""
    hints = world.coordination.hints
    tails = [asyncio.create_task(hints.tail({0: "0-0"}, wait=LONG)) for _ in range(2)]
    await world.until_waiting()
    await hints.announce([state_of(world.now()).entry], written_from=world.now())
    for tail in tails:
        assert len((await asyncio.wait_for(tail, 10))[0]) == 1


async def test_a_tail_returns_empty_when_its_time_is_over(world: World) -> None:
    """Or at once where there is nothing to tail."""
    hints = world.coordination.hints
    assert await hints.tail({}, wait=LONG) == {}
    tail = asyncio.create_task(hints.tail({0: "0-0"}, wait=400 * MS))
    await world.until_waiting()
    await world.elapse(400 * MS)
    assert await tail == {}
    await hints.announce([], written_from=world.now())

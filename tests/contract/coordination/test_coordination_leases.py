"""Leases: one holder for each shard, and only on the shard's home."""

import asyncio
from datetime import timedelta

from reminders.ports import LeaseAnswer
from tests.contract.coordination.conftest import OpenWorld
from tests.contract.coordination.support import MS, World

HELD, LOST, MOVED = LeaseAnswer.HELD, LeaseAnswer.LOST, LeaseAnswer.MOVED
LIFE = timedelta(milliseconds=500)
"""Long enough that a busy machine does not outlive it between two lines of a test."""


async def test_one_of_many_acquirers_wins(world: World) -> None:
    """However many ask at once, one token is held, and `holder` names it."""
    tokens = [f"token-{number}" for number in range(40)]
    answers = await asyncio.gather(*(world.coordination.leases.acquire(3, t) for t in tokens))
    won = [token for token, answer in zip(tokens, answers, strict=True) if answer is HELD]
    assert len(won) == 1
    assert answers.count(LOST) == 39
    assert await world.coordination.leases.holder(3) == won[0]


async def test_acquiring_again_with_the_same_token_is_safe(world: World) -> None:
    """The answer may have been lost: a repeat is HELD."""
    await world.hold()
    assert await world.coordination.leases.acquire(0, "t") is HELD


async def test_shards_have_leases_of_their_own(world: World) -> None:
    """One shard's holder says nothing about another's."""
    await world.hold(0, "a")
    await world.hold(1, "b")
    answers = await world.coordination.leases.renew({0: "a", 1: "b"})
    assert answers == {0: HELD, 1: HELD}


async def test_renewing_nothing_answers_nothing(world: World) -> None:
    """A scanner without shards renews, too."""
    assert await world.coordination.leases.renew({}) == {}


async def test_a_lease_runs_out_unless_it_is_renewed(open_world: OpenWorld) -> None:
    """Its life counts from the last renewal."""
    world = await open_world(lease=LIFE)
    await world.hold()
    await world.elapse(LIFE * 0.6)
    assert await world.coordination.leases.renew({0: "t"}) == {0: HELD}
    await world.elapse(LIFE * 0.6)
    assert await world.coordination.leases.holder(0) == "t"
    await world.elapse(LIFE)
    assert await world.coordination.leases.holder(0) is None
    assert await world.coordination.leases.renew({0: "t"}) == {0: LOST}


async def test_a_token_is_stale_after_a_takeover(open_world: OpenWorld) -> None:
    """Who was slow can neither renew nor release what is somebody else's now, nor claim with it."""
    world = await open_world(lease=LIFE)
    await world.hold(0, "slow")
    await world.elapse(LIFE + MS)
    await world.hold(0, "quick")
    assert await world.coordination.leases.renew({0: "slow"}) == {0: LOST}
    await world.coordination.leases.release(0, "slow")
    assert await world.coordination.leases.holder(0) == "quick"
    assert await world.claim(world.due(), token="slow") is LOST


async def test_release_frees_the_lease_at_once(world: World) -> None:
    """A hand-over need not wait for the life to end."""
    await world.hold(0, "old")
    await world.coordination.leases.release(0, "old")
    assert await world.coordination.leases.holder(0) is None
    await world.hold(0, "new")


async def test_lost_data_reads_as_moved_until_acquired_again(world: World) -> None:
    """FLUSHALL keeps the server's identity, so the missing home has to tell."""
    await world.hold()
    await world.lose_everything()
    assert await world.coordination.leases.renew({0: "t"}) == {0: MOVED}
    assert await world.claim(world.due()) is MOVED
    await world.hold(0, "again")
    assert await world.coordination.leases.renew({0: "again", 1: "t"}) == {0: HELD, 1: MOVED}


async def test_another_server_reads_as_moved_even_if_it_kept_the_lease(world: World) -> None:
    """A promoted replica may know the lease and lack a later void: nobody may claim by it."""
    await world.hold()
    await world.become_another()
    assert await world.coordination.leases.renew({0: "t"}) == {0: MOVED}
    assert await world.claim(world.due()) is MOVED
    assert await world.coordination.claims.refire(0, "t", []) is MOVED


async def test_a_lease_of_another_home_counts_as_free(world: World) -> None:
    """It binds nobody, so nobody has to wait for its end; its old holder finds it lost."""
    await world.hold(0, "old")
    await world.become_another()
    await world.hold(0, "new")
    assert await world.coordination.leases.renew({0: "old"}) == {0: LOST}


async def test_members_live_for_a_lease_from_their_last_beat(open_world: OpenWorld) -> None:
    """All that live are answered, sorted; silent and departed ones go."""
    world = await open_world(lease=LIFE)
    leases = world.coordination.leases
    await leases.beat("c")
    await world.elapse(LIFE * 0.7)
    await leases.beat("b")
    assert await leases.beat("a") == ["a", "b", "c"]
    await world.elapse(LIFE * 0.5)
    assert await leases.beat("a") == ["a", "b"]
    await leases.leave("b")
    await leases.leave("never came")
    assert await leases.beat("a") == ["a"]


async def test_scripts_survive_being_forgotten(world: World) -> None:
    """After SCRIPT FLUSH, as after a restart, calls work as before, single ones and batches."""
    await world.hold(0)
    await world.hold(1)
    await world.forget_scripts()
    assert await world.coordination.leases.renew({0: "t", 1: "t"}) == {0: HELD, 1: HELD}
    assert len(await world.claim(world.due())) == 1

"""Group voids: what a cancelled group leaves in Redis, one key for each shard."""

from datetime import timedelta

from msgspec.structs import replace

from reminders.model.entry import Fate, Kind
from reminders.ports import ClaimAnswer, Copy, LeaseAnswer
from tests.contract.coordination.conftest import OpenWorld
from tests.contract.coordination.support import CLAIMED, MS, World

VOID = [ClaimAnswer.VOID]


async def test_a_cancelled_group_voids_what_was_created_until_then(held: World) -> None:
    """By the record's creation, not the entry's; later records, other groups and retries pass."""
    fence = held.now() - timedelta(hours=1)
    await held.void_group("g", fence)
    copies = [
        held.due(group_id="g", created_at=fence),
        held.due(group_id="g", created_at=fence + MS),
        held.due(group_id="other", created_at=fence),
        held.due(created_at=fence),
        held.due(group_id="g", created_at=fence, kind=Kind.RETRY),
    ]
    assert await held.claim(*copies) == VOID + CLAIMED * 4


async def test_a_group_is_one_of_its_namespace(held: World) -> None:
    """The same name in another namespace is another group."""
    fence = held.now()
    await held.coordination.claims.fence([0], "other", "g", fence)
    assert await held.claim(held.due(group_id="g", created_at=fence)) == CLAIMED


async def test_a_group_void_holds_on_each_shard_that_was_named(held: World) -> None:
    """And on no other."""
    await held.hold(1)
    await held.hold(2)
    fence = held.now()
    await held.void_group("g", fence, 0, 2)
    for shard, answer in ((0, VOID), (1, CLAIMED), (2, VOID)):
        copy = held.due(group_id="g", created_at=fence, shard=shard)
        assert await held.claim(copy, shard=shard) == answer


async def test_a_group_void_never_shrinks(held: World) -> None:
    """A late repeat of an older cancel takes nothing back; a later one reaches further."""
    first, second = held.now() - timedelta(hours=2), held.now() - timedelta(hours=1)
    await held.void_group("g", second)
    await held.void_group("g", first)
    assert await held.claim(held.due(group_id="g", created_at=second)) == VOID
    assert await held.claim(held.due(group_id="g", created_at=second + MS)) == CLAIMED


async def test_what_was_claimed_before_rings(held: World) -> None:
    """So does what a change told to be claimed, void or not."""
    copy = held.due(group_id="g", recheck=True)
    assert await held.claim(copy) == CLAIMED
    told = held.due(group_id="g")
    told = replace(told, state=replace(told.state, fate=Fate.CLAIMED))
    await held.void_group("g", held.now())
    assert await held.claim(copy, told) == [ClaimAnswer.DUPLICATE, *CLAIMED]


async def test_a_group_void_outlives_every_copy_read_before_it(open_world: OpenWorld) -> None:
    """As a reminder's own void: copies are void, then stale. What is read later, fences decide."""
    world = await open_world(lookahead=200 * MS, margin=200 * MS)
    await world.hold()
    copy = world.due(group_id="g")
    await world.void_group("g", world.now())
    seen = []
    for _ in range(6):
        answers = await world.claim(copy)
        assert not isinstance(answers, LeaseAnswer)
        seen += answers
        await world.elapse(90 * MS)
    assert set(seen) == {ClaimAnswer.VOID, ClaimAnswer.STALE}
    fresh = Copy(state=copy.state, read_at=world.now())
    assert await world.claim(fresh) == CLAIMED


async def test_a_group_void_is_set_on_a_server_that_is_no_home(held: World) -> None:
    """Who acquires there next meets it."""
    copy = held.due(group_id="g")
    await held.lose_everything()
    await held.void_group("g", held.now())
    await held.hold(0, "new")
    fresh = Copy(state=copy.state, read_at=held.now())
    assert await held.claim(fresh, token="new") == VOID

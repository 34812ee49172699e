"""Claims: at most one first claim for each dedupe id, never early, never against a void."""

import asyncio
from datetime import timedelta

from reminders.model.entry import Kind
from reminders.ports import ClaimAnswer, Copy, Job, LeaseAnswer
from tests.contract.coordination.conftest import OpenWorld
from tests.contract.coordination.support import CLAIMED, MS, NO_WAIT, SECOND, World

DUPLICATE, READDED = [ClaimAnswer.DUPLICATE], [ClaimAnswer.READDED]
EARLY, VOID, STALE = [ClaimAnswer.EARLY], [ClaimAnswer.VOID], [ClaimAnswer.STALE]


async def jobs_of(world: World, name: str = "jobs", shard: int = 0) -> list[Job]:
    """What the stream has for its consumers."""
    stream = getattr(world.coordination, name)
    return await stream.read("c", [shard], count=1000, wait=NO_WAIT)  # type: ignore[no-any-return]


async def test_a_claim_hands_the_entry_on_as_it_is(held: World) -> None:
    """The job carries the stored bytes, its shard, when it was claimed, and that it is new."""
    copy = held.due()
    before = held.now()
    assert await held.claim(copy) == CLAIMED
    (job,) = await held.coordination.jobs.read("c", [0], count=9, wait=NO_WAIT)
    assert (job.raw, job.shard, job.recheck, job.deliveries) == (copy.state.raw, 0, False, 1)
    assert before - 20 * MS <= job.claimed_at <= held.now() + 20 * MS
    assert await jobs_of(held, "fires") == []


async def test_a_recurring_entry_goes_to_the_expanders_as_well(held: World) -> None:
    """Only one that recurs needs an expansion."""
    copy = held.due(recurs=True)
    assert await held.claim(copy, held.due()) == CLAIMED * 2
    assert [job.raw for job in await jobs_of(held, "fires")] == [copy.state.raw]
    assert len(await jobs_of(held)) == 2


async def test_claiming_twice_is_a_duplicate(held: World) -> None:
    """In a later call or in the same one; the job is there once."""
    copy = held.due()
    assert await held.claim(copy, copy) == [*CLAIMED, *DUPLICATE]
    assert await held.claim(copy) == DUPLICATE
    assert len(await jobs_of(held)) == 1


async def test_the_dedupe_id_knows_neither_version_nor_place(held: World) -> None:
    """A later version of the occurrence, moved to another minute, is the same occurrence."""
    first = held.due(late=timedelta(minutes=5))
    again = held.due(
        reminder_id=first.state.entry.reminder_id,
        version=2,
        fire_at=first.state.entry.promised_at,
        moved_to=held.now() - SECOND,
    )
    assert await held.claim(first) == CLAIMED
    assert await held.claim(again) == DUPLICATE


async def test_kinds_and_attempts_are_claimed_apart(held: World) -> None:
    """The retry of an occurrence is not the occurrence, a parked one not the retry."""
    one = held.due()
    rid = one.state.entry.reminder_id
    others = [
        held.due(reminder_id=rid, kind=Kind.RETRY),
        held.due(reminder_id=rid, kind=Kind.FINISH),
        held.due(reminder_id=rid, kind=Kind.PARKED, parked=1),
        held.due(reminder_id=rid, kind=Kind.PARKED, parked=2),
    ]
    assert await held.claim(one, *others) == CLAIMED * 5


async def test_one_of_concurrent_claims_wins(held: World) -> None:
    """Many calls with the same entries: each entry is claimed by exactly one of them."""
    copies = [held.due() for _ in range(20)]
    answers = await asyncio.gather(*(held.claim(*copies) for _ in range(20)))
    for column in zip(*answers, strict=True):
        assert sorted(column) == DUPLICATE * 19 + CLAIMED
    assert len(await jobs_of(held)) == 20


async def test_a_big_batch_over_many_minutes_is_answered_in_order(held: World) -> None:
    """500 entries, each answer at its place."""
    copies = [held.due(late=timedelta(seconds=7 * (1 + n % 90))) for n in range(500)]
    assert await held.claim(*copies[::2]) == CLAIMED * 250
    assert await held.claim(*copies) == (DUPLICATE + CLAIMED) * 250


async def test_an_empty_claim_is_answered_empty(held: World) -> None:
    """Nothing to claim, nothing to say."""
    assert await held.claim() == []


async def test_nothing_is_claimed_before_its_time(held: World) -> None:
    """By the server's TIME, even if claimed before: a moved copy must not ring early."""
    early = held.due(late=-timedelta(hours=1))
    assert await held.claim(early) == EARLY
    late = held.due()
    moved = held.due(
        reminder_id=late.state.entry.reminder_id,
        fire_at=late.state.entry.promised_at,
        moved_to=held.now() + timedelta(hours=1),
    )
    assert await held.claim(late, moved) == [*CLAIMED, *EARLY]
    assert len(await jobs_of(held)) == 1


async def test_an_entry_is_claimed_once_its_time_has_come(held: World) -> None:
    """The wait is to the millisecond."""
    copy = held.due(late=-300 * MS)
    assert await held.claim(copy) == EARLY
    await held.elapse(310 * MS)
    assert await held.claim(copy) == CLAIMED


async def test_an_entry_is_claimed_as_far_ahead_as_asked_for(held: World) -> None:
    """And no further; what can be claimed then is not changed by it."""
    copy = held.due(late=-400 * MS)
    assert await held.claim(copy, ahead=100 * MS) == EARLY
    assert await held.claim(copy, ahead=500 * MS) == CLAIMED
    assert await held.claim(copy, ahead=500 * MS) == DUPLICATE
    (job,) = await jobs_of(held)
    assert job.claimed_at < copy.state.entry.key.ring_at


async def test_without_the_lease_nothing_is_claimed(world: World) -> None:
    """LOST with a home and another's lease; MOVED where the shard has no home."""
    assert await world.claim(world.due()) is LeaseAnswer.MOVED
    await world.hold(0, "other")
    assert await world.claim(world.due(recurs=True)) is LeaseAnswer.LOST
    assert await world.coordination.claims.refire(0, "t", []) is LeaseAnswer.LOST
    assert await jobs_of(world) == []
    assert await jobs_of(world, "fires") == []


async def test_a_copy_older_than_the_home_is_stale(held: World) -> None:
    """Voids set before the lease was acquired here may have been lost: read again."""
    old = held.due(read_at=held.now() - 5 * SECOND)
    assert await held.claim(old) == STALE
    assert await held.claim(Copy(state=old.state, read_at=held.now())) == CLAIMED


async def test_a_copy_older_than_voids_live_is_stale(open_world: OpenWorld) -> None:
    """Its void may have expired; half the margin is left for two clocks' difference."""
    world = await open_world(lookahead=200 * MS, margin=200 * MS)
    await world.hold()
    copies = [world.due() for _ in range(2)]
    await world.elapse(50 * MS)
    assert await world.claim(copies[0]) == CLAIMED
    await world.elapse(260 * MS)
    assert await world.claim(copies[1]) == STALE


async def test_only_occurrences_go_stale(held: World) -> None:
    """Retries, parked jobs and unfinished changes read the record before they send."""
    old = held.now() - timedelta(hours=1)
    kinds = [Kind.RETRY, Kind.PARKED, Kind.FINISH]
    assert await held.claim(*[held.due(kind=kind, read_at=old) for kind in kinds]) == CLAIMED * 3


async def test_a_gone_job_is_added_again_for_recheck_only(held: World) -> None:
    """READDED if the job left the stream; DUPLICATE while it is there, or without recheck."""
    copy = held.due(recurs=True)
    recheck = Copy(state=copy.state, read_at=copy.read_at, recheck=True)
    assert await held.claim(copy) == CLAIMED
    assert await held.claim(recheck) == DUPLICATE
    (job,) = await jobs_of(held)
    assert await held.claim(recheck) == DUPLICATE, "under way is not gone"
    await held.lose_job(0, job.job_id)
    assert await held.claim(copy) == DUPLICATE
    assert await held.claim(recheck) == READDED
    (again,) = await jobs_of(held)
    assert again.recheck
    assert again.raw == copy.state.raw
    assert await held.claim(recheck) == DUPLICATE
    assert len(await jobs_of(held, "fires")) == 1, "the expanders have had theirs"


async def test_a_first_claim_with_recheck_says_so(held: World) -> None:
    """The receiver must look into the ledger before it sends."""
    assert await held.claim(held.due(recheck=True), held.due()) == CLAIMED * 2
    assert [job.recheck for job in await jobs_of(held)] == [True, False]


async def test_refire_hands_to_the_expanders_only(held: World) -> None:
    """For what was handled and not expanded."""
    state = held.due(recurs=True).state
    assert await held.coordination.claims.refire(0, "t", [state]) is LeaseAnswer.HELD
    assert [job.raw for job in await jobs_of(held, "fires")] == [state.raw]
    assert await jobs_of(held) == []

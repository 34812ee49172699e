"""The hand-off streams: at least once, to one consumer at a time."""

import asyncio
from datetime import timedelta

import pytest

from reminders.ports import ClaimAnswer
from tests.contract.coordination.support import CLAIMED, LONG, MS, NO_WAIT, SECOND, World


@pytest.fixture
async def held(world: World) -> World:
    """A world in which `t` holds shards 0 and 1."""
    await world.hold(0)
    await world.hold(1)
    return world


async def give(world: World, number: int, shard: int = 0) -> None:
    """So many jobs into the shard's stream."""
    await world.claim(*[world.due(shard=shard) for _ in range(number)], shard=shard)


async def test_what_was_handed_on_before_anybody_read_is_read(held: World) -> None:
    """The group is made where it is missing, from the beginning of the stream."""
    await give(held, 3)
    jobs = await held.coordination.jobs.read("c", [0, 1], count=10, wait=NO_WAIT)
    assert len(jobs) == 3


async def test_each_message_goes_to_one_consumer(held: World) -> None:
    """Many readers share what there is."""
    jobs = held.coordination.jobs
    await give(held, 50)
    shares = await asyncio.gather(
        *(jobs.read(f"c{n}", [0, 1], count=5, wait=NO_WAIT) for n in range(12))
    )
    ids = [job.job_id for share in shares for job in share]
    assert len(ids) == len(set(ids)) == 50


async def test_count_bounds_each_shard(held: World) -> None:
    """And messages of a shard come in order."""
    await give(held, 5, shard=0)
    await give(held, 5, shard=1)
    jobs = await held.coordination.jobs.read("c", [0, 1], count=3, wait=NO_WAIT)
    assert sorted(job.shard for job in jobs) == [0, 0, 0, 1, 1, 1]
    more = await held.coordination.jobs.read("c", [0], count=3, wait=NO_WAIT)
    assert max(j.job_id for j in jobs if j.shard == 0) < min(job.job_id for job in more)


async def test_a_read_waits_for_the_first_message(held: World) -> None:
    """It returns when one comes, long before its time is over."""
    jobs = held.coordination.jobs
    await jobs.read("c", [0, 1], count=1, wait=NO_WAIT)
    reading = asyncio.create_task(jobs.read("c", [0, 1], count=10, wait=LONG))
    await held.until_waiting()
    await give(held, 1, shard=1)
    (job,) = await asyncio.wait_for(reading, 10)
    assert job.shard == 1


async def test_a_read_returns_empty_when_its_time_is_over(held: World) -> None:
    """Not before."""
    began = held.now()
    reading = asyncio.create_task(held.coordination.jobs.read("c", [0], count=1, wait=400 * MS))
    await held.until_waiting()
    await held.elapse(400 * MS)
    assert await reading == []
    assert held.now() - began >= 400 * MS


async def test_reading_no_shards_returns_at_once(held: World) -> None:
    """There is nothing to wait for."""
    assert await held.coordination.jobs.read("c", [], count=1, wait=LONG) == []
    assert await held.coordination.jobs.reclaim("c", [], idle=NO_WAIT, count=1) == []
    assert await held.coordination.jobs.lengths([]) == {}


async def test_a_read_survives_the_loss_of_everything(held: World) -> None:
    """While it waits, stream and group vanish; what is claimed afterwards arrives all the same."""
    jobs = held.coordination.jobs
    await jobs.read("c", [0, 1], count=1, wait=NO_WAIT)
    reading = asyncio.create_task(jobs.read("c", [0, 1], count=10, wait=LONG))
    await held.until_waiting()
    await held.lose_everything()
    await held.hold(0, "again")
    await held.claim(held.due(), token="again")
    assert len(await asyncio.wait_for(reading, 10)) == 1


async def test_done_removes_a_message_entirely(held: World) -> None:
    """Nothing of it is left in the stream, nor under way."""
    stream = held.coordination.jobs
    await give(held, 2, shard=0)
    await give(held, 1, shard=1)
    jobs = await stream.read("c", [0, 1], count=10, wait=NO_WAIT)
    assert await stream.lengths([0, 1, 2]) == {0: 2, 1: 1, 2: 0}
    await stream.done(jobs)
    assert await stream.lengths([0, 1]) == {0: 0, 1: 0}
    assert await stream.reclaim("c", [0, 1], idle=NO_WAIT, count=10) == []
    await stream.done(jobs)
    await stream.done([])


async def test_messages_of_a_dead_consumer_are_reclaimed(held: World) -> None:
    """Once left long enough, by one of the others, with rising counts of deliveries."""
    stream = held.coordination.jobs
    await give(held, 2)
    taken = await stream.read("dead", [0, 1], count=10, wait=NO_WAIT)
    assert await stream.reclaim("b", [0, 1], idle=LONG, count=10) == []
    await held.elapse(310 * MS)
    shares = await asyncio.gather(
        *(stream.reclaim(f"b{n}", [0, 1], idle=300 * MS, count=10) for n in range(5))
    )
    again = [job for share in shares for job in share]
    assert [job.job_id for job in again] == [job.job_id for job in taken]
    assert [(job.raw, job.deliveries) for job in again] == [(job.raw, 2) for job in taken]
    await held.elapse(310 * MS)
    third = await stream.reclaim("c", [0, 1], idle=300 * MS, count=1)
    assert [(job.job_id, job.deliveries) for job in third] == [(taken[0].job_id, 3)]
    await stream.done(third)
    assert await stream.lengths([0]) == {0: 1}


async def test_reclaimed_messages_keep_their_recheck(held: World) -> None:
    """What was to be rechecked still is."""
    await held.claim(held.due(recheck=True))
    await held.coordination.jobs.read("dead", [0], count=10, wait=NO_WAIT)
    (job,) = await held.coordination.jobs.reclaim("b", [0], idle=NO_WAIT, count=10)
    assert job.recheck


async def test_touch_begins_the_idle_time_anew(held: World) -> None:
    """It does not count as a delivery, and does not bring back what is done."""
    stream = held.coordination.jobs
    await give(held, 2)
    jobs = await stream.read("slow", [0], count=10, wait=NO_WAIT)
    await stream.done(jobs[1:])
    await held.elapse(300 * MS)
    await stream.touch("slow", jobs)
    await stream.touch("slow", [])
    assert await stream.reclaim("b", [0], idle=300 * MS, count=10) == []
    await held.elapse(310 * MS)
    (job,) = await stream.reclaim("b", [0], idle=300 * MS, count=10)
    assert (job.job_id, job.deliveries) == (jobs[0].job_id, 2)


async def test_a_message_that_is_gone_is_not_reclaimed(held: World) -> None:
    """It was under way when the stream lost it."""
    stream = held.coordination.jobs
    await give(held, 2)
    first, second = await stream.read("dead", [0], count=10, wait=NO_WAIT)
    await held.lose_job(0, first.job_id)
    again = await stream.reclaim("b", [0], idle=NO_WAIT, count=10)
    assert [job.job_id for job in again] == [second.job_id]


async def test_jobs_of_lost_data_are_touched_done_and_reclaimed_in_vain(held: World) -> None:
    """Nothing is there any more, and that is no error."""
    stream = held.coordination.jobs
    await give(held, 1)
    jobs = await stream.read("c", [0], count=10, wait=NO_WAIT)
    await held.lose_everything()
    await stream.touch("c", jobs)
    assert await stream.reclaim("c", [0], idle=NO_WAIT, count=10) == []
    await stream.done(jobs)
    assert await stream.lengths([0]) == {0: 0}


async def test_jobs_and_fires_are_apart(held: World) -> None:
    """Each stream has its own messages and consumers."""
    await held.claim(held.due(recurs=True))
    jobs = await held.coordination.jobs.read("c", [0], count=10, wait=NO_WAIT)
    fires = await held.coordination.fires.read("c", [0], count=10, wait=NO_WAIT)
    await held.coordination.jobs.done(jobs)
    assert await held.coordination.fires.lengths([0]) == {0: 1}
    await held.coordination.fires.done(fires)
    assert await held.coordination.fires.lengths([0]) == {0: 0}


async def test_a_cancelled_read_leaves_the_stream_usable(held: World) -> None:
    """A service that stops while it waits harms nobody."""
    jobs = held.coordination.jobs
    await jobs.read("c", [0], count=1, wait=NO_WAIT)
    reading = asyncio.create_task(jobs.read("c", [0], count=10, wait=LONG))
    await held.until_waiting()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await give(held, 1)
    found = await jobs.read("c", [0], count=10, wait=NO_WAIT)
    found += await jobs.reclaim("c", [0], idle=NO_WAIT, count=10)
    assert {job.raw for job in found} != set()


async def test_claimed_at_is_the_servers_time(held: World) -> None:
    """In whole milliseconds, aware, and the same when the message comes again."""
    await give(held, 1)
    (job,) = await held.coordination.jobs.read("dead", [0], count=1, wait=NO_WAIT)
    (again,) = await held.coordination.jobs.reclaim("b", [0], idle=NO_WAIT, count=1)
    assert again.claimed_at == job.claimed_at
    assert job.claimed_at.utcoffset() == timedelta(0)
    assert abs(held.now() - job.claimed_at) < 5 * SECOND


@pytest.mark.parametrize("whole", [True, False], ids=["deleted", "trimmed"])
async def test_what_an_operator_took_away_is_handed_on_again(held: World, *, whole: bool) -> None:
    """By XTRIM or DEL, of what waited and of what a consumer had: each is added once more, to be
    rechecked, and arrives; what the consumer had is touched, done and reclaimed in vain.
    """
    copies = [held.due(recheck=True) for _ in range(4)]
    assert await held.claim(*copies) == CLAIMED * 4
    jobs = held.coordination.jobs
    taken = await jobs.read("c", [0], count=2, wait=NO_WAIT)
    await held.take_away("jobs", 0, whole=whole)
    assert await jobs.read("c", [0], count=9, wait=NO_WAIT) == []
    await jobs.touch("c", taken)
    await jobs.done(taken[:1])
    assert await jobs.reclaim("d", [0], idle=NO_WAIT, count=9) == []
    assert await held.claim(*copies) == [ClaimAnswer.READDED] * 4
    again = await jobs.read("c", [0], count=9, wait=NO_WAIT)
    assert [job.raw for job in again] == [copy.state.raw for copy in copies]
    assert all(job.recheck for job in again)
    await jobs.done(again)
    assert await jobs.lengths([0]) == {0: 0}

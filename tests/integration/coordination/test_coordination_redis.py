"""What only a real redis-server shows: errors, time-outs, memory, keys, and what is left behind."""

import asyncio
import time
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from reminders.coordination import RedisCoordination
from reminders.coordination.claims import MAX_BATCH
from reminders.coordination.connection import send
from reminders.errors import CoordinationUnavailable
from reminders.ports import ClaimAnswer, Copy, LeaseAnswer
from tests.contract.coordination.support import (
    LONG,
    NO_WAIT,
    SECOND,
    RedisServer,
    RedisWorld,
    state_of,
    until,
)


async def hold(coordination: RedisCoordination, client: Redis, shard: int = 0) -> None:
    """Take it for token `t`; what is read from now on is fresh."""
    await RedisWorld(coordination, client).hold(shard)


def due(coordination: RedisCoordination, **options: object) -> Copy:
    """A copy of an entry that is due, just read."""
    now = coordination.clock.now()
    return Copy(state=state_of(now, **options), read_at=now)  # type: ignore[arg-type]


async def test_a_server_that_is_gone_is_unavailable(
    server: RedisServer, coordination: RedisCoordination
) -> None:
    """Every port says so, with the step that failed, and nothing else."""
    copy = due(coordination)
    jobs = coordination.jobs
    server.stop()
    calls = [
        coordination.ping(),
        coordination.leases.acquire(0, "t"),
        coordination.leases.renew({0: "t"}),
        coordination.leases.beat("m"),
        coordination.claims.claim(0, "t", [copy]),
        coordination.claims.revoke(0, "r", through_version=1, entries=[]),
        jobs.read("c", [0], count=1, wait=SECOND),
        jobs.reclaim("c", [0], idle=NO_WAIT, count=1),
        jobs.lengths([0]),
        coordination.hints.announce([copy.state.entry], written_from=copy.read_at),
        coordination.hints.tail({0: "0-0"}, wait=SECOND),
    ]
    for call in calls:
        with pytest.raises(CoordinationUnavailable) as caught:
            await call
        assert caught.value.operation
    assert coordination.clock.in_bounds(), "the clock is carried on"


async def test_a_server_that_was_down_is_used_again(
    client: Redis, coordination: RedisCoordination
) -> None:
    """Connections that were cut are replaced, those for blocking reads as well."""
    await coordination.ping()
    await client.client_kill_filter(_type="normal", skipme=True)

    async def answers() -> bool:
        try:
            await coordination.ping()
        except CoordinationUnavailable:
            return False
        return True

    await until(answers)
    assert await coordination.jobs.read("c", [0], count=1, wait=SECOND / 10) == []


async def test_a_slow_server_is_unavailable_after_the_time_out(
    client: Redis, coordination: RedisCoordination
) -> None:
    """Not after minutes of repeats."""
    await send(client, "CLIENT", "PAUSE", "1200", "WRITE")
    began = time.monotonic()
    with pytest.raises(CoordinationUnavailable):
        await coordination.leases.beat("m")
    assert 0.45 < time.monotonic() - began < 1.1
    await send(client, "CLIENT", "UNPAUSE")


async def test_no_address_is_unavailable() -> None:
    """Connecting fails in time, and leaves nothing open."""
    with pytest.raises(CoordinationUnavailable):
        await RedisCoordination.connect("redis://127.0.0.1:1", lookahead=SECOND, margin=SECOND)


async def test_a_full_server_keeps_leases_and_claims_nothing(
    client: Redis, coordination: RedisCoordination
) -> None:
    """Renewing works without memory; a claim fails whole, and succeeds when there is room again."""
    await hold(coordination, client)
    copies = [due(coordination, recurs=True) for _ in range(5)]
    await client.config_set("maxmemory", 1)
    assert await coordination.leases.renew({0: "t"}) == {0: LeaseAnswer.HELD}
    with pytest.raises(CoordinationUnavailable):
        await coordination.claims.claim(0, "t", copies)
    await client.config_set("maxmemory", 0)
    assert await coordination.jobs.lengths([0]) == {0: 0}
    answers = await coordination.claims.claim(0, "t", copies)
    assert answers == [ClaimAnswer.CLAIMED] * 5


async def test_without_replicas_that_are_demanded_nothing_is_claimed(
    client: Redis, coordination: RedisCoordination
) -> None:
    """An isolated master must stop: NOREPLICAS is unavailability."""
    await hold(coordination, client)
    await client.config_set("min-replicas-to-write", 1)
    with pytest.raises(CoordinationUnavailable):
        await coordination.claims.claim(0, "t", [due(coordination)])
    with pytest.raises(CoordinationUnavailable):
        await coordination.leases.renew({0: "t"})
    await client.config_set("min-replicas-to-write", 0)


async def test_a_broken_stream_does_not_lose_what_was_handed_on(
    client: Redis, coordination: RedisCoordination
) -> None:
    """An error half-way rolls nothing back: what got its job is on record as claimed."""
    await hold(coordination, client)
    await client.set("fires:{0}", "no stream")
    copies = [due(coordination), due(coordination, recurs=True), due(coordination)]
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await coordination.claims.claim(0, "t", copies)
    await client.delete("fires:{0}")
    answers = await coordination.claims.claim(0, "t", copies)
    assert answers == [ClaimAnswer.DUPLICATE, ClaimAnswer.DUPLICATE, ClaimAnswer.CLAIMED]
    assert await coordination.jobs.lengths([0]) == {0: 3}


async def test_keys_carry_their_shard_and_end(
    client: Redis, coordination: RedisCoordination
) -> None:
    """On a cluster a shard is in one slot; what is not a stream or a home ends by itself."""
    await hold(coordination, client, 7)
    copy = due(coordination, shard=7, recurs=True)
    await coordination.claims.claim(7, "t", [copy])
    await coordination.claims.revoke(7, "r", through_version=1, entries=[copy.state.entry])
    await coordination.hints.announce([copy.state.entry], written_from=copy.read_at)
    lives = {key: await client.pttl(key) for key in await client.keys()}
    minute = int(copy.state.entry.promised_at.timestamp() // 60)
    fired, void, lease = f"fired:{{7}}:{minute}", "void:{7}:r", "lease:{7}"
    assert set(lives) == {lease, fired, void, "home:{7}", "jobs:{7}", "fires:{7}", "near:{7}"}
    assert lives[lease] == pytest.approx(3000, abs=500)
    assert lives[fired] == pytest.approx(6 * 3_600_000, abs=500)
    assert lives[void] == pytest.approx(120_000, abs=500)
    assert lives["home:{7}"] == lives["jobs:{7}"] == -1


async def test_reclaiming_forgets_dead_consumers_that_hold_nothing(
    client: Redis, coordination: RedisCoordination
) -> None:
    """One that holds a message stays, however long it was silent."""
    jobs = coordination.jobs
    await hold(coordination, client)
    await coordination.claims.claim(0, "t", [due(coordination) for _ in range(2)])
    await jobs.done(await jobs.read("finished", [0], count=1, wait=NO_WAIT))
    await jobs.read("holding", [0], count=1, wait=NO_WAIT)
    await asyncio.sleep(0.03)  # idle by the server's time
    await jobs.reclaim("alive", [0], idle=timedelta(hours=1), count=10)
    consumers = await client.xinfo_consumers("jobs:{0}", "dispatchers")
    assert [consumer["name"] for consumer in consumers] == ["holding"]


async def test_a_wait_longer_than_a_block_is_waited_out(coordination: RedisCoordination) -> None:
    """One read is made of several blocking ones, each shorter than its socket's time-out."""
    began = time.monotonic()
    assert await coordination.jobs.read("c", [0], count=1, wait=timedelta(seconds=0.7)) == []
    assert time.monotonic() - began >= 0.7


async def test_blocked_reads_hold_up_nobody(client: Redis, coordination: RedisCoordination) -> None:
    """They have connections of their own, as many as it takes."""
    reads = [
        asyncio.create_task(coordination.jobs.read("c", [0], count=1, wait=LONG)) for _ in range(50)
    ]

    async def most_blocked() -> bool:
        return int((await client.info("clients"))["blocked_clients"]) > 40

    await until(most_blocked)
    began = time.monotonic()
    await coordination.leases.acquire(0, "t")
    assert time.monotonic() - began < 0.25
    for read in reads:
        read.cancel()
    await asyncio.gather(*reads, return_exceptions=True)


async def test_many_commands_at_once_share_the_pool(coordination: RedisCoordination) -> None:
    """More callers than connections queue; nobody is refused."""
    await asyncio.gather(*(coordination.leases.holder(n) for n in range(100)))


async def test_too_big_a_batch_is_refused(client: Redis, coordination: RedisCoordination) -> None:
    """It would hold up the server and break Lua's stack."""
    await hold(coordination, client)
    copies = [due(coordination, group_id="g") for _ in range(MAX_BATCH)]
    answers = await coordination.claims.claim(0, "t", copies)
    assert answers == [ClaimAnswer.CLAIMED] * MAX_BATCH
    with pytest.raises(ValueError, match="at most"):
        await coordination.claims.claim(0, "t", [*copies, copies[0]])


async def test_the_clock_is_the_servers(client: Redis, coordination: RedisCoordination) -> None:
    """To a few milliseconds, on a machine shared with everything else; sleeping is never early."""
    seconds, micros = await client.time()
    now = coordination.clock.now()
    assert abs(now.timestamp() - seconds - micros / 1e6) < 0.05
    assert coordination.clock.in_bounds()
    until = now + timedelta(milliseconds=20)
    await coordination.clock.sleep_until(until)
    seconds, micros = await client.time()
    assert coordination.clock.now() >= until
    assert seconds + micros / 1e6 >= until.timestamp() - 0.001


async def test_what_ends_the_sampling_is_not_swallowed(coordination: RedisCoordination) -> None:
    """A bug in the background reaches whoever asks for the bounds."""

    async def broken() -> None:
        raise ZeroDivisionError

    await coordination.clock.close()
    coordination.clock._sampling = asyncio.create_task(broken(), name="broken")
    await asyncio.wait([coordination.clock._sampling])
    with pytest.raises(ZeroDivisionError):
        coordination.clock.in_bounds()
    coordination.clock._sampling = None


async def test_a_cancelled_caller_ends(coordination: RedisCoordination) -> None:
    """Whenever it is cancelled: a client that waits for writes by `asyncio.wait_for` swallowed it,
    on Python 3.11, in the moment in which a write ended.
    """

    async def for_ever() -> None:
        while True:
            await coordination.leases.holder(0)
            await coordination.jobs.lengths([0])

    deaf = []
    for turns in range(400):
        loop = asyncio.create_task(for_ever(), name="loop")
        for _ in range(turns % 40):
            await asyncio.sleep(0)
        loop.cancel()
        _, left = await asyncio.wait({loop}, timeout=1)
        if left:
            deaf.append(turns)
        while not loop.done():
            loop.cancel()
            await asyncio.wait({loop}, timeout=0.001)
    assert not deaf

"""Faults of Redis, of the way to it, and of whoever operates it."""

import contextlib
import time
from collections.abc import Iterator
from datetime import timedelta

from reminders.localstack.ring import Server
from tests.acceptance.system import until
from tests.chaos.playing import scenario
from tests.chaos.proxy import Proxy, Way
from tests.chaos.stage import Stage

PARTITIONED_S = 12.0
SLOW_S = 0.1
"""Each way: 200 ms a round trip."""
GROUP = "dispatchers"


@scenario("Redis: FLUSHALL")
def flushed(stage: Stage) -> None:
    """Leases, claims, voids and jobs are gone; the server is the same."""
    stage.load(20)
    stage.until_arrived(80)
    with stage.trouble("FLUSHALL", explains=True):
        stage.redis("FLUSHALL" if stage.world.ring else "FLUSHDB")


@scenario("Redis: stream trimmed while jobs wait")
def trimmed(stage: Stage) -> None:
    """By mistake: what was claimed has no job any more, and is given one again."""
    _lose_jobs(stage, ("XTRIM", "MAXLEN", "0"))


@scenario("Redis: streams deleted while jobs wait")
def deleted(stage: Stage) -> None:
    """With their consumer groups."""
    _lose_jobs(stage, ("DEL",))


def _lose_jobs(stage: Stage, command: tuple[str, ...]) -> None:
    """While the dispatchers are stopped, so that there is something to lose."""
    dispatchers = [name for name in stage.fleet.names if name.startswith("dispatcher")]
    stage.load(15)
    stage.until_arrived(40)
    with stage.trouble(f"{command[0]} of jobs that wait", explains=True):
        stage.fleet.pause(*dispatchers)
        time.sleep(3)
        lost = 0
        with stage.world.redis() as client:
            for key in client.scan_iter("jobs:*"):
                lost += client.xlen(key)
                client.execute_command(command[0], key, *command[1:])
        stage.fleet.resume(*dispatchers)
    stage.must(lost > 10, f"only {lost} jobs were there to lose")


@scenario("Redis: jobs given to a second consumer while they run")
def given_twice(stage: Stage) -> None:
    """As if they had been idle for long: two dispatchers work on one job."""
    stage.world.receiver.slowness_s[stage.tag] = 3.0
    stage.load(8, ahead=15, live=0)
    stage.until_arrived(30)
    given = 0
    with stage.trouble("XCLAIM of running jobs", explains=True), stage.world.redis() as client:
        for key in client.scan_iter("jobs:*"):
            pending = client.xpending_range(key, GROUP, "-", "+", 20)
            for one in pending:
                client.execute_command(
                    "XCLAIM", key, GROUP, "operator", 0, one["message_id"], "IDLE", 60_000
                )
                given += 1
        time.sleep(5)
    stage.must(given > 5, f"only {given} jobs were under way")


# --- the way to it --------------------------------------------------------------------------------


@contextlib.contextmanager
def _by_proxy(stage: Stage, *names: str) -> Iterator[Proxy]:
    """Those services reach Redis through it, for the length of the block."""
    backstage = stage.world.backstage
    host, _, port = stage.world.redis_url().partition("//")[2].partition("/")[0].partition(":")
    proxy = backstage.run(Proxy((host, int(port))).start())
    database = stage.world.redis_url().rpartition("/")[2]
    try:
        stage.fleet.stop(*names)
        stage.fleet.start(*names, redis_url=f"redis://127.0.0.1:{proxy.port}/{database}")
        yield proxy
        backstage.run(proxy.heal())
        stage.await_deliveries()
    finally:
        stage.fleet.stop(*[name for name in names if name in stage.fleet.system.running])
        backstage.run(proxy.close())
        stage.fleet.start(*names)


@scenario("Redis: 200 ms away", within_s=3)
def slow(stage: Stage) -> None:
    """For every service: all goes on, a little later."""
    with (
        _by_proxy(stage, *stage.fleet.names) as proxy,
        stage.trouble("Redis is slow", explains=False),
    ):
        stage.world.backstage.run(proxy.delay(SLOW_S))
        stage.load(20)
        stage.await_deliveries()


@scenario("Redis: partitioned from one scanner", within_s=5)
def partitioned(stage: Stage) -> None:
    """It loses its shards to the other; what it had sent arrives when the line is good again."""
    with _by_proxy(stage, "scanner") as proxy:
        stage.load(25)
        stage.until_arrived(60)
        with stage.trouble("no way between a scanner and Redis", explains=False):
            stage.world.backstage.run(proxy.hold(Way.BOTH))
            time.sleep(PARTITIONED_S)
            stage.world.backstage.run(proxy.heal())


@scenario("Redis: answers to one scanner held up", within_s=5)
def half_open(stage: Stage) -> None:
    """Its commands work, and it never hears of it: what it claimed looks as if it were not."""
    with _by_proxy(stage, "scanner") as proxy:
        stage.load(25)
        stage.until_arrived(60)
        with stage.trouble("no way from Redis to a scanner", explains=False):
            stage.world.backstage.run(proxy.hold(Way.ANSWERING))
            time.sleep(PARTITIONED_S)
            stage.world.backstage.run(proxy.heal())


@scenario("Redis: connections cut, again and again", within_s=20)
def cut(stage: Stage) -> None:
    """Of all services. What is created meanwhile for a moment later can't be announced: then the
    trailing scan finds it, which may look away for up to 16 s.
    """
    with _by_proxy(stage, *stage.fleet.names) as proxy:
        stage.load(20)
        stage.until_arrived(60)
        with stage.trouble("connections to Redis are reset", explains=True):
            for _ in range(5):
                stage.world.backstage.run(proxy.cut())
                time.sleep(0.5)
                stage.world.backstage.run(proxy.heal())
                time.sleep(1)


# --- several servers ------------------------------------------------------------------------------


def _master(stage: Stage) -> Server:
    assert stage.world.ring is not None
    address = stage.world.redis_url().partition("//")[2].partition("/")[0]
    return next(
        server for server in stage.world.ring.redis if "{}:{}".format(*server.address) == address
    )


def _all_follow(stage: Stage) -> bool:
    """Whether both replicas follow the master."""
    with stage.world.redis() as client:
        told = client.info("replication")
    return told["role"] == "master" and int(told["connected_slaves"]) == len(_others(stage))


def _others(stage: Stage) -> list[Server]:
    assert stage.world.ring is not None
    return stage.world.ring.redis[1:]


@scenario("Redis: restarted empty", ring=True)
def restarted_empty(stage: Stage) -> None:
    """Before a sentinel notices: the replicas follow the empty one, all data is gone."""
    stage.load(20)
    stage.until_arrived(80)
    master = _master(stage)
    with stage.trouble("the master comes back without its data", explains=True):
        master.kill()
        master.erase()
        master.start()
        master.wait()
    stage.must(_master(stage) is master, "there was a fail-over: it did not restart in time")
    until(lambda: _all_follow(stage), "both replicas follow the master")


@scenario("Redis: master killed, fail-over", ring=True)
def failed_over(stage: Stage) -> None:
    """The services follow the sentinels to the new master, and distrust what it remembers."""
    stage.load(35)
    stage.until_arrived(80)
    master = _master(stage)
    with stage.trouble("kill -9 of the master", explains=True):
        master.kill()
        until(lambda: _master(stage) is not master, "a new master")
        stage.say(f"new master: {_master(stage).name}")
        # What counts is when the services have found it, not when there is one.
        time.sleep(timedelta(seconds=3).total_seconds())
    master.start()
    master.wait()
    until(lambda: _all_follow(stage), "both replicas follow the new master")


@scenario("Redis: master hangs, fail-over, wakes", ring=True)
def hung(stage: Stage) -> None:
    """It wakes as a second master, until the sentinels make a replica of it: it takes no claim."""
    stage.load(35)
    stage.until_arrived(80)
    master = _master(stage)
    with stage.trouble("SIGSTOP of the master", explains=True):
        master.pause()
        until(lambda: _master(stage) is not master, "a new master")
        stage.say(f"new master: {_master(stage).name}")
        time.sleep(5)
        master.resume()
    until(lambda: _all_follow(stage), "both replicas follow the new master")

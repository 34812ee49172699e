"""Faults of the services themselves."""

import time
from datetime import UTC, datetime, timedelta

from tests.acceptance.system import until
from tests.chaos.fleet import ONE_OF_EACH
from tests.chaos.playing import scenario
from tests.chaos.stage import Stage

STOPPED_S = 10.0
IDLE_S = 14.0
"""A job untouched for so long is taken over by another dispatcher (12 s, looked for every 2 s)."""


@scenario("scanner killed", within_s=5)
def scanner_killed(stage: Stage) -> None:
    """Another takes its shards over when the lease has run out."""
    stage.load(20)
    stage.until_arrived(60)
    stage.must(stage.fleet.shards_led("scanner"), "the scanner led nothing when it was killed")
    with stage.trouble("kill -9 of a scanner", explains=False):
        stage.fleet.kill("scanner")


@scenario("scanner stopped for 10 s, woken", within_s=5)
def scanner_stopped(stage: Stage) -> None:
    """It wakes with a heap full of what others claimed meanwhile, and must do no harm."""
    stage.load(25)
    stage.until_arrived(60)
    with stage.trouble("SIGSTOP of a scanner", explains=False):
        stage.fleet.pause("scanner")
        time.sleep(STOPPED_S)
        stage.fleet.resume("scanner")


@scenario("scanner leaves on SIGTERM and joins again", within_s=3)
def scanner_leaves(stage: Stage) -> None:
    """Drained first, released after; a join takes shards over without a gap."""
    stage.load(25)
    stage.until_arrived(60)
    with stage.trouble("SIGTERM of a scanner, and a new one", explains=False):
        stage.fleet.stop("scanner")
        time.sleep(4)
        stage.fleet.start("scanner")
        until(lambda: stage.fleet.shards_led("scanner"), "the new scanner leads shards")


@scenario("dispatcher killed in a burst", within_s=25)
def dispatcher_killed(stage: Stage) -> None:
    """What it had sent and not put on record yet may come again; all else comes."""
    stage.world.receiver.slowness_s[stage.tag] = 0.05
    at = stage.due(datetime.now(UTC) + timedelta(seconds=6))
    stage.create([at] * 800)
    stage.until_arrived(100)
    with stage.trouble("kill -9 of a dispatcher", explains=True):
        stage.fleet.kill("dispatcher")


@scenario("dispatcher stopped for 20 s, woken", within_s=30)
def dispatcher_stopped(stage: Stage) -> None:
    """Its jobs are given to another meanwhile: two consumers have one job."""
    stage.world.receiver.slowness_s[stage.tag] = 0.2
    stage.load(12, ahead=40)
    stage.until_arrived(100)
    with stage.trouble("SIGSTOP of a dispatcher", explains=True):
        stage.fleet.pause("dispatcher")
        time.sleep(IDLE_S + 6)
        stage.fleet.resume("dispatcher")


@scenario("expander killed", within_s=25)
def expander_killed(stage: Stage) -> None:
    """One, then the other as well: rules go on with what comes back, and none of their times is
    missing.
    """
    numbers = stage.notes.numbers(30)
    start = (datetime.now(UTC) + timedelta(seconds=4)).replace(microsecond=0)
    every_s, count = 2, 12
    stage.client.create([stage.client.rule(n, start, every_s, count) for n in numbers])
    stage.due(start + timedelta(seconds=every_s * count))
    stage.load(every_s * count, ahead=5, live=0)
    stage.until_arrived(60)
    with stage.trouble("kill -9 of an expander, and of the other", explains=False):
        stage.fleet.kill("expander")
        time.sleep(4)
        stage.fleet.kill("expander-2")
        time.sleep(2)
        stage.fleet.start("expander-2")


@scenario("scheduler killed in a stream of creates")
def scheduler_killed(stage: Stage) -> None:
    """What it had answered rings; what it had not is sent again and made once."""
    numbers = stage.notes.numbers(600)
    start = datetime.now(UTC) + timedelta(seconds=8)
    requests = [
        stage.client.request(n, stage.due(start + timedelta(seconds=i / 60)))
        for i, n in enumerate(numbers)
    ]
    left = list(requests)

    def stream() -> None:
        left[:] = stage.client.stream(requests, pause_s=0.05)

    stage.meanwhile("stream", stream)
    until(lambda: len(stage.notes.expected) > 150, "150 creates acknowledged")
    with stage.trouble("kill -9 of a scheduler", explains=False):
        stage.fleet.kill("scheduler")
        stage.callers[-1].join(30)
    stage.must(left, "the stream had ended before the scheduler was killed")
    stage.say(f"{len(left)} of {len(requests)} were not answered, and are sent again")
    stage.client.create(left)


@scenario("every service killed at once")
def all_killed(stage: Stage) -> None:
    """Some had come, some were under way, some came due while nothing ran."""
    stage.load(20, live=0)
    stage.until_arrived(80)
    with stage.trouble("kill -9 of all services", explains=True):
        stage.fleet.kill(*stage.fleet.names)
        time.sleep(3)
        stage.fleet.start(*ONE_OF_EACH)

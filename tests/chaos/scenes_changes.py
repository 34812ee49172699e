"""Changes that race with claims, by many callers at once."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from tests.chaos.playing import scenario
from tests.chaos.rules import Duty
from tests.chaos.stage import Stage

CALLERS = 16
STORM_S = 20
STORM_RATE = 15
EARLIEST_S, LATEST_S = -0.4, 0.3
"""When a change is asked for, relative to the time of the ring."""
MOVED_S = 4.0
SEED = 20261130


@scenario("cancels and reschedules against claims, a scanner killed meanwhile", within_s=10)
def storm(stage: Stage) -> None:
    """Each within a moment of the ring: what answered "not fired" never rings, all else does."""
    dice = random.Random(SEED)
    start = datetime.now(UTC) + timedelta(seconds=5)
    at = [start + timedelta(seconds=i / STORM_RATE) for i in range(STORM_S * STORM_RATE)]
    numbers = stage.create([stage.due(each) for each in at])

    def change(number: int, due: datetime, asked_s: float, kind: str) -> None:
        time.sleep(max(0.0, due.timestamp() + asked_s - time.time()))
        if kind == "cancel":
            stage.client.cancel(number)
        elif kind == "move":
            to = stage.due(datetime.now(UTC) + timedelta(seconds=MOVED_S))
            stage.client.reschedule(number, to)

    def all_changes() -> None:
        with ThreadPoolExecutor(CALLERS) as callers:
            futures = [
                callers.submit(
                    change,
                    number,
                    due,
                    dice.uniform(EARLIEST_S, LATEST_S),
                    dice.choice(("cancel", "move", "leave")),
                )
                for number, due in zip(numbers, at, strict=True)
            ]
        for future in futures:
            future.result()

    stage.meanwhile("changes", all_changes)
    time.sleep(12)
    with stage.trouble("kill -9 of a scanner", explains=False):
        stage.fleet.kill("scanner-2")
    stage.callers[-1].join(STORM_S + 60)
    duties = [duty for each in stage.notes.expected.values() for duty in each.duties.values()]
    never, may = duties.count(Duty.NEVER), duties.count(Duty.MAY)
    stage.say(f"{never} answered not fired, {may} were not answered")
    stage.must(never > 20, "hardly any change came in time")
    stage.must(len(duties) - never > 20, "hardly any change came too late")


@scenario("group cancelled under load", within_s=5)
def group_cancelled(stage: Stage) -> None:
    """What rings after the answer's time is void; what is created after it rings."""
    group = f"{stage.tag}-group"
    start = datetime.now(UTC) + timedelta(seconds=5)
    at = [start + timedelta(seconds=i / 40) for i in range(800)]
    members = stage.create([stage.due(each) for each in at], group=group)
    stage.load(15, lead_s=2)
    stage.until_arrived(150)
    with stage.trouble("CancelGroup", explains=False):
        began = time.monotonic()
        cancelled_at = stage.client.cancel_group(group)
        took_s = time.monotonic() - began
    after = [stage.due(datetime.now(UTC) + timedelta(seconds=2 + i / 20)) for i in range(100)]
    stage.create(after, group=group)
    with stage.notes.lock:
        for number, due in zip(members, at, strict=True):
            duties = stage.notes.expected[number].duties
            for name in duties:
                duties[name] = Duty.NEVER if due > cancelled_at else Duty.MAY
    stage.say(f"answered in {took_s:.2f} s")
    stage.must(took_s < 2.0, f"the cancel took {took_s:.2f} s")

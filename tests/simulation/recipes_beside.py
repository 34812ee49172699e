"""Recipes around what changes a reminder without moving it, what rings beside its schedule, and
what newer zone data moves.
"""

from collections.abc import Callable

from tests.simulation.draft import Draft
from tests.simulation.plan import AnyItem, Crash, FailOver, Flush, Interference, Pause, Stop
from tests.simulation.wishes import (
    Backfill,
    Cancel,
    NewZoneData,
    Recompute,
    Reschedule,
    Silence,
    Subscribe,
    Trigger,
    Update,
    Wake,
)
from tests.simulation.zonedata import ZONE

UPDATE_CALLS = (
    *("due.put", "records.begin", "due.mark", "claims.revoke", "records.add_live", "users.add"),
    *("hints.announce", "records.end", "due.handled"),
)
TRIGGER_CALLS = (
    *("dedup.claim", "records.beside", "ledger.page", "records.add_live", "records.read"),
    *("due.put", "hints.announce", "records.drop_live"),
)
PAGE_CALLS = (
    "due.put",
    "ledger.page",
    "records.read",
    "hints.announce",
    "due.handled",
    "jobs.done",
)
WALK_CALLS = (
    *("records.scan", "records.begin", "due.mark", "claims.revoke", "records.add_live", "due.put"),
    *("records.end", "due.handled", "sweeps.save"),
)
CROWD_CALLS = (
    *("due.put", "subscribers.page", "fanouts.", "ledger.", "records.read", "due.handled"),
    *("jobs.done", "hints.announce"),
)
MISHAPS = ("crash", "crash_after", "unheard", "lost", "refused", "pause", "late")


def edited(draft: Draft) -> None:
    """Other content shortly before, while and after it rings; perhaps within a fault."""
    rng, at = draft.rng, draft.some_time()
    name = draft.reminder(at, every_s=rng.choice((0, 0, 1, 5, 20)), count=rng.choice((0, 6)))
    when = at + rng.choice((-5_000, -300, -50, 0, 30, 200, 2_000)) + rng.randrange(60)
    for number in range(rng.choice((1, 1, 2, 3))):
        draft.add(
            Update(
                at=when + number * rng.choice((10, 700, 4_000)),
                target=name,
                via=rng.randrange(3),
                catch_up=rng.choice(("", "all", "none")),
                channels=rng.choice(((), (), ("inbox", "desk"), ("phone",))),
            )
        )
    _mishap(draft, when, "scheduler", UPDATE_CALLS)
    _forgetful_redis(draft, when)


def triggered(draft: Draft) -> None:
    """It rings once more, while it is changed, paused or ringing anyway."""
    rng, at = draft.rng, draft.some_time()
    rings = at + rng.choice((-3_000, 0, 100, 3_000, 60_000))
    name = draft.reminder(
        max(3_000, rings), every_s=rng.choice((0, 0, 2, 20)), count=rng.choice((0, 6))
    )
    for number in range(rng.choice((1, 2, 4))):
        draft.add(
            Trigger(
                at=at + number * rng.choice((0, 3, 900)),
                target=name,
                via=rng.randrange(3),
                once=rng.random() < 0.2,
            )
        )
    _mishap(draft, at, "scheduler", TRIGGER_CALLS)
    if rng.random() < 0.7:
        draft.add(_some_change(draft, name, at + rng.choice((-20, 0, 5, 40, 300, 2_000))))
    _forgetful_redis(draft, at)


def backfilled(draft: Draft) -> None:
    """What a rule named before it was there, and what was skipped while nobody expanded it."""
    rng, at = draft.rng, draft.some_time()
    every_s = rng.choice((1, 2, 5))
    begins = at - rng.choice((2_000, 20_000, 40_000, 60_000 + 60_000 * every_s))
    created = max(2_000, at - rng.choice((0, 8_000)))
    name = draft.reminder(
        begins,
        ahead=begins - created,
        every_s=every_s,
        count=rng.choice((0, 60 // every_s + 5)),
        catch_up=rng.choice(("none", "latest")),
    )
    if rng.random() < 0.4:
        draft.add(Crash(at=at, process="expander", down=rng.choice((8_000, 40_000))))
    when = at + rng.choice((500, 3_000, 20_000))
    for number in range(rng.choice((1, 1, 2))):
        draft.add(
            Backfill(
                at=when + number * 400,
                target=name,
                via=rng.randrange(3),
                start=begins + rng.choice((-5_000, 0, 7_000)),
                end=rng.choice((0, 0, at, when + 5_000)),
            )
        )
    _mishap(draft, when, rng.choice(("scheduler", "dispatcher")), PAGE_CALLS)
    if rng.random() < 0.3:
        draft.add(_some_change(draft, name, when + rng.choice((300, 1_500, 4_000))))
    _forgetful_redis(draft, when + 1_500)


def moved_by_data(draft: Draft) -> None:
    """Newer zone data is installed, machine after machine, and an operator has everything moved,
    while it rings, is changed, and a walk dies.
    """
    rng, at = draft.rng, draft.some_time()
    draft.shift_s = draft.shift_s or rng.choice((-40, -12, -3, 2, 7, 25))
    names = [
        draft.reminder(
            (at + rng.randrange(-10_000, 40_000)) // 1000 * 1000,
            ahead=20_000,
            every_s=rng.choice((0, 0, 5, 20)),
            count=rng.choice((0, 5)),
            wall=True,
            zone=ZONE,
        )
        for _ in range(4)
    ]
    draft.add(NewZoneData(at=at, shift_s=draft.shift_s))
    for service in ("scheduler", "expander", "dispatcher", "scanner"):
        for number in range(draft.instances):
            if rng.random() < 0.9:
                when = at + rng.randrange(200, 6_000)
                draft.add(Stop(at=when, process=f"{service}-{number}", down=300))
    walk = at + rng.randrange(2_000, 9_000)
    draft.add(Recompute(at=walk, via=rng.randrange(3)))
    if rng.random() < 0.3:
        draft.add(Recompute(at=walk + rng.randrange(2_000), via=rng.randrange(3)))
    _mishap(draft, walk, "scheduler", WALK_CALLS)
    if rng.random() < 0.5:
        draft.add(_some_change(draft, rng.choice(names), walk + rng.randrange(-500, 2_000)))
    _forgetful_redis(draft, walk)


def woken(draft: Draft) -> None:
    """Silenced and woken, around the time at which it rings; within a fault."""
    rng, at = draft.rng, draft.some_time()
    name = draft.reminder(at, every_s=rng.choice((0, 0, 2, 10)), count=rng.choice((0, 6)))
    silent = at + rng.choice((-4_000, -200, -20, 10, 500))
    awake = silent + rng.choice((50, 600, 5_000, 15_000))
    draft.add(Silence(at=silent, target=name, via=rng.randrange(3)))
    draft.add(Wake(at=awake, target=name, via=rng.randrange(3)))
    _mishap(draft, rng.choice((silent, awake)), "scheduler", UPDATE_CALLS)
    _forgetful_redis(draft, silent)


def crowd(draft: Draft) -> None:
    """A topic's reminder goes to all its subscribers, page by page, while dispatchers die between
    and within pages, Redis forgets, and somebody cancels it.
    """
    rng, at = draft.rng, draft.some_time()
    draft.crowds += 1
    topic = f"t{draft.crowds}"
    draft.add(Subscribe(at=500, topic=topic, count=rng.choice((5, 40, 120))))
    name = draft.reminder(at, every_s=rng.choice((0, 0, 20)), count=2, topic=topic)
    for _ in range(rng.choice((1, 1, 2))):
        _mishap(draft, at + rng.choice((1, 1, 400, 1_200)), "dispatcher", CROWD_CALLS)
    if rng.random() < 0.4:
        when = at + rng.randrange(2_000)
        draft.add(Crash(at=when, process="dispatcher", down=rng.choice((100, 3_000))))
    if rng.random() < 0.25:
        draft.add(_some_change(draft, name, at + rng.randrange(-200, 2_000)))
    _forgetful_redis(draft, at + rng.randrange(1_000))


# --- what goes wrong meanwhile --------------------------------------------------------------------


def _some_change(draft: Draft, name: str, when: int) -> AnyItem:
    rng, via = draft.rng, draft.rng.randrange(3)
    return rng.choice(
        (
            Cancel(at=when, target=name, via=via),
            Silence(at=when, target=name, via=via),
            Update(at=when, target=name, via=via),
            Reschedule(at=when, target=name, via=via, rings=when + rng.choice((900, 12_000))),
        )
    )


def _mishap(draft: Draft, at: int, service: str, calls: tuple[str, ...]) -> None:
    rng = draft.rng
    if rng.random() < 0.6:
        draft.add(
            Interference(
                at=at - 1,
                process=service,
                call=rng.choice(calls),
                skip=rng.choice((0, 0, 0, 1)),
                mode=rng.choice(MISHAPS),
                span=rng.choice((300, 3_000, 20_000, 100_000)),
            )
        )


def _forgetful_redis(draft: Draft, at: int) -> None:
    rng = draft.rng
    chance = rng.random()
    when = at + rng.choice((-200, 20, 300, 1_500))
    if chance < 0.15:
        draft.add(Flush(at=when, restart=rng.random() < 0.5))
    elif chance < 0.3:
        lag = rng.choice((100, 500, 2_000))
        draft.add(FailOver(at=when, lag=lag, keep=rng.choice(((), ("leases",)))))
    elif chance < 0.4:
        draft.add(Pause(at=when, process=draft.one("scanner"), for_=rng.choice((1_500, 8_000))))


BESIDE: tuple[Callable[[Draft], None], ...] = (
    edited,
    triggered,
    backfilled,
    moved_by_data,
    woken,
    crowd,
)

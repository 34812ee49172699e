"""From a seed to a plan: some reminders, some operators, some kinds of faults, and a few recipes.

Each seed has its own mixture (swarm testing): a run with every fault at once would hide most of
what each can do. `recipes` holds those that need several things to meet.
"""

import random
from collections.abc import Callable

from tests.simulation.draft import Draft
from tests.simulation.plan import (
    AnyItem,
    Crash,
    Cut,
    Drift,
    FailOver,
    Flush,
    Interference,
    Pause,
    Plan,
    Receiver,
    Slow,
    Stop,
    Trim,
)
from tests.simulation.recipes import RECIPES
from tests.simulation.wishes import Cancel, Create, Get, Reschedule, Silence, Trigger, Update, Wake

RECEIVERS = ("inbox", "phone", "desk", "hook")
SERVICES = ("scheduler", "scanner", "dispatcher", "expander")
FIRST_MS = 2_000
"""When the first reminder is created: everything is up."""

STORE_WRITES = (
    *("due.put", "due.mark", "due.handled", "due.expanded", "records.create", "records.begin"),
    *("records.end", "records.add_live", "ledger.write", "users.", "progress.", "dedup."),
)
STORE_READS = ("due.slice", "due.counts", "due.read", "records.read", "ledger.read", "ledger.page")
REDIS = (
    *("claims.claim", "claims.re", "leases.renew", "leases.acquire", "leases.beat", "hints."),
    *("jobs.read", "jobs.done", "jobs.touch", "jobs.reclaim", "fires.read", "fires.done", "time"),
)
MODES = (
    *("lost", "refused", "late", "unheard", "twice", "partial"),
    *("crash", "crash_after", "crash", "crash_after", "pause", "pause_after"),
)


def generate(seed: int) -> Plan:
    """The plan of a seed."""
    rng = random.Random(f"plan {seed}")
    length = rng.randrange(60, 180) * 1000
    draft = Draft(rng, length, instances=rng.choice((1, 2, 3, 3, 3)))
    for number in range(rng.randrange(5, 30)):
        _reminder(draft, f"c{number}")
    for fault in rng.sample(FAULTS, rng.choice((0, 1, 2, 3, 5))):
        for _ in range(rng.randrange(1, 5)):
            draft.add(fault(draft))
    for recipe in rng.sample(RECIPES, rng.choice((0, 2, 3, 5))):
        recipe(draft)
    return Plan(
        seed=seed,
        length=length,
        items=draft.in_order(),
        shards=rng.choice((1, 2, 4, 4)),
        instances=draft.instances,
    )


def _reminder(draft: Draft, name: str) -> None:
    """One, and what becomes of it."""
    rng = draft.rng
    at = rng.randrange(FIRST_MS, draft.length - 20_000)
    ahead = rng.choice((-20_000, 0, 500, 5_000, 20_000, 28_000, 40_000, 90_000))
    rings = max(at + ahead + rng.randrange(2_000), FIRST_MS)
    rule = rng.random() < 0.25
    draft.add(
        Create(
            at=at,
            name=name,
            via=rng.randrange(3),
            rings=rings // 1000 * 1000 if rule or rng.random() < 0.2 else rings,
            every_s=rng.choice((1, 5, 10, 20, 60)) if rule else 0,
            count=rng.choice((0, 2, 3, 8)) if rule else 0,
            catch_up=rng.choice(("latest", "all", "none")),
            channels=tuple(rng.sample(RECEIVERS, rng.choice((1, 1, 2)))),
            keyed=rng.random() < 0.4,
        )
    )
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        _change(draft, name, rings)


def _change(draft: Draft, name: str, rings: int) -> None:
    """Mostly about when it rings."""
    rng = draft.rng
    when = rng.choice(
        (rings + rng.randrange(-600, 600), rng.randrange(rings - 5_000, rings + 9_000))
    )
    when, via = max(when, FIRST_MS), rng.randrange(3)
    kind = rng.random()
    if kind < 0.4:
        draft.add(Cancel(at=when, target=name, via=via))
    elif kind < 0.7:
        rule = rng.random() < 0.2
        draft.add(
            Reschedule(
                at=when,
                target=name,
                via=via,
                rings=when + rng.choice((300, 3_000, 25_000, 50_000)) + rng.randrange(1_000),
                every_s=rng.choice((5, 10, 20)) if rule else 0,
                count=3 if rule else 0,
            )
        )
    elif kind < 0.76:
        draft.add(Update(at=when, target=name, via=via, catch_up=rng.choice(("", "all"))))
    elif kind < 0.82:
        draft.add(Trigger(at=when, target=name, via=via))
    elif kind < 0.88:
        draft.add(Get(at=when, target=name, via=via))
    else:
        draft.add(Silence(at=when, target=name, via=via))
        draft.add(Wake(at=when + rng.choice((200, 3_000, 20_000)), target=name, via=via + 1))


# --- faults ---------------------------------------------------------------------------------------


def _process(draft: Draft) -> str:
    return f"{draft.rng.choice(SERVICES)}-{draft.rng.randrange(draft.instances)}"


def _span(draft: Draft) -> int:
    """Mostly short, sometimes longer than leases, idle times or the grace."""
    return draft.rng.choice((50, 300, 1_000, 2_500, 4_000, 8_000, 16_000, 40_000, 90_000, 200_000))


def _crash(draft: Draft) -> AnyItem:
    name = draft.rng.choice((_process(draft), draft.rng.choice(SERVICES)))
    return Crash(at=draft.any_time(), process=name, down=draft.rng.choice((100, 2_000, 15_000)))


def _stop(draft: Draft) -> AnyItem:
    return Stop(at=draft.any_time(), process=_process(draft), down=draft.rng.choice((100, 5_000)))


def _pause(draft: Draft) -> AnyItem:
    return Pause(at=draft.any_time(), process=_process(draft), for_=_span(draft))


def _drift(draft: Draft) -> AnyItem:
    rng = draft.rng
    return Drift(
        at=draft.any_time(),
        process=_process(draft),
        jump=rng.choice((0, 0, 80, -80, 400, -400, 5_000, -5_000)),
        ppm=rng.choice((0, 200, -200, 2_000, -2_000)),
    )


def _write(draft: Draft) -> AnyItem:
    return _interference(draft, STORE_WRITES)


def _read(draft: Draft) -> AnyItem:
    return _interference(draft, STORE_READS)


def _redis(draft: Draft) -> AnyItem:
    return _interference(draft, REDIS)


def _interference(draft: Draft, calls: tuple[str, ...]) -> AnyItem:
    rng = draft.rng
    return Interference(
        at=draft.any_time(),
        process=rng.choice(("", rng.choice(SERVICES))),
        call=rng.choice(calls),
        skip=rng.choice((0, 0, 1, 3)),
        mode=rng.choice(MODES),
        span=_span(draft),
    )


def _cut(draft: Draft) -> AnyItem:
    rng = draft.rng
    name = rng.choice(("", _process(draft), _process(draft), rng.choice(SERVICES)))
    server = rng.choice(("redis", "store"))
    return Cut(
        at=draft.any_time(), process=name, server=server, for_=rng.choice((500, 4_000, 20_000))
    )


def _slow(draft: Draft) -> AnyItem:
    rng = draft.rng
    return Slow(
        at=draft.any_time(),
        server=rng.choice(("redis", "store")),
        by=rng.choice((200, 1_000, 4_000)),
        for_=rng.choice((2_000, 20_000)),
    )


def _flush(draft: Draft) -> AnyItem:
    return Flush(at=draft.any_time(), restart=draft.rng.random() < 0.5)


def _fail_over(draft: Draft) -> AnyItem:
    rng = draft.rng
    return FailOver(
        at=draft.any_time(),
        lag=rng.choice((0, 50, 300, 1_000, 3_000)),
        keep=rng.choice(((), ("leases",), ("leases", "homes"), ("leases", "fired"), ("voids",))),
        clock=rng.choice((0, 0, 100, -100)),
    )


def _trim(draft: Draft) -> AnyItem:
    stream = draft.rng.choice(("jobs", "fires", "near"))
    return Trim(at=draft.any_time(), stream=stream, shard=draft.rng.randrange(4))


def _receiver(draft: Draft) -> AnyItem:
    rng = draft.rng
    return Receiver(
        at=draft.any_time(),
        name=rng.choice(RECEIVERS),
        mode=rng.choice(("429", "500", "slow", "never", "refuses")),
        for_=rng.choice((3_000, 15_000, 40_000)),
    )


FAULTS: tuple[Callable[[Draft], AnyItem], ...] = (
    *(_crash, _stop, _pause, _drift, _write, _write, _write, _read, _redis, _redis),
    *(_cut, _slow, _flush, _fail_over, _trim, _receiver, _receiver),
)

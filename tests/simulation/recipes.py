"""Faults that do harm only together: each recipe makes two or three meet around one reminder."""

from collections.abc import Callable

from tests.simulation.draft import Draft
from tests.simulation.plan import (
    AnyItem,
    Crash,
    Drift,
    FailOver,
    Flush,
    Interference,
    Pause,
    Receiver,
)
from tests.simulation.recipes_beside import BESIDE
from tests.simulation.wishes import Cancel, CancelGroup, Create, Reschedule

MINUTE_MS = 60_000

CHANGE_CALLS = (
    *("due.put", "records.begin", "due.mark", "claims.revoke", "due.read", "users.remove"),
    *("records.add_live", "users.add", "hints.announce", "records.end", "due.handled"),
)
EXPANSION_CALLS = (
    *("records.read", "records.add_live", "users.add", "due.put", "hints.announce"),
    *("due.expanded", "fires.done"),
)
DELIVERY_CALLS = (
    "ledger.read",
    "ledger.write",
    "due.put",
    "hints.announce",
    "due.handled",
    "jobs.done",
)


def stale_heap(draft: Draft) -> None:
    """A scanner stands still with a copy in its heap; the reminder is cancelled, perhaps by way of
    a Redis that forgets; then it wakes.
    """
    rng, at = draft.rng, draft.some_time()
    name = draft.reminder(at)
    still = rng.choice((1_500, 5_000, 20_000))
    draft.add(
        Pause(at=at - rng.randrange(1_000), process=f"scanner-{rng.randrange(3)}", for_=still)
    )
    draft.add(Cancel(at=at - rng.randrange(200, 1_000), target=name, via=rng.randrange(3)))
    if rng.random() < 0.5:
        draft.add(
            FailOver(
                at=at + rng.randrange(-300, 1_500), lag=rng.choice((200, 2_000)), keep=("leases",)
            )
        )


def lost_void(draft: Draft) -> None:
    """A cancel is answered; the promoted replica has the lease and lacks the void."""
    rng, at = draft.rng, draft.some_time()
    for _ in range(3):
        name = draft.reminder(at + rng.randrange(-100, 100))
        draft.add(Cancel(at=at - rng.randrange(150, 900), target=name, via=rng.randrange(3)))
    draft.add(
        FailOver(at=at - rng.randrange(1, 140), lag=rng.choice((300, 1_000)), keep=("leases",))
    )


def lost_job(draft: Draft) -> None:
    """Redis forgets a claim whose job nobody settled yet; somebody cancels before or after."""
    rng, at = draft.rng, draft.some_time()
    for _ in range(3):
        name = draft.reminder(at, every_s=rng.choice((0, 0, 20)), count=3)
        if rng.random() < 0.7:
            draft.add(Cancel(at=at + rng.randrange(5, 900), target=name, via=rng.randrange(3)))
    if rng.random() < 0.7:
        draft.add(Pause(at=at - 200, process="dispatcher", for_=rng.choice((1_000, 3_000, 15_000))))
    when = at + rng.randrange(20, 2_000)
    if rng.random() < 0.5:
        draft.add(Flush(at=when, restart=rng.random() < 0.5))
    else:
        draft.add(FailOver(at=when, lag=when - at + 100, keep=rng.choice(((), ("leases",)))))


def lost_fires(draft: Draft) -> None:
    """Redis forgets that a rule has to go on."""
    rng, at = draft.rng, draft.some_time()
    draft.reminder(at, every_s=rng.choice((5, 10, 20)), count=6)
    draft.add(Pause(at=at - 100, process="expander", for_=rng.choice((500, 3_000, 12_000))))
    draft.add(Flush(at=at + rng.randrange(100, 500)))


def slow_writer(draft: Draft) -> None:
    """A write takes so long that its minute may be settled, and the hint that follows is lost."""
    rng = draft.rng
    minute_end = rng.randrange(1, max(2, draft.length // MINUTE_MS)) * MINUTE_MS + MINUTE_MS
    at = minute_end - rng.randrange(100, 8_000)
    created = at - rng.choice((300, 3_000, 12_000))
    draft.add(
        Create(
            at=created,
            name=draft.name(),
            via=rng.randrange(3),
            rings=at,
            keyed=rng.random() < 0.3,
            patience=rng.choice((20_000, 300_000, 300_000)),
        ),
        Interference(
            at=created - 1,
            process="scheduler",
            call="records.create",
            mode=rng.choice(("pause", "pause", "pause", "late")),
            span=minute_end - created + rng.choice((10_000, 20_000, 45_000, 150_000, 170_000)),
        ),
        Interference(
            at=created,
            process="scheduler",
            call="hints.announce",
            mode=rng.choice(("lost", "refused", "refused", "crash")),
        ),
    )


def half_a_change(draft: Draft) -> None:
    """A scheduler dies within a change, and perhaps nobody asks again."""
    rng, at = draft.rng, draft.some_time()
    name = draft.reminder(at, every_s=rng.choice((0, 0, 10)), count=4)
    when = at + rng.choice((-3_000, -300, 50, 2_000))
    once = rng.random() < 0.6
    change: AnyItem = Cancel(at=when, target=name, once=once)
    if rng.random() < 0.5:
        rings = when + rng.choice((2_000, 20_000))
        change = Reschedule(at=when, target=name, rings=rings, once=once)
    call, mode = rng.choice(CHANGE_CALLS), rng.choice(("crash", "crash_after", "unheard", "pause"))
    if once and rng.random() < 0.5:  # begun, and nothing of it done
        call, mode = "due.mark", "crash"
    draft.add(
        change,
        Interference(
            at=when - 1,
            process="scheduler",
            call=call,
            mode=mode,
            span=rng.choice((500, 20_000, 60_000)),
        ),
    )


def half_an_expansion(draft: Draft) -> None:
    """An expander dies or stands still within an expansion, while the rule may be changed."""
    rng, at = draft.rng, draft.some_time()
    name = draft.reminder(at, every_s=rng.choice((2, 5, 20)), count=6)
    draft.add(
        Interference(
            at=at,
            process="expander",
            call=rng.choice(EXPANSION_CALLS),
            skip=rng.choice((0, 0, 1)),
            mode=rng.choice(("crash", "crash_after", "unheard", "pause", "late")),
            span=rng.choice((1_000, 12_000, 40_000, 200_000)),
        )
    )
    if rng.random() < 0.6:
        draft.add(Cancel(at=at + rng.randrange(0, 3_000), target=name, via=rng.randrange(3)))


def half_a_delivery(draft: Draft) -> None:
    """A dispatcher dies or stands still within a delivery that failed or went well."""
    rng, at = draft.rng, draft.some_time()
    for _ in range(2):
        draft.reminder(at, channels=("hook",))
    if rng.random() < 0.6:
        draft.add(Receiver(at=at - 500, name="hook", mode=rng.choice(("429", "500")), for_=6_000))
    draft.add(
        Interference(
            at=at,
            process="dispatcher",
            call=rng.choice(DELIVERY_CALLS),
            mode=rng.choice(("crash", "crash_after", "unheard", "pause", "pause_after", "late")),
            span=rng.choice((500, 5_000, 20_000, 70_000)),
        )
    )


def half_a_retry(draft: Draft) -> None:
    """A dispatcher dies after it has written what comes next, before it says so."""
    rng, at = draft.rng, draft.some_time()
    draft.reminder(at, channels=("hook",))
    draft.add(
        Receiver(at=at - 500, name="hook", mode=rng.choice(("429", "500")), for_=4_000),
        Interference(
            at=at,
            process="dispatcher",
            call=rng.choice(("due.put", "hints.announce", "due.handled", "jobs.done")),
            mode=rng.choice(("crash", "crash_after")),
            span=rng.choice((500, 5_000)),
        ),
    )


def settled_by_half(draft: Draft) -> None:
    """The ledger knows of a delivery, the due entry does not, and Redis forgets the rest."""
    rng, at = draft.rng, draft.some_time()
    draft.reminder(at)
    draft.add(
        Interference(
            at=at,
            process="dispatcher",
            call="due.handled",
            mode=rng.choice(("crash", "pause", "refused")),
            span=rng.choice((3_000, 15_000)),
        ),
        Flush(at=at + rng.randrange(150, 900), restart=rng.random() < 0.5),
    )


def slow_receiver(draft: Draft) -> None:
    """A receiver takes long, and meanwhile the shards go to other scanners: no reason to ring
    twice.
    """
    rng, at = draft.rng, draft.some_time()
    for _ in range(3):
        draft.reminder(at + rng.randrange(300), channels=("desk",))
    draft.add(Receiver(at=at - 500, name="desk", mode="slow", for_=20_000))
    if rng.random() < 0.7:
        when = at + rng.randrange(1_000, 4_000)
        draft.add(Crash(at=when, process="scanner", down=100))


def fast_clock(draft: Draft) -> None:
    """A scanner's clock is wrong, within bounds and beyond."""
    rng, at = draft.rng, draft.some_time()
    for number in range(4):
        draft.reminder(at + number * 900)
    for number in range(draft.instances):
        draft.add(
            Drift(
                at=at - rng.randrange(8_000, 15_000),
                process=f"scanner-{number}",
                jump=rng.choice((-60, 60, 90, 0)),
                ppm=rng.choice((500, 2_000, 5_000)),
            )
        )


def late_expander(draft: Draft) -> None:
    """Nobody expands for a while: a rule catches up."""
    rng, at = draft.rng, draft.some_time()
    draft.reminder(
        at, every_s=rng.choice((1, 5, 10)), count=10, catch_up=rng.choice(("all", "latest"))
    )
    draft.add(
        Crash(at=at + rng.randrange(2_000), process="expander", down=rng.choice((8_000, 25_000)))
    )


def cancelled_group(draft: Draft) -> None:
    """A group is cancelled while its members are in heaps, due, being made and ringing."""
    rng, at = draft.rng, draft.some_time()
    draft.groups += 1
    group = f"g{draft.groups}"
    for _ in range(6):
        draft.reminder(at + rng.randrange(-500, 4_000), group=group)
    draft.reminder(at - 3_000, every_s=rng.choice((1, 5)), count=8, group=group)
    when = at + rng.randrange(-200, 1_500)
    draft.add(CancelGroup(at=when, group=group, via=rng.randrange(3)))
    draft.reminder(when + 6_000, ahead=rng.choice((500, 3_000, 6_500)), group=group)
    if rng.random() < 0.4:
        lag = rng.choice((300, 2_000))
        draft.add(FailOver(at=when + rng.randrange(300, 3_000), lag=lag, keep=("leases",)))


RECIPES: tuple[Callable[[Draft], None], ...] = (
    stale_heap,
    lost_void,
    lost_job,
    lost_fires,
    slow_writer,
    half_a_change,
    half_an_expansion,
    half_a_delivery,
    half_a_retry,
    settled_by_half,
    slow_receiver,
    fast_clock,
    late_expander,
    cancelled_group,
    *BESIDE,
)

"""A dispatcher that dies anywhere in a fan-out: whoever repeats its job goes on where it was."""

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from dispatcher import stretch
from reminders.model.entry import DueEntry, Kind
from reminders.model.fanout import TargetCounts
from reminders.model.ledger import DeliveryStatus
from reminders.model.subscriber import bucket_of
from tests.unit.dispatcher.topics import (
    due,
    fan_out,
    occurrence_row,
    rows_of,
    subscriber,
    topic_entry,
)

PAGE = 3
NAMES = [name for name in (f"s{n:04}" for n in range(200)) if bucket_of(name) == 2][:7]
"""All in one chain: two full pages and one that ends it."""
LATER = timedelta(seconds=13)
"""When somebody takes over what the dead had."""


def dying(crash: BaseException, *, at: int) -> Callable[[str], Awaitable[None]]:
    """Dies at the n-th point from now on, and stays dead: nothing of it goes on."""
    passed = -1

    async def hook(_name: str) -> None:
        nonlocal passed
        passed += 1
        if passed >= at:
            raise crash

    return hook


async def dies(world: Any, entry: DueEntry, *, at: int, deliveries: int = 1) -> bool:
    """Runs a job until it dies at that point; False: it has fewer."""
    crash = world.Crash()
    world.on_point = dying(crash, at=at)
    try:
        await world.runner().run(world.job(entry, deliveries=deliveries))
    except BaseException as error:
        if not contains(error, crash):
            raise
        return True
    else:
        return False
    finally:
        world.on_point = None


def contains(error: BaseException, crash: BaseException) -> bool:
    """Also within groups."""
    if isinstance(error, BaseExceptionGroup):
        return all(contains(each, crash) for each in error.exceptions)
    return error is crash


async def prepared(world: Any, job: str) -> DueEntry:
    """A fan-out in which that job is the next one to run."""
    await world.store.subscribers.put([subscriber(world, name) for name in NAMES])
    entry = await topic_entry(world)
    if job == "begin":
        return entry
    await world.runner().run(world.job(entry))
    wanted = {"first page": "f2.1", "second page": "f2.2", "last page": "f2.3"}.get(job)
    while True:
        waiting = sorted(await due(world, timedelta(0)), key=lambda each: each.key)
        if not waiting:
            break
        for each in waiting:
            if wanted is not None and each.key.entry_id.endswith(wanted):
                return each
        await world.runner().run(world.job(waiting[0]))
    assert job == "tally"
    tally: DueEntry
    (tally,) = [each for each in await world.waiting(hours=1) if each.kind is Kind.TALLY]
    world.clock.move_to(tally.key.ring_at)
    return tally


@pytest.mark.parametrize("job", ["begin", "first page", "second page", "last page", "tally"])
@pytest.mark.parametrize("busy", [False, True])
async def test_a_crash_anywhere_leaves_nobody_out(
    worlds: Any, monkeypatch: pytest.MonkeyPatch, job: str, busy: bool
) -> None:
    """At each point in turn. Nobody is told again unless it is on record that nobody knows whether
    they were; the same keys; one retry, and counts that are right in the end.
    """
    monkeypatch.setattr(stretch, "PAGE", PAGE)
    at = 0
    while True:
        world = worlds()
        entry = await prepared(world, job)
        if busy:
            world.sender.results = [world.BUSY]
        if not await dies(world, entry, at=at):
            break
        world.clock.advance(LATER)
        await fan_out(
            world,
            entry,
            until=timedelta(minutes=2),
            runner=first_again(world, entry),
        )
        await retries(world)
        await assert_all_told(world)
        at += 1
    assert at > 5, "it has points to die at"


def first_again(world: Any, entry: DueEntry) -> Callable[[DueEntry], Awaitable[None]]:
    """The job that died is given to the next one; what else comes, comes for the first time."""

    async def run(each: DueEntry) -> None:
        again = each.key == entry.key
        await world.runner().run(world.job(each, deliveries=2 if again else 1))

    return run


async def retries(world: Any) -> None:
    """What waits comes, once it is due."""
    waiting: list[DueEntry] = []
    for _ in range(200):
        waiting = sorted(await world.waiting(hours=1), key=lambda each: each.key)
        if not waiting:
            return
        world.clock.move_to(max(world.clock.now(), waiting[0].key.ring_at))
        await world.runner().run(world.job(waiting[0]))
    raise AssertionError(f"it never ends: {waiting[0]}")


async def assert_all_told(world: Any) -> None:
    """Everybody, once or with reason."""
    rows = await rows_of(world)
    assert sorted(rows) == sorted(NAMES)
    sends = Counter(sent.subscriber.subscriber_id for sent in world.sender.sent)
    for name, row in rows.items():
        assert row.delivery is DeliveryStatus.CONFIRMED
        assert {
            sent.delivery_key for sent in world.sender.sent if sent.subscriber.subscriber_id == name
        } == {row.delivery_key}
        on_record = sum(each.error_class != "outcome_unknown" for each in row.attempts)
        unknown = len(row.attempts) - on_record
        assert on_record <= sends[name] <= on_record + unknown
        assert unknown <= 1
    row = await occurrence_row(world)
    assert row is not None
    assert row.fanout is not None
    assert row.fanout.finished
    assert row.fanout.counts == TargetCounts(taken=len(NAMES))


async def test_a_page_that_comes_again_leaves_alone_what_is_on_record(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five of seven had been recorded when it died: two are sent."""
    monkeypatch.setattr(stretch, "PAGE", 100)
    page = await prepared(world, "first page")

    async def die_at_the_sixth(outgoing: Any) -> None:
        if outgoing.subscriber.subscriber_id == NAMES[5]:
            for _ in range(200):  # what was sent before is on record by then
                await world.point("waiting")
                if len(await rows_of(world)) == 5:
                    break
            raise world.Crash

    world.sender.on_send = die_at_the_sixth
    with pytest.raises(BaseExceptionGroup):
        await world.runner().run(world.job(page, deliveries=3))
    world.sender.on_send = None
    before = len(world.sender.sent)
    world.clock.advance(LATER)
    await world.runner().run(world.job(page, deliveries=4))
    again = [sent.subscriber.subscriber_id for sent in world.sender.sent[before:]]
    assert again == NAMES[5:]


async def test_one_that_takes_processes_down_does_not_take_the_others_with_it(
    world: Any,
) -> None:
    """From the third time on a page sends one by one, so only the one at fault is counted."""
    page = await prepared(world, "first page")

    async def die_at_the_third(outgoing: Any) -> None:
        if outgoing.subscriber.subscriber_id == NAMES[2]:
            raise world.Crash

    world.sender.on_send = die_at_the_third
    deliveries = 1
    while not await world.handled(page):
        assert deliveries < 12
        world.clock.advance(LATER)
        try:
            await world.runner().run(world.job(page, deliveries=deliveries))
        except BaseExceptionGroup:
            deliveries += 1
    rows = await rows_of(world)
    statuses = {name: (row.delivery, row.reason) for name, row in rows.items()}
    assert statuses.pop(NAMES[2]) == (DeliveryStatus.FAILED, "poison")
    assert {status for status, _ in statuses.values()} == {DeliveryStatus.CONFIRMED}


async def test_a_job_of_a_page_that_was_lost_is_no_second_fan_out(world: Any) -> None:
    """Redis forgot it: the trailing scan has it claimed again, and everything is on record."""
    page = await prepared(world, "first page")
    await world.runner().run(world.job(page))
    sent = len(world.sender.sent)
    await world.runner().run(world.job(page, recheck=True))
    await world.runner().run(world.job(page))
    assert len(world.sender.sent) == sent == len(NAMES)

"""A crash between any two steps leaves a job whose repeat ends where an undisturbed run ends."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from reminders.model.definition import Retry
from reminders.model.entry import Kind
from reminders.model.ledger import DeliveryStatus, LedgerRow


def raising(error: BaseException, *, at: int) -> Callable[[str], Awaitable[None]]:
    """Fails at the n-th point that is passed from now on, once."""
    passed = -1

    async def hook(_name: str) -> None:
        nonlocal passed
        passed += 1
        if passed == at:
            raise error

    return hook


def crash_before(world: Any, point: str) -> Callable[[str], Awaitable[None]]:
    """Dies there."""

    async def hook(name: str) -> None:
        if name == point:
            raise world.Crash

    return hook


@pytest.mark.parametrize("result", ["OK", "BUSY", "GONE"])
@pytest.mark.parametrize("kind", [Kind.OCCURRENCE, Kind.RETRY])
async def test_a_crash_anywhere_converges_with_one_key(
    worlds: Any, result: str, kind: Kind
) -> None:
    """At each point of the way in turn: the repeat ends where an undisturbed run ends."""
    undisturbed = await prepared(worlds(), result, kind)
    world, entry = undisturbed
    await world.runner().run(world.job(entry))
    points = len(world.points)
    expected = await world.row()
    for at in range(points):
        world, entry = await prepared(worlds(), result, kind)
        world.on_point = raising(world.Crash(), at=at)
        with pytest.raises(world.Crash):
            await world.runner().run(world.job(entry))
        world.on_point = None
        if await world.handled(entry):
            assert_settled(await world.row(), await world.waiting())
        world.clock.advance(timedelta(seconds=30))
        await world.runner().run(world.job(entry, deliveries=2))
        row = await world.row()
        assert row.delivery is expected.delivery
        assert_settled(row, await world.waiting())
        assert await world.handled(entry)
        assert len({s.delivery_key for s in world.sender.sent}) == 1
        sends = len(world.sender.sent)
        assert sends in (1, 2)
        if sends == 2:
            unknown = [a for a in row.attempts if a.error_class == "outcome_unknown"]
            assert len(unknown) == 1, "a repeat has to be on record"


async def prepared(world: Any, result: str, kind: Kind) -> tuple[Any, Any]:
    """A world whose next send has that result, and the entry to run."""
    entry = await world.reminder()
    if kind is Kind.RETRY:
        world.sender.results = [world.BUSY]
        await world.runner().run(world.job(entry))
        (entry,) = await world.waiting()
        world.clock.move_to(entry.key.ring_at)
        world.sender.sent.clear()
    world.sender.results = [getattr(world, result)] * 2
    world.points.clear()
    return world, entry


def assert_settled(row: LedgerRow | None, waiting: list[Any]) -> None:
    """Nothing is handled whose outcome, and whose retry, is not on record."""
    assert row is not None
    assert row.delivery is not None
    if row.delivery is DeliveryStatus.RETRYING:
        assert [each.key.ring_at for each in waiting] == [row.next_attempt_at]
        assert waiting[0].leg.attempt == row.attempt_count + 1
    else:
        assert row.delivery.terminal
        assert waiting == []


async def test_a_repeat_long_after_still_writes_a_retry_that_rings(world: Any) -> None:
    """Crashed before the retry's entry; its recorded time is past when somebody comes back."""
    entry = await world.reminder()
    world.sender.results = [world.BUSY]
    world.on_point = crash_before(world, "due.put")
    with pytest.raises(world.Crash):
        await world.runner().run(world.job(entry))
    world.on_point = None
    world.clock.advance(timedelta(minutes=30))
    await world.runner().run(world.job(entry, deliveries=2))
    (retry,) = await world.waiting()
    assert retry.key.ring_at == world.clock.now() + timedelta(seconds=1)
    assert retry.leg.attempt == 2
    assert len(world.sender.sent) == 1


async def test_a_repeat_long_after_leaves_a_retry_that_rang_alone(world: Any) -> None:
    """The retry's entry was written and handled before the repeat of the first job."""
    entry = await world.reminder()
    world.sender.results = [world.BUSY]
    await world.runner().run(world.job(entry))
    (retry,) = await world.waiting()
    world.clock.move_to(retry.key.ring_at)
    await world.runner().run(world.job(retry))
    await world.runner().run(world.job(entry, deliveries=2))
    assert await world.waiting() == []
    assert len(world.sender.sent) == 2


@pytest.mark.parametrize("given", [{"deliveries": 2}, {"recheck": True}])
async def test_what_may_have_been_sent_is_recorded_before_it_is_sent_again(
    world: Any, given: dict[str, Any]
) -> None:
    """The ledger knows nothing: attempt 1 may have arrived, so this is attempt 2."""
    entry = await world.reminder()
    seen = []

    async def look(_outgoing: Any) -> None:
        seen.append(await world.row())

    world.sender.on_send = look
    await world.runner().run(world.job(entry, **given))
    assert seen[0].delivery is DeliveryStatus.SENDING
    row = await world.row()
    assert [(a.number, a.error_class) for a in row.attempts] == [(1, "outcome_unknown"), (2, "")]
    assert row.delivery is DeliveryStatus.CONFIRMED
    assert row.attempt_count == 2
    assert world.sender.sent[0].attempt == 2


@pytest.mark.parametrize("given", [{"deliveries": 2}, {"recheck": True}])
async def test_what_ended_is_not_sent_again(world: Any, given: dict[str, Any]) -> None:
    """A duplicate: only settled once more."""
    entry = await world.reminder()
    await world.runner().run(world.job(entry))
    world.points.clear()
    await world.runner().run(world.job(entry, **given))
    assert world.points == ["ledger.read", "due.handled", "due.handled.done"]
    assert len(world.sender.sent) == 1


async def test_a_second_entry_of_the_same_attempt_is_suppressed(world: Any) -> None:
    """Two places in `due`, two claims, one send: a retry always reads the ledger."""
    entry = await world.reminder()
    world.sender.results = [world.BUSY]
    await world.runner().run(world.job(entry))
    (retry,) = await world.waiting()
    elsewhere = world.retry_of(entry, 2, world.AT + timedelta(minutes=1))
    world.clock.move_to(elsewhere.key.ring_at)
    await world.runner().run(world.job(retry))
    await world.runner().run(world.job(elsewhere))
    assert len(world.sender.sent) == 2


async def test_attempts_with_unknown_outcome_do_not_use_up_the_attempts(world: Any) -> None:
    """With one attempt allowed, a crash must not end a delivery that perhaps never left."""
    entry = await world.reminder(retry=Retry(max_attempts=1))
    await world.runner().run(world.job(entry, deliveries=2))
    assert len(world.sender.sent) == 1
    assert (await world.row()).delivery is DeliveryStatus.CONFIRMED


async def test_what_takes_processes_down_is_given_up_and_says_so(world: Any) -> None:
    """Five begun attempts in a row without an end: failed, `poison`, and the shard goes on."""
    entry = await world.reminder()
    world.on_point = crash_before(world, "send.after")
    deliveries = 1
    while not await world.handled(entry):
        world.clock.advance(timedelta(seconds=30))
        try:
            await world.runner().run(world.job(entry, deliveries=deliveries))
        except world.Crash:
            deliveries += 1
    assert deliveries == 6
    assert len(world.sender.sent) == 5
    row = await world.row()
    assert (row.delivery, row.reason) == (DeliveryStatus.FAILED, "poison")
    assert [a.error_class for a in row.attempts] == ["outcome_unknown"] * 5


async def test_redeliveries_without_a_begun_attempt_are_no_poison(world: Any) -> None:
    """A store that is down makes jobs come again, too; only begun attempts count."""
    entry = await world.reminder()
    await world.runner().run(world.job(entry, deliveries=50))
    assert (await world.row()).delivery is DeliveryStatus.CONFIRMED


async def test_after_a_crash_only_the_open_channel_is_sent_again(world: Any) -> None:
    """Each row is written as soon as its channel has answered."""
    entry = await world.reminder(channels=("a", "b"))

    async def die_at_b(outgoing: Any) -> None:
        if outgoing.channel.channel_id == "b":
            raise world.Crash

    world.sender.on_send = die_at_b
    with pytest.raises(world.Crash):
        await world.runner().run(world.job(entry))
    assert not await world.handled(entry)
    world.sender.on_send = None
    world.clock.advance(timedelta(seconds=30))
    await world.runner().run(world.job(entry, deliveries=2))
    assert [s.channel.channel_id for s in world.sender.sent] == ["a", "b", "b"]
    assert (await world.row("b")).delivery is DeliveryStatus.CONFIRMED


@pytest.mark.parametrize("failure", ["BUSY", "GONE"])
async def test_a_failure_that_ends_late_does_not_replace_a_success(
    worlds: Any, failure: str
) -> None:
    """Two runs of one delivery: the first was thought dead and fails after the second went well.
    Whatever it wrote for a next attempt sends nothing; nor is it listed as failed.

    Found by the simulation: Redis lost everything while a receiver did not answer, the trailing
    scan added the job again, and the first attempt's time-out put `retrying` over `delivered`.
    """
    world = worlds()
    entry = await world.reminder()
    world.sender.results = [getattr(world, failure)]

    async def meanwhile(_outgoing: Any) -> None:
        world.sender.on_send = None
        world.clock.advance(timedelta(seconds=3))
        world.sender.results.insert(0, world.OK)
        await world.runner().run(world.job(entry, recheck=True))

    world.sender.on_send = meanwhile
    await world.runner().run(world.job(entry))
    row = await world.row()
    assert row.delivery is DeliveryStatus.CONFIRMED
    sent = len(world.sender.sent)
    for waiting in await world.waiting():
        world.clock.move_to(max(waiting.key.ring_at, world.clock.now()))
        await world.runner().run(world.job(waiting))
    assert len(world.sender.sent) == sent
    assert await world.row() == row
    assert "ended.add" not in world.points


@pytest.mark.parametrize("behind", [timedelta(0), timedelta(milliseconds=190)])
async def test_a_failure_is_after_the_one_before_whosever_clock_is_behind(
    worlds: Any, behind: timedelta
) -> None:
    """The retry comes at once, to a process whose clock is behind: it is on record all the same."""
    world = worlds()
    entry = await world.reminder()
    world.sender.results = [world.BUSY, world.BUSY]
    await world.runner().run(world.job(entry))
    before = await world.row()
    world.clock._now -= behind
    retry = world.retry_of(entry, 2, before.next_attempt_at)

    async def hangs(_outgoing: Any) -> None:
        world.clock.advance(timedelta(seconds=8))

    world.sender.on_send = hangs
    await world.runner().run(world.job(retry))
    row = await world.row()
    assert row.attempt_count == 2
    assert row.next_attempt_at > before.next_attempt_at

"""Group commit, against a sender that answers when the test says so."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from cassandra import InvalidRequest, OperationTimedOut, Unavailable
from cassandra.cluster import NoHostAvailable

from reminders.errors import StoreUnavailable
from reminders.storage import writer as writing
from reminders.storage.wire import Mutation
from reminders.storage.writer import GroupWriter


class Sender:
    """Keeps batches until they are answered."""

    def __init__(self) -> None:
        self.open: list[tuple[list[Mutation], Any]] = []
        self.sent: list[list[Mutation]] = []

    def send(self, mutations: list[Mutation], done: Any) -> None:
        """See `writing.Sender`."""
        self.sent.append(mutations)
        self.open.append((mutations, done))

    def answer(self, error: BaseException | None = None) -> None:
        """The oldest batch."""
        _, done = self.open.pop(0)
        done(None, error)

    def answer_all(self) -> None:
        """Well."""
        while self.open:
            self.answer()


def mutations(count: int, size: int = 10) -> list[Mutation]:
    """All different."""
    return [Mutation(b"%06d" % n + b"x" * (size - 6), 1) for n in range(count)]


async def settle() -> None:
    """Lets everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


def start(writer: GroupWriter, rows: Any, name: str = "test") -> "asyncio.Task[None]":
    """A caller."""
    return asyncio.create_task(writer.write(rows, name), name=name)


@pytest.fixture
def sender() -> Sender:
    """Nothing sent yet."""
    return Sender()


@pytest.fixture
async def writer(sender: Sender) -> GroupWriter:
    """With the patience of an hour."""
    return GroupWriter(sender, patience_s=3600)


async def test_one_caller_is_sent_at_once(sender: Sender, writer: GroupWriter) -> None:
    """No timer delays it, and it is answered when the batch is."""
    (row,) = mutations(1)
    caller = start(writer, [row])
    await settle()
    assert sender.sent == [[row]]
    assert not caller.done()
    sender.answer()
    await caller


async def test_callers_of_one_turn_share_a_batch(sender: Sender, writer: GroupWriter) -> None:
    """Each is answered all the same."""
    rows = mutations(5)
    callers = [start(writer, [row]) for row in rows]
    await settle()
    assert sender.sent == [rows]
    sender.answer()
    await asyncio.gather(*callers)


async def test_rows_gather_while_all_slots_are_taken(sender: Sender, writer: GroupWriter) -> None:
    """Eight single rows go out alone; the next ones wait, and go together in the order they
    came.
    """
    rows = mutations(15)
    callers = []
    for row in rows:
        callers.append(start(writer, [row]))
        await settle()
    assert sender.sent == [[row] for row in rows[:8]]
    sender.answer()
    await settle()
    assert sender.sent[8:] == [rows[8:]]
    sender.answer_all()
    await asyncio.gather(*callers)


async def test_few_slots_make_larger_groups(sender: Sender) -> None:
    """The second row still goes at once; what comes after them goes together."""
    writer = GroupWriter(sender, patience_s=3600, in_flight=2)
    rows = mutations(6)
    callers = []
    for row in rows:
        callers.append(start(writer, [row]))
        await settle()
    assert sender.sent == [rows[:1], rows[1:2]]
    sender.answer()
    await settle()
    assert sender.sent[2:] == [rows[2:]]
    sender.answer_all()
    await asyncio.gather(*callers)


async def test_a_lingering_row_waits_for_company_and_a_full_batch_for_nobody(
    sender: Sender,
) -> None:
    """One that stays alone is sent all the same, and a landing does not hurry the next ones."""
    writer = GroupWriter(sender, patience_s=3600, linger_s=3600)
    full = writing.MAX_ITEMS
    rows = mutations(full + 2)
    callers = [start(writer, [row]) for row in rows[: full - 1]]
    await settle()
    assert sender.sent == []
    callers.append(start(writer, [rows[full - 1]]))
    await settle()
    assert sender.sent == [rows[:full]]
    callers.append(start(writer, [rows[full]]))
    sender.answer()
    await settle()
    assert sender.sent == [rows[:full]]
    for caller in callers:
        caller.cancel()
    short = GroupWriter(sender, patience_s=3600, linger_s=0.001)
    alone = start(short, [rows[full + 1]])
    while len(sender.sent) == 1:  # noqa: ASYNC110 - a real timer, of a millisecond
        await asyncio.sleep(0)
    assert sender.sent[1] == [rows[full + 1]]
    sender.answer_all()
    await alone


async def test_a_paced_writer_holds_up_nobody_who_comes_alone(sender: Sender) -> None:
    """One row after the other goes at once."""
    writer = GroupWriter(sender, patience_s=3600, pace_s=3600)
    for row in mutations(3):
        caller = start(writer, [row])
        await settle()
        sender.answer()
        await caller
    assert [len(group) for group in sender.sent] == [1, 1, 1]


async def test_a_paced_writer_lets_rows_gather_behind_a_batch_of_several(sender: Sender) -> None:
    """A landing does not hurry them; what fills a batch does, and what is left waits on."""
    writer = GroupWriter(sender, patience_s=3600, pace_s=3600)
    full = writing.MAX_ITEMS
    rows = mutations(full + 3)
    callers = [start(writer, [row]) for row in rows[:2]]
    await settle()
    callers.append(start(writer, [rows[2]]))
    sender.answer()
    await settle()
    assert sender.sent == [rows[:2]]
    callers += [start(writer, [row]) for row in rows[3:]]
    await settle()
    assert sender.sent == [rows[:2], rows[2 : full + 2]]
    for caller in callers:
        caller.cancel()


async def test_what_gathers_at_a_pace_is_sent_in_time(sender: Sender) -> None:
    """Also where nobody else comes."""
    writer = GroupWriter(sender, patience_s=3600, pace_s=0.001)
    first, second = mutations(2), mutations(1, size=99)
    callers = [start(writer, first)]
    await settle()
    callers.append(start(writer, second))
    while len(sender.sent) == 1:  # noqa: ASYNC110 - a real timer, of a millisecond
        await asyncio.sleep(0)
    assert sender.sent == [first, second]
    sender.answer_all()
    await asyncio.gather(*callers)


async def test_batches_are_bounded_in_items_and_bytes(sender: Sender, writer: GroupWriter) -> None:
    """Thirty-two items or 44 KiB, whichever comes first; a larger item goes alone."""
    rows = [*mutations(50), *mutations(9, size=8_000), *mutations(2, size=48_000)]
    caller = start(writer, rows)
    for _ in range(10):
        await settle()
        sender.answer_all()
    await caller
    assert [row for group in sender.sent for row in group] == rows
    for group in sender.sent:
        assert len(group) <= 32
        assert len(group) == 1 or sum(row.size for row in group) <= 44 * 1024
    assert len(sender.sent[0]) == 32


async def test_more_slots_for_full_batches(sender: Sender, writer: GroupWriter) -> None:
    """Sixteen under way at most, and never one more."""
    caller = start(writer, mutations(1_000))
    await settle()
    assert [len(group) for group in sender.sent] == [writing.MAX_ITEMS] * writing.MAX_FULL_IN_FLIGHT
    sender.answer()
    await settle()
    assert len(sender.sent) == writing.MAX_FULL_IN_FLIGHT + 1
    while not caller.done():
        sender.answer_all()
        await settle()
    await caller


async def test_back_pressure(sender: Sender, writer: GroupWriter) -> None:
    """While nothing is answered a caller's rows are not even made, however many it brings."""
    made = 0

    def endless() -> Iterator[Mutation]:
        nonlocal made
        for row in mutations(10_000):
            made += 1
            yield row

    caller = start(writer, endless())
    for _ in range(50):
        await settle()
    held = writing.MAX_WAITING_ITEMS + writing.MAX_FULL_IN_FLIGHT * writing.MAX_ITEMS
    assert made <= held + 1
    while not caller.done():
        sender.answer_all()
        await settle()
    await caller
    assert sum(map(len, sender.sent)) == 10_000


@pytest.mark.parametrize("error", [OperationTimedOut(), InvalidRequest("too large")])
async def test_a_failed_batch_is_sent_again_one_by_one(
    sender: Sender, writer: GroupWriter, error: Exception
) -> None:
    """The same bytes; each caller hears of its own row."""
    rows = mutations(3)
    callers = [start(writer, [row]) for row in rows]
    await settle()
    sender.answer(error)
    await settle()
    assert sender.sent == [rows, *[[row] for row in rows]]
    sender.answer()
    sender.answer(OperationTimedOut())
    sender.answer()
    good, bad, fine = await asyncio.gather(*callers, return_exceptions=True)
    assert (good, fine) == (None, None)
    assert isinstance(bad, StoreUnavailable)
    assert bad.operation == "test"
    assert len(sender.sent) == 4


async def test_what_its_caller_gave_up_is_not_sent_again(
    sender: Sender, writer: GroupWriter
) -> None:
    """Nobody would hear of it; whoever shares its batch is served."""
    rows = mutations(2)
    gone, patient = (start(writer, [row]) for row in rows)
    await settle()
    gone.cancel()
    await settle()
    sender.answer(OperationTimedOut())
    await settle()
    assert sender.sent == [rows, [rows[1]]]
    sender.answer()
    await patient


@pytest.mark.parametrize(
    "error", [Unavailable("short of replicas", alive_replicas=1), NoHostAvailable("down", {})]
)
async def test_nothing_is_sent_again_where_nobody_is_there(
    sender: Sender, writer: GroupWriter, error: Exception
) -> None:
    """Twenty more requests would not help a cluster that is down."""
    caller = start(writer, mutations(3))
    await settle()
    sender.answer(error)
    with pytest.raises(StoreUnavailable):
        await caller
    assert len(sender.sent) == 1


async def test_a_mistake_is_not_called_unavailable(sender: Sender, writer: GroupWriter) -> None:
    """An error that is ours reaches the caller as it is."""
    caller = start(writer, mutations(1))
    await settle()
    sender.answer(InvalidRequest("a bug"))
    await settle()
    sender.answer(InvalidRequest("a bug"))
    with pytest.raises(InvalidRequest):
        await caller


async def test_a_sender_that_raises_does_not_lose_callers(
    writer: GroupWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the slot: the next one is sent."""
    calls = 0

    def broken(_mutations: Any, done: Any) -> None:
        nonlocal calls
        calls += 1
        if calls <= 2:
            raise RuntimeError("broken")
        done(None, None)

    monkeypatch.setattr(writer._sender, "send", broken)
    with pytest.raises(RuntimeError):
        await writer.write(mutations(1), "test")
    await writer.write(mutations(1), "test")


async def test_what_waited_too_long_fails_unsent(sender: Sender) -> None:
    """While the store is away callers hear so after a while, instead of a queue of hours."""
    writer = GroupWriter(sender, patience_s=-1)
    caller = start(writer, mutations(1))
    with pytest.raises(StoreUnavailable):
        await caller
    assert sender.sent == []


async def test_a_cancelled_callers_rows_are_not_sent(sender: Sender, writer: GroupWriter) -> None:
    """Those that wait still; others are not touched."""
    busy = [start(writer, [row]) for row in mutations(8)]
    for _ in busy:
        await settle()
    blocked = [start(writer, [row]) for row in mutations(8)]
    await settle()
    sender.open, pending = [], sender.open
    cancelled = start(writer, mutations(1, size=99))
    stays = start(writer, mutations(1, size=77))
    await settle()
    cancelled.cancel()
    await settle()
    sender.open = pending + sender.open
    while not stays.done():
        sender.answer_all()
        await settle()
    await asyncio.gather(*busy, *blocked, stays)
    assert cancelled.cancelled()


async def test_nothing_to_write(writer: GroupWriter) -> None:
    """Answers at once."""
    await writer.write([], "test")

"""A stream of batches: order, bounded reading, ends. No gRPC here."""

import asyncio
from collections.abc import Callable

import pytest
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.errors import InvalidRequest, StoreUnavailable, TocsinError
from scheduler.admission import Admission, Draining
from scheduler.stream import BatchStream

WINDOW = 4
Answered = pb.BatchCreateRemindersResponse | TocsinError


class Peer:
    """A client that has `total` batches to send, and a store whose batches end when told to."""

    def __init__(self, total: int, admission: Admission | None = None) -> None:
        self.total = total
        self.read_count = 0
        self.answers: list[int] = []
        self.store: dict[int, asyncio.Future[Answered]] = {}
        self.endless = False
        self.admission = admission or Admission(creates=1_000_000, size=1_000_000)
        self.stream = BatchStream(
            read=self.read,
            write=self.write,
            answer=self.answer,
            admission=self.admission,
            window=WINDOW,
        )

    async def read(self) -> pb.BatchCreateRemindersRequest | None:
        """The next batch of two."""
        if self.read_count == self.total:
            if self.endless:
                await asyncio.Event().wait()
            return None
        self.read_count += 1
        return pb.BatchCreateRemindersRequest(
            batch_number=self.read_count, requests=[pb.CreateReminderRequest()] * 2
        )

    async def write(self, response: pb.BatchCreateRemindersResponse) -> None:
        """Takes note."""
        self.answers.append(response.batch_number)

    async def answer(self, batch: pb.BatchCreateRemindersRequest) -> Answered:
        """Waits for the store."""
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self.store[batch.batch_number] = future
        return await future

    def finish(self, number: int) -> None:
        """The store has written that batch."""
        self.store[number].set_result(pb.BatchCreateRemindersResponse(batch_number=number))

    def fail(self, number: int, error: Exception) -> None:
        """The store has not."""
        self.store[number].set_exception(error)


async def turn() -> None:
    """Lets tasks run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_stalled_store_bounds_what_is_read() -> None:
    """A million batches wait at the client; four are here, one more for each that is written."""
    peer = Peer(1_000_000)
    running = asyncio.create_task(peer.stream.run())
    await turn()
    assert (peer.read_count, sorted(peer.store)) == (4, [1, 2, 3, 4])
    peer.finish(1)
    await turn()
    assert (peer.read_count, peer.answers) == (5, [1])
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert peer.admission.creates == 0


async def test_answers_come_in_order() -> None:
    """Whatever order the store ends in; an answered batch behind an open one holds its place."""
    peer = Peer(6)
    running = asyncio.create_task(peer.stream.run())
    await turn()
    for number in (4, 3, 2):
        peer.finish(number)
    await turn()
    assert (peer.answers, peer.read_count) == ([], 4)
    peer.finish(1)
    await turn()
    assert (peer.answers, peer.read_count) == ([1, 2, 3, 4], 6)
    peer.finish(6)
    peer.finish(5)
    await running
    assert peer.answers == [1, 2, 3, 4, 5, 6]
    assert peer.admission.creates == 0


async def test_streams_share_one_gate() -> None:
    """With room for three batches of two, two streams of four each have three under way."""
    admission = Admission(creates=6, size=1_000_000)
    peers = [Peer(10, admission), Peer(10, admission)]
    running = [asyncio.create_task(peer.stream.run()) for peer in peers]
    await turn()
    assert admission.creates == 6
    assert sum(len(peer.store) for peer in peers) == 3
    assert sum(peer.read_count for peer in peers) <= 5
    while not all(task.done() for task in running):
        for peer in peers:
            for number, future in list(peer.store.items()):
                if not future.done():
                    peer.finish(number)
        await turn()
    assert [peer.answers for peer in peers] == [list(range(1, 11))] * 2
    assert admission.creates == 0


@pytest.mark.parametrize("error", [InvalidRequest(), StoreUnavailable(operation="x")])
async def test_a_failed_batch_ends_it_behind_earlier_answers(error: Exception) -> None:
    """What was read before is answered; what comes after is dropped."""
    peer = Peer(100)
    running = asyncio.create_task(peer.stream.run())
    await turn()
    peer.fail(2, error)
    await turn()
    assert not running.done()
    peer.finish(1)
    with pytest.raises(type(error)):
        await running
    assert peer.answers == [1]
    assert peer.store[3].cancelled()
    assert peer.admission.creates == 0


async def test_an_unexpected_failure_ends_it_at_once() -> None:
    """And comes out of `run`, for the log."""
    peer = Peer(100)
    running = asyncio.create_task(peer.stream.run())
    await turn()
    peer.fail(2, ZeroDivisionError())
    with pytest.raises(ExceptionGroup) as caught:
        await running
    assert caught.group_contains(ZeroDivisionError)
    assert peer.admission.creates == 0


async def test_drain_answers_what_was_read() -> None:
    """Then tells the client to go on elsewhere."""
    peer = Peer(2)
    peer.endless = True
    running = asyncio.create_task(peer.stream.run())
    await turn()
    peer.stream.drain()
    await turn()
    assert not running.done()
    peer.finish(1)
    peer.finish(2)
    with pytest.raises(Draining):
        await running
    assert peer.answers == [1, 2]


@pytest.mark.parametrize(
    "before", [lambda _: None, lambda peer: peer.stream.drain()], ids=["started", "not-started"]
)
async def test_drain_finds_a_stream_that_has_hardly_begun(
    before: Callable[[Peer], None],
) -> None:
    """Before its reading task ever ran, too."""
    peer = Peer(2)
    peer.endless = True
    before(peer)
    running = asyncio.create_task(peer.stream.run())
    await asyncio.sleep(0)
    peer.stream.drain()
    await turn()
    for number in peer.store:
        peer.finish(number)
    with pytest.raises(Draining):
        await running


async def test_drain_does_not_spoil_a_finished_stream() -> None:
    """The client has sent all: it gets its answers and a good end."""
    peer = Peer(2)
    running = asyncio.create_task(peer.stream.run())
    await turn()
    peer.stream.drain()
    peer.finish(1)
    peer.finish(2)
    await running
    assert peer.answers == [1, 2]

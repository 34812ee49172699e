"""What a connection makes of bytes, however they are cut into pieces. No I/O."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dispatcher.http1.connection import KEPT_BYTES, MOST_BYTES, Answer, Connection
from dispatcher.http1.failures import ConnectFailed, Disconnected, HttpFailure, NotHttp, TimedOut

CLOSED = object()
"""Instead of bytes: the other side closes."""


class Wire(asyncio.Transport):
    """Takes what is written; some of it may be still on its way."""

    def __init__(self, left: int = 0) -> None:
        super().__init__()
        self.written = b""
        self.left = left
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keeps it."""
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        """As the test says."""
        return self.left

    def abort(self) -> None:
        """Counts."""
        self.aborted = True


Ended = tuple[Answer | type[HttpFailure], bool]
"""The answer or what there is instead, and whether the connection is for another one."""


async def exchanged(pieces: Sequence[bytes | object], *, left: int = 0) -> Ended:
    """One exchange, the answer coming in these pieces."""
    wire, connection = Wire(left), Connection()
    connection.connection_made(wire)
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(connection.exchange(b"request", loop.time() + 60), name="exchange")
    await asyncio.sleep(0)
    assert wire.written == b"request"
    for piece in pieces:
        if isinstance(piece, bytes):
            connection.data_received(piece)
        else:
            connection.eof_received()
            connection.connection_lost(None)
    await asyncio.sleep(0)
    if not task.done():
        connection._expire()
    try:
        found: Answer | type[HttpFailure] = await task
    except HttpFailure as failure:
        found = type(failure)
    assert wire.aborted != connection.usable or CLOSED in pieces
    return found, connection.usable


def ok(start: bytes = b"", status: int = 200, retry_after: str | None = None) -> Answer:
    """An answer."""
    return Answer(status, start, retry_after)


LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
CASES: dict[str, tuple[bytes, Ended]] = {
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", (ok(status=204), True)),
    "length": (LENGTH, (ok(b"abc"), True)),
    "no words": (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", (ok(), True)),
    "chunked": (
        CHUNKED + b"\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nRetry-After: 9\r\n\r\n",
        (ok(b"abc"), True),
    ),
    "retry": (
        b"HTTP/1.1 429 No\r\nRETRY-AFTER:  15 \r\nContent-Length: 0\r\n\r\n",
        (ok(status=429, retry_after="15"), True),
    ),
    "interim": (
        b"HTTP/1.1 100 Continue\r\nRetry-After: 1\r\n\r\nHTTP/1.1 103 Early\r\n\r\n" + LENGTH,
        (ok(b"abc"), True),
    ),
    "switching": (
        b"HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nxyz",
        (ok(status=101), False),
    ),
    "close": (LENGTH.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n"), (ok(b"abc"), False)),
    "old": (LENGTH.replace(b"1.1", b"1.0"), (ok(b"abc"), False)),
    "old, kept": (
        LENGTH.replace(b"1.1 200 OK\r\n", b"1.0 200 OK\r\nConnection: keep-alive\r\n"),
        (ok(b"abc"), True),
    ),
    "sloppy": (LENGTH.replace(b"\r\n", b"\n"), (ok(b"abc"), True)),
    "no body": (b"HTTP/1.1 304 Same\r\nContent-Length: 3\r\n\r\n", (ok(status=304), True)),
    "two at once": (LENGTH + LENGTH, (ok(b"abc"), False)),
    "more than said": (LENGTH + b"d", (ok(b"abc"), False)),
    "body of none": (b"HTTP/1.1 204 No Content\r\n\r\nabc", (ok(status=204), False)),
    "unended": (b"HTTP/1.1 200 OK\r\n\r\nabc", (ok(b"abc"), False)),
    "cut": (LENGTH.replace(b": 3", b": 9"), (ok(b"abc"), False)),
    "bad chunk": (CHUNKED + b"\r\n3\r\nabc\r\nzz\r\n", (ok(b"abc"), False)),
    "silence": (b"", (TimedOut, False)),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-", (TimedOut, False)),
    "only interim": (b"HTTP/1.1 100 Continue\r\n\r\n", (TimedOut, False)),
    "mumble": (b"mumble\r\n\r\n", (NotHttp, False)),
    "a request": (b"GET / HTTP/1.1\r\n\r\n", (NotHttp, False)),
    "two lengths": (
        LENGTH.replace(b"OK\r\n", b"OK\r\nContent-Length: 4\r\n"),
        (NotHttp, False),
    ),
    "length and chunks": (CHUNKED + b"Content-Length: 3\r\n\r\n0\r\n\r\n", (NotHttp, False)),
}


@pytest.mark.parametrize("case", CASES)
async def test_what_an_answer_means(case: str) -> None:
    """In one piece."""
    answer, expected = CASES[case]
    assert await exchanged([answer] if answer else []) == expected


@pytest.mark.parametrize("case", CASES)
async def test_it_means_the_same_wherever_it_is_cut(case: str) -> None:
    """Into two pieces at each place, and byte by byte."""
    answer, expected = CASES[case]
    for at in range(1, len(answer)):
        assert await exchanged([answer[:at], answer[at:]]) == expected, at
    assert await exchanged([answer[at : at + 1] for at in range(len(answer))]) == expected


@given(st.binary(max_size=300), st.lists(st.integers(1, 300), max_size=5))
@example(LENGTH, [20])
def test_any_bytes_mean_the_same_wherever_they_are_cut(noise: bytes, cuts: list[int]) -> None:
    """With an answer's beginning before them, or not: answered or failed, kept or closed."""

    async def try_it(answer: bytes) -> None:
        places = sorted({0, len(answer), *(cut for cut in cuts if cut < len(answer))})
        pieces = [answer[a:b] for a, b in pairwise(places)]
        assert await exchanged(pieces) == await exchanged([answer] if answer else [])

    for start in (b"", b"HTTP/1.1 200 OK\r\n", CHUNKED + b"\r\n3\r\nabc\r\n", LENGTH):
        asyncio.run(try_it(start + noise))


@pytest.mark.parametrize(
    ("case", "found"),
    [
        ("silence", Disconnected),
        ("half a head", Disconnected),
        ("only interim", Disconnected),
        ("unended", ok(b"abc")),
        ("cut", ok(b"abc")),
        ("length", ok(b"abc")),
    ],
)
async def test_the_other_side_closes(case: str, found: object) -> None:
    """Before the status nobody knows; after it, it stands."""
    answer, _ = CASES[case]
    assert await exchanged([answer, CLOSED] if answer else [CLOSED]) == (found, False)


async def test_an_answer_before_all_was_written_is_not_followed_by_another_request() -> None:
    """The rest of the request is still to come: the next one would be taken for part of it."""
    assert await exchanged([LENGTH], left=1) == (ok(b"abc"), False)


@pytest.mark.parametrize(
    ("head", "piece", "found"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000, ok(b"x" * KEPT_BYTES)),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
            b"x" * 1000,
            ok(),
        ),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 1000, NotHttp),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 100, NotHttp),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 40, NotHttp),
    ],
    ids=["body", "framing", "a header", "headers", "interim answers"],
)
async def test_an_answer_is_not_read_without_end(head: bytes, piece: bytes, found: object) -> None:
    """Whatever part of it does not end: at most so many bytes, and the piece that goes beyond."""
    wire, connection = Wire(), Connection()
    connection.connection_made(wire)
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(connection.exchange(b"r", loop.time() + 60), name="exchange")
    await asyncio.sleep(0)
    connection.data_received(head) if head else None
    came = len(head)
    while not wire.aborted:
        connection.data_received(piece)
        came += len(piece)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert came <= MOST_BYTES + len(piece)
    assert came > MOST_BYTES
    try:
        answer: object = await task
    except HttpFailure as failure:
        answer = type(failure)
    assert (answer, connection.usable) == (found, False)


async def test_bytes_that_nobody_asked_for_close_an_idle_connection() -> None:
    """They would be taken for the answer to the next request."""
    wire, connection = Wire(), Connection()
    connection.connection_made(wire)
    connection.data_received(LENGTH)
    assert wire.aborted
    with pytest.raises(ConnectFailed):
        await connection.exchange(b"request", asyncio.get_running_loop().time() + 60)
    assert wire.written == b""


@pytest.mark.parametrize("came", [b"", b"HTTP/1.1 200 OK\r\n", LENGTH[:-1], LENGTH])
async def test_cancelling_closes_it(came: bytes) -> None:
    """In every state, unless the answer was there in the same moment."""
    wire, connection = Wire(), Connection()
    connection.connection_made(wire)
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(connection.exchange(b"r", loop.time() + 60), name="exchange")
    await asyncio.sleep(0)
    if came:
        connection.data_received(came)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert wire.aborted == (not connection.usable)
    assert wire.aborted == (came != LENGTH)


async def test_exchanges_follow_one_another() -> None:
    """Nothing of one answer is left in the next one."""
    wire, connection = Wire(), Connection()
    connection.connection_made(wire)
    loop = asyncio.get_running_loop()
    for answer, expected in (CASES["retry"], CASES["chunked"], CASES["no content"]):
        task = asyncio.create_task(connection.exchange(b"r", loop.time() + 60), name="exchange")
        await asyncio.sleep(0)
        connection.data_received(answer)
        assert await task == expected[0]
        assert connection.usable

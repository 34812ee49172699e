"""The client against real servers that play each awkward part, on both event loops."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from dispatcher.http1 import AddressInfo, Client, Dialer, HttpFailure, Origin, client, origin_of
from dispatcher.http1.connection import Answer, Connection
from reminders.localstack.ports import free_port
from tests.garbage import left_behind
from tests.standins.tls import Authority

REQUEST = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
OK = Answer(200, b"abc", None)
STREAM = (socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
SOON = timedelta(milliseconds=300)
LONG = timedelta(seconds=20)

Play = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Names:
    """Resolves by a table; a name that is not in it waits until it is."""

    def __init__(self, **addresses: Sequence[str]) -> None:
        self.addresses = dict(addresses)
        self.asked: list[str] = []
        self.told = asyncio.Event()

    async def resolve(self, host: str, port: int) -> Sequence[AddressInfo]:
        """As `getaddrinfo`."""
        self.asked.append(host)
        while host not in self.addresses:
            await self.told.wait()
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, *STREAM, (one, port))
            for one in self.addresses[host]
        ]


@asynccontextmanager
async def using(
    names: Names | None = None, *, within: timedelta = LONG, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Client]:
    """A client that may go anywhere."""
    dialer = Dialer(names or Names(), lambda _: None, tls or ssl.create_default_context())
    it = Client(dialer, within=within, connect_share=7 / 8)
    try:
        yield it
    finally:
        await it.close()


class Server:
    """Plays to each connection in turn; the last play is repeated."""

    def __init__(self, *plays: Play) -> None:
        self._plays = list(plays)
        self.connections = 0
        self.closed = asyncio.Semaphore(0)
        """Once for each connection that the client has closed, or that has ended."""
        self.origin: Origin
        self.ended: list[asyncio.Task[None] | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        play = self._plays.pop(0) if len(self._plays) > 1 else self._plays[0]
        self.connections += 1
        self.ended.append(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await play(reader, writer)
            await reader.read()
        writer.close()
        self.closed.release()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@asynccontextmanager
async def server(
    *plays: Play, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", name: str = ""
) -> AsyncIterator[Server]:
    """Listens on a free port."""
    it = Server(*plays)
    listening = await asyncio.start_server(it.serve, host, 0, ssl=tls)
    scheme = "https" if tls is not None else "http"
    port = listening.sockets[0].getsockname()[1]
    it.origin = origin_of(f"{scheme}://{name or host}:{port}")
    try:
        yield it
    finally:
        listening.close()
        async with asyncio.timeout(10):  # a connection that is left open is a failure
            await asyncio.gather(*(each for each in it.ended if each is not None))


def answering(*answers: bytes) -> Play:
    """Each after a whole request."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readexactly(len(REQUEST))
            writer.write(answer)

    return play


async def closing(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """At once."""
    writer.close()


async def failed(post: Awaitable[Answer]) -> tuple[str, bool]:
    """Word and whether it may have been sent."""
    with pytest.raises(HttpFailure) as raised:
        await post
    return raised.value.word, raised.value.sent


# --- keeping --------------------------------------------------------------------------------------


async def test_a_connection_is_used_again() -> None:
    """One after the other; two at once take two, and the one used last is used first."""
    async with server(answering(*[ANSWER] * 4)) as there, using() as it:
        assert [await it.post(there.origin, REQUEST) for _ in range(3)] == [OK] * 3
        assert there.connections == 1
        await asyncio.gather(it.post(there.origin, REQUEST), it.post(there.origin, REQUEST))
        assert there.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n"),
        ANSWER.replace(b"1.1", b"1.0"),
        ANSWER + ANSWER,
        ANSWER + b"x",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nabc" + b"x" * 99_997,
    ],
    ids=["it says so", "HTTP/1.0", "two answers", "one byte too much", "too long"],
)
async def test_one_that_may_not_be_used_again_is_closed(answer: bytes) -> None:
    """The other side notices; the next post takes another one."""
    async with server(answering(answer)) as there, using() as it:
        for number in (1, 2):
            answered = await it.post(there.origin, REQUEST)
            assert (answered.status, answered.start[:3]) == (200, b"abc")
            await there.closed.acquire()
            assert there.connections == number


@pytest.mark.parametrize("unasked", [b"", ANSWER, b"\r\n", b"HTTP/1.1 408 Late\r\n\r\n"])
async def test_an_idle_one_that_hears_anything_is_gone(unasked: bytes) -> None:
    """It was closed by the other side, or has said what nobody asked for."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering(ANSWER)(reader, writer)
        await writer.drain()
        await going.wait()
        writer.write(unasked)
        if not unasked:
            writer.close()

    going = asyncio.Event()
    async with server(play, answering(ANSWER)) as there, using() as it:
        assert await it.post(there.origin, REQUEST) == OK
        going.set()
        await there.closed.acquire()
        assert await it.post(there.origin, REQUEST) == OK
        assert there.connections == 2


async def test_an_old_one_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be closed any moment; it is closed by us."""
    monkeypatch.setattr(client, "IDLE_S", 0.02)
    async with server(answering(ANSWER, ANSWER)) as there, using() as it:
        await it.post(there.origin, REQUEST)
        await there.closed.acquire()
        await it.post(there.origin, REQUEST)
        assert there.connections == 2


async def test_no_more_are_kept_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beyond is closed."""
    monkeypatch.setattr(client, "MOST_IDLE", 1)
    async with server(answering(ANSWER, ANSWER)) as there, using() as it:
        await asyncio.gather(it.post(there.origin, REQUEST), it.post(there.origin, REQUEST))
        await there.closed.acquire()
        await it.post(there.origin, REQUEST)
        assert there.connections == 2


async def test_closing_the_client_closes_what_is_idle_and_what_is_under_way_afterwards() -> None:
    """Nothing is left open."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(REQUEST))
        asked.set()
        await going.wait()
        writer.write(ANSWER)

    going, asked = asyncio.Event(), asyncio.Event()
    async with server(answering(ANSWER), play) as there:
        async with using() as it:
            await it.post(there.origin, REQUEST)
            idle = it._take(there.origin)
            assert idle is not None
            waiting = asyncio.create_task(it.post(there.origin, REQUEST), name="post")
            await asked.wait()
            it._keep(there.origin, idle)
        await there.closed.acquire()
        going.set()
        assert await waiting == OK
        await there.closed.acquire()


# --- no answer ------------------------------------------------------------------------------------


async def test_one_that_is_closed_after_the_request_leaves_it_unknown() -> None:
    """Also where it was kept: whether the request was read, nobody can tell; it is not repeated."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering(ANSWER)(reader, writer)
        await reader.readexactly(len(REQUEST))
        writer.close()

    async with server(play) as there, using() as it:
        await it.post(there.origin, REQUEST)
        assert await failed(it.post(there.origin, REQUEST)) == ("disconnected", True)
        assert there.connections == 1


async def test_nobody_listens() -> None:
    """Nothing was sent."""
    async with using() as it:
        there = origin_of(f"http://127.0.0.1:{free_port()}")
        assert await failed(it.post(there, REQUEST)) == ("connect", False)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nX"])
async def test_no_status_in_time(said: bytes) -> None:
    """It may have been taken. The connection is closed."""
    async with server(answering(said, ANSWER)) as there, using(within=SOON) as it:
        assert await failed(it.post(there.origin, REQUEST)) == ("timeout", True)
        await there.closed.acquire()


async def test_a_status_in_time_stands_though_the_rest_is_late() -> None:
    """With what was there of the rest."""
    answer = ANSWER.replace(b": 3", b": 9")
    async with server(answering(answer)) as there, using(within=SOON) as it:
        assert await it.post(there.origin, REQUEST) == OK
        await there.closed.acquire()


async def test_no_connection_in_time() -> None:
    """A name that nobody tells, or a TLS handshake that nobody answers: nothing was sent."""

    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read(1)

    async with server(silent) as there, using(within=SOON) as it:
        named = origin_of("http://nobody.example")
        assert await failed(it.post(named, REQUEST)) == ("connect_timeout", False)
        secure = origin_of(f"https://127.0.0.1:{there.origin.port}")
        assert await failed(it.post(secure, REQUEST)) == ("connect_timeout", False)
        await there.closed.acquire()


async def test_it_is_closed_before_anything_was_sent() -> None:
    """Or so soon after it that nobody can tell."""
    async with server(closing) as there, using() as it:
        word, sent = await failed(it.post(there.origin, REQUEST))
        assert (word, sent) in {("connect", False), ("disconnected", True)}


@pytest.mark.parametrize("state", ["looking up", "handshake", "waiting", "reading"])
async def test_cancelling_leaves_nothing_open(state: str) -> None:
    """In every state: the other side sees the end, and the next post works."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(len(REQUEST))
        if state == "reading":
            writer.write(ANSWER[:-1])
        reached.set()

    reached, names = asyncio.Event(), Names()
    async with server(play, answering(ANSWER)) as there, using(names) as it:
        to = there.origin
        if state == "looking up":
            to = origin_of(f"http://hooks.example:{there.origin.port}")
            reached.set()
        if state == "handshake":
            to = origin_of(f"https://127.0.0.1:{there.origin.port}")
        task = asyncio.create_task(it.post(to, REQUEST), name="post")
        await reached.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if state == "looking up":
            names.addresses["hooks.example"] = ["127.0.0.1"]
            names.told.set()
            await asyncio.sleep(0)
            there._plays.pop(0)
            assert await it.post(to, REQUEST) == OK
        else:
            await there.closed.acquire()
            assert await it.post(there.origin, REQUEST) == OK


# --- names and addresses --------------------------------------------------------------------------


async def test_many_ask_for_a_name_once_and_use_all_its_addresses() -> None:
    """Those that ask meanwhile wait for the same answer; who gives up does not end it for them."""
    names = Names()
    async with server(answering(ANSWER), host="0.0.0.0") as there, using(names) as it:
        to = origin_of(f"http://hooks.example:{there.origin.port}")
        posts = [asyncio.create_task(it.post(to, REQUEST), name="post") for _ in range(3)]
        await asyncio.sleep(0)
        posts[0].cancel()
        await asyncio.sleep(0)
        names.addresses["hooks.example"] = ["127.0.0.1", "127.0.0.2"]
        names.told.set()
        assert await asyncio.gather(*posts[1:]) == [OK, OK]
        assert names.asked == ["hooks.example"]
        used = {connection._transport for connection in it._idle[to.name]}
        peers = {each.get_extra_info("peername")[0] for each in used if each is not None}
        assert peers == {"127.0.0.1", "127.0.0.2"}


async def test_one_address_after_another_is_tried() -> None:
    """Until one takes the connection."""
    names = Names(**{"hooks.example": ["127.0.0.2", "::1", "127.0.0.1"]})
    async with server(answering(ANSWER)) as there, using(names) as it:
        to = origin_of(f"http://hooks.example:{there.origin.port}")
        assert await it.post(to, REQUEST) == OK


async def test_a_name_without_an_address() -> None:
    """Nothing was sent."""
    async with using(Names(**{"hooks.example": []})) as it:
        to = origin_of("http://hooks.example")
        assert await failed(it.post(to, REQUEST)) == ("dns", False)


# --- TLS ------------------------------------------------------------------------------------------


async def test_over_tls_it_is_the_same(tmp_path: Path) -> None:
    """Name and certificate fit, and the connection is kept."""
    authority = Authority.make(tmp_path)
    names = Names(**{"hooks.example.": ["127.0.0.1"]})
    mine = authority.server("hooks.example")
    async with (
        server(answering(ANSWER, ANSWER), tls=mine, name="hooks.example.") as there,
        using(names, tls=authority.client()) as it,
    ):
        assert [await it.post(there.origin, REQUEST) for _ in range(2)] == [OK, OK]
        assert there.connections == 1


async def test_a_wrong_certificate_is_a_tls_failure(tmp_path: Path) -> None:
    """Of every address; nothing was sent."""
    authority = Authority.make(tmp_path)
    names = Names(**{"hooks.example": ["127.0.0.1", "127.0.0.2"]})
    mine = authority.server("other.example")
    async with (
        server(answering(ANSWER), tls=mine, host="0.0.0.0", name="hooks.example") as there,
        using(names, tls=authority.client()) as it,
    ):
        assert await failed(it.post(there.origin, REQUEST)) == ("tls", False)
        assert there.connections <= 2


async def test_a_wrong_certificate_is_told_of_though_another_address_refuses(
    tmp_path: Path,
) -> None:
    """Whichever of the two is tried first."""
    authority = Authority.make(tmp_path)
    mine = authority.server("other.example")
    for addresses in (["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"]):
        names = Names(**{"hooks.example": addresses})
        async with (
            server(answering(ANSWER), tls=mine, name="hooks.example") as there,
            using(names, tls=authority.client()) as it,
        ):
            assert await failed(it.post(there.origin, REQUEST)) == ("tls", False)


async def test_small_writes_are_not_held_back() -> None:
    """Nagle's algorithm is off, whichever loop made the transport."""
    async with server(answering(ANSWER)) as there, using() as it:
        await it.post(there.origin, REQUEST)
        connection: Connection = it._idle[there.origin.name][0]
        assert connection._transport is not None
        found = connection._transport.get_extra_info("socket")
        assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("how", ["answers", "closes", "hangs", "refuses"])
async def test_a_post_leaves_nothing_for_the_collector(how: str) -> None:
    """Neither the connection nor what it failed with. The server here leaves some."""
    plays = {"answers": answering(ANSWER, ANSWER), "closes": closing, "hangs": answering(b"")}
    async with server(plays.get(how, closing)) as there, using(within=SOON / 6) as it:
        origin = there.origin if how in plays else origin_of(f"http://127.0.0.1:{free_port()}")

        async def work(_number: int) -> None:
            with contextlib.suppress(HttpFailure):
                await it.post(origin, REQUEST)

        ours = ("Connection", "HttpResponseParser", "Connect", "TimedOut", "Disconnected")
        left = await left_behind(work)
        assert not [name for name in left if name.startswith(ours)]
        assert how != "refuses" or not left

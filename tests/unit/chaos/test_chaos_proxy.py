"""The proxy's bad lines, on loopback."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.chaos.proxy import Proxy, Way

SHORT_S = 0.15


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """Before a server that sends everything back."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1000):
                writer.write(data)
        writer.close()
        ended.put_nowait(None)

    ended: asyncio.Queue[None] = asyncio.Queue()
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    made = await Proxy(server.sockets[0].getsockname()[:2]).start()
    yield made
    await made.close()
    for _ in range(made.connected):
        await ended.get()
    server.close()


async def _connect(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", proxy.port)


async def test_a_good_line_passes_everything_in_order(proxy: Proxy) -> None:
    """And the end of it."""
    reader, writer = await _connect(proxy)
    sent = bytes(range(256)) * 1000
    writer.write(sent)
    writer.write_eof()
    assert await reader.read(-1) == sent
    writer.close()


async def test_a_late_line_delays_each_way(proxy: Proxy) -> None:
    """Not the rate: what is sent together comes together."""
    reader, writer = await _connect(proxy)
    await proxy.delay(SHORT_S)
    began = time.monotonic()
    for _ in range(20):
        writer.write(b"x")
        await asyncio.sleep(0)
    assert await reader.readexactly(20) == b"x" * 20
    assert 2 * SHORT_S <= time.monotonic() - began < 10 * SHORT_S
    writer.close()


@pytest.mark.parametrize("way", [Way.ASKING, Way.ANSWERING, Way.BOTH])
async def test_what_is_held_up_comes_when_the_line_is_good_again(proxy: Proxy, way: Way) -> None:
    """On connections from before and on new ones."""
    old = await _connect(proxy)
    await proxy.hold(way)
    new = await _connect(proxy)
    for reader, writer in (old, new):
        writer.write(b"hello")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(5), SHORT_S)
    await proxy.heal()
    for reader, writer in (old, new):
        assert await reader.readexactly(5) == b"hello"
        writer.close()


async def test_a_cut_line_resets_connections_old_and_new(proxy: Proxy) -> None:
    """Until it is healed."""
    reader, writer = await _connect(proxy)
    writer.write(b"x")
    await reader.readexactly(1)
    await proxy.cut()
    with pytest.raises(ConnectionError):
        await _ask(reader, writer)
    again = await _connect(proxy)
    with pytest.raises(ConnectionError):
        await _ask(*again)
    await proxy.heal()
    reader, writer = await _connect(proxy)
    await _ask(reader, writer)
    writer.close()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An end of the stream counts as a reset, too: it depends on who was faster."""
    writer.write(b"x")
    await writer.drain()
    if not await reader.read(1):
        raise ConnectionError

"""A TCP proxy whose line can be bad: late, held up in one direction or both, cut.

What is held up is not lost but comes when the line is good again, as after a partition that healed:
a command may so arrive long after whoever sent it gave up. Whatever passes keeps its order.
"""

import asyncio
import contextlib
from enum import Flag, auto


class Way(Flag):
    """Directions, as the client sees them."""

    NONE = 0
    ASKING = auto()
    ANSWERING = auto()
    BOTH = ASKING | ANSWERING


CHUNK = 65_536


class Proxy:
    """One listener on loopback before one server. All methods belong to its event loop."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.port = 0
        self.connected = 0
        """How many connections it made to the server."""
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._delay_s = 0.0
        self._refusing = False
        self._clear = {way: asyncio.Event() for way in (Way.ASKING, Way.ANSWERING)}

    async def start(self) -> "Proxy":
        """Listens; the line is good."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        await self.heal()
        return self

    async def close(self) -> None:
        """Ends everything."""
        if self._server is not None:
            self._server.close()
        await self.cut()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def delay(self, seconds: float) -> None:
        """From now on, each byte takes so long in each direction."""
        self._delay_s = seconds

    async def hold(self, ways: Way) -> None:
        """Nothing passes these ways: connections stay open, new ones are taken, and hang."""
        for way, clear in self._clear.items():
            if way in ways:
                clear.clear()

    async def cut(self) -> None:
        """Every connection is reset, new ones at once."""
        self._refusing = True
        for writer in list(self._writers):
            writer.transport.abort()

    async def heal(self) -> None:
        """All is as it should be; what was held up comes."""
        self._delay_s, self._refusing = 0.0, False
        for clear in self._clear.values():
            clear.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._pass_on(reader, writer)
        except asyncio.CancelledError:
            pass  # by `close`; the stream's callback takes a cancelled task for an error
        finally:
            self._serving.discard(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            to_reader, to_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        self.connected += 1
        self._writers |= {writer, to_writer}
        ways = (
            self._pump(reader, to_writer, Way.ASKING),
            self._pump(to_reader, writer, Way.ANSWERING),
        )
        try:
            await asyncio.gather(*ways)
        finally:
            for each in (writer, to_writer):
                self._writers.discard(each)
                each.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way
    ) -> None:
        """Reads at once and writes when it is time, so that a delay is no limit of the rate."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def read() -> None:
            data = b" "
            while data:
                try:
                    data = await reader.read(CHUNK)
                except OSError:
                    data = b""
                waiting.put_nowait((loop.time() + self._delay_s, data))

        reading = asyncio.create_task(read(), name=f"proxy-{way.name}")
        try:
            while True:
                due, data = await waiting.get()
                if (left := due - loop.time()) > 0:
                    await asyncio.sleep(left)
                await self._clear[way].wait()
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            reading.cancel()
            with contextlib.suppress(OSError, RuntimeError):
                writer.write_eof()

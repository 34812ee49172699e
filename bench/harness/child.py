"""A process of `bench.processes`, started with JSON arguments, speaking JSON lines.

The child says events on its stdout and obeys words on its stdin; at the end of its stdin it ends.
Both sides are here. Events carry what was counted; the parent reads /proc when it hears them, so
that what it reads belongs to the same stretch of time.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

STOP_S = 10.0
BACKLOG = 4096
"""Connections that a listener has not accepted yet."""


class ChildFailedError(RuntimeError):
    """It ended, or said something else than was waited for; its stderr is on ours."""


class Child:
    """The parent's side."""

    def __init__(self, name: str, **arguments: Any) -> None:
        self.name = name
        command = [sys.executable, "-m", f"bench.processes.{name}", json.dumps(arguments)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def hear(self, event: str) -> dict[str, Any]:
        """Waits for the next event, which must be this one; its values."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ChildFailedError(f"{self.name} ended with {self._process.wait()}, not {event!r}")
        said: dict[str, Any] = json.loads(line)
        if said.pop("event") != event:
            raise ChildFailedError(f"{self.name} said {line[:200]!r}, not {event!r}")
        return said

    def tell(self, word: str) -> None:
        """Says a word."""
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()

    def ask(self, word: str) -> dict[str, Any]:
        """Says a word and waits for the event of that name."""
        self.tell(word)
        return self.hear(word)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        if kind is not None:
            self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def arguments() -> dict[str, Any]:
    """The child's side: what it was started with."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    return given


def say(event: str, **values: Any) -> None:
    """The child's side: tells the parent."""
    sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()


async def window(warm_s: float, seconds: float, count: Callable[[], int]) -> int:
    """The child's side of a measured stretch: `begin` once warm; what was counted from there."""
    await asyncio.sleep(warm_s)
    before = count()
    say("begin")
    await asyncio.sleep(seconds)
    return count() - before


async def listen(
    kind: Callable[[], asyncio.Protocol],
    host: str,
    words: Mapping[str, Callable[[], dict[str, Any]]],
) -> None:
    """The child's side of one that listens: says its `port`, then answers each word of the parent's
    by the event of that name, and ends at any other.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def obey() -> None:
        word = sys.stdin.readline().strip()
        if word in words:
            say(word, **words[word]())
        else:
            stop.set()

    server = await loop.create_server(kind, host, 0, backlog=BACKLOG)
    loop.add_reader(sys.stdin, obey)
    say("port", port=server.sockets[0].getsockname()[1])
    await stop.wait()
    server.close()

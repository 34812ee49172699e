"""Lua scripts: read once, sent by digest, and in full where the server does not know them."""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha1
from importlib.resources import files
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from reminders.coordination.connection import Lines, Value, command, send

LUA = files("reminders.coordination") / "lua"


class Script:
    """One file of `lua/`, with `server.lua` before it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.source = f"{_read('server')}\n{_read(name)}"
        self.digest = sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    async def run(self, client: Redis, keys: Sequence[str], args: Sequence[Value]) -> Any:
        """The reply. A NOSCRIPT ran nothing, so sending the source after it is safe."""
        try:
            return await send(client, "EVALSHA", self.digest, len(keys), *keys, *args)
        except NoScriptError:
            return await send(client, "EVAL", self.source, len(keys), *keys, *args)

    async def run_on(
        self, lines: Lines, within: timedelta, keys: Sequence[str], args: Sequence[bytes]
    ) -> Any:
        """As `run`, for a script that is called all the time."""
        rest = (b"%d" % len(keys), *[key.encode() for key in keys], *args)
        try:
            called = command(b"EVALSHA", self.digest.encode(), *rest)
            return await lines.call(called, within=within)
        except NoScriptError:
            return await lines.call(command(b"EVAL", self.source.encode(), *rest), within=within)

    async def run_each(
        self, client: Redis, calls: Sequence[tuple[Sequence[str], Sequence[Value]]]
    ) -> list[Any]:
        """The replies to calls that travel together: each is atomic, all of them are not."""
        if not calls:
            return []
        pipeline = client.pipeline(transaction=False)
        for keys, args in calls:
            pipeline.execute_command("EVALSHA", self.digest, len(keys), *keys, *args)
        replies: list[Any] = await pipeline.execute(raise_on_error=False)
        for index, (keys, args) in enumerate(calls):
            if isinstance(replies[index], NoScriptError):
                replies[index] = await self.run(client, keys, args)
            elif isinstance(replies[index], Exception):
                raise replies[index]
        return replies


def _read(name: str) -> str:
    return (LUA / f"{name}.lua").read_text(encoding="utf-8")

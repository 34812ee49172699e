"""Hints of entries that were written for a time a scanner may have read already."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from reminders.coordination import keys
from reminders.coordination.connection import Clients, Timeouts, send, translated
from reminders.coordination.instants import from_us, to_ms, to_us
from reminders.model.codec import encode
from reminders.model.entry import DueEntry

BEGINNING = "0-0"
MOST = 1000
"""Hints of one shard in one read."""


class RedisHints:
    """Implements `ports.Hints`: a stream a shard, without a group: its scanner alone reads."""

    def __init__(self, clients: Clients, life: timedelta, timeouts: Timeouts) -> None:
        self._clients = clients
        self._life_ms = to_ms(life)
        self._longest_block = timeouts.block

    async def announce(self, entries: Sequence[DueEntry], *, written_from: datetime) -> None:
        """In one round trip. Rounds `written_from` down: an older copy is only re-read sooner."""
        if not entries:
            return
        written_ms = to_us(written_from) // 1000
        oldest_ms = written_ms - self._life_ms
        pipeline = self._clients.commands.pipeline(transaction=False)
        for entry in entries:
            pipeline.execute_command(
                "XADD", keys.stream("near", entry.key.shard), "MINID", "~", oldest_ms, "*",
                "e", encode(entry), "w", written_ms,
            )  # fmt: skip
        with translated("announce"):
            await pipeline.execute()

    async def last(self, shard: int) -> str:
        """The newest id. An emptied stream reads from its beginning: what comes is new."""
        with translated("last hint"):
            reply: Any = await send(
                self._clients.commands,
                "XREVRANGE",
                keys.stream("near", shard),
                "+",
                "-",
                "COUNT",
                1,
            )
        return reply[0][0].decode() if reply else BEGINNING

    async def tail(
        self, after: Mapping[int, str], *, wait: timedelta
    ) -> Mapping[int, Sequence[tuple[str, bytes, datetime]]]:
        """At most `MOST` for each shard; the rest comes with the next call."""
        if not after:
            return {}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait.total_seconds()
        streams = {keys.stream("near", shard).encode(): shard for shard in after}
        while True:
            left = timedelta(seconds=max(deadline - loop.time(), 0))
            block_ms = to_ms(min(left, self._longest_block))
            client = self._clients.blocking if block_ms else self._clients.commands
            block = ("BLOCK", block_ms) if block_ms else ()
            with translated("tail hints"):
                reply: Any = await send(
                    client, "XREAD", "COUNT", MOST, *block, "STREAMS", *streams, *after.values()
                )
            if reply or loop.time() >= deadline:
                return {
                    streams[key]: [_hint(*m) for m in messages] for key, messages in reply or ()
                }


def _hint(hint_id: bytes, fields: Sequence[bytes]) -> tuple[str, bytes, datetime]:
    _, raw, _, written_ms = fields
    return hint_id.decode(), raw, from_us(int(written_ms) * 1000)

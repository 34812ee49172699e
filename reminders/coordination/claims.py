"""First claims and what stops them: the Python side of `lua/claim.lua` and `lua/revoke.lua`."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain

import msgspec

from reminders.coordination import keys
from reminders.coordination.connection import Clients, Timeouts, translated
from reminders.coordination.instants import from_us, to_ms, to_us
from reminders.coordination.scripts import Script
from reminders.model.entry import DueEntry, EntryState
from reminders.ports import ClaimAnswer, Copy, LeaseAnswer, Revocation

MAX_BATCH = 1000
"""Entries a call: columns go over Lua's stack, and the server does nothing else meanwhile."""

ANSWERS = {
    ord("C"): ClaimAnswer.CLAIMED,
    ord("D"): ClaimAnswer.DUPLICATE,
    ord("R"): ClaimAnswer.READDED,
    ord("E"): ClaimAnswer.EARLY,
    ord("V"): ClaimAnswer.VOID,
    ord("S"): ClaimAnswer.STALE,
}

ONLY_ASK = -1
"""For `revoke.lua`, instead of a version."""

_encode = msgspec.msgpack.Encoder().encode


class RedisClaims:
    """Implements `ports.Claims`."""

    def __init__(
        self,
        clients: Clients,
        timeouts: Timeouts,
        *,
        lookahead: timedelta,
        margin: timedelta,
        fired_life: timedelta,
    ) -> None:
        """`margin`: how much longer than the look-ahead voids live.

        Half of it is for late claims, half for the difference of two clocks.
        """
        self._client = clients.commands
        self._lines = clients.lines
        self._within = timeouts.operation
        self._void_life_ms = to_ms(lookahead + margin)
        self._oldest_us = (lookahead + margin / 2) // timedelta(microseconds=1)
        self._fired_life_ms = to_ms(fired_life)
        self._claim = Script("claim")
        self._refire = Script("refire")
        self._revoke = Script("revoke")
        self._fence = Script("fence")

    async def claim(
        self,
        shard: int,
        token: str,
        copies: Sequence[Copy],
        *,
        ahead: timedelta = timedelta(0),
    ) -> Sequence[ClaimAnswer] | LeaseAnswer:
        """Claim what is due, at most `MAX_BATCH` a call; see the port."""
        if not copies:
            return []
        if len(copies) > MAX_BATCH:
            raise ValueError(f"{len(copies)} entries in one claim, at most {MAX_BATCH}")
        names = (
            keys.home(shard),
            keys.lease(shard),
            keys.stream("jobs", shard),
            keys.stream("fires", shard),
        )
        args = (
            token.encode(),
            self._columns(shard, copies, ahead),
            *[copy.state.raw for copy in copies],
        )
        with translated("claim"):
            reply = await self._claim.run_on(self._lines, self._within, names, args)
        if isinstance(reply, int):
            return LeaseAnswer(reply)
        return [ANSWERS[letter] for letter in reply]

    def _columns(self, shard: int, copies: Sequence[Copy], ahead: timedelta) -> bytes:
        """The second argument of `claim.lua`, which describes it."""
        entries = [copy.state.entry for copy in copies]
        grouped = [
            (place, keys.group(entry.namespace, entry.group_id), to_us(entry.record_created_at))
            for place, entry in enumerate(entries, 1)
            if entry.group_id is not None
        ]
        return _encode(
            (
                keys.fired_prefix(shard),
                keys.void_prefix(shard),
                self._fired_life_ms,
                self._oldest_us,
                _runs(keys.fired_minute(entry.promised_at) for entry in entries),
                [entry.dedupe_id for entry in entries],
                [to_us(entry.key.ring_at) for entry in entries],
                [to_us(copy.read_at) if copy.voidable else -1 for copy in copies],
                [entry.reminder_id for entry in entries],
                [entry.version for entry in entries],
                [place for place, copy in enumerate(copies, 1) if copy.recheck],
                [place for place, entry in enumerate(entries, 1) if entry.recurs],
                list(chain.from_iterable(grouped)),
                keys.group_prefix(shard),
                ahead // timedelta(microseconds=1),
            )
        )

    async def refire(self, shard: int, token: str, states: Sequence[EntryState]) -> LeaseAnswer:
        """Hand entries to `fires` again."""
        names = (keys.home(shard), keys.lease(shard), keys.stream("fires", shard))
        with translated("refire"):
            reply = await self._refire.run(
                self._client, names, (token, *[state.raw for state in states])
            )
        return LeaseAnswer(reply)

    async def revoke(
        self, shard: int, reminder_id: str, *, through_version: int, entries: Sequence[DueEntry]
    ) -> Revocation:
        """Make entries up to a version void; see the port."""
        return await self._ask("revoke", shard, reminder_id, through_version, entries)

    async def claimed(self, shard: int, entries: Sequence[DueEntry]) -> Revocation:
        """Only ask, in calls of at most `MAX_BATCH`; see the port."""
        found = [
            await self._ask("claimed", shard, "", ONLY_ASK, entries[first : first + MAX_BATCH])
            for first in range(0, max(len(entries), 1), MAX_BATCH)
        ]
        # The oldest answer holds for all of them.
        known = [one.known_since for one in found]
        return Revocation(
            claimed=frozenset().union(*(one.claimed for one in found)),
            known_since=None if None in known else max(filter(None, known)),
            server_now=found[0].server_now,
        )

    async def fence(
        self, shards: Sequence[int], namespace: str, group_id: str, cancelled_at: datetime
    ) -> None:
        """In one round trip, however many shards; see the port."""
        group = keys.group(namespace, group_id)
        args = (to_us(cancelled_at), self._void_life_ms)
        with translated("fence"):
            await self._fence.run_each(
                self._client, [((keys.group_prefix(shard) + group,), args) for shard in shards]
            )

    async def _ask(
        self, step: str, shard: int, reminder_id: str, version: int, entries: Sequence[DueEntry]
    ) -> Revocation:
        fired = keys.fired_prefix(shard)
        names = [keys.home(shard), keys.void_prefix(shard) + reminder_id]
        names += [f"{fired}{keys.fired_minute(entry.promised_at)}" for entry in entries]
        dedupe = [entry.dedupe_id for entry in entries]
        with translated(step):
            known_us, now_us, *claimed = await self._revoke.run(
                self._client, names, (version, self._void_life_ms, *dedupe)
            )
        return Revocation(
            claimed=frozenset(name for name, known in zip(dedupe, claimed, strict=True) if known),
            known_since=None if known_us is None else from_us(int(known_us)),
            server_now=from_us(int(now_us)),
        )


def _runs(minutes: Iterable[int]) -> list[int]:
    """Minute, how many in a row have it, and so on."""
    runs: list[int] = []
    for minute in minutes:
        if runs and runs[-2] == minute:
            runs[-1] += 1
        else:
            runs += (minute, 1)
    return runs

"""What a `dedup_key` or `request_id` stands for: arbitrated in the store, once for each.

A claim carries the reminder id, the instant and the stamp, so whoever repeats a create that died
half-way writes the very same rows.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from reminders.errors import KeyConflict, StoreUnavailable, TocsinError
from reminders.lifecycle.planning import Planner
from reminders.lifecycle.reading import Finish, Reads
from reminders.lifecycle.requests import Created, CreateRequest
from reminders.lifecycle.writing import EntryWriter
from reminders.model.codec import content_hash
from reminders.model.definition import Recurring
from reminders.model.record import DedupClaim, NewReminder, Stored
from reminders.platform import Platform

KEY_KINDS = ("key", "request")
"""Prefixes of claims, in the order in which they are claimed: `dedup_key`, `request_id`."""
MISSING_IS_UNWRITTEN = timedelta(days=27)
"""A due entry younger than this that is not there was never written; an older one may have expired.
"""

Plan = Callable[[CreateRequest, str, datetime], Awaitable[NewReminder]]
"""Of a request, as the reminder of that id, created then."""


class CreationKeys:
    """One for a process."""

    def __init__(
        self,
        platform: Platform,
        writer: EntryWriter,
        planner: Planner,
        reads: Reads,
        finish: Finish,
        plan: Plan,
    ) -> None:
        self._store = platform.store
        self._clock = platform.clock
        self._limits = platform.limits
        self._writer = writer
        self._planner = planner
        self._reads = reads
        self._finish = finish
        self._plan = plan

    async def arbitrate(
        self,
        requests: Sequence[CreateRequest],
        keyed: dict[int, NewReminder],
        fresh: dict[int, NewReminder],
        results: list[Created | TocsinError | None],
    ) -> None:
        """Decides for each keyed request: ours (goes to `fresh`), a repeat, or a conflict.

        The dedup_key goes first, and a request_id is then claimed for the reminder that it stands
        for.
        """
        stands: dict[int, DedupClaim] = {}
        for kind in KEY_KINDS:
            asked = {
                index: claim
                for index, new in keyed.items()
                if (claim := self._claim(kind, requests[index], new, stands.get(index)))
                and results[index] is None
            }
            if not asked:
                continue
            try:
                owners = await self._store.dedup.claim(list(asked.values()))
            except StoreUnavailable as error:
                for index in asked:
                    results[index] = error
                continue
            for (index, claim), owner in zip(asked.items(), owners, strict=True):
                if owner.content_hash != claim.content_hash or (
                    index in stands and owner.reminder_id != claim.reminder_id
                ):
                    results[index] = _conflict(kind, owner)
                elif index not in stands:
                    stands[index] = owner
        repeats: list[int] = []
        for index, owner in stands.items():
            if results[index] is not None:
                continue
            if owner.reminder_id == keyed[index].record.reminder_id:
                fresh[index] = keyed[index]
            else:
                repeats.append(index)
        if repeats:
            settle = self._settle_repeat
            each = (settle(at, requests[at], stands[at], fresh, results) for at in repeats)
            await asyncio.gather(*each)

    def _claim(
        self, kind: str, request: CreateRequest, new: NewReminder, stands: DedupClaim | None
    ) -> DedupClaim | None:
        name = _key_name(kind, request)
        if not name:
            return None
        record = new.record
        claim = DedupClaim(
            namespace=request.namespace,
            key=f"{kind}:{name}",
            reminder_id=record.reminder_id,
            content_hash=content_hash(request.definition),
            created_at=record.created_at,
            stamp=record.stamp,
            expires_at=self._expiry(new),
        )
        if stands is None:
            return claim
        return msgspec.structs.replace(
            claim,
            reminder_id=stands.reminder_id,
            created_at=stands.created_at,
            stamp=stands.stamp,
            expires_at=stands.expires_at,
        )

    def _expiry(self, new: NewReminder) -> datetime | None:
        """Before the record of a one-shot leaves; never for a rule."""
        if isinstance(new.record.definition.schedule, Recurring):
            return None
        last = new.entries[-1].key.ring_at
        return last + new.record.definition.policies.expire_after + self._limits.retention

    async def _settle_repeat(
        self,
        index: int,
        request: CreateRequest,
        owner: DedupClaim,
        fresh: dict[int, NewReminder],
        results: list[Created | TocsinError | None],
    ) -> None:
        """Of a key that stands for a reminder of another call, or of another request here."""
        try:
            repeated = await self._repeated(owner)
            if repeated is not None:
                results[index] = repeated
            else:  # the first one died, or is still at it: write its rows, not ours
                fresh[index] = await self._plan(request, owner.reminder_id, owner.created_at)
        except TocsinError as error:
            results[index] = error

    async def _repeated(self, owner: DedupClaim) -> Created | None:
        """The reminder that a key stands for, completed if its create died half-way."""
        known_at = self._clock.now()
        stored = await self._finish(owner.reminder_id)
        if stored is None:
            return None
        await self._complete(stored, known_at)
        return Created(view=await self._reads.view(stored), deduplicated=True)

    async def known(self, request: CreateRequest) -> Created | TocsinError | None:
        """What a request that comes too late to be made was answered when it came in time."""
        if request.validate_only:
            return None
        try:
            for kind in KEY_KINDS:
                name = _key_name(kind, request)
                owner = (
                    await self._store.dedup.find(request.namespace, f"{kind}:{name}")
                    if name
                    else None
                )
                if owner is None:
                    continue
                if owner.content_hash != content_hash(request.definition):
                    return _conflict(kind, owner)
                return await self._repeated(owner)
        except TocsinError as error:
            return error
        return None

    async def _complete(self, stored: Stored, known_at: datetime) -> None:
        """Writes what a create that died after its record did not write.

        Only where the record still has it pending and nothing became of it. The live entries say
        what that is: planned again, with newer zone data, it might be something else.
        """
        record = stored.record
        if record.version != 1:
            return
        horizon = known_at - MISSING_IS_UNWRITTEN
        for entry in stored.current:
            state = await self._store.due.read(entry.key)
            if state is not None and (state.handled_at is not None or state.fate is not None):
                continue
            if entry.key.ring_at < horizon:
                continue
            whole = self._planner.whole(record, entry)
            await self._store.users.add([whole], record.definition.audience, stamp=record.stamp)
            if state is None:
                await self._writer.put([whole], stamp=record.stamp, known_at=known_at)
            else:
                await self._writer.move_late([whole])


def _key_name(kind: str, request: CreateRequest) -> str | None:
    return request.definition.dedup_key if kind == "key" else request.request_id


def _conflict(kind: str, owner: DedupClaim) -> KeyConflict:
    return KeyConflict(
        key="dedup_key" if kind == "key" else "request_id", reminder_id=owner.reminder_id
    )

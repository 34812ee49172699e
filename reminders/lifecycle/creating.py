"""Create: durable when it answers, once for each `dedup_key` and `request_id`.

A key is arbitrated in the store by `DedupKeys.claim`; the claim carries the reminder id, the
instant and the stamp, so whoever repeats a create that died half-way writes the very same rows.
Without a key nothing is read before the write.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from reminders.errors import (
    InvalidRequest,
    KeyConflict,
    NotReady,
    StoreUnavailable,
    TocsinError,
    unexpected,
)
from reminders.lifecycle.aside import HASTY_STEPS, Aside, TakesLong
from reminders.lifecycle.planning import Planner, instant_ms
from reminders.lifecycle.reading import Finish, Reads
from reminders.lifecycle.requests import Created, CreateRequest, View
from reminders.lifecycle.writing import EntryWriter, stamp_of
from reminders.model.codec import content_hash
from reminders.model.definition import Recurring
from reminders.model.record import DedupClaim, NewReminder, Record, Status, Stored
from reminders.platform import Platform
from reminders.reminder_id import new_reminder_ids

CREATION_SETBACK = timedelta(seconds=60)
"""Creations are stamped this far behind, so that an LWT by any coordinator's clock wins over them.
"""
KEY_KINDS = ("key", "request")
"""Prefixes of claims, in the order in which they are claimed: `dedup_key`, `request_id`."""
MISSING_IS_UNWRITTEN = timedelta(days=27)
"""A due entry younger than this that is not there was never written; an older one may have expired.
"""


class Creates:
    """The use case behind the three create calls."""

    def __init__(
        self,
        platform: Platform,
        writer: EntryWriter,
        planner: Planner,
        reads: Reads,
        finish: Finish,
        aside: Aside,
    ) -> None:
        self._store = platform.store
        self._writer = writer
        self._planner = planner
        self._reads = reads
        self._finish = finish
        self._aside = aside
        self._clock = platform.clock
        self._limits = platform.limits

    async def create(self, requests: Sequence[CreateRequest]) -> list[Created | TocsinError]:
        """One result for each request, in order; each succeeds or fails by itself."""
        if not self._clock.in_bounds():
            return [NotReady(operation="create")] * len(requests)
        results: list[Created | TocsinError | None] = [None] * len(requests)
        fresh: dict[int, NewReminder] = {}
        keyed: dict[int, NewReminder] = {}
        now = instant_ms(self._clock.now())
        ids = new_reminder_ids(len(requests))
        for index, (request, reminder_id) in enumerate(zip(requests, ids, strict=True)):
            try:
                _check_in_time(request)
                new = await self._plan(request, reminder_id, now)
            except InvalidRequest as error:
                results[index] = await self._known(request) or error
                continue
            except Exception as error:  # noqa: BLE001 - a bug that one of them meets is not the others'
                results[index] = unexpected("create", error)
                continue
            if request.validate_only:
                results[index] = Created(view=_anonymous(new))
            elif request.request_id or request.definition.dedup_key:
                keyed[index] = new
            else:
                fresh[index] = new
        await self._store_in_time(requests, keyed, fresh, results, known_at=now)
        assert all(result is not None for result in results)
        return results  # type: ignore[return-value]

    async def _store_in_time(
        self,
        requests: Sequence[CreateRequest],
        keyed: dict[int, NewReminder],
        fresh: dict[int, NewReminder],
        results: list[Created | TocsinError | None],
        *,
        known_at: datetime,
    ) -> None:
        """Whatever stores that hang have not let us decide by then is unavailable.

        As after a crash there: what was written may ring, and whoever repeats it with its key
        completes it. Planning has had its time before; a batch of long ones is no outage.
        """
        asked = (*keyed, *fresh)
        limit = asyncio.timeout(self._limits.patience.total_seconds())
        try:
            async with limit:
                if keyed:
                    await self._arbitrate(requests, keyed, fresh, results)
                if fresh:
                    await self._write(fresh, results, known_at=known_at)
        except TimeoutError:
            if not limit.expired():
                raise
            error = StoreUnavailable(operation="create")
            for index in asked:
                results[index] = results[index] or error

    async def _plan(
        self, request: CreateRequest, reminder_id: str, created_at: datetime
    ) -> NewReminder:
        """Raises `InvalidRequest` where nothing is ahead."""
        record = Record(
            namespace=request.namespace,
            reminder_id=reminder_id,
            version=1,
            status=Status.SCHEDULED,
            definition=request.definition,
            created_at=created_at,
            updated_at=created_at,
            stamp=stamp_of(created_at - CREATION_SETBACK),
        )
        try:
            entries = self._planner.first(record, steps=HASTY_STEPS)
        except TakesLong:
            entries = await self._aside.run(self._planner.first, record)
        return NewReminder(record=record, entries=entries)

    async def _write(
        self,
        fresh: dict[int, NewReminder],
        results: list[Created | TocsinError | None],
        *,
        known_at: datetime,
    ) -> None:
        """`known_at`: before the keys were claimed. A repeat of the call may have made the reminder
        since, and somebody may have cancelled it.
        """
        new = list(fresh.values())
        try:
            await self._store.records.create(new)
            await self._writer.written(
                [entry for one in new for entry in one.entries], written_from=known_at
            )
        except TocsinError as error:
            for index in fresh:
                results[index] = error
            return
        for index, one in fresh.items():
            view = _view_of(one)
            if one.record.created_at < known_at:
                # Of a call that died. Its group may have been cancelled since: say so.
                view = await self._reads.view(Stored(record=one.record, live=one.entries))
            results[index] = Created(view=view)

    # --- keys -----------------------------------------------------------------------------------

    async def _arbitrate(
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
        for index, owner in stands.items():
            if results[index] is None:
                await self._settle_key(index, requests[index], keyed[index], owner, fresh, results)

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

    async def _settle_key(
        self,
        index: int,
        request: CreateRequest,
        new: NewReminder,
        owner: DedupClaim,
        fresh: dict[int, NewReminder],
        results: list[Created | TocsinError | None],
    ) -> None:
        if owner.reminder_id == new.record.reminder_id:
            fresh[index] = new
            return
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

    async def _known(self, request: CreateRequest) -> Created | TocsinError | None:
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


def _check_in_time(request: CreateRequest) -> None:
    if request.too_late:
        raise InvalidRequest(violations=list(request.too_late))


def _key_name(kind: str, request: CreateRequest) -> str | None:
    return request.definition.dedup_key if kind == "key" else request.request_id


def _conflict(kind: str, owner: DedupClaim) -> KeyConflict:
    return KeyConflict(
        key="dedup_key" if kind == "key" else "request_id", reminder_id=owner.reminder_id
    )


def _view_of(new: NewReminder) -> View:
    return View(record=new.record, status=new.record.status, ahead=new.entries)


def _anonymous(new: NewReminder) -> View:
    record = msgspec.structs.replace(new.record, reminder_id="")
    entries = tuple(msgspec.structs.replace(entry, reminder_id="") for entry in new.entries)
    return View(record=record, status=record.status, ahead=entries)

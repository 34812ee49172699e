"""Create: durable when it answers, once for each `dedup_key` and `request_id` (`creation_keys`).

Without a key nothing is read before the write.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from reminders.errors import (
    InvalidRequest,
    NotReady,
    StoreUnavailable,
    TocsinError,
)
from reminders.incidents import unexpected
from reminders.lifecycle.aside import HASTY_STEPS, Aside, TakesLong
from reminders.lifecycle.creation_keys import CreationKeys
from reminders.lifecycle.planning import Planner, instant_ms
from reminders.lifecycle.reading import Finish, Reads
from reminders.lifecycle.requests import Created, CreateRequest, View
from reminders.lifecycle.writing import EntryWriter, stamp_of
from reminders.model.record import NewReminder, Record, Status, Stored
from reminders.platform import Platform
from reminders.reminder_id import new_reminder_ids

CREATION_SETBACK = timedelta(seconds=60)
"""Creations are stamped this far behind, so that an LWT by any coordinator's clock wins over them.
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
        self._aside = aside
        self._keys = CreationKeys(platform, writer, planner, reads, finish, self._plan)
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
                results[index] = await self._keys.known(request) or error
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
                    await self._keys.arbitrate(requests, keyed, fresh, results)
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


def _check_in_time(request: CreateRequest) -> None:
    if request.too_late:
        raise InvalidRequest(violations=list(request.too_late))


def _view_of(new: NewReminder) -> View:
    return View(record=new.record, status=new.record.status, ahead=new.entries)


def _anonymous(new: NewReminder) -> View:
    record = msgspec.structs.replace(new.record, reminder_id="")
    entries = tuple(msgspec.structs.replace(entry, reminder_id="") for entry in new.entries)
    return View(record=record, status=record.status, ahead=entries)

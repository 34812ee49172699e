"""Second readings: requests that lean on a recipient record are read again with it.

Only what was refused at first is looked at, so a request that says all itself costs nothing more.
Each record is read once for a batch, and many at a time.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from tocsin.v1 import reminder_service_pb2 as service_pb

from reminders.errors import InvalidRequest, TocsinError
from reminders.lifecycle import CreateRequest, Reminders
from scheduler.validation import Validator
from scheduler.validation.reach import Reach
from scheduler.validation.reminders import DEFAULT_NAMESPACE
from scheduler.validation.wanting import lacks_zone, record_wanted

AT_ONCE = 32
"""Records that are read at a time for one batch."""

Place = tuple[str, str]
"""Namespace and user."""


class Lookups:
    """One for a process."""

    def __init__(self, reminders: Reminders, validator: Validator) -> None:
        self._reminders = reminders
        self._validator = validator

    async def of(self, place: Place) -> Reach:
        """What is known of that user then."""
        recipient = await self._reminders.recipients.find(*place)
        return Reach(recipient=recipient, read=True)

    async def zone_for(self, request: service_pb.RescheduleReminderRequest) -> str:
        """Where a new schedule without a zone is meant: by the record of the reminder's user.
        Empty if it says where, or nobody knows. Raises `NotFound`.
        """
        if not lacks_zone(request.schedule) or not request.reminder_id:
            return ""
        namespace = request.namespace or DEFAULT_NAMESPACE
        view = await self._reminders.get(namespace, request.reminder_id)
        user_id = view.record.definition.user_id
        return (await self.of((namespace, user_id))).zone if user_id else ""

    async def completed(
        self,
        requests: Sequence[service_pb.CreateReminderRequest],
        read: Sequence[CreateRequest | TocsinError],
        now: datetime,
    ) -> list[CreateRequest | TocsinError]:
        """`read`: what the first reading came to, for each request. The same, with what records
        fill in; an error in place of what needs one that can't be had now.
        """
        found: list[CreateRequest | TocsinError] = list(read)
        wanted: dict[int, Place] = {}
        for position, one in enumerate(read):
            if isinstance(one, InvalidRequest):
                place = record_wanted(requests[position].reminder)
                if place is not None:
                    wanted[position] = place
        if wanted:
            known = await self._known(set(wanted.values()))
            for position, place in wanted.items():
                found[position] = self._again(requests[position], known[place], now)
        return found

    def _again(
        self, request: service_pb.CreateReminderRequest, known: Reach | TocsinError, now: datetime
    ) -> CreateRequest | TocsinError:
        if isinstance(known, TocsinError):
            return known
        try:
            return self._validator.create(request, now, known)
        except InvalidRequest as error:
            return error

    async def _known(self, places: set[Place]) -> dict[Place, Reach | TocsinError]:
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(place: Place) -> Reach | TocsinError:
            async with turns:
                try:
                    return await self.of(place)
                except TocsinError as error:
                    return error

        ordered = sorted(places)
        found = await asyncio.gather(*map(one, ordered))
        return dict(zip(ordered, found, strict=True))

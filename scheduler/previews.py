"""PreviewOccurrences: the one call that computes for long, and needs no store.

A rule with rare dates takes a second or two of pure computing (`PREVIEW_STEPS`), so it runs in a
thread, one at a time: whatever is asked, other calls go on.
"""

import asyncio
from typing import Final

from tocsin.v1 import reminder_service_pb2 as pb

from reminders.lifecycle.previewing import PreviewRequest, preview
from reminders.ports import Clock
from scheduler.mapping.previews import preview_message
from scheduler.validation import Validator

AT_ONCE: Final = 1
"""Threads that compute hold up the loop by turns; more of them would not be faster."""


class Previews:
    """One for a process."""

    def __init__(self, clock: Clock, validator: Validator) -> None:
        self._clock = clock
        self._validator = validator
        self._free = asyncio.Semaphore(AT_ONCE)

    async def answer(self, request: pb.PreviewOccurrencesRequest) -> pb.PreviewOccurrencesResponse:
        """Raises `InvalidRequest`."""
        now = self._clock.now()
        asked = self._validator.preview(request, now)

        def compute(asked: PreviewRequest) -> pb.PreviewOccurrencesResponse:
            return preview_message(preview(asked, now))

        async with self._free:
            return await asyncio.to_thread(compute, asked)

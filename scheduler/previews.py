"""PreviewOccurrences: the one call that computes for long, and needs no store.

A rule with rare dates takes a second or two of pure computing (`PREVIEW_STEPS`), so it runs in a
thread, one at a time: whatever is asked, other calls go on. Whose turn does not come soon is told
to come back: many of those at once must not let others wait until their deadline.
"""

from datetime import timedelta

from tocsin.v1 import reminder_service_pb2 as pb

from reminders.lifecycle.aside import Aside
from reminders.lifecycle.previewing import PreviewRequest, preview
from reminders.ports import Clock
from scheduler.admission import Overloaded
from scheduler.mapping.previews import preview_message
from scheduler.validation import Validator

PATIENCE = timedelta(seconds=3)
"""How long a preview waits for those before it; the longest of them takes about as long."""


class Previews:
    """One for a process."""

    def __init__(
        self, clock: Clock, validator: Validator, *, patience: timedelta = PATIENCE
    ) -> None:
        self._clock = clock
        self._validator = validator
        self._aside = Aside(patience)

    async def answer(self, request: pb.PreviewOccurrencesRequest) -> pb.PreviewOccurrencesResponse:
        """Raises `InvalidRequest`; `Overloaded` if too many came before it."""
        now = self._clock.now()
        asked = self._validator.preview(request, now)

        def compute(asked: PreviewRequest) -> pb.PreviewOccurrencesResponse:
            return preview_message(preview(asked, now))

        try:
            return await self._aside.run(compute, asked)
        except TimeoutError:
            raise Overloaded(operation="preview: too many at once") from None

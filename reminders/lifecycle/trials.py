"""Test sends: one event to one subscriber, the way that every event takes.

A test is a reminder that rings now, for that subscriber alone: it is claimed, sent, signed and
recorded as all are, so what it shows is what will happen. What is special is only that somebody
waits for the outcome, by looking at the ledger.
"""

from datetime import timedelta

from msgspec import Struct

from reminders.errors import TocsinError
from reminders.lifecycle.creating import Creates
from reminders.lifecycle.planning import Planner
from reminders.lifecycle.requests import CreateRequest
from reminders.lifecycle.subscribing import Subscribing
from reminders.model.definition import After, Definition, Policies, Retry
from reminders.model.ledger import LedgerRow
from reminders.platform import Platform

ONCE = Policies(retry=Retry(max_attempts=1), expire_after=timedelta(minutes=1))
"""A test that could not be tried in time is of no use to anybody."""
FIRST_LOOK = timedelta(milliseconds=50)
LONGEST_BETWEEN = timedelta(milliseconds=500)


class Trial(Struct, frozen=True, kw_only=True):
    """Whom to send what."""

    namespace: str
    topic_id: str
    subscriber_id: str
    params_json: str = "{}"
    template_id: str | None = None
    wait: timedelta
    """How long to wait for the outcome."""
    request_id: str | None = None


class Tried(Struct, frozen=True, kw_only=True):
    """What is known when the wait ends."""

    reminder_id: str
    occurrence_id: str
    delivery: LedgerRow | None
    """None: nothing was tried yet, or will be."""
    finished: bool


class Trials:
    """The use case."""

    def __init__(
        self, platform: Platform, subscribing: Subscribing, creates: Creates, planner: Planner
    ) -> None:
        self._store = platform.store
        self._clock = platform.clock
        self._subscribing = subscribing
        self._creates = creates
        self._planner = planner

    async def send(self, trial: Trial) -> Tried:
        """Raises `SubscriberNotFound`, and whatever a create does."""
        place = trial.namespace, trial.topic_id, trial.subscriber_id
        subscriber = await self._subscribing.get(*place)
        definition = Definition(
            user_id="",
            schedule=After(delay=timedelta(0)),
            policies=ONCE,
            channels=(),
            template_id=trial.template_id,
            params_json=trial.params_json,
            topic_id=trial.topic_id,
            only_subscriber=trial.subscriber_id,
        )
        request = CreateRequest(
            namespace=trial.namespace, definition=definition, request_id=trial.request_id
        )
        (created,) = await self._creates.create((request,))
        if isinstance(created, TocsinError):
            raise created
        record = created.view.record
        occurrence_id = self._planner.first(record)[0].occurrence_id
        channel_id = subscriber.channel.channel_id
        return await self._outcome(trial, record.reminder_id, occurrence_id, channel_id)

    async def _outcome(
        self, trial: Trial, reminder_id: str, occurrence_id: str, channel_id: str
    ) -> Tried:
        """Looks more seldom as it waits."""
        until = self._clock.now() + trial.wait
        pause = FIRST_LOOK
        while True:
            ledger = self._store.ledger
            row = await ledger.read(reminder_id, occurrence_id, channel_id, trial.subscriber_id)
            whole = await ledger.read(reminder_id, occurrence_id) if row is None else None
            finished = _ended(row) or (whole is not None and whole.ended is not None)
            now = self._clock.now()
            if finished or now >= until:
                return Tried(
                    reminder_id=reminder_id,
                    occurrence_id=occurrence_id,
                    delivery=row,
                    finished=finished,
                )
            await self._clock.sleep_until(min(now + pause, until))
            pause = min(2 * pause, LONGEST_BETWEEN)


def _ended(row: LedgerRow | None) -> bool:
    return row is not None and row.delivery is not None and row.delivery.terminal

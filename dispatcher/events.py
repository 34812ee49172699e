"""Tells the operator what he should know: deliveries that are lost, endpoints that are disabled.

    ends ─▶ counted by endpoint, for a few seconds, then a minute ─▶ one event each
    an endpoint is disabled ─▶ its event (`health`)                    │
                                                                       ▼
                            a reminder of the namespace `$events`, due now: a webhook like any other

So an event is durable once it is made, tried for a day, signed and guarded, by the code that sends
everything else. Its body is `{"type", "timestamp", "data"}`, as Standard Webhooks
recommends; its delivery key is in `webhook-id`.

| type                 | data                                                                 |
|----------------------|----------------------------------------------------------------------|
| `delivery.exhausted` | deliveries of one endpoint that ended `failed` after their attempts  |
| `delivery.poison`    | deliveries or jobs that took dispatchers down, or could not be read  |
| `endpoint.disabled`  | the endpoint, since when it fails, by what, and why it is disabled   |

A million lost deliveries make a bounded number of events: one for each endpoint, minute and
process, of `MOST` endpoints at most; the others are counted together. A process that is killed
takes with it what it has counted for less than a minute, never an endpoint's disabling; what was
lost is in the list of ended deliveries all the same. Nothing that happens to an event makes another
one.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import uuid4

import msgspec
import structlog
from msgspec import Struct
from opentelemetry import metrics

from dispatcher.ended import DISABLED
from dispatcher.facts import Event
from dispatcher.settler import LegEnd
from reminders.errors import KeyConflict, TocsinError, Unavailable
from reminders.lifecycle.requests import CreateRequest
from reminders.model.definition import After, Channel, Definition, Webhook
from reminders.model.endpoint import Endpoint, address_of
from reminders.model.ledger import DeliveryStatus
from reminders.namespaces import EVENTS, EVENTS_SECRET_ID, is_reserved
from reminders.ports import Clock

SOON = timedelta(seconds=5)
"""How long the first of a kind waits for others."""
MINUTE = timedelta(minutes=1)
"""From one event about an endpoint to the next."""
MOST = 100
"""Endpoints that are told apart within a minute."""
SAMPLES = 5
"""Deliveries that an event names."""
MOST_UNMADE = 1_000
"""Events that wait for the store to answer; the oldest are dropped above it, with an alarm."""
LOOK_EVERY = timedelta(seconds=1)
CHANNEL = "events"

Create = Callable[[Sequence[CreateRequest]], Awaitable[Sequence[object]]]
"""Makes reminders; answers one result or `TocsinError` each."""

log = structlog.get_logger()


class Type(StrEnum):
    """Of an event."""

    EXHAUSTED = "delivery.exhausted"
    POISON = "delivery.poison"
    DISABLED = "endpoint.disabled"


class EventsTarget(Struct, frozen=True, kw_only=True):
    """Where they go. What signs them is among the webhook channel's keys."""

    url: str


@dataclass(slots=True)
class _Count:
    """What has happened to one endpoint and was not told yet."""

    kind: Type
    namespace: str
    endpoint_id: str
    channel: str
    address: str
    tell_at: datetime
    first_at: datetime
    last_at: datetime
    count: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    samples: list[dict[str, str]] = field(default_factory=list)

    @property
    def data(self) -> dict[str, Any]:
        """As the operator gets it."""
        return {
            "namespace": self.namespace,
            "endpointId": self.endpoint_id,
            "channel": self.channel,
            "address": self.address,
            "count": self.count,
            "reasons": dict(self.reasons),
            "firstAt": self.first_at,
            "lastAt": self.last_at,
            "samples": self.samples,
        }


Key = tuple[Type, str, str]
"""Type, namespace, endpoint; the last two empty for all that are not told apart."""


class Events:
    """One for a process."""

    def __init__(self, clock: Clock, create: Create, target: EventsTarget) -> None:
        self._clock = clock
        self._create = create
        self._target = target
        self._counts: dict[Key, _Count] = {}
        self._told_at: dict[Key, datetime] = {}
        """When the last event of a key was made, as long as the next one has to wait."""
        self._sealed: list[CreateRequest] = []
        """To be made durable."""
        meter = metrics.get_meter("tocsin.dispatcher")
        self._made = meter.create_counter(
            "tocsin_operator_events", description="Operational events made"
        )

    # --- counting ---------------------------------------------------------------------------------

    def observe(self, ends: Sequence[LegEnd]) -> None:
        """Ends that are on record."""
        for end in ends:
            if end.row.delivery is not DeliveryStatus.FAILED or end.row.reason == DISABLED:
                continue  # that was told at once for all
            if end.fact.event is Event.POISONED:
                self._add(Type.POISON, end)
            elif end.fact.event is Event.ATTEMPTED or end.row.attempts:
                self._add(Type.EXHAUSTED, end)

    def poisoned(self, namespace: str, sample: dict[str, str]) -> None:
        """A job that nobody could handle."""
        if is_reserved(namespace):
            return
        now = self._clock.now()
        count = self._count((Type.POISON, namespace, ""), now)
        _take(count, now, "poison", sample)

    def _add(self, kind: Type, end: LegEnd) -> None:
        entry, at = end.leg.work.entry, end.ended_at
        if is_reserved(entry.namespace):
            return
        address = address_of(entry.namespace, end.leg.channel)
        endpoint_id = address.endpoint_id if address is not None else ""
        count = self._count((kind, entry.namespace, endpoint_id), at)
        if count.namespace and address is not None:
            count.address = address.shown
        if count.namespace:
            count.channel = end.fact.channel_kind
        sample = {
            "namespace": entry.namespace,
            "reminderId": end.fact.reminder_id,
            "occurrenceId": end.fact.occurrence_id,
            "channelId": end.fact.channel_id,
            "deliveryKey": end.fact.delivery_key,
        }
        _take(count, at, end.row.reason, sample)

    def _count(self, key: Key, at: datetime) -> _Count:
        count = self._counts.get(key)
        if count is None and len(self._counts) >= MOST:
            key = key[0], "", ""
            count = self._counts.get(key)
        if count is None:
            now = self._clock.now()
            told_at = self._told_at.get(key)
            tell_at = now + SOON if told_at is None else max(now, told_at + MINUTE)
            kind, namespace, endpoint_id = key
            count = self._counts[key] = _Count(
                kind=kind,
                namespace=namespace,
                endpoint_id=endpoint_id,
                channel="",
                address="",
                tell_at=tell_at,
                first_at=at,
                last_at=at,
            )
        return count

    # --- telling ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """For ever."""
        while True:
            await self._clock.sleep_until(self._clock.now() + LOOK_EVERY)
            await self.tell(self._clock.now())

    async def tell(self, until: datetime | None) -> None:
        """Makes events of what has waited long enough by then; None: of all that is counted."""
        self._seal(until)
        if not self._sealed:
            return
        errors = await self._make(self._sealed)
        unmade = [
            request
            for request, error in zip(self._sealed, errors, strict=True)
            if isinstance(error, Unavailable)
        ]
        if len(unmade) > MOST_UNMADE:
            log.error("events.dropped", events=len(unmade) - MOST_UNMADE)
        self._sealed = unmade[-MOST_UNMADE:]

    def _seal(self, until: datetime | None) -> None:
        """From now on a repeat is the same event."""
        now = self._clock.now()
        self._told_at = {key: at for key, at in self._told_at.items() if at + MINUTE > now}
        ripe = [k for k, count in self._counts.items() if until is None or count.tell_at <= until]
        for key in ripe:
            count = self._counts.pop(key)
            self._told_at[key] = now
            self._sealed.append(self._request(count.kind, count.data, uuid4().hex, now))

    async def disabled(self, endpoint: Endpoint) -> None:
        """Returns when its event is durable; repeating it makes no second one.

        Raises `TocsinError`.
        """
        at = endpoint.disabled_at
        assert at is not None
        data = {
            "namespace": endpoint.namespace,
            "endpointId": endpoint.endpoint_id,
            "channel": endpoint.kind,
            "address": endpoint.address,
            "why": endpoint.why,
            "errorClass": endpoint.error_class,
            "failingSince": endpoint.failing_since,
            "lastFailureAt": endpoint.last_failure_at,
            "disabledAt": at,
        }
        request_id = f"{endpoint.endpoint_id}/{endpoint.namespace}/{at.timestamp():.6f}"
        (error,) = await self._make([self._request(Type.DISABLED, data, request_id, at)])
        if error is not None and not isinstance(error, KeyConflict):  # made, with another target
            raise error

    async def _make(self, requests: Sequence[CreateRequest]) -> list[TocsinError | None]:
        try:
            results = await self._create(requests)
        except TocsinError as error:
            results = [error] * len(requests)
        errors = [each if isinstance(each, TocsinError) else None for each in results]
        self._made.add(errors.count(None))
        for each in errors:
            if each is not None:
                log.warning("event.unmade", reason=each.reason)
        return errors

    def _request(
        self, kind: Type, data: dict[str, Any], request_id: str, at: datetime
    ) -> CreateRequest:
        """Due now. Whoever repeats it with the same id brings the same content."""
        body = {"type": kind.value, "timestamp": at, "data": data}
        target = Webhook(url=self._target.url, secret_id=EVENTS_SECRET_ID)
        definition = Definition(
            user_id="operator",
            schedule=After(delay=timedelta(0)),
            channels=(Channel(channel_id=CHANNEL, target=target),),
            params_json=msgspec.json.encode(body).decode(),
        )
        return CreateRequest(namespace=EVENTS, definition=definition, request_id=request_id)


def _take(count: _Count, at: datetime, reason: str, sample: dict[str, str]) -> None:
    count.count += 1
    count.reasons[reason or "unknown"] += 1
    count.first_at, count.last_at = min(count.first_at, at), max(count.last_at, at)
    if len(count.samples) < SAMPLES:
        count.samples.append(sample)

"""Operational events: bounded, durable once they are made, never about themselves."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from dispatcher.channels.port import Outcome
from dispatcher.ended import DISABLED
from dispatcher.events import MINUTE, MOST, SAMPLES, SOON, Events, EventsTarget
from dispatcher.facts import Event, fact
from dispatcher.settler import LegEnd
from dispatcher.work import LegWork, Work
from reminders.errors import StoreUnavailable, TocsinError
from reminders.lifecycle.requests import CreateRequest
from reminders.model.codec import decode_body
from reminders.model.definition import Channel, Webhook
from reminders.model.ledger import Attempt, DeliveryStatus, LedgerRow
from reminders.namespaces import EVENTS

EndOf = Callable[..., LegEnd]


class Made:
    """Makes reminders, or does not answer."""

    def __init__(self) -> None:
        self.requests: list[CreateRequest] = []
        self.away = False
        self.error: TocsinError = StoreUnavailable(operation="create")

    async def __call__(self, requests: Sequence[CreateRequest]) -> list[object]:
        """As `Reminders.create`."""
        if self.away:
            return [self.error for _ in requests]
        self.requests += requests
        return list(requests)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What the operator will get."""
        return [msgspec.json.decode(each.definition.params_json) for each in self.requests]


@pytest.fixture
def made() -> Made:
    """Where events become reminders."""
    return Made()


@pytest.fixture
def events(world: Any, made: Made) -> Events:
    """Of one process."""
    return Events(world.clock, made, EventsTarget(url="https://operator.example.com/"))


@pytest.fixture
async def end_of(world: Any) -> EndOf:
    """Ends of the same leg, to other endpoints and with other outcomes."""
    entry = await world.reminder()
    job = world.job(entry)

    def end(
        number: int = 0, *, reason: str = "http_4xx", namespace: str = "default", **kind: Any
    ) -> LegEnd:
        own = msgspec.structs.replace(entry, namespace=namespace)
        body = decode_body(own.body)
        work = Work(job=job, entry=own, occurrence=own.occurrence, raw_body=own.body, body=body)
        target = Webhook(url=f"https://h{number}.example.com/hook?token=x")
        channel = Channel(channel_id="hook", target=target)
        leg = LegWork(work=work, channel=channel, target="", attempt=1)
        row = LedgerRow(
            namespace=namespace,
            reminder_id=own.reminder_id,
            reminder_version=1,
            occurrence=own.occurrence,
            delivery=kind.get("delivery", DeliveryStatus.FAILED),
            reason=reason,
            attempts=(Attempt(number=1, started_at=world.AT),),
            attempt_count=1,
        )
        event = kind.get("event", Event.ATTEMPTED)
        outcome = Outcome.PERMANENT.value
        said = fact(event, leg, world.clock.now(), row=row, attempt=1, outcome=outcome)
        return LegEnd(leg=leg, row=row, fact=said, ended_at=world.clock.now())

    return end


async def after(world: Any, events: Events, span: timedelta) -> None:
    """Time passes, and what has waited long enough is told."""
    world.clock.advance(span)
    await events.tell(world.clock.now())


async def test_what_comes_together_is_told_together(
    world: Any, events: Events, made: Made, end_of: EndOf
) -> None:
    """Soon at first, then once a minute."""
    events.observe([end_of() for _ in range(1000)])
    await after(world, events, SOON / 2)
    assert made.requests == []
    events.observe([end_of(reason="attempts_exhausted")])
    await after(world, events, SOON / 2)
    (body,) = made.bodies
    assert body["type"] == "delivery.exhausted"
    assert body["data"]["count"] == 1001
    assert body["data"]["reasons"] == {"http_4xx": 1000, "attempts_exhausted": 1}
    assert body["data"]["address"] == "https://h0.example.com/hook"
    assert len(body["data"]["samples"]) == SAMPLES
    for _ in range(50):
        events.observe([end_of()])
        await after(world, events, timedelta(seconds=1))
    assert len(made.requests) == 1
    await after(world, events, timedelta(seconds=10))
    assert [each["data"]["count"] for each in made.bodies] == [1001, 50]


async def test_of_very_many_endpoints_most_are_counted_together(
    world: Any, events: Events, made: Made, end_of: EndOf
) -> None:
    """A bounded number of events, and nothing is left out of the sum."""
    events.observe([end_of(number) for number in range(10 * MOST)])
    await after(world, events, SOON)
    assert len(made.requests) == MOST + 1
    assert sum(each["data"]["count"] for each in made.bodies) == 10 * MOST
    others = [each["data"] for each in made.bodies if not each["data"]["endpointId"]]
    assert [each["count"] for each in others] == [9 * MOST]
    assert others[0]["namespace"] == others[0]["address"] == ""


async def test_what_could_not_be_made_is_made_later_as_it_was(
    world: Any, events: Events, made: Made, end_of: EndOf
) -> None:
    """With the same id: whether it had been made nobody knows."""
    asked: list[CreateRequest] = []
    make = events._create

    async def listen(requests: Sequence[CreateRequest]) -> Sequence[object]:
        asked.extend(requests)
        return await make(requests)

    events._create = listen
    made.away = True
    events.observe([end_of()])
    await after(world, events, SOON)
    events.observe([end_of()])
    await after(world, events, timedelta(seconds=1))
    assert asked[0] == asked[1]
    made.away = False
    await after(world, events, MINUTE)
    assert made.requests[0] == asked[0]
    assert [each["data"]["count"] for each in made.bodies] == [1, 1]
    assert len({each.request_id for each in made.requests}) == 2


async def test_not_every_end_is_an_event(
    world: Any, events: Events, made: Made, end_of: EndOf
) -> None:
    """Not what was delivered, expired, or not tried at a disabled endpoint; and never its own."""
    events.observe(
        [
            end_of(delivery=DeliveryStatus.CONFIRMED),
            end_of(delivery=DeliveryStatus.EXPIRED),
            end_of(reason=DISABLED, event=Event.ENDED),
            end_of(namespace=EVENTS),
        ]
    )
    events.poisoned(EVENTS, {})
    await events.tell(None)
    assert made.requests == []


async def test_poison_is_told_as_such(
    world: Any, events: Events, made: Made, end_of: EndOf
) -> None:
    """Deliveries that took processes down, and jobs that nobody could handle."""
    events.observe([end_of(event=Event.POISONED, reason="poison")])
    events.poisoned("default", {"jobId": "1-1"})
    await events.tell(None)
    assert [each["type"] for each in made.bodies] == ["delivery.poison"] * 2
    assert all(each["data"]["reasons"] == {"poison": 1} for each in made.bodies)
    assert made.bodies[1]["data"]["samples"] == [{"jobId": "1-1"}]
    assert all(each.namespace == EVENTS for each in made.requests)

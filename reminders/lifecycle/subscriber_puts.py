"""A put of a subscriber: what it asks, and what it writes of the subscriber that stands. Pure, but
for the chance in new secrets.
"""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from reminders.errors import InvalidRequest, TocsinError
from reminders.lifecycle.subscriber_secrets import (
    OVERLAP,
    answerable,
    call_of,
    check_same,
    made,
    next_stamp,
    of_call,
)
from reminders.lifecycle.writing import stamp_of
from reminders.model.definition import Channel, Webhook
from reminders.model.subscriber import Secret, Subscriber
from reminders.signing_secrets import SecretText

Place = tuple[str, str]
"""Namespace and topic."""
Key = tuple[Place, str]
"""And subscriber."""


class Asked(Struct, frozen=True, kw_only=True):
    """One subscriber to put, validated and normalized."""

    namespace: str
    topic_id: str
    subscriber_id: str
    channel: Channel
    labels: dict[str, str] = {}
    filter: dict[str, str] = {}
    time_zone: str = ""
    secret: SecretText | None = None
    """The caller's own; None: made here where one is needed."""
    request_id: str | None = None

    @property
    def place(self) -> Place:
        """Where it belongs."""
        return self.namespace, self.topic_id


class Put(Struct, frozen=True, kw_only=True):
    """A subscriber as it stands."""

    subscriber: Subscriber
    shown: Secret | None = None
    """The secret to hand over: drawn for this call, or for the one that it repeats."""
    adds: tuple[Secret, ...] = ()
    """What it writes; the subscriber's others are there."""
    replaced: bool = False
    """It was there before."""


def key_of(subscriber: Subscriber) -> Key:
    """Whose it is, and which."""
    return (subscriber.namespace, subscriber.topic_id), subscriber.subscriber_id


def planned(asked: Asked, known: dict[Key, Subscriber], now: datetime) -> Put | TocsinError:
    """What to write; noted in `known`, for a batch may put one twice."""
    try:
        put = _plan(asked, known.get((asked.place, asked.subscriber_id)), now)
    except InvalidRequest as error:
        return error
    known[key_of(put.subscriber)] = put.subscriber
    return put


def _plan(asked: Asked, stands: Subscriber | None, now: datetime) -> Put:
    """Raises `InvalidRequest`: a secret that is not the subscriber's."""
    new = Subscriber(
        namespace=asked.namespace,
        topic_id=asked.topic_id,
        subscriber_id=asked.subscriber_id,
        channel=asked.channel,
        secrets=stands.secrets if stands is not None else (),
        labels=asked.labels,
        filter=asked.filter,
        time_zone=asked.time_zone,
        paused=stands.paused if stands is not None else False,
        pause_stamp=stands.pause_stamp if stands is not None else 0,
        created_at=stands.created_at if stands is not None else now,
        updated_at=now,
        stamp=stamp_of(now) if stands is None else next_stamp(stands, now),
    )
    if not isinstance(asked.channel.target, Webhook):
        return Put(subscriber=new, replaced=stands is not None)
    call = call_of("put", asked.request_id)
    if not new.secrets:
        first = made(new, now, secret=asked.secret, call=call, overlap=OVERLAP)
        return Put(
            subscriber=replace(new, secrets=(first,)),
            shown=first if asked.secret is None else None,
            adds=(first,),
            replaced=stands is not None,
        )
    if asked.secret is not None:
        check_same(asked.secret, new.valid_secrets(now))
        return Put(subscriber=new, replaced=True)
    earlier = of_call(new, call)
    return Put(subscriber=new, shown=answerable(earlier, now), replaced=earlier is None)


def later(subscriber: Subscriber, ahead: int) -> Subscriber:
    """The same, so many µs later."""
    secrets = tuple(replace(one, stamp=one.stamp + ahead) for one in subscriber.secrets)
    return replace(subscriber, secrets=secrets, stamp=subscriber.stamp + ahead)

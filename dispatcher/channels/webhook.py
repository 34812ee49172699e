"""The webhook channel: one POST of JSON.

    {"eventId", "payload", "reminderId", "occurrenceId", "plannedLocal", "timeZone", "plannedAt",
     "fireAt", "attempt", "templateId", "userId", "namespace", "channelId"}

To a subscriber of a topic there are also `topicId` and `subscriberId` (a header says it as well),
with a zone of its own `subscriberLocal` and `subscriberTimeZone`, and `test` in a test send.

`eventId` is the delivery key, and so are the headers `webhook-id` and `x-event-id`. Any 2xx
confirms; what happens after its status line arrived can't change that. Redirects are not followed:
a 3xx is a permanent failure. A channel that names a secret, or whose subscriber has one, is signed
anew on every attempt (`signing`). A template's `payload.json` takes the place of `payload`.
"""

import hashlib
import ssl
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import quote

import msgspec

from dispatcher.channels.guard import ForbiddenAddressError, Resolver, gate
from dispatcher.channels.http import CONNECT_SHARE, excerpt_of, judge
from dispatcher.channels.masking import NO_SECRETS, SHORTEST, Mask
from dispatcher.channels.port import (
    ATTEMPT_TIMEOUT,
    Destination,
    Outcome,
    Outgoing,
    Result,
    printable,
)
from dispatcher.channels.signing import Keys, signature_headers
from dispatcher.channels.templates import NO_TEMPLATES, TemplateError, Templates
from dispatcher.http1 import Client, Dialer, HttpFailure, Lookup, encode, origin_of, target_of
from reminders.model.definition import Channel, Webhook
from reminders.namespaces import EVENTS
from reminders.ports import Clock
from reminders.signing_secrets import key_of
from reminders.urls import HTTPS_ONLY, Ports, header_problem, origin, url_problem

USER_AGENT = "Tocsin/1"
PAYLOAD_PART = "payload.json"
MAX_BODY_BYTES = 68 * 1024
"""A payload of 64 KiB, and what is around it."""


class Payload(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The body, in the order of its fields."""

    event_id: str
    payload: msgspec.Raw
    reminder_id: str
    occurrence_id: str
    planned_local: datetime
    time_zone: str
    planned_at: datetime
    fire_at: datetime
    attempt: int
    template_id: str | None
    user_id: str
    namespace: str
    channel_id: str
    topic_id: str | msgspec.UnsetType = msgspec.UNSET
    subscriber_id: str | msgspec.UnsetType = msgspec.UNSET
    subscriber_local: datetime | msgspec.UnsetType = msgspec.UNSET
    """When it was planned for, in the subscriber's zone."""
    subscriber_time_zone: str | msgspec.UnsetType = msgspec.UNSET
    test: bool | msgspec.UnsetType = msgspec.UNSET


_encode = msgspec.json.Encoder().encode


def body_of(outgoing: Outgoing, payload: str | None = None) -> bytes:
    """The JSON that is sent. `params_json`, or what a template made of it, goes in as it is; an
    operational event is all that is sent.
    """
    if outgoing.namespace == EVENTS:
        return outgoing.params_json.encode()
    occurrence, to = outgoing.occurrence, outgoing.subscriber
    local = outgoing.subscriber_local
    unset = msgspec.UNSET
    return _encode(
        Payload(
            event_id=outgoing.delivery_key,
            payload=msgspec.Raw(outgoing.params_json if payload is None else payload),
            reminder_id=outgoing.reminder_id,
            occurrence_id=occurrence.occurrence_id,
            planned_local=occurrence.planned_local,
            time_zone=occurrence.zone,
            planned_at=occurrence.planned_at,
            fire_at=occurrence.fire_at,
            attempt=outgoing.attempt,
            template_id=outgoing.template_id,
            user_id=outgoing.user_id,
            namespace=outgoing.namespace,
            channel_id=outgoing.channel.channel_id,
            topic_id=to.topic_id if to is not None else unset,
            subscriber_id=to.subscriber_id if to is not None else unset,
            subscriber_local=local if local is not None else unset,
            subscriber_time_zone=to.time_zone if to is not None and to.time_zone else unset,
            test=outgoing.test or unset,
        )
    )


def headers_of(outgoing: Outgoing, given: dict[str, str]) -> dict[str, str]:
    """Ours, and the caller's where they are allowed."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "webhook-id": outgoing.delivery_key,
        "x-event-id": outgoing.delivery_key,
    }
    if outgoing.replay:
        headers["x-tocsin-replay"] = "1"
    if outgoing.subscriber is not None:
        headers["x-tocsin-subscriber"] = quote(outgoing.subscriber.subscriber_id, safe="")
    if given:
        allowed = {name: given[name] for name in given if header_problem(name, given[name]) is None}
        headers.update(allowed)
    return headers


class WebhookRules(msgspec.Struct, frozen=True, kw_only=True):
    """What this deployment allows and knows."""

    allow_loopback_http: bool = False
    ports: Ports = HTTPS_ONLY
    keys: Keys = {}
    """By namespace and `secret_id`."""
    secrets: tuple[str, ...] = ()
    """The same as they were written: nothing that is kept may hold one."""
    tls: ssl.SSLContext | None = None
    """None: the system's authorities."""
    timeout: timedelta = ATTEMPT_TIMEOUT


class Names(Lookup, Protocol):
    """Knows names until it is closed."""

    async def close(self) -> None:
        """Asks nobody any more."""


class WebhookSender:
    """Sends over shared connections. Enter it inside the running loop; leaving closes them."""

    def __init__(
        self,
        clock: Clock,
        rules: WebhookRules | None = None,
        *,
        templates: Templates = NO_TEMPLATES,
        resolver: Names | None = None,
    ) -> None:
        """`resolver`: None is the system's. It is closed with the sender."""
        self._clock = clock
        self._rules = rules or WebhookRules()
        self._templates = templates
        self._resolver = resolver
        self._mask = Mask(self._rules.secrets)
        self._client: Client | None = None

    async def __aenter__(self) -> Self:
        if self._resolver is None:
            self._resolver = Resolver()
        rules = self._rules
        dialer = Dialer(
            self._resolver,
            gate(allow_loopback=rules.allow_loopback_http),
            rules.tls or ssl.create_default_context(),
        )
        self._client = Client(dialer, within=rules.timeout, connect_share=CONNECT_SHARE)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None

    def destination(self, channel: Channel) -> Destination:
        """By scheme, host and port, as written, and by path."""
        return destination_of(_target(channel).url)

    async def send(self, outgoing: Outgoing) -> Result:
        """One POST."""
        target = _target(outgoing.channel)
        problem = url_problem(
            target.url,
            allow_loopback_http=self._rules.allow_loopback_http,
            ports=self._rules.ports,
        )
        if problem is not None:
            return _refused("url_forbidden", problem)
        keys = self._keys(outgoing, target)
        if keys is None:
            said = f"{outgoing.namespace} has no signing secret {target.secret_id}"
            return _refused("secret_unknown", said)
        try:
            body = body_of(outgoing, await self._payload(outgoing))
        except TemplateError as error:
            return error.result
        if len(body) > MAX_BODY_BYTES:
            return _refused("payload_too_large", f"the body would have {len(body)} bytes")
        headers = headers_of(outgoing, target.headers)
        if keys:
            headers |= signature_headers(keys, outgoing.delivery_key, self._clock.now(), body)
        return await self._post(outgoing, target, body, headers)

    async def _post(
        self, outgoing: Outgoing, target: Webhook, body: bytes, headers: dict[str, str]
    ) -> Result:
        if self._client is None:
            raise RuntimeError("used outside its context")
        start = origin(target.url)
        place = origin_of(start)
        request = encode(place, target_of(target.url[len(start) :]), headers, body)
        try:
            answer = await self._client.post(place, request)
        except HttpFailure as error:
            return Result(
                outcome=Outcome.UNKNOWN if error.sent else Outcome.TRANSIENT,
                error_class=error.word,
                excerpt=printable(self._mask_for(outgoing, target)(str(error))),
            )
        except ForbiddenAddressError as error:
            return _refused("url_forbidden", str(error))
        excerpt = self._excerpt(answer.start, outgoing, target)
        return judge(answer.status, answer.retry_after, excerpt, self._clock.now())

    def _keys(self, outgoing: Outgoing, target: Webhook) -> Sequence[bytes] | None:
        """What to sign with; None if it is not here."""
        if outgoing.subscriber is not None:
            valid = outgoing.subscriber.valid_secrets(self._clock.now())
            return [key_of(secret.value) for secret in valid]
        if target.secret_id is None:
            return ()
        return self._rules.keys.get((outgoing.namespace, target.secret_id)) or None

    def _excerpt(self, start: bytes, outgoing: Outgoing, target: Webhook) -> str:
        short = len(start) < SHORTEST  # such as "ok": nothing to look for
        return excerpt_of(start, NO_SECRETS if short else self._mask_for(outgoing, target))

    def _mask_for(self, outgoing: Outgoing, target: Webhook) -> Mask:
        path = target.url.removeprefix(origin(target.url))  # often a secret by itself
        own = outgoing.subscriber.secrets if outgoing.subscriber is not None else ()
        return self._mask.and_also(
            [path, *target.headers.values(), *(secret.value for secret in own)]
        )

    async def _payload(self, outgoing: Outgoing) -> str | None:
        parts = await self._templates.render(outgoing, "webhook", (PAYLOAD_PART,))
        rendered = parts.get(PAYLOAD_PART)
        if rendered is None:
            return None
        try:
            msgspec.json.decode(rendered)
        except ValueError as error:
            said = f"{PAYLOAD_PART} is no JSON: what it inserts is written {{{{ name|tojson }}}}"
            raise TemplateError("template_invalid", said) from error
        return rendered


@lru_cache(maxsize=4096)
def destination_of(url: str) -> Destination:
    """The path, often a secret, as a few letters of its hash."""
    name = origin(url)
    path = url[len(name) :].partition("?")[0].partition("#")[0]
    hashed = hashlib.blake2b(path.encode(errors="replace"), digest_size=8).hexdigest()
    return Destination(name=name.lower(), endpoint=hashed)


def _refused(error_class: str, said: str) -> Result:
    return Result(outcome=Outcome.PERMANENT, error_class=error_class, excerpt=printable(said))


def _target(channel: Channel) -> Webhook:
    if not isinstance(channel.target, Webhook):
        raise TypeError(f"not a webhook: {type(channel.target).__name__}")
    return channel.target

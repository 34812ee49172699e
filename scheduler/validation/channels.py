"""Where to: channels."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tocsin.v1 import reminder_pb2 as pb

from reminders.addresses import email_problem, phone_problem, subject_problem, token_problem
from reminders.lifecycle.problems import (
    Problems,
    Reason,
    check_count,
    check_length,
    one_of,
    optional,
    shown,
)
from reminders.model.definition import (
    Channel,
    Email,
    Log,
    Push,
    PushProvider,
    Sms,
    Target,
    Webhook,
)
from reminders.urls import header_problem, url_problem
from scheduler.validation.deployment import KINDS, Deployment
from scheduler.validation.reach import UNREAD, WORDS, Reach

MAX_CHANNELS = 16
NAME_BYTES = 128
"""Of template ids and the like."""
URL_BYTES = 2_048
MAX_HEADERS = 16
HEADER_BYTES = 4_096
"""Names and values together."""

PROVIDERS: Final = {
    pb.PUSH_PROVIDER_FCM: PushProvider.FCM,
    pb.PUSH_PROVIDER_APNS: PushProvider.APNS,
}

_CHANNEL_ID = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII).fullmatch


class ChannelReader:
    """Reads the channels of one reminder; what is wrong is noted in `problems`."""

    def __init__(
        self,
        deployment: Deployment,
        namespace: str,
        problems: Problems,
        reach: Reach = UNREAD,
    ) -> None:
        self._reach = reach
        self._allow_loopback_http = deployment.allow_loopback_http
        self._rules = deployment.channels
        self._namespace = namespace
        self._problems = problems

    def read(self, asked: Sequence[pb.Channel], field: str) -> tuple[Channel, ...]:
        """In the caller's order, each with its id."""
        problems = self._problems
        if not asked:
            problems.required(field, f"1 to {MAX_CHANNELS} channels, such as a webhook")
            return ()
        check_count(len(asked), MAX_CHANNELS, field, problems)
        found: list[Channel] = []
        positions: dict[str, int] = {}
        for index, channel in enumerate(asked[:MAX_CHANNELS]):
            at = f"{field}[{index}]"
            kind = channel.WhichOneof("kind")
            target = self._target(channel, kind, at)
            channel_id = _channel_id(channel.channel_id or kind or "", at, problems)
            first = positions.setdefault(channel_id, index)
            if first != index and channel_id:
                problems.add(
                    f"{at}.channel_id",
                    Reason.VALUE_INVALID,
                    f"{channel_id!r} is that of {field}[{first}] too; give each its own",
                )
            template_id = channel.template_id
            found.append(
                Channel(
                    channel_id=channel_id,
                    target=target,
                    template_id=optional(template_id, NAME_BYTES, f"{at}.template_id", problems)
                    if template_id
                    else None,
                )
            )
        return tuple(found)

    def endpoint(self, asked: pb.Channel, field: str) -> Channel:
        """That of a subscriber: with an address of its own, and signed by a secret of its own."""
        problems, kind = self._problems, asked.WhichOneof("kind")
        if kind in WORDS and not getattr(asked, kind).to:
            said = "is required: a subscriber has no recipient record"
            problems.add(f"{field}.{kind}.to", Reason.NO_ADDRESS, said)
            return Channel(channel_id=kind, target=Log())
        if asked.channel_id not in ("", kind):
            said = f"is {kind} for a subscriber, who has one endpoint; leave it empty"
            problems.add(f"{field}.channel_id", Reason.VALUE_INVALID, said)
        if asked.webhook.secret_id:
            said = "is for reminders' own channels: a subscriber has a secret of its own"
            problems.add(f"{field}.webhook.secret_id", Reason.SECRET_INVALID, said)
            asked = _without_secret(asked)
        template_id = optional(asked.template_id, NAME_BYTES, f"{field}.template_id", problems)
        target = self._target(asked, kind, field)
        return Channel(channel_id=kind or "", target=target, template_id=template_id)

    def _target(self, channel: pb.Channel, kind: str | None, field: str) -> Target:
        if kind is None:
            self._problems.required(field, f"a kind: {one_of(self._served())}")
            return Log()
        at = f"{field}.{kind}"
        if kind not in self._rules.served:
            said = f"no {kind} is configured here; use one of {one_of(self._served())}"
            self._problems.add(at, Reason.CHANNEL_UNAVAILABLE, said)
            return Log()
        if kind == "webhook":
            return self._webhook(channel.webhook, at)
        if kind == "email":
            return self._email(channel.email, at)
        if kind == "sms":
            self._address("sms", channel.sms.to, at, phone_problem)
            return Sms(to=channel.sms.to)
        return self._push(channel.push, at) if kind == "push" else Log()

    def _served(self) -> list[str]:
        return [kind for kind in KINDS if kind in self._rules.served]

    def _webhook(self, asked: pb.WebhookChannel, field: str) -> Webhook:
        rules, problems, url = self._rules, self._problems, asked.url
        if not url:
            problems.required(f"{field}.url", "an HTTPS URL")
        elif len(url) > URL_BYTES:
            check_length(url, URL_BYTES, f"{field}.url", problems)
        elif problem := url_problem(
            url, allow_loopback_http=self._allow_loopback_http, ports=rules.ports
        ):
            problems.add(f"{field}.url", Reason.URL_FORBIDDEN, problem)
        headers = asked.headers
        return Webhook(
            url=url,
            headers=_headers(headers, f"{field}.headers", problems) if headers else {},
            secret_id=self._secret_id(asked.secret_id, f"{field}.secret_id")
            if asked.secret_id
            else None,
        )

    def _secret_id(self, secret_id: str, field: str) -> str:
        known = sorted(name for space, name in self._rules.secret_ids if space == self._namespace)
        if secret_id not in known:
            remedy = f"use {one_of(known)}" if known else "configure it (TOCSIN_SIGNING_SECRETS)"
            said = f"namespace {self._namespace} has no secret {shown(secret_id)}; {remedy}"
            self._problems.add(field, Reason.SECRET_UNKNOWN, said)
        return secret_id

    def _email(self, asked: pb.EmailChannel, field: str) -> Email:
        self._address("email", asked.to, field, email_problem)
        problem = subject_problem(asked.subject)
        if problem:
            self._problems.add(f"{field}.subject", Reason.VALUE_INVALID, problem)
        return Email(to=asked.to, subject=asked.subject or None)

    def _push(self, asked: pb.PushChannel, field: str) -> Push:
        provider = PROVIDERS.get(asked.provider)
        if provider is None and (asked.to or asked.provider):
            named = "PUSH_PROVIDER_FCM or PUSH_PROVIDER_APNS"
            self._problems.required(f"{field}.provider", named)
        elif asked.to and provider is not None:
            kind = provider.value
            self._address("push", asked.to, field, lambda token: token_problem(token, kind))
        elif lacking := self._reach.lacks("push", provider):
            self._problems.add(f"{field}.to", Reason.NO_ADDRESS, lacking)
        return Push(to=asked.to, provider=provider)

    def _address(
        self, kind: str, to: str, field: str, problem_of: Callable[[str], str | None]
    ) -> None:
        if to:
            if problem := problem_of(to):
                self._problems.add(f"{field}.to", Reason.ADDRESS_INVALID, problem)
        elif lacking := self._reach.lacks(kind):
            self._problems.add(f"{field}.to", Reason.NO_ADDRESS, lacking)


def _without_secret(asked: pb.Channel) -> pb.Channel:
    """A copy."""
    copy = pb.Channel()
    copy.CopyFrom(asked)
    copy.webhook.ClearField("secret_id")
    return copy


def _channel_id(channel_id: str, field: str, problems: Problems) -> str:
    if channel_id and not _CHANNEL_ID(channel_id):
        problems.add(
            f"{field}.channel_id",
            Reason.VALUE_INVALID,
            f"{shown(channel_id)} is not 1-32 characters of A-Z, a-z, 0-9, _ and -",
        )
        return ""
    return channel_id


def _headers(asked: Mapping[str, str], field: str, problems: Problems) -> dict[str, str]:
    """Names in lower case, sorted."""
    check_count(len(asked), MAX_HEADERS, field, problems)
    found: dict[str, str] = {}
    size = 0
    for name, value in sorted(asked.items())[:MAX_HEADERS]:
        size += len(name) + len(value)
        at = f"{field}[{shown(name)}]"
        lower = name.lower()
        if problem := header_problem(name, value):
            problems.add(at, Reason.VALUE_INVALID, problem)
        elif lower in found:
            problems.add(at, Reason.VALUE_INVALID, "is given twice, whatever its case")
        elif value != value.strip():
            problems.add(at, Reason.VALUE_INVALID, "has a value with blanks around it; remove them")
        found[lower] = value
    if size > HEADER_BYTES:
        problems.add(
            field, Reason.FIELD_TOO_LONG, f"has {size} bytes; at most {HEADER_BYTES} are taken"
        )
    return dict(sorted(found.items()))

"""Where to: channels."""

import re
from collections.abc import Mapping, Sequence

from tocsin.v1 import reminder_pb2 as pb

from reminders.model.definition import Channel, Log, Target, Webhook
from reminders.urls import header_problem, url_problem
from scheduler.validation.problems import (
    Problems,
    Reason,
    check_count,
    check_length,
    optional,
    shown,
)

MAX_CHANNELS = 16
NAME_BYTES = 128
"""Of template ids and the like."""
URL_BYTES = 2_048
MAX_HEADERS = 16
HEADER_BYTES = 4_096
"""Names and values together."""

_CHANNEL_ID = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII).fullmatch
_KINDS = "webhook or log"


def read_channels(
    asked: Sequence[pb.Channel], field: str, problems: Problems, *, allow_loopback_http: bool
) -> tuple[Channel, ...]:
    """In the caller's order, each with its id."""
    if not asked:
        problems.required(field, f"1 to {MAX_CHANNELS} channels, such as a webhook")
        return ()
    check_count(len(asked), MAX_CHANNELS, field, problems)
    found: list[Channel] = []
    positions: dict[str, int] = {}
    for index, channel in enumerate(asked[:MAX_CHANNELS]):
        at = f"{field}[{index}]"
        kind = channel.WhichOneof("kind")
        target = _target(channel, kind, at, problems, allow_loopback_http=allow_loopback_http)
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


def _channel_id(channel_id: str, field: str, problems: Problems) -> str:
    if channel_id and not _CHANNEL_ID(channel_id):
        problems.add(
            f"{field}.channel_id",
            Reason.VALUE_INVALID,
            f"{shown(channel_id)} is not 1-32 characters of A-Z, a-z, 0-9, _ and -",
        )
        return ""
    return channel_id


def _target(
    channel: pb.Channel,
    kind: str | None,
    field: str,
    problems: Problems,
    *,
    allow_loopback_http: bool,
) -> Target:
    if kind == "webhook":
        return _webhook(
            channel.webhook, f"{field}.webhook", problems, allow_loopback_http=allow_loopback_http
        )
    if kind is None:
        problems.required(field, f"a kind: {_KINDS}")
    elif kind != "log":
        problems.add(
            f"{field}.{kind}",
            Reason.CHANNEL_UNAVAILABLE,
            f"{kind} is not served yet; use {_KINDS}",
        )
    return Log()


def _webhook(
    asked: pb.WebhookChannel, field: str, problems: Problems, *, allow_loopback_http: bool
) -> Webhook:
    url = asked.url
    if not url:
        problems.required(f"{field}.url", "an HTTPS URL")
    elif len(url) > URL_BYTES:
        check_length(url, URL_BYTES, f"{field}.url", problems)
    elif problem := url_problem(url, allow_loopback_http=allow_loopback_http):
        problems.add(f"{field}.url", Reason.URL_FORBIDDEN, problem)
    if asked.secret_id:
        problems.add(
            f"{field}.secret_id",
            Reason.SIGNING_UNAVAILABLE,
            "signing is not served yet; leave it empty",
        )
    headers = asked.headers
    return Webhook(
        url=url, headers=_headers(headers, f"{field}.headers", problems) if headers else {}
    )


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

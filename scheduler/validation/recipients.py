"""Recipients: one mailbox, one number, devices, and when not to disturb."""

import re
from collections.abc import Sequence
from datetime import datetime, time
from typing import Final, Protocol

from msgspec import Struct
from tocsin.v1 import recipient_service_pb2 as pb

from reminders.addresses import email_problem, phone_problem, token_problem
from reminders.lifecycle.problems import Problems, Reason, check_count, check_length, shown
from reminders.lifecycle.texts import read_zone
from reminders.model.recipient import OptOut, PushAddress, QuietHours, QuietRule, Recipient
from scheduler.tokens import version_of
from scheduler.validation.channels import PROVIDERS
from scheduler.validation.names import read_namespace
from scheduler.validation.reminders import ID_BYTES

MAX_DEVICES = 16
MAX_LOCALE = 35
"""Characters: RFC 5646 4.4.1, what every implementation must take."""

OPT_OUTS: Final = {
    pb.OPT_OUT_EMAIL: OptOut.EMAIL,
    pb.OPT_OUT_SMS: OptOut.SMS,
    pb.OPT_OUT_PUSH: OptOut.PUSH,
}
QUIET_RULES: Final = {
    pb.QUIET_RULE_UNSPECIFIED: QuietRule.WAIT,
    pb.QUIET_RULE_WAIT: QuietRule.WAIT,
    pb.QUIET_RULE_DROP: QuietRule.DROP,
}

_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", re.ASCII).fullmatch
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII).fullmatch


class User(Struct, frozen=True, kw_only=True):
    """Whose record, and which version of it."""

    namespace: str
    user_id: str
    expected_version: int | None = None


class _Named(Protocol):
    """A message that names a user."""

    @property
    def namespace(self) -> str: ...
    @property
    def user_id(self) -> str: ...


def user_scope(namespace: str, user_id: str) -> str:
    """What the etag of a record is bound to."""
    return f"{namespace}\0{user_id}"


def read_user(request: _Named, problems: Problems, *, under: str = "", etag: str = "") -> User:
    """`under`: the path of the message that names the user, with its dot."""
    namespace = read_namespace(request.namespace, f"{under}namespace", problems)
    user_id = request.user_id
    if not user_id:
        problems.required(f"{under}user_id", "whose record it is")
    check_length(user_id, ID_BYTES, f"{under}user_id", problems)
    version = None
    if etag:
        version = version_of(etag, user_scope(namespace, user_id))
        if version is None:
            said = "is not one of this user's record; send what Get answered"
            problems.add("etag", Reason.VALUE_INVALID, said)
    return User(namespace=namespace, user_id=user_id, expected_version=version)


def read_put(
    request: pb.PutRecipientRequest, now: datetime, problems: Problems
) -> tuple[User, Recipient]:
    """The normal form, its version and times to be set; meaningless where a problem was noted."""
    asked = request.recipient
    if not request.HasField("recipient"):
        problems.required("recipient", "whose record it is, and what belongs into it")
        problems.raise_if_any()
    user = read_user(asked, problems, under="recipient.", etag=request.etag)
    _check(asked.email, email_problem(asked.email), "recipient.email", problems)
    _check(asked.sms, phone_problem(asked.sms), "recipient.sms", problems)
    push = _devices(asked.push, "recipient.push", problems)
    if asked.time_zone:
        read_zone(asked.time_zone, "recipient.time_zone", problems)
    elif asked.HasField("quiet_hours"):
        problems.required("recipient.time_zone", "quiet hours are local times, so say where")
    locale = _locale(asked.locale, "recipient.locale", problems)
    opt_outs = _opt_outs(asked.opt_outs, "recipient.opt_outs", problems)
    quiet = None
    if asked.HasField("quiet_hours"):
        quiet = _quiet_hours(asked.quiet_hours, "recipient.quiet_hours", problems)
    return user, Recipient(
        namespace=user.namespace,
        user_id=user.user_id,
        version=0,
        email=asked.email,
        sms=asked.sms,
        push=push,
        time_zone=asked.time_zone,
        locale=locale,
        opt_outs=opt_outs,
        quiet_hours=quiet,
        created_at=now,
        updated_at=now,
    )


def _check(address: str, problem: str | None, field: str, problems: Problems) -> None:
    if address and problem:
        problems.add(field, Reason.ADDRESS_INVALID, problem)


def _devices(
    asked: Sequence[pb.PushAddress], field: str, problems: Problems
) -> tuple[PushAddress, ...]:
    """In the caller's order."""
    check_count(len(asked), MAX_DEVICES, field, problems)
    found: list[PushAddress] = []
    positions: dict[str, int] = {}
    for index, one in enumerate(asked[:MAX_DEVICES]):
        at = f"{field}[{index}]"
        provider = PROVIDERS.get(one.provider)
        if provider is None:
            problems.required(f"{at}.provider", "PUSH_PROVIDER_FCM or PUSH_PROVIDER_APNS")
        if not one.token:
            problems.required(f"{at}.token", "the device's token")
            continue
        first = positions.setdefault(one.token, index)
        if first != index:
            said = f"is that of {field}[{first}] too; give each device once"
            problems.add(f"{at}.token", Reason.VALUE_INVALID, said)
        if provider is not None:
            _check(one.token, token_problem(one.token, provider.value), f"{at}.token", problems)
            found.append(PushAddress(token=one.token, provider=provider))
    return tuple(found)


def _locale(tag: str, field: str, problems: Problems) -> str:
    """In the spelling of RFC 5646 2.1.1: `zh-Hant-TW`, whatever the case that was given."""
    if not tag:
        return ""
    if len(tag) > MAX_LOCALE or not _TAG(tag):
        said = f"{shown(tag)} is not a BCP 47 tag such as fr or fr-CA, of at most {MAX_LOCALE}"
        problems.add(field, Reason.VALUE_INVALID, f"{said} characters")
        return ""
    first, *others = tag.lower().split("-")
    spelled = [first]
    for part in others:
        if len(spelled[-1]) == 1:  # after a singleton all is lower case
            spelled.append(part)
        elif len(part) == 2:
            spelled.append(part.upper())
        else:
            spelled.append(part.title() if len(part) == 4 else part)
    return "-".join(spelled)


def _opt_outs(asked: Sequence[int], field: str, problems: Problems) -> tuple[OptOut, ...]:
    """A set: sorted, each once."""
    found = set()
    for index, number in enumerate(asked):
        kind = OPT_OUTS.get(pb.OptOut.ValueType(number))
        if kind is None:
            said = f"{number} is no kind to opt out of; use OPT_OUT_EMAIL, OPT_OUT_SMS, "
            problems.add(f"{field}[{index}]", Reason.VALUE_INVALID, f"{said}OPT_OUT_PUSH")
        else:
            found.add(kind)
    return tuple(sorted(found))


def _quiet_hours(asked: pb.QuietHours, field: str, problems: Problems) -> QuietHours | None:
    start = _clock_time(asked.start, f"{field}.start", "22:00", problems)
    end = _clock_time(asked.end, f"{field}.end", "07:00", problems)
    rule = QUIET_RULES.get(asked.rule)
    if rule is None:
        said = f"{asked.rule} is not known; use QUIET_RULE_WAIT or QUIET_RULE_DROP"
        problems.add(f"{field}.rule", Reason.VALUE_INVALID, said)
    if start is not None and start == end:
        said = "is the same as start; opt out of what must never come"
        problems.add(f"{field}.end", Reason.RANGE_INVALID, said)
    if start is None or end is None or rule is None:
        return None
    return QuietHours(start=start, end=end, rule=rule)


def _clock_time(text: str, field: str, example: str, problems: Problems) -> time | None:
    if not text:
        problems.required(field, f"a local time such as {example}")
        return None
    if not _TIME(text):
        said = f"{shown(text)} is not a time such as 09:00, without seconds, zone or offset"
        problems.add(field, Reason.VALUE_INVALID, said)
        return None
    return time.fromisoformat(text)

"""The caller's part of a reminder, in its normal form."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from tocsin.v1 import reminder_pb2 as pb

from reminders.model.definition import (
    After,
    At,
    Channel,
    Definition,
    Email,
    LocalTime,
    Policies,
    Push,
    Recurring,
    Schedule,
    Sms,
    Webhook,
)
from scheduler.validation.channels import PROVIDERS
from scheduler.validation.params import from_json
from scheduler.validation.policies import CATCH_UPS, GAPS, MISSING_DAYS, OVERLAPS

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_GAPS = {gap: pb.GapPolicy.ValueType(number) for number, gap in GAPS.items()}
_OVERLAPS = {one: pb.OverlapPolicy.ValueType(number) for number, one in OVERLAPS.items()}
_MISSING = {one: pb.MissingDayPolicy.ValueType(number) for number, one in MISSING_DAYS.items()}
PROVIDER_NUMBERS: Final = {
    one: pb.PushProvider.ValueType(number) for number, one in PROVIDERS.items()
}
_CATCH_UPS = {one: pb.CatchUpPolicy.ValueType(number) for number, one in CATCH_UPS.items()}


def put_instant(message: Timestamp, instant: datetime) -> None:
    """Exact to the microsecond."""
    since = instant - EPOCH
    message.seconds = since.days * 86_400 + since.seconds
    message.nanos = since.microseconds * 1000


def put_duration(message: Duration, duration: timedelta) -> None:
    """Not negative; exact to the microsecond. Present also where it is zero."""
    message.SetInParent()
    message.seconds = duration.days * 86_400 + duration.seconds
    message.nanos = duration.microseconds * 1000


def local_text(local: datetime) -> str:
    """`2026-03-29T02:30:00`, with `.250` where there are milliseconds."""
    return local.isoformat(timespec="milliseconds" if local.microsecond else "seconds")


def put_definition(
    message: pb.Reminder, definition: Definition, params: Struct | None = None
) -> None:
    """`params`: the caller's own message where it is at hand: spares reading the stored JSON."""
    if definition.topic_id:
        message.topic_id = definition.topic_id
        message.only_subscriber_id = definition.only_subscriber
    else:
        message.user_id = definition.user_id
    _put_schedule(message.schedule, definition.schedule)
    message.policies.CopyFrom(_policies(definition.policies))
    for channel in definition.channels:
        put_channel(message.channels.add(), channel)
    if definition.template_id:
        message.template_id = definition.template_id
    message.params.SetInParent()
    if params is not None:
        message.params.CopyFrom(params)
    else:
        from_json(definition.params_json, message.params)
    if definition.dedup_key:
        message.dedup_key = definition.dedup_key
    if definition.group_id:
        message.group_id = definition.group_id
    for key, value in definition.labels:
        message.labels[key] = value


def _put_schedule(message: pb.Schedule, schedule: Schedule) -> None:
    match schedule:
        case At():
            put_instant(message.at, schedule.instant)
            message.at.SetInParent()
        case After():
            put_duration(message.after, schedule.delay)
        case LocalTime():
            message.local.time = schedule.time
            message.local.time_zone = schedule.zone
            if schedule.date:
                message.local.date = schedule.date
        case Recurring():
            _put_recurrence(message.recurrence, schedule)


def _put_recurrence(message: pb.Recurrence, schedule: Recurring) -> None:
    if schedule.rrule is not None:
        message.rrule = schedule.rrule
    elif schedule.cron is not None:
        message.cron = schedule.cron
    if schedule.start_local is not None:
        message.start = local_text(schedule.start_local)
    message.time_zone = schedule.zone
    message.exdates.extend(local_text(local) for local in schedule.exdates_local)
    message.rdates.extend(local_text(local) for local in schedule.rdates_local)
    message.max_occurrences = schedule.max_occurrences or 0
    if schedule.until is not None:
        put_instant(message.until, schedule.until)


def put_channel(message: pb.Channel, channel: Channel) -> None:
    """One channel, in its normal form."""
    message.channel_id = channel.channel_id
    if channel.template_id:
        message.template_id = channel.template_id
    target = channel.target
    if isinstance(target, Webhook):
        webhook = message.webhook
        webhook.url = target.url
        if target.secret_id:
            webhook.secret_id = target.secret_id
        for name, value in target.headers.items():
            webhook.headers[name] = value
    elif isinstance(target, Email):
        message.email.to = target.to
        message.email.subject = target.subject or ""
    elif isinstance(target, Sms):
        message.sms.to = target.to
    elif isinstance(target, Push):
        message.push.to = target.to
        if target.provider is not None:
            message.push.provider = PROVIDER_NUMBERS[target.provider]
    else:
        message.log.SetInParent()


@lru_cache(maxsize=256)
def _policies(policies: Policies) -> pb.Policies:
    """Shared: copy it. Most reminders have the same few."""
    message = pb.Policies(
        gap=_GAPS[policies.gap],
        overlap=_OVERLAPS[policies.overlap],
        missing_day=_MISSING[policies.missing_day],
        holiday_calendar=policies.holiday_calendar or "",
        catch_up=_CATCH_UPS[policies.catch_up],
    )
    put_duration(message.catch_up_max_age, policies.catch_up_max_age)
    put_duration(message.expire_after, policies.expire_after)
    put_duration(message.jitter, policies.jitter)
    message.retry.max_attempts = policies.retry.max_attempts
    put_duration(message.retry.max_age, policies.retry.max_age)
    for wait in policies.retry.schedule:
        put_duration(message.retry.schedule.add(), wait)
    return message

"""Answers for people: tables, each time in the reminder's zone as well as in UTC."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from rich.table import Table
from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls

from reminders.cli.terminal import SafeConsole
from reminders.config.durations import format_duration

NONE = "-"


def console() -> SafeConsole:
    """Standard output, which is not always the same one; a pipe gets wide lines."""
    made = SafeConsole()
    return made if made.is_terminal else SafeConsole(width=200)


def print_json(message: Message, *, compact: bool = False) -> None:
    """The message as protobuf's canonical JSON."""
    content = json_format.MessageToDict(message)
    print(json.dumps(content, ensure_ascii=False, indent=None if compact else 2), flush=True)


def reminder_details(reminder: pb.Reminder) -> Table:
    """One reminder, a line for each field that says something."""
    rows = {
        "reminder": reminder.reminder_id or "(checked only, not created)",
        "status": word(pb.ReminderStatus.Name(reminder.status), "REMINDER_STATUS_"),
        "for": reminder.user_id or _topic_text(reminder),
        "when": schedule_text(reminder.schedule),
        "to": ", ".join(channel_text(each) for each in reminder.channels),
        "version": f"{reminder.version} (etag {reminder.etag})" if reminder.version else "",
        "labels": ", ".join(f"{key}={value}" for key, value in sorted(reminder.labels.items())),
        "group": reminder.group_id,
        "dedup key": reminder.dedup_key,
        "paused": reminder.pause_reason,
    }
    table = fields(rows)
    for number, occurrence in enumerate(reminder.next_occurrences):
        table.add_row("rings" if number == 0 else "then", when_text(occurrence))
    return table


def _topic_text(reminder: pb.Reminder) -> str:
    only = reminder.only_subscriber_id
    return f"topic {reminder.topic_id}" + (f", a test to {only} alone" if only else "")


def fields(rows: Mapping[str, str]) -> Table:
    """A line for each that says something."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        if value:
            table.add_row(name, value)
    return table


def reminder_table(reminders: Sequence[pb.Reminder]) -> Table:
    """Many reminders, a row each."""
    table = _table("REMINDER", "STATUS", "RINGS (local)", "RINGS (UTC)", "WHEN", "TO")
    for each in reminders:
        local, instant = NONE, NONE
        if each.next_occurrences:
            local, instant = both_times(each.next_occurrences[0])
        table.add_row(
            each.reminder_id,
            word(pb.ReminderStatus.Name(each.status), "REMINDER_STATUS_"),
            local,
            instant,
            schedule_text(each.schedule),
            ", ".join(map(channel_text, each.channels)) or _topic_text(each),
        )
    return table


def occurrence_table(occurrences: Sequence[pb.Occurrence]) -> Table:
    """Occurrences, a row each."""
    table = _table(
        "OCCURRENCE", "STATUS", "PROMISED (local)", "RINGS (UTC)", "CLAIMED", "WHY", "FROM"
    )
    for each in occurrences:
        local, instant = both_times(each)
        claimed = NONE
        if each.HasField("claim_time"):
            claimed = claim_text(moment(each.claim_time) - moment(each.fire_time))
        table.add_row(
            each.occurrence_id,
            word(pb.OccurrenceStatus.Name(each.status), "OCCURRENCE_STATUS_"),
            local,
            instant,
            claimed,
            why_text(each),
            word(pb.OccurrenceOrigin.Name(each.origin), "OCCURRENCE_ORIGIN_"),
        )
    return table


def why_text(occurrence: pb.Occurrence) -> str:
    """Why it did not ring; of a run, how far that went."""
    return ": ".join(part for part in (occurrence.reason, run_text(occurrence)) if part)


def run_text(occurrence: pb.Occurrence) -> str:
    """How many a row stands for and how far they went; empty where it is one alone."""
    if not occurrence.skipped_through_local:
        return ""
    through = local_text(occurrence.skipped_through_local)
    return f"{occurrence.skipped_count or 'all'} skipped through {through}"


def delivery_table(deliveries: Sequence[pb.Delivery]) -> Table:
    """Deliveries, a row each with its last attempt."""
    table = _table(
        "OCCURRENCE", "TO", "STATUS", "ATTEMPTS", "LAST (UTC)", "ANSWER", "NEXT (UTC)", "KEY"
    )
    for each in deliveries:
        last = each.attempts[-1] if each.attempts else None
        following = NONE
        if each.HasField("next_attempt_time"):
            following = utc_text(moment(each.next_attempt_time))
        table.add_row(
            each.occurrence_id,
            receiver_text(each.channel_id, each.subscriber_id),
            delivery_word(each),
            str(each.attempt_count),
            utc_text(moment(last.start_time)) if last else NONE,
            _answer(each, last),
            following,
            each.delivery_key,
        )
    return table


def replay_table(deliveries: Sequence[calls.ReplayedDelivery]) -> Table:
    """What a replay does, a row for each delivery."""
    table = _table("TO", "REPLAY", "KEY")
    for each in deliveries:
        verdict = word(calls.ReplayVerdict.Name(each.verdict), "REPLAY_VERDICT_")
        to = receiver_text(each.channel_id, each.subscriber_id)
        table.add_row(to, verdict, each.delivery_key)
    return table


def receiver_text(channel_id: str, subscriber_id: str) -> str:
    """`email`, or `webhook/s17` where it is a topic's."""
    return f"{channel_id}/{subscriber_id}" if subscriber_id else channel_id


def _answer(delivery: pb.Delivery, last: pb.Attempt | None) -> str:
    """`timeout (may have arrived)`: what the next attempt would repeat."""
    if last is None or delivery.reason == "quiet_hours":
        return delivery.error_class or delivery.reason or NONE
    said = delivery.error_class or (str(last.status_code) if last.status_code else NONE)
    return f"{said} (may have arrived)" if last.outcome_unknown else said


def delivery_word(delivery: pb.Delivery) -> str:
    """The status as people say it."""
    return word(pb.DeliveryStatus.Name(delivery.status), "DELIVERY_STATUS_")


def both_times(occurrence: pb.Occurrence) -> tuple[str, str]:
    """When it rings: as promised in its zone, and in UTC."""
    instant = moment(occurrence.fire_time)
    local = local_text(occurrence.planned_local)
    zone = occurrence.time_zone
    return (f"{local} {zone}" if zone and zone != "UTC" else NONE), utc_text(instant)


def schedule_text(schedule: pb.Schedule) -> str:
    """What was asked for, in a few words."""
    match schedule.WhichOneof("kind"):
        case "at":
            return f"at {utc_text(moment(schedule.at))}"
        case "after":
            return f"{format_duration(schedule.after.ToTimedelta())} after it was asked for"
        case "local":
            local = schedule.local
            return f"{local.date} {local.time} {local.time_zone}".strip()
        case "recurrence":
            rule = schedule.recurrence
            return f"{rule.rrule or rule.cron} {rule.time_zone}{_end_text(rule)}"
        case _:
            return NONE


def _end_text(rule: pb.Recurrence) -> str:
    """How a rule ends; the server keeps COUNT and UNTIL apart from the rule."""
    times = f", {rule.max_occurrences} times" if rule.max_occurrences else ""
    until = f", until {utc_text(moment(rule.until))}" if rule.HasField("until") else ""
    return times + until


def channel_text(channel: pb.Channel) -> str:
    """Where it goes."""
    kind = channel.WhichOneof("kind") or NONE
    match kind:
        case "webhook":
            return channel.webhook.url
        case "email":
            return channel.email.to or "email by the record"
        case "sms":
            return channel.sms.to or "sms by the record"
        case "push" if not channel.push.to:
            return "push by the record"
        case _:
            return kind


def word(name: str, prefix: str) -> str:
    """An enum's value as people say it: `REMINDER_STATUS_FIRED` is "fired"."""
    return name.removeprefix(prefix).lower().replace("_", " ")


def moment(timestamp: Timestamp) -> datetime:
    """An aware instant."""
    return timestamp.ToDatetime(tzinfo=UTC)


def when_text(occurrence: pb.Occurrence) -> str:
    """Both in one line; UTC alone where nothing local was promised."""
    local, instant = both_times(occurrence)
    return instant if local == NONE else f"{local}  =  {instant}"


def local_text(planned: str) -> str:
    """`2026-12-24 09:00:00`, with the fraction of a second as short as it goes."""
    text = planned.replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text


def utc_text(instant: datetime) -> str:
    """`2026-12-01 09:00:00Z`, with milliseconds where there are any."""
    text = instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    milliseconds = instant.microsecond // 1000
    return f"{text}.{milliseconds:03}Z" if milliseconds else f"{text}Z"


def lateness_text(lateness: timedelta) -> str:
    """`12 ms`, `1.4 s`, `3 min`."""
    seconds = lateness.total_seconds()
    if abs(seconds) < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if abs(seconds) < 120 else f"{seconds / 60:.0f} min"


def claim_text(lateness: timedelta) -> str:
    """`12 ms after`; most claims are made a moment before the time, so that it rings at it."""
    return f"{lateness_text(abs(lateness))} {'before' if lateness < timedelta(0) else 'after'}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A row each."""
    made = _table(*columns)
    for row in rows:
        made.add_row(*(text or NONE for text in row))
    return made


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold")
    return table

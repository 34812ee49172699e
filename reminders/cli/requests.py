"""From flags to messages. What the server can judge is left to it."""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import typer
from google.protobuf.field_mask_pb2 import FieldMask
from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1.reminder_service_pb2 import CreateReminderRequest, UpdateReminderRequest

from reminders.cli.channels import FLAGS, channels
from reminders.cli.options import Content, NewContent, PolicyFlags, What, When
from reminders.cli.values import duration, instant, pairs


def create_request(
    namespace: str, what: What, when: When, flags: PolicyFlags, **more: Any
) -> CreateReminderRequest:
    """The whole create; `more` are the request's own fields."""
    everybody = what.topic and not any(getattr(what, each) for each in FLAGS)
    reminder = pb.Reminder(
        namespace=namespace,
        schedule=schedule(when),
        channels=() if everybody else channels(what),
        template_id=what.template or "",
        dedup_key=what.dedup_key or "",
        group_id=what.group or "",
        labels=pairs("--label", what.label),
        **audience(what.user, what.topic),
    )
    if given := policies(flags):
        reminder.policies.CopyFrom(given)
    reminder.params.update(payload(what))
    return CreateReminderRequest(reminder=reminder, **more)


def audience(user: str | None, topic: str | None) -> dict[str, Any]:
    """Exactly one of the two."""
    if bool(user) == bool(topic):
        raise typer.BadParameter("say for whom: one of --user and --topic")
    return {"user_id": user} if user else {"topic_id": topic or ""}


def schedule(when: When) -> pb.Schedule:
    """Exactly one way to say when."""
    ways = {
        "--in": when.after,
        "--at": when.at,
        "--local": when.local,
        "--rrule": when.rrule,
        "--cron": when.cron,
    }
    given = [flag for flag, value in ways.items() if value is not None]
    if len(given) != 1:
        said = f"{' and '.join(given)} exclude each other" if given else "say when"
        raise typer.BadParameter(f"{said}: give one of {', '.join(ways)}")
    _refuse_strays(given[0], when)
    if when.after is not None:
        return pb.Schedule(after=duration("--in", when.after))
    if when.at is not None:
        return pb.Schedule(at=instant("--at", when.at))
    if when.local is not None:
        local = pb.LocalTime(date=when.date or "", time=when.local, time_zone=when.zone or "")
        return pb.Schedule(local=local)
    return pb.Schedule(recurrence=_recurrence(when))


def _recurrence(when: When) -> pb.Recurrence:
    if when.rrule is not None and when.start is None:
        raise typer.BadParameter("--rrule needs --start, its first local time: 2026-12-07T09:00")
    rule = pb.Recurrence(
        start=when.start or "",
        time_zone=when.zone or "",
        exdates=when.exdate,
        rdates=when.rdate,
        max_occurrences=when.count or 0,
    )
    if when.rrule is not None:
        rule.rrule = when.rrule
    elif when.cron is not None:
        rule.cron = when.cron
    if when.until is not None:
        rule.until.CopyFrom(instant("--until", when.until))
    return rule


_BELONGS = {
    "--local": {"date", "zone"},
    "--rrule": {"start", "zone", "exdate", "rdate", "count", "until"},
    "--cron": {"start", "zone", "exdate", "rdate", "count", "until"},
}


def _refuse_strays(way: str, when: When) -> None:
    """A flag that would be ignored is a mistake."""
    qualifiers = ("date", "start", "zone", "exdate", "rdate", "count", "until")
    for name in qualifiers:
        if getattr(when, name) and name not in _BELONGS.get(way, set()):
            raise typer.BadParameter(f"--{name} does not go with {way}")


def update_request(
    namespace: str, reminder_id: str, new: NewContent, when: When, flags: PolicyFlags, **more: Any
) -> UpdateReminderRequest:
    """What is given, and the mask that names it."""
    reminder = pb.Reminder(namespace=namespace, reminder_id=reminder_id)
    paths = list(new.clear)
    if new.user is not None:
        reminder.user_id = new.user
        paths.append("user_id")
    if new.template is not None:
        reminder.template_id = new.template
        paths.append("template_id")
    if new.label:
        reminder.labels.update(pairs("--label", new.label))
        paths.append("labels")
    if new.param or new.params is not None:
        reminder.params.update(payload(new))
        paths.append("params")
    if any(getattr(new, name) for name in FLAGS):
        reminder.channels.extend(channels(new))
        paths.append("channels")
    if any(getattr(when, each.name) for each in fields(when)):
        reminder.schedule.CopyFrom(schedule(when))
        paths.append("schedule")
    if given := policies(flags):
        reminder.policies.CopyFrom(given)
        paths += [f"policies.{path}" for path in _set(given)]
    if not paths:
        raise typer.BadParameter("say what to change, such as --param amount=12 or --in 1h")
    return UpdateReminderRequest(reminder=reminder, update_mask=FieldMask(paths=paths), **more)


def _set(policies: pb.Policies) -> Iterator[str]:
    """The paths of what is set: of the retry its own fields."""
    for each, _ in policies.ListFields():
        if each.name == "retry":
            yield from (f"retry.{inner.name}" for inner, _ in policies.retry.ListFields())
        else:
            yield each.name


def payload(what: Content) -> dict[str, Any]:
    """--params, with --param on top."""
    try:
        base = json.loads(what.params or "{}")
    except ValueError as error:
        raise typer.BadParameter(f"--params is no JSON: {error}") from error
    if not isinstance(base, dict):
        raise typer.BadParameter("--params has to be a JSON object, such as '{\"amount\": 12}'")
    return {**base, **pairs("--param", what.param)}


def policies(flags: PolicyFlags) -> pb.Policies | None:
    """Only what was given; None if nothing was."""
    found = pb.Policies(holiday_calendar=flags.holidays or "")
    for name in ("gap", "overlap", "missing_day", "catch_up"):
        if text := getattr(flags, name):
            setattr(found, name, _choice(name, text))
    for name in ("catch_up_max_age", "expire_after", "jitter"):
        if text := getattr(flags, name):
            getattr(found, name).CopyFrom(duration(_flag(name), text))
    if flags.max_attempts:
        found.retry.max_attempts = flags.max_attempts
    for wait in flags.retry_schedule.split(",") if flags.retry_schedule else ():
        found.retry.schedule.append(duration("--retry-schedule", wait))
    if flags.retry_max_age:
        found.retry.max_age.CopyFrom(duration("--retry-max-age", flags.retry_max_age))
    return found if found.ByteSize() else None


def _choice(field: str, text: str) -> int:
    """The number of an enum's value, by its name without the prefix."""
    enum = pb.Policies.DESCRIPTOR.fields_by_name[field].enum_type
    assert enum is not None, f"{field} is an enum"
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    found = enum.values_by_name.get(prefix + text.upper().replace("-", "_"))
    if found is None or found.number == 0:
        names = [each.name.removeprefix(prefix) for each in enum.values if each.number]
        right = ", ".join(name.lower().replace("_", "-") for name in names)
        raise typer.BadParameter(f"{_flag(field)} {text}: choose one of {right}")
    return int(found.number)


def _flag(field: str) -> str:
    return f"--{field.replace('_', '-')}"

"""From the flags of `tocsin preview` to its table, by the same functions as in the server."""

import json
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from reminders.cli.failure import CommandError
from reminders.cli.options import CalendarFlags
from reminders.cli.preview import RuleFlags
from reminders.config.limits import limits_configured, request_limits
from reminders.config.sources import ConfigFileError
from reminders.errors import InvalidRequest, Violation
from reminders.lifecycle.previewing import (
    LeftOut,
    Preview,
    Previewed,
    PreviewRequest,
    preview,
    read_count,
)
from reminders.lifecycle.problems import Problems
from reminders.lifecycle.recurrences import AskedRecurrence, read_recurrence
from reminders.lifecycle.request_limits import DEFAULT_REQUEST_LIMITS, RequestLimits
from reminders.lifecycle.texts import read_holiday_calendar, read_instant_text
from reminders.model.definition import Policies
from reminders.recurrence.policies import Gap, MissingDay, Overlap

_RECURRENCE: Final = "schedule.recurrence"
_OPTIONS: Final = {
    f"{_RECURRENCE}.rrule": "RULE",
    f"{_RECURRENCE}.cron": "--cron",
    f"{_RECURRENCE}.start": "--start",
    f"{_RECURRENCE}.time_zone": "--zone",
    f"{_RECURRENCE}.exdates": "--exdate",
    f"{_RECURRENCE}.rdates": "--rdate",
    f"{_RECURRENCE}.max_occurrences": "--max-occurrences",
    f"{_RECURRENCE}.until": "--until",
    "policies.holiday_calendar": "--holidays",
    "after": "--after",
    "count": "--count",
}
"""Where the request's fields come from."""
_WRONG_USAGE: Final = 2
_NEVER_FOLDED: Final = 1_000
"""Columns."""

Choice = TypeVar("Choice", bound=StrEnum)


def show(rule: RuleFlags, calendar: CalendarFlags) -> None:
    """Prints it.

    Raises:
        CommandError: Some option is wrong; names each of them.
    """
    now = datetime.now(UTC)
    try:
        found = preview(read_request(rule, calendar, now, _limits()), now)
    except InvalidRequest as error:
        raise CommandError(
            "this can't be previewed", *map(_line, error.violations), exit_code=_WRONG_USAGE
        ) from None
    if rule.json:
        print(json.dumps([_fields(one) for one in found.occurrences], ensure_ascii=False, indent=2))
        if found.stopped:
            sys.stderr.write(f"warning: {found.stopped}\n")
        return
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=_NEVER_FOLDED)
    if found.occurrences or found.left_out:
        console.print(table(found, rule.zone))
    console.print(summary(found, rule.count))


def _limits() -> RequestLimits:
    """Of the deployment that is configured here."""
    try:
        if not limits_configured():
            return DEFAULT_REQUEST_LIMITS
    except ConfigFileError as error:
        raise CommandError("wrong configuration", str(error)) from None
    from reminders.cli.stack import checked_settings  # noqa: PLC0415 - it takes as long as the rest

    return request_limits(checked_settings())


def read_request(
    rule: RuleFlags,
    calendar: CalendarFlags,
    now: datetime,
    limits: RequestLimits = DEFAULT_REQUEST_LIMITS,
) -> PreviewRequest:
    """In the server's normal form.

    Raises:
        InvalidRequest: With every violation, as the server has them.
    """
    if (rule.rule is None) == (rule.cron is None):
        raise typer.BadParameter(
            'give a rule such as "FREQ=WEEKLY;BYDAY=MO" or --cron, one of them'
        )
    problems, late = Problems(), Problems()
    until = after = None
    if rule.until is not None:
        until = read_instant_text(rule.until, f"{_RECURRENCE}.until", late, round_up=False)
    if rule.after is not None:
        after = read_instant_text(rule.after, "after", late, round_up=False)
    asked = AskedRecurrence(
        rrule=rule.rule,
        cron=rule.cron,
        start=rule.start,
        time_zone=rule.zone,
        exdates=rule.exdate,
        rdates=rule.rdate,
        max_occurrences=rule.max_occurrences,
        until=until,
    )
    schedule = read_recurrence(asked, max(after or now, now), _RECURRENCE, problems, limits)
    policies = _policies(calendar, problems)
    count = read_count(rule.count, "count", late)
    problems.found += late.found
    if schedule is None or problems.found:
        raise InvalidRequest(violations=problems.found)
    return PreviewRequest(schedule=schedule, policies=policies, after=after, count=count)


def _policies(flags: CalendarFlags, problems: Problems) -> Policies:
    holidays = flags.holidays or ""
    return Policies(
        gap=_choice("--gap", Gap, flags.gap, Gap.NEXT_VALID),
        overlap=_choice("--overlap", Overlap, flags.overlap, Overlap.EARLIER),
        missing_day=_choice("--missing-day", MissingDay, flags.missing_day, MissingDay.SKIP),
        holiday_calendar=read_holiday_calendar(holidays, "policies.holiday_calendar", problems),
    )


def _choice(flag: str, kind: type[Choice], text: str | None, default: Choice) -> Choice:
    """With hyphens or underscores, in any case, as `tocsin create` takes them."""
    if text is None:
        return default
    try:
        return kind(text.lower().replace("-", "_"))
    except ValueError:
        right = ", ".join(one.value.replace("_", "-") for one in kind)
        raise typer.BadParameter(f"{flag} {text}: choose one of {right}") from None


def _line(violation: Violation) -> str:
    field, _, _ = violation.field.partition("[")
    return f"{_OPTIONS.get(field, field)}: {violation.description}"


def _fields(one: Previewed) -> dict[str, str | None]:
    return {
        "local": one.local.isoformat(timespec=_precision(one.local)),
        "instant": _utc(one.instant, "T"),
        "offset": one.offset,
        "note": one.note or None,
    }


def table(found: Preview, zone: str) -> Table:
    """A row for each occurrence, and for each that was left out in between."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for name in (f"LOCAL ({zone})", "UTC", "OFFSET", "NOTE"):
        drawn.add_column(name, overflow="fold")
    rows: list[Previewed | LeftOut] = [*found.occurrences, *found.left_out]
    # What rings at the instant of one that was left out is shown behind it.
    for one in sorted(rows, key=lambda row: (row.instant, isinstance(row, Previewed))):
        if isinstance(one, LeftOut):
            drawn.add_row("(left out)", "-", "-", one.note, style="dim")
        else:
            local = one.local.isoformat(" ", timespec=_precision(one.local))
            drawn.add_row(f"{one.local:%a} {local}", _utc(one.instant, " "), one.offset, one.note)
    return drawn


def summary(found: Preview, asked: int) -> str:
    """How many, why not more, and what they were computed with."""
    shown = len(found.occurrences)
    lines = [f"{shown} shown, computed with zone data {found.zone_data}"]
    if found.holiday_data:
        lines[0] += f" and holidays {found.holiday_data}"
    if found.stopped:
        lines.append(f"there may be more: {found.stopped}")
    elif not shown:
        lines.append("nothing of it lies ahead: a create would be refused")
    elif shown < asked:
        lines.append("there are no more: the rule ends")
    return "\n".join(lines)


def _utc(instant: datetime, separator: str) -> str:
    naive = instant.astimezone(UTC).replace(tzinfo=None)
    return naive.isoformat(separator, timespec=_precision(naive)) + "Z"


def _precision(moment: datetime) -> str:
    return "milliseconds" if moment.microsecond else "seconds"

"""What a policy did to an occurrence, in words that a support person can pass on. English.

A note such as `missing_day:clamp,gap:next_valid` becomes one sentence for each of its parts, in the
order in which the policies acted: the day first, then the time on it.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from reminders.recurrence.cursor import Planned
from reminders.recurrence.dates import place_missing
from reminders.recurrence.identity import parse_occurrence_key
from reminders.recurrence.policies import CalendarPolicies
from reminders.recurrence.zones import zone

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ORDINALS: Final = {29: "29th", 30: "30th", 31: "31st"}
"""Of the days that a month can lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """What the clocks in a zone do at one instant. `before` later than `after`: they go back."""

    before: datetime
    """Naive: what they would show had they gone on."""
    after: datetime
    """Naive: what they show."""


def policy_word(note: str | None) -> str:
    """`gap:next_valid` as the one stable word `gap_next_valid`; several are separated by commas.

    Empty if no policy acted.
    """
    return (note or "").replace(":", "_")


def in_words(planned: Planned, policies: CalendarPolicies) -> str:
    """Which policies acted on an occurrence, and why; empty if none did.

    `gap:skip` and `missing_day:skip` in its note say that it was left out; `local` is of no
    importance then. `policies` are those that planned it.
    """
    return " ".join(
        _sentence(part, planned, policies) for part in (planned.note or "").split(",") if part
    )


def transition_at(local: datetime, where: ZoneInfo) -> Transition:
    """The transition that skips or repeats a naive local time, found to the second."""
    before, after = (local.replace(tzinfo=where, fold=fold).utcoffset() for fold in (0, 1))
    assert before is not None
    assert after is not None
    # Read by the offset before and by the one after it, the time is on both sides of it (PEP 495).
    low, high = sorted((local - before, local - after))
    while high - low > _SECOND:
        middle = low + ((high - low) / 2) // _SECOND * _SECOND
        if middle.replace(tzinfo=UTC).astimezone(where).utcoffset() == before:
            low = middle
        else:
            high = middle
    instant = high.replace(microsecond=0)  # transitions happen at whole seconds
    return Transition(before=instant + before, after=instant + after)


def _sentence(part: str, planned: Planned, policies: CalendarPolicies) -> str:
    kind, _, policy = part.partition(":")
    if kind == "missing_day":
        return _missing_day(policy, planned, policies)
    asked = _asked(planned, policies)
    change = transition_at(asked, zone(planned.zone))
    if kind == "gap":
        return _gap(policy, planned, asked, change)
    return _overlap(policy, planned, asked, change)


def _asked(planned: Planned, policies: CalendarPolicies) -> datetime:
    """The local time that gap and overlap were asked about: on the day that the policy chose."""
    day = planned.nominal.date()
    if parse_occurrence_key(planned.key).missing:
        day = place_missing(day, policies) or day
    return datetime.combine(day, planned.nominal.time())


def _missing_day(policy: str, planned: Planned, policies: CalendarPolicies) -> str:
    month_end = planned.nominal.date()
    number = month_end.day + parse_occurrence_key(planned.key).missing
    lacks = f"{_MONTHS[month_end.month - 1]} {month_end.year} has no {_ORDINALS[number]}"
    if policy == "skip":
        return f"{lacks}; this one is left out."
    place = {
        "clamp": "the last day of the month",
        "next_business_day": "the first business day after the month",
        "previous_business_day": "the last business day of the month",
    }[policy]
    day = _asked(planned, policies).date()
    shown = f"{day}" if policy == "clamp" else f"{_WEEKDAYS[day.weekday()]} {day}"
    holidays = policies.holiday_calendar
    by = f" (holidays: {holidays})" if holidays and policy != "clamp" else ""
    return f"{lacks}; it moves to {shown}, {place}{by}."


def _gap(policy: str, planned: Planned, asked: datetime, change: Transition) -> str:
    day = asked.date()
    midnight = datetime.combine(day, datetime.min.time())
    if change.before <= midnight and change.after >= midnight + _DAY:
        gone = f"{day} does not exist in {planned.zone} (the calendar goes from "
        gone += f"{(change.before - _SECOND).date()} to {change.after.date()})"
    else:
        gone = f"{_clock(asked)} does not exist on {day} in {planned.zone} ({_moves(change, day)})"
    if policy == "skip":
        return f"{gone}; this one is left out."
    rings = f"it rings at {_on(planned.local, day)}"
    if policy == "next_valid":
        return f"{gone}; {rings}, the next valid time."
    jump = _length(change.after - change.before)
    return f"{gone}; {rings}, {jump} later: as far as the clocks jump."


def _overlap(policy: str, planned: Planned, asked: datetime, change: Transition) -> str:
    twice = (
        f"{_clock(asked)} comes twice on {asked.date()} in {planned.zone} "
        f"({_moves(change, asked.date())})"
    )
    which = "second" if planned.fold else "first"
    offset = f"UTC{offset_text(planned.local - planned.instant.replace(tzinfo=None))}"
    if policy == "both":
        return f"{twice}; it rings both times, and this is the {which} ({offset})."
    return f"{twice}; it rings the {which} time ({offset})."


def _moves(change: Transition, day: date) -> str:
    verb = "go" if change.after > change.before else "go back"
    return f"clocks {verb} from {_on(change.before, day)} to {_on(change.after, day)}"


def offset_text(offset: timedelta) -> str:
    """`+02:00`, `-03:30`, with seconds where there are any: `+00:09:21`."""
    sign = "-" if offset < timedelta(0) else "+"
    minutes, seconds = divmod(abs(offset) // _SECOND, 60)
    text = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{seconds:02}" if seconds else text


def _clock(local: datetime) -> str:
    """`02:30`, as precise as it has to be."""
    if local.microsecond:
        return local.time().isoformat("milliseconds")
    return local.time().isoformat("seconds" if local.second else "minutes")


def _on(local: datetime, day: date) -> str:
    """The time, with its date where that is another day than what the sentence speaks of."""
    return _clock(local) if local.date() == day else f"{_clock(local)} on {local.date()}"


def _length(length: timedelta) -> str:
    """`1 hour`, `30 minutes`, `1 hour 30 minutes`."""
    minutes, seconds = divmod(length // _SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    parts = {"hour": hours, "minute": minutes, "second": seconds}
    return " ".join(
        f"{count} {unit}{'' if count == 1 else 's'}" for unit, count in parts.items() if count
    )

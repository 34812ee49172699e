"""Which edition of zone or holiday data is the newer one. Pure.

An occurrence carries the editions that its instant was computed with. Whether another edition may
compute it again is decided here: an older one never may (R-REC-8), and a name that cannot be put in
order counts as neither older nor newer, but as an error.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from reminders.errors import TocsinError
from reminders.model.definition import Definition, LocalTime, Recurring
from reminders.model.entry import Occurrence
from reminders.recurrence import holiday_data_version, zone_data_version
from reminders.recurrence.policies import MissingDay

_ZONE_RELEASE = re.compile(r"(\d{4})([a-z]{1,3})", re.ASCII)
_PACKAGE_RELEASE = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,5}", re.ASCII)
_BY_BUSINESS_DAY = (MissingDay.NEXT_BUSINESS_DAY, MissingDay.PREVIOUS_BUSINESS_DAY)


class EditionUnknown(ValueError):
    """An edition that has no place in the order; says which, and what it should look like."""


class Editions(Struct, frozen=True, kw_only=True, array_like=True):
    """The data that instants are computed from."""

    zones: str
    """IANA release, such as `2026a`."""
    holidays: str
    """Release of the `holidays` package, such as `0.109`."""


class Standing(StrEnum):
    """How stored editions stand to those of this process."""

    CURRENT = "current"
    OLDER = "older"
    NEWER = "newer"
    """Some part is newer: this process must not compute it again."""


_NONE = Editions(zones="", holidays="")


@dataclass(eq=False)
class DataNewer(TocsinError):
    """Something was computed with newer data than this process has: it must not do so again."""

    reason = "DATA_NEWER"
    stored: Editions = _NONE
    ours: Editions = _NONE

    def __str__(self) -> str:
        return (
            f"zone data {self.stored.zones} and holidays {self.stored.holidays or 'none'} were "
            f"used here, and this process has {self.ours.zones} and {self.ours.holidays}: run it "
            "with tzdata and holidays at least as new"
        )


def in_use() -> Editions:
    """Those of this process."""
    return Editions(zones=zone_data_version(), holidays=holiday_data_version())


def zone_release_order(release: str) -> tuple[int, int, str]:
    """Sorts IANA releases by age: 2025b, 2026a, …, 2026z, 2026za.

    Raises:
        EditionUnknown: Not a year and small letters.
    """
    found = _ZONE_RELEASE.fullmatch(release)
    if found is None:
        raise EditionUnknown(f"zone data {release!r} is no IANA release such as 2026a")
    return int(found[1]), len(found[2]), found[2]


def holiday_release_order(release: str) -> tuple[int, ...]:
    """Sorts releases of the `holidays` package by age; an empty one, stored before editions of
    holidays were recorded, is the oldest.

    Raises:
        EditionUnknown: Not numbers with dots between.
    """
    if not release:
        return ()
    if _PACKAGE_RELEASE.fullmatch(release) is None:
        raise EditionUnknown(f"holidays {release!r} is no release such as 0.109")
    numbers = [int(part) for part in release.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()  # 1.0 is 1
    return tuple(numbers or [0])


def compare(stored: Editions, ours: Editions) -> Standing:
    """Of both parts; if one is newer and the other older, it is newer.

    Raises:
        EditionUnknown: A part has no place in the order.
    """
    pairs = (
        (zone_release_order(stored.zones), zone_release_order(ours.zones)),
        (holiday_release_order(stored.holidays), holiday_release_order(ours.holidays)),
    )
    if any(theirs > mine for theirs, mine in pairs):
        return Standing.NEWER
    return Standing.OLDER if any(theirs < mine for theirs, mine in pairs) else Standing.CURRENT


def standing(definition: Definition, occurrence: Occurrence, ours: Editions) -> Standing:
    """Of one planned occurrence. What was asked for as an instant is always current, and editions
    of holidays count only where the definition uses them.

    Raises:
        EditionUnknown: It carries an edition that has no place in the order.
    """
    if not local_intent(definition):
        return Standing.CURRENT
    holidays = occurrence.holiday_data if uses_holidays(definition) else ours.holidays
    return compare(Editions(zones=occurrence.zone_data, holidays=holidays), ours)


def local_intent(definition: Definition) -> bool:
    """Whether it was asked for in local time, so that its instants depend on zone data."""
    return isinstance(definition.schedule, LocalTime | Recurring)


def uses_holidays(definition: Definition) -> bool:
    """Whether a holiday calendar decides about its days."""
    policies = definition.policies
    return (
        isinstance(definition.schedule, Recurring)
        and policies.holiday_calendar is not None
        and policies.missing_day in _BY_BUSINESS_DAY
    )

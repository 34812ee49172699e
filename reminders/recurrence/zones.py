"""Zones by name, and from a local time to its instant under a stored policy.

A gap or an overlap is seen by comparing `utcoffset()` at fold 0 and fold 1 (PEP 495), which holds
for transitions of any size: Lord Howe's 30 minutes, Troll's two hours, Apia's skipped day.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from importlib import import_module, resources
from zoneinfo import ZoneInfo

from reminders.recurrence.errors import SeriesInvalid, ZoneIsOffset, ZoneUnknown
from reminders.recurrence.identity import occurrence_key
from reminders.recurrence.policies import Gap, Overlap

_UTC_NAMES = frozenset({"UTC", "Etc/UTC"})
_NUMERIC = re.compile(r"(?:UTC|GMT|Z)?\s*[+\-\u2212]?\s*\d{1,2}(?::?\d{2}){0,2}")
_LONGEST_NAME = 64
"""Characters; longer input gets no search for a similar name."""
LONGEST_TRANSITION = timedelta(hours=25)
"""No zone ever jumped further: Alaska and the Philippines changed sides of the date line."""
_SECOND = timedelta(seconds=1)

# What people write for a zone that names none, and the place that most of them mean. Several are
# keys of tzdata (EST, CET, ...), as fixed offsets or as links that say nothing of a place.
_ABBREVIATIONS = {
    **dict.fromkeys(("UCT", "Z", "ZULU", "UNIVERSAL", "GREENWICH", "GMT", "GMT0"), "Etc/UTC"),
    **dict.fromkeys(("EST", "EDT", "ET", "EST5EDT"), "America/New_York"),
    **dict.fromkeys(("CST", "CDT", "CT", "CST6CDT"), "America/Chicago"),
    **dict.fromkeys(("MST", "MDT", "MT", "MST7MDT"), "America/Denver"),
    **dict.fromkeys(("PST", "PDT", "PT", "PST8PDT"), "America/Los_Angeles"),
    **dict.fromkeys(("AKST", "AKDT"), "America/Anchorage"),
    **dict.fromkeys(("AST", "ADT"), "America/Halifax"),
    **dict.fromkeys(("NST", "NDT"), "America/St_Johns"),
    **dict.fromkeys(("HST", "HDT"), "Pacific/Honolulu"),
    **dict.fromkeys(("WET", "WEST"), "Europe/Lisbon"),
    **dict.fromkeys(("CET", "CEST", "MET", "MEST", "MEZ", "MESZ"), "Europe/Paris"),
    **dict.fromkeys(("EET", "EEST"), "Europe/Athens"),
    **dict.fromkeys(("AEST", "AEDT"), "Australia/Sydney"),
    **dict.fromkeys(("ACST", "ACDT"), "Australia/Adelaide"),
    **dict.fromkeys(("NZST", "NZDT"), "Pacific/Auckland"),
    "AWST": "Australia/Perth",
    "BST": "Europe/London",
    "MSK": "Europe/Moscow",
    "IST": "Asia/Kolkata",
    "PKT": "Asia/Karachi",
    "SGT": "Asia/Singapore",
    "HKT": "Asia/Hong_Kong",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "WIB": "Asia/Jakarta",
    "BRT": "America/Sao_Paulo",
    "ART": "America/Argentina/Buenos_Aires",
    "CAT": "Africa/Maputo",
    "EAT": "Africa/Nairobi",
    "WAT": "Africa/Lagos",
    "SAST": "Africa/Johannesburg",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Localized:
    """One instant for a local time."""

    nominal: datetime
    """The local time that was asked for; naive."""
    local: datetime
    """The local time that the policy made of it; naive, and it exists."""
    fold: int
    """Which of two equal local times `local` is (PEP 495); 0 where there is one."""
    second_pass: bool = False
    """The second of two occurrences of one local time (BOTH, elapsed time): part of the identity,
    which `fold` is not: LATER, or a change of zone data, must not make another occurrence of it."""
    instant: datetime
    """Aware, UTC."""
    note: str | None = None
    """Which policy acted, such as `gap:next_valid`, if one did."""

    @property
    def key(self) -> str:
        """The occurrence key; `nominal` must be in whole milliseconds."""
        return occurrence_key(self.nominal, int(self.second_pass))


def zone_data_version() -> str:
    """The IANA release that all instants here are computed from, such as `2026a`."""
    return str(import_module("tzdata").IANA_VERSION)


@cache
def zone_names() -> frozenset[str]:
    """Every name that `zone` takes."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    return frozenset(name for name in listed if name != "Factory" and not _is_offset(name))


def zone(name: str) -> ZoneInfo:
    """The zone of this IANA name, exactly as spelled, from the pip package tzdata alone.

    Raises:
        ZoneIsOffset: A numeric offset, an abbreviation or an `Etc/GMT+5`. UTC and Etc/UTC are fine.
        ZoneUnknown: No such name; its `suggestion` is the most similar one.
    """
    if name in zone_names():
        return _load(name)
    if _is_offset(name):
        place = _ABBREVIATIONS.get(name.strip().upper().removeprefix("ETC/"))
        raise ZoneIsOffset(name, "is an offset or abbreviation, not the zone of a place", place)
    raise ZoneUnknown(name, "is not an IANA time zone", _similar(name))


def localize(
    local: datetime,
    zone: ZoneInfo,
    gap: Gap = Gap.NEXT_VALID,
    overlap: Overlap = Overlap.EARLIER,
) -> tuple[Localized, ...]:
    """The instants of a naive local time, in order: none for a skipped gap, two only for BOTH.

    Raises:
        SeriesInvalid: `local` carries a zone of its own.
    """
    if local.tzinfo is not None:
        raise SeriesInvalid("local", "a local time is naive; its zone is given beside it")
    first = _offset(local.replace(tzinfo=zone, fold=0))
    second = _offset(local.replace(tzinfo=zone, fold=1))
    local = local.replace(fold=0)
    if first == second:
        return (_localized(local, local, first, fold=0),)
    if first < second:
        return _across_gap(local, zone, gap, before=first, after=second)
    note = f"overlap:{overlap}"
    earlier = _localized(local, local, first, fold=0, note=note)
    if overlap is Overlap.EARLIER:
        return (earlier,)
    both = overlap is Overlap.BOTH
    later = _localized(local, local, second, fold=1, note=note, second_pass=both)
    return (earlier, later) if both else (later,)


def wall_clock(instant: datetime, zone: ZoneInfo) -> tuple[datetime, int]:
    """The naive local time and fold that clocks in the zone show at an aware instant."""
    shown = instant.astimezone(zone)
    return shown.replace(tzinfo=None, fold=0), shown.fold


def earliest(local: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which clocks in the zone show `local` or more, UTC.

    It never decreases as `local` grows, and no policy puts a local time before it: whoever has
    seen all local times up to `local` has seen all instants up to this one.
    """
    return localize(local, zone)[0].instant


def _across_gap(
    local: datetime, zone: ZoneInfo, gap: Gap, *, before: timedelta, after: timedelta
) -> tuple[Localized, ...]:
    if gap is Gap.SKIP:
        return ()
    note = f"gap:{gap}"
    if gap is Gap.SHIFT_FORWARD:
        return (_localized(local, local - before + after, after, fold=0, note=note),)
    # The transition lies in (local - after, local - before], read as UTC: bisect whole seconds.
    low, high = local - after, local - before
    while high - low > _SECOND:
        middle = low + ((high - low) / 2) // _SECOND * _SECOND
        if _offset(middle.replace(tzinfo=UTC).astimezone(zone)) == before:
            low = middle
        else:
            high = middle
    # Transitions happen at whole seconds, while `low` and `high` keep the fraction of `local`.
    return (_localized(local, high.replace(microsecond=0) + after, after, fold=0, note=note),)


def _localized(
    nominal: datetime,
    local: datetime,
    offset: timedelta,
    *,
    fold: int,
    note: str | None = None,
    second_pass: bool = False,
) -> Localized:
    return Localized(
        nominal=nominal,
        local=local,
        fold=fold,
        second_pass=second_pass,
        instant=(local - offset).replace(tzinfo=UTC),
        note=note,
    )


def _offset(aware: datetime) -> timedelta:
    offset = aware.utcoffset()
    assert offset is not None
    return offset


@cache
def _load(name: str) -> ZoneInfo:
    """From the package's own file: `ZoneInfo(name)` would prefer an older copy of the system."""
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _is_offset(name: str) -> bool:
    if name in _UTC_NAMES:
        return False
    plain = name.strip().upper()
    if plain.startswith("ETC/") and plain != "ETC/UTC":
        return True
    return plain in _ABBREVIATIONS or _NUMERIC.fullmatch(plain) is not None


def _similar(name: str) -> str | None:
    """The most similar name: ignoring case, by the place alone ("Paris"), or by spelling."""
    if not name or len(name) > _LONGEST_NAME:
        return None
    wanted = name.strip().replace(" ", "_").lower()
    spelled = {key.lower(): key for key in sorted(zone_names())}
    places = {key.rpartition("/")[2]: key for key in spelled}
    if wanted in spelled:
        return spelled[wanted]
    if wanted in places:
        return spelled[places[wanted]]
    if close := get_close_matches(wanted, spelled, n=1, cutoff=0.75):
        return spelled[close[0]]
    close = get_close_matches(wanted.rpartition("/")[2], places, n=1, cutoff=0.75)
    return spelled[places[close[0]]] if close else None

"""Zones by name, and `localize` against a minute-by-minute scan that shares no code with it."""

from datetime import UTC, datetime, timedelta
from functools import cache
from pickle import dumps, loads
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reminders.recurrence import (
    Gap,
    Overlap,
    SeriesInvalid,
    ZoneIsOffset,
    ZoneUnknown,
    localize,
    zone,
    zone_data_version,
    zone_names,
)
from reminders.recurrence.zones import earliest

MINUTE = timedelta(minutes=1)

# Zone, and the UTC date of a transition: every size and direction that is known.
TRANSITIONS = [
    ("Europe/Paris", "2026-03-29"),
    ("Europe/Paris", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-10-03"),  # half an hour
    ("Australia/Lord_Howe", "2026-04-04"),
    ("Antarctica/Troll", "2026-03-29"),  # two hours
    ("Antarctica/Troll", "2026-10-25"),
    ("Pacific/Apia", "2011-12-30"),  # a whole day is skipped
    ("Pacific/Kwajalein", "1993-08-21"),  # another
    ("Europe/Dublin", "2026-03-29"),  # winter time is the negative one
    ("Europe/Dublin", "2026-10-25"),
    ("Africa/Casablanca", "2026-02-15"),  # Ramadan
    ("Africa/Casablanca", "2026-03-22"),
    ("America/St_Johns", "2005-04-03"),  # one minute past midnight
    ("America/St_Johns", "2005-10-30"),  # back into the day before
    ("Asia/Pyongyang", "2018-05-04"),
    ("Asia/Kathmandu", "1985-12-31"),  # 15 minutes
    ("America/Sao_Paulo", "2018-11-04"),  # midnight does not exist
    ("Africa/Cairo", "2026-04-23"),
    ("Asia/Gaza", "2050-05-20"),
    ("Europe/Paris", "2300-03-26"),
]


@cache
def shown(name: str, day: str) -> dict[datetime, list[datetime]]:
    """Local minute → the instants at which clocks show it, over five UTC days: pure scanning."""
    tz = zone(name)
    at = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=2)
    minutes: dict[datetime, list[datetime]] = {}
    for _ in range(5 * 1440):
        minutes.setdefault(at.astimezone(tz).replace(tzinfo=None, fold=0), []).append(at)
        at += MINUTE
    return minutes


def scanned(name: str, day: str, local: datetime, gap: Gap, overlap: Overlap) -> list[datetime]:
    """What the scan says about a local minute well inside its window."""
    minutes = shown(name, day)
    if found := minutes.get(local):
        pick = {Overlap.EARLIER: found[:1], Overlap.LATER: found[-1:], Overlap.BOTH: found}
        return pick[overlap]
    if gap is Gap.SKIP:
        return []
    before = max(minute for minute in minutes if minute < local)
    after = min(minute for minute in minutes if minute > local)
    transition = minutes[after][0]
    if gap is Gap.NEXT_VALID:
        return [transition]
    return [minutes[before][-1] + (local - before)]


@pytest.mark.parametrize(("name", "day"), TRANSITIONS)
@pytest.mark.parametrize("gap", list(Gap))
@pytest.mark.parametrize("overlap", list(Overlap))
def test_localize_agrees_with_a_scan_of_the_clock(
    name: str, day: str, gap: Gap, overlap: Overlap
) -> None:
    """Every policy, every local minute within two days around every kind of transition."""
    local = datetime.fromisoformat(day) - timedelta(hours=20)
    end = local + timedelta(hours=60)
    while local < end:
        found = localize(local, zone(name), gap, overlap)
        assert [one.instant for one in found] == scanned(name, day, local, gap, overlap), local
        for one in found:
            there = one.instant.astimezone(zone(name))
            assert (there.replace(tzinfo=None, fold=0), there.fold) == (one.local, one.fold)
            assert one.nominal == local
        local += 7 * MINUTE  # over 60 hours it meets every minute of the hour


def test_the_scan_meets_transitions() -> None:
    """The table above is no list of quiet days: each has a missing or a repeated minute."""
    for name, day in TRANSITIONS:
        minutes = shown(name, day)
        gaps = len(minutes) < (max(minutes) - min(minutes)) / MINUTE + 1
        assert gaps or any(len(found) > 1 for found in minutes.values()), (name, day)


@pytest.mark.parametrize(
    ("gap", "local", "instant"),
    [
        (Gap.NEXT_VALID, "2026-03-29T03:00", "2026-03-29T01:00Z"),
        (Gap.SHIFT_FORWARD, "2026-03-29T03:30", "2026-03-29T01:30Z"),
    ],
)
def test_a_local_time_in_a_gap_follows_its_policy_and_says_so(
    gap: Gap, local: str, instant: str
) -> None:
    """02:30 in Paris on the spring night."""
    (one,) = localize(datetime(2026, 3, 29, 2, 30), zone("Europe/Paris"), gap)
    assert (one.local, one.instant) == (
        datetime.fromisoformat(local),
        datetime.fromisoformat(instant),
    )
    assert one.note == f"gap:{gap}"
    assert one.key == "20260329T023000"


def test_the_transition_is_found_for_a_time_with_a_fraction() -> None:
    """The next valid time is the transition itself, not the fraction of a second after it."""
    (one,) = localize(datetime(2026, 3, 29, 2, 30, 0, 250_000), zone("Europe/Paris"))
    assert one.instant == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_both_gives_two_identities_and_later_none_of_its_own() -> None:
    """A changed policy must not make a second occurrence of what has already rung."""
    local, paris = datetime(2026, 10, 25, 2, 30), zone("Europe/Paris")
    keys = {
        overlap: [one.key for one in localize(local, paris, overlap=overlap)] for overlap in Overlap
    }
    assert keys == {
        Overlap.EARLIER: ["20261025T023000"],
        Overlap.LATER: ["20261025T023000"],
        Overlap.BOTH: ["20261025T023000", "20261025T023000~1"],
    }


def test_an_aware_local_time_is_refused() -> None:
    """It would carry two zones."""
    with pytest.raises(SeriesInvalid):
        localize(datetime(2026, 1, 1, tzinfo=UTC), zone("Europe/Paris"))


@given(
    name=st.sampled_from(sorted(zone_names())),
    local=st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
    later=st.timedeltas(timedelta(0), timedelta(hours=30)),
    gap=st.sampled_from(list(Gap)),
    overlap=st.sampled_from(list(Overlap)),
)
def test_no_policy_puts_a_local_time_before_what_earlier_ones_have_reached(
    name: str, local: datetime, later: timedelta, gap: Gap, overlap: Overlap
) -> None:
    """What the order of a series rests on, in any zone."""
    tz = zone(name)
    reached = earliest(local, tz)
    assert reached <= earliest(local + later, tz)
    assert all(one.instant >= reached for one in localize(local + later, tz, gap, overlap))


def test_every_zone_of_the_package_is_known_and_comes_from_it() -> None:
    """All but offsets, abbreviations and the placeholder; whatever the system's own copy says."""
    names = zone_names()
    assert len(names) > 500
    assert {"Europe/Paris", "America/Argentina/Buenos_Aires", "UTC", "Etc/UTC", "NZ"} <= names
    assert not {"Factory", "EST", "CET", "Etc/GMT+5", "GMT", "localtime", "posixrules"} & names
    for name in names:
        assert isinstance(zone(name), ZoneInfo)
        assert zone(name).key == name
    assert zone("Europe/Paris") is zone("Europe/Paris")
    assert zone_data_version()[:2] == "20"


@pytest.mark.parametrize(
    "name",
    [
        "+02:00",
        "-5",
        "UTC+2",
        "GMT-03:30",
        "UTC-5",
        "−05:00",
        "Z",
        "0530",
        "Etc/GMT+5",
        "Etc/GMT",
        "GMT",
        "GMT+0",
        "GMT0",
        "EST",
        "est",
        "MST",
        "HST",
        "EST5EDT",
        "CET",
        "CEST",
        "MET",
        "WET",
        "EET",
        "PST",
        "IST",
        "BST",
        "UCT",
        "Zulu",
        "Universal",
        "Greenwich",
    ],
)
def test_an_offset_or_an_abbreviation_is_no_zone(name: str) -> None:
    """Neither says when the clocks of a place change."""
    with pytest.raises(ZoneIsOffset) as caught:
        zone(name)
    assert caught.value.part == "time_zone"
    assert caught.value.suggestion is None or caught.value.suggestion in zone_names()


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("Paris", "Europe/Paris"),
        ("europe/paris", "Europe/Paris"),
        ("Europe/Pariss", "Europe/Paris"),
        ("New York", "America/New_York"),
        ("America/NewYork", "America/New_York"),
        ("Asia/Calcuta", "Asia/Calcutta"),
        ("", None),
        ("Factory", None),
        ("../../etc/passwd", None),
        ("x" * 100_000, None),
        ("Mars/Olympus_Mons", None),
    ],
)
def test_an_unknown_zone_names_the_one_that_was_meant(name: str, suggestion: str | None) -> None:
    """Or none, if nothing is near."""
    with pytest.raises(ZoneUnknown) as caught:
        zone(name)
    assert caught.value.suggestion == suggestion
    assert len(str(caught.value)) < 200
    assert str(loads(dumps(caught.value))) == str(caught.value)

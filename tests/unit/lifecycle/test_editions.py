"""Which data is the newer one, and when that matters."""

from datetime import datetime, timedelta
from itertools import pairwise

import msgspec
import pytest
from msgspec.structs import replace

from reminders.lifecycle.editions import (
    DataNewer,
    Editions,
    EditionUnknown,
    Standing,
    compare,
    holiday_release_order,
    in_use,
    standing,
    zone_release_order,
)
from reminders.lifecycle.occurrences import jittered, record_series
from reminders.model.codec import decode_entry, encode
from reminders.model.definition import (
    After,
    At,
    Definition,
    LocalTime,
    Policies,
    Recurring,
    Schedule,
)
from reminders.model.entry import DueEntry, DueKey, Kind, Occurrence
from reminders.model.record import Record, Status
from reminders.recurrence import MissingDay, holiday_data_version
from tests.unit.lifecycle.world import NOON, definition

ZONES = ["1996a", "2025b", "2026a", "2026b", "2026z", "2026za", "2026zb", "2027a"]
HOLIDAYS = ["", "0.9", "0.10", "0.60.1", "0.109", "1.0.0", "1.1"]


def test_releases_are_sorted_by_age() -> None:
    """By year, then as the alphabet runs out; numbers of packages as numbers."""
    assert all(zone_release_order(a) < zone_release_order(b) for a, b in pairwise(ZONES))
    assert all(holiday_release_order(a) < holiday_release_order(b) for a, b in pairwise(HOLIDAYS))
    assert holiday_release_order("1.0") == holiday_release_order("1")


@pytest.mark.parametrize("release", ["", "2026", "2026A", "v2026a", "2026a ", "2026a-dev", "٢٠٢٦a"])
def test_a_zone_release_without_a_place_in_the_order_is_an_error(release: str) -> None:
    """Never taken for an older one, which would let it be computed again."""
    with pytest.raises(EditionUnknown, match="is no IANA release such as 2026a"):
        zone_release_order(release)


@pytest.mark.parametrize("release", ["latest", "0.109rc1", "0..1", "-1", "0.109+local"])
def test_a_holiday_release_without_a_place_in_the_order_is_an_error(release: str) -> None:
    """The same."""
    with pytest.raises(EditionUnknown, match=r"is no release such as 0\.109"):
        holiday_release_order(release)


@pytest.mark.parametrize(
    ("zones", "holidays", "expected"),
    [
        ("2026b", "0.60", Standing.CURRENT),
        ("2026a", "0.60", Standing.OLDER),
        ("2026b", "0.9", Standing.OLDER),
        ("2026b", "", Standing.OLDER),
        ("2026c", "0.60", Standing.NEWER),
        ("2026b", "0.61", Standing.NEWER),
        ("2026c", "0.9", Standing.NEWER),
        ("2026a", "0.61", Standing.NEWER),
    ],
)
def test_newer_in_any_part_is_newer(zones: str, holidays: str, expected: Standing) -> None:
    """A process that is ahead in one part and behind in the other must not compute it again."""
    ours = Editions(zones="2026b", holidays="0.60")
    assert compare(Editions(zones=zones, holidays=holidays), ours) is expected


def test_what_is_in_use_has_a_place_in_the_order() -> None:
    """Both packages name their releases as we expect."""
    assert compare(in_use(), in_use()) is Standing.CURRENT


def test_newer_data_says_what_to_install() -> None:
    """For whoever runs it."""
    error = DataNewer(
        stored=Editions(zones="2026c", holidays="0.60"),
        ours=Editions(zones="2026b", holidays="0.60"),
    )
    assert "2026c" in str(error)
    assert "2026b" in str(error)
    assert "tzdata and holidays" in str(error)


# --- of an occurrence ---------------------------------------------------------------------------

OURS = Editions(zones="2026b", holidays="0.60")
MONTH_END = Recurring(rrule="FREQ=MONTHLY;BYMONTHDAY=31", zone="Europe/Berlin")
BY_HOLIDAYS = Policies(missing_day=MissingDay.NEXT_BUSINESS_DAY, holiday_calendar="DE")


def occurrence(zone_data: str, holiday_data: str = "") -> Occurrence:
    """Noon."""
    local = datetime(2026, 6, 1, 12)  # noqa: DTZ001 - a wall-clock time
    return Occurrence(
        occurrence_id="20260601T120000",
        nominal_local=local,
        planned_local=local,
        zone="UTC",
        planned_at=NOON,
        fire_at=NOON,
        zone_data=zone_data,
        holiday_data=holiday_data,
    )


@pytest.mark.parametrize("schedule", [At(instant=NOON), After(delay=timedelta(hours=1))])
def test_an_instant_depends_on_no_data(schedule: Schedule) -> None:
    """So whatever it carries is current, an unknown release as well."""
    assert standing(definition(schedule), occurrence("1999a"), OURS) is Standing.CURRENT
    assert standing(definition(schedule), occurrence("?"), OURS) is Standing.CURRENT


def test_a_local_time_depends_on_zone_data() -> None:
    """Not on holidays."""
    local = definition(LocalTime(date=None, time="09:00", zone="UTC"))
    assert standing(local, occurrence("2026a"), OURS) is Standing.OLDER
    assert standing(local, occurrence("2026b"), OURS) is Standing.CURRENT
    assert standing(local, occurrence("2026c"), OURS) is Standing.NEWER
    with pytest.raises(EditionUnknown):
        standing(local, occurrence("?"), OURS)


@pytest.mark.parametrize(
    ("policies", "depends"),
    [
        (BY_HOLIDAYS, True),
        (replace(BY_HOLIDAYS, missing_day=MissingDay.PREVIOUS_BUSINESS_DAY), True),
        (replace(BY_HOLIDAYS, holiday_calendar=None), False),
        (replace(BY_HOLIDAYS, missing_day=MissingDay.CLAMP), False),
    ],
)
def test_holidays_count_where_a_business_day_of_their_calendar_is_meant(
    policies: Policies, depends: bool
) -> None:
    """Monday to Friday needs no package."""
    rule = definition(MONTH_END, policies=policies)
    found = standing(rule, occurrence("2026b", "0.59" if depends else ""), OURS)
    assert found is (Standing.OLDER if depends else Standing.CURRENT)
    assert standing(rule, occurrence("2026b", "0.60"), OURS) is Standing.CURRENT


@pytest.mark.parametrize(
    ("policies", "expected"), [(BY_HOLIDAYS, holiday_data_version()), (Policies(), "")]
)
def test_occurrences_carry_the_edition_of_holidays_that_they_depend_on(
    policies: Policies, expected: str
) -> None:
    """And none where there is none."""
    rule = definition(MONTH_END, policies=policies)
    record = _record(rule)
    planned = record_series(record).next(record_series(record).first_after(NOON), 2)
    assert [one.holiday_data for one in jittered(record, planned, None)] == [expected, expected]


def test_an_entry_stored_before_editions_of_holidays_were_still_reads() -> None:
    """With none, which is the oldest."""
    record = _record(definition(MONTH_END))
    entry = DueEntry(
        key=DueKey(ring_at=NOON, entry_id="e", shard=0),
        kind=Kind.OCCURRENCE,
        namespace="ns",
        reminder_id="r",
        version=1,
        occurrence=occurrence("2026a", "0.60"),
        record_created_at=record.created_at,
    )
    raw = msgspec.msgpack.decode(encode(entry))
    raw[5] = raw[5][: Occurrence.__struct_fields__.index("holiday_data")]
    read = decode_entry(msgspec.msgpack.encode(raw))
    assert read.occurrence is not None
    assert read.occurrence.holiday_data == ""
    assert read.occurrence.zone_data == "2026a"


def _record(of: Definition) -> Record:
    return Record(
        namespace="ns",
        reminder_id="r",
        version=1,
        status=Status.SCHEDULED,
        definition=of,
        created_at=NOON,
        updated_at=NOON,
        stamp=1,
    )

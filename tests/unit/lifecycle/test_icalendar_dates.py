"""Dates of iCalendar among exdates and rdates: local times of the rule's zone, or refused."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from reminders.lifecycle.problems import Problems
from reminders.lifecycle.recurrences import AskedRecurrence, read_recurrence
from reminders.lifecycle.texts import read_local_in
from reminders.model.definition import Recurring
from reminders.recurrence.zones import zone, zone_names

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def read(text: str, where: str = "Europe/Paris") -> tuple[str | None, list[str]]:
    """What becomes of a date, and what is wrong with it."""
    problems = Problems()
    found = read_local_in(text, zone(where), "rdates[0]", problems)
    assert problems.found or found is None or found.tzinfo is None
    return (
        None if problems.found or found is None else found.isoformat(),
        [one.description for one in problems.found],
    )


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("2026-12-07T09:00", "2026-12-07T09:00:00"),
        ("20261207T090000", "2026-12-07T09:00:00"),
        ("20261207T080000Z", "2026-12-07T09:00:00"),
        ("TZID=Europe/Paris:20261207T090000", "2026-12-07T09:00:00"),
        ("TZID=America/New_York:20261207T030000", "2026-12-07T09:00:00"),
        # of the rule's zone it stays what was written, for its policies: in the gap, and repeated
        ("TZID=Europe/Paris:20260329T023000", "2026-03-29T02:30:00"),
        ("TZID=Europe/Paris:20261025T023000", "2026-10-25T02:30:00"),
        # of another one it is an instant (RFC 5545 3.3.5): New York has 03:30 for 02:30 that night
        ("TZID=America/New_York:20260308T023000", "2026-03-08T08:30:00"),
        ("TZID=America/New_York:20261101T013000", "2026-11-01T06:30:00"),
        ("20261025T003000Z", "2026-10-25T02:30:00"),
        ("TZID=Europe/London:20261025T013000", "2026-10-25T02:30:00"),
    ],
)
def test_a_date_of_icalendar_is_a_local_time_of_the_rules_zone(text: str, local: str) -> None:
    """In all three forms of DATE-TIME."""
    assert read(text) == (local, [])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("TZID=Europe/Pari:20261207T090000", "did you mean Europe/Paris?"),
        ("TZID=CET:20261207T090000", "is an offset or abbreviation"),
        ("TZID=Europe/Paris:20261207T090000Z", "is not a local time"),
        ("TZID=Europe/Paris:20260230T090000", "is not a local time"),
        ("TZID=Europe/Paris:20261207", "is not a local time"),
        ("20261207", "is not a local time"),
        ("00261207T080000Z", "is not a local time"),
        ("2026-12-07T09:00Z", "is not a local time"),
        ("TZID=:20261207T090000", "is not a local time"),
        # what no naive time can say
        ("20261025T013000Z", "is the second 02:30:00 of 2026-10-25 in Europe/Paris"),
    ],
)
def test_what_has_no_such_time_is_refused_with_the_reason(text: str, word: str) -> None:
    """Never guessed."""
    found, wrong = read(text)
    assert found is None
    assert [word in one for one in wrong] == [True]


@pytest.mark.parametrize("there", sorted(zone_names())[::23])
def test_the_instant_is_the_one_that_the_other_zone_names(there: str) -> None:
    """A time of each day of a year; what is not refused shows the same instant on both clocks."""
    refused = 0
    for day in range(1, 366):
        wanted = datetime.fromisoformat("2025-12-31T01:30") + timedelta(days=day)
        local, wrong = read(f"TZID={there}:{wanted:%Y%m%dT%H%M%S}")
        refused += len(wrong)
        if local is None:
            continue
        at = datetime.fromisoformat(local).replace(tzinfo=ZoneInfo("Europe/Paris"))
        assert at.astimezone(UTC) == wanted.replace(tzinfo=ZoneInfo(there)).astimezone(UTC)
    assert refused <= 1


def test_a_rule_has_them_among_its_own() -> None:
    """Sorted, each once, whatever the spelling."""
    asked = AskedRecurrence(
        rrule="FREQ=DAILY",
        cron=None,
        start="2026-12-07T09:00",
        time_zone="Europe/Paris",
        exdates=["20261209T080000Z", "2026-12-09T09:00"],
        rdates=["TZID=America/New_York:20261207T060000", "2026-12-07T12:00", "2026-12-06T12:00"],
        max_occurrences=0,
        until=None,
    )
    problems = Problems()
    found = read_recurrence(asked, NOW, "recurrence", problems)
    assert not problems.found
    assert isinstance(found, Recurring)
    kept = [one.isoformat()[5:16] for one in found.exdates_local + found.rdates_local]
    assert kept == ["12-09T09:00", "12-06T12:00", "12-07T12:00"]


@pytest.mark.parametrize(
    ("zone_name", "rdate", "field"),
    [
        ("Europe/Pari", "TZID=Europe/Paris:20261207T120000", "time_zone"),
        ("Europe/Paris", "TZID=Europe/Pari:20261207T120000", "rdates[0]"),
    ],
)
def test_only_the_field_that_is_wrong_is_named(zone_name: str, rdate: str, field: str) -> None:
    """Without a zone of the rule nothing can be said about its dates."""
    asked = AskedRecurrence(
        rrule="FREQ=DAILY",
        cron=None,
        start="2026-12-07T09:00",
        time_zone=zone_name,
        exdates=[],
        rdates=[rdate],
        max_occurrences=0,
        until=None,
    )
    problems = Problems()
    read_recurrence(asked, NOW, "recurrence", problems)
    assert [one.field for one in problems.found] == [f"recurrence.{field}"]

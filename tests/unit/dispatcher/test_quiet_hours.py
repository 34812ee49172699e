"""When quiet hours end: by midnight, gaps, overlaps and a day that was skipped."""

from datetime import UTC, datetime, time, timedelta

import pytest

from dispatcher.quiet_hours import quiet_until
from reminders.model.recipient import QuietHours
from reminders.recurrence import wall_clock, zone, zone_names

NIGHT = QuietHours(start=time(22), end=time(7))
NOON = QuietHours(start=time(12), end=time(13, 30))
MINUTE = timedelta(minutes=1)


def utc(text: str) -> datetime:
    """An instant."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("quiet", "at", "until"),
    [
        (NIGHT, "2026-06-01T19:59:59.999", None),
        (NIGHT, "2026-06-01T20:00", "2026-06-02T05:00"),
        (NIGHT, "2026-06-01T22:30", "2026-06-02T05:00"),
        (NIGHT, "2026-06-02T04:59:59.999", "2026-06-02T05:00"),
        (NIGHT, "2026-06-02T05:00", None),
        (NOON, "2026-06-01T09:59", None),
        (NOON, "2026-06-01T10:00", "2026-06-01T11:30"),
        (NOON, "2026-06-01T11:30", None),
        # the night is an hour shorter, and an hour longer
        (NIGHT, "2026-03-28T21:00", "2026-03-29T05:00"),
        (NIGHT, "2026-10-24T20:00", "2026-10-25T06:00"),
    ],
)
def test_in_paris(quiet: QuietHours, at: str, until: str | None) -> None:
    """From the start to before the end, over midnight and over a transition."""
    found = quiet_until(quiet, zone("Europe/Paris"), utc(at))
    assert found == (utc(until) if until else None)


@pytest.mark.parametrize(
    ("start", "end", "at", "until"),
    [
        # 02:00 to 03:00 does not exist on 29 March: both ends are 03:00, at 01:00Z
        ("22:00", "02:30", "2026-03-29T00:59", "2026-03-29T01:00"),
        ("22:00", "02:30", "2026-03-29T01:00", None),
        ("02:30", "04:00", "2026-03-29T01:00", "2026-03-29T02:00"),
        ("02:10", "02:50", "2026-03-29T01:00", None),
        # 02:00 to 03:00 happens twice on 25 October: from 00:00Z and from 01:00Z
        ("22:00", "02:30", "2026-10-25T00:40", "2026-10-25T01:30"),
        ("22:00", "02:30", "2026-10-25T01:30", None),
        ("02:30", "04:00", "2026-10-25T00:29", None),
        ("02:30", "04:00", "2026-10-25T00:30", "2026-10-25T03:00"),
        ("02:30", "04:00", "2026-10-25T01:10", "2026-10-25T03:00"),
    ],
)
def test_an_end_that_a_transition_skips_or_repeats(
    start: str, end: str, at: str, until: str | None
) -> None:
    """In doubt nobody is woken."""
    quiet = QuietHours(start=time.fromisoformat(start), end=time.fromisoformat(end))
    found = quiet_until(quiet, zone("Europe/Paris"), utc(at))
    assert found == (utc(until) if until else None)


def test_a_night_that_ends_on_a_day_that_never_was() -> None:
    """Apia went from 29 to 31 December 2011: the night of the 29th goes on in that of the 31st."""
    apia = zone("Pacific/Apia")
    before, after = utc("2011-12-30T09:00"), utc("2011-12-30T10:30")  # 23:00 on 29th, 00:30 on 31st
    assert wall_clock(before, apia)[0].isoformat() == "2011-12-29T23:00:00"
    assert wall_clock(after, apia)[0].isoformat() == "2011-12-31T00:30:00"
    assert quiet_until(NIGHT, apia, before) == utc("2011-12-30T17:00")
    assert quiet_until(NIGHT, apia, after) == utc("2011-12-30T17:00")


@pytest.mark.parametrize("name", sorted(zone_names())[::7])
def test_by_the_clock_on_the_wall(name: str) -> None:
    """Where no transition is near, quiet is what a clock there shows."""
    where = zone(name)
    at = utc("2026-06-15T00:07")
    for _ in range(48):
        shown = wall_clock(at, where)[0].time()
        found = quiet_until(NIGHT, where, at)
        assert (found is not None) == (shown >= NIGHT.start or shown < NIGHT.end)
        if found is not None:
            assert wall_clock(found, where)[0].time() == NIGHT.end
            assert at < found <= at + timedelta(hours=9)
            assert quiet_until(NIGHT, where, found) is None
        at += 30 * MINUTE

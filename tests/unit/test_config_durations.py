"""Durations as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reminders.config.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("30s", timedelta(seconds=30)),
        ("2m", timedelta(minutes=2)),
        ("1h30m", timedelta(minutes=90)),
        ("90d", timedelta(days=90)),
        ("2w", timedelta(weeks=2)),
        ("1.5s", timedelta(milliseconds=1500)),
        (" 0s ", timedelta(0)),
        ("PT30S", timedelta(seconds=30)),
        ("PT0.25S", timedelta(milliseconds=250)),
        ("P1DT2H", timedelta(days=1, hours=2)),
        ("p2w", timedelta(weeks=2)),
    ],
)
def test_both_spellings_are_read(text: str, expected: timedelta) -> None:
    """Units in short form, and ISO 8601."""
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "30", "1.5", "soon", "-5s", "5 s x", "P", "PT", "P1DT", "P1Y", "P1M", "5s3"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    """A bare number, an empty or open ISO duration, months without a length: all refused."""
    with pytest.raises(ValueError, match="such as 500ms, 30s"):
        parse_duration(text)


def test_a_bare_number_is_told_that_its_unit_is_missing() -> None:
    """The most likely mistake gets its own words."""
    with pytest.raises(ValueError, match="the unit is missing"):
        parse_duration("30")


def test_a_duration_beyond_timedelta_is_refused() -> None:
    """An overflow is a wrong value, not a crash."""
    with pytest.raises(ValueError, match="too long"):
        parse_duration("99999999999999d")


@given(st.integers(min_value=0, max_value=10**12))
def test_what_is_shown_reads_back_as_the_same(milliseconds: int) -> None:
    """`tocsin config` prints what may be put into the environment."""
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration

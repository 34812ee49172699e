"""Occurrence keys."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reminders.recurrence import (
    KeyInvalid,
    LocalIntent,
    instant_key,
    occurrence_key,
    parse_occurrence_key,
)

locals_in_ms = st.builds(
    lambda at, ms: at.replace(microsecond=ms * 1000),
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)),
    st.sampled_from([0, 0, 1, 250, 999]),
)


@pytest.mark.parametrize(
    ("local", "fold", "missing", "key"),
    [
        (datetime(2026, 12, 24, 9), 0, 0, "20261224T090000"),
        (datetime(2026, 12, 24, 9, 0, 0, 250_000), 0, 0, "20261224T090000.250"),
        (datetime(2026, 10, 25, 2, 30), 1, 0, "20261025T023000~1"),
        (datetime(2026, 2, 28, 9), 0, 2, "20260230T090000"),
        (datetime(33, 4, 3, 15), 0, 0, "00330403T150000"),
    ],
)
def test_a_key_is_the_local_intent(local: datetime, fold: int, missing: int, key: str) -> None:
    """30 February keeps the name that the rule gave it."""
    assert occurrence_key(local, fold, missing) == key
    assert parse_occurrence_key(key) == LocalIntent(
        local=local, second_pass=bool(fold), missing=missing
    )


@given(locals_in_ms)
def test_an_instant_is_another_intent_than_a_reading_of_clocks(local: datetime) -> None:
    """Its key differs from that of the same local time, and reads back."""
    key = instant_key(local.replace(tzinfo=UTC))
    assert key == occurrence_key(local) + "Z"
    assert parse_occurrence_key(key) == LocalIntent(local=local, absolute=True)
    with pytest.raises(KeyInvalid):
        instant_key(local)


@given(locals_in_ms, st.integers(0, 1))
def test_keys_read_back(local: datetime, fold: int) -> None:
    """The two functions are inverse."""
    key = occurrence_key(local, fold)
    assert key.isascii()
    assert parse_occurrence_key(key) == LocalIntent(local=local, second_pass=bool(fold))


@given(locals_in_ms, st.sampled_from([1, 250, 1000, 86_400_000]), st.integers(0, 1))
def test_keys_sort_by_local_time(local: datetime, later_ms: int, fold: int) -> None:
    """As text, so that a store can order them."""
    later = local + timedelta(milliseconds=later_ms)
    assert occurrence_key(local) < occurrence_key(later)
    assert occurrence_key(local) < occurrence_key(local, 1)
    assert occurrence_key(local, fold) < occurrence_key(later.replace(microsecond=0), fold) or (
        later.replace(microsecond=0) <= local
    )


@pytest.mark.parametrize(
    "key",
    [
        "",
        "20261224",
        "20261224T090000.000",
        "20261224T090000~0",
        "20261224T090000~2",
        "20261324T090000",
        "20261200T090000",
        "20260132T090000",
        "20261224T240000",
        "20261224T090000\n",
        "\N{FULLWIDTH DIGIT TWO}0261224T090000",
        "x" * 1000,
    ],
)
def test_what_is_no_key_is_refused(key: str) -> None:
    """Only the normal form is a key."""
    with pytest.raises(KeyInvalid):
        parse_occurrence_key(key)


@pytest.mark.parametrize(
    "local", [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 1)]
)
def test_a_key_is_not_made_of_an_instant_or_of_microseconds(local: datetime) -> None:
    """Both would round or move without saying so."""
    with pytest.raises(KeyInvalid):
        occurrence_key(local)

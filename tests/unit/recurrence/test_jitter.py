"""Spreading by jitter."""

import itertools
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from reminders.recurrence import jitter

AT = datetime(2026, 12, 24, 9, tzinfo=UTC)
WINDOW = timedelta(seconds=30)
gaps = st.none() | st.integers(1, 100_000).map(lambda ms: timedelta(milliseconds=ms))


def test_jitter_is_the_same_everywhere_and_forever() -> None:
    """A pinned value: another one would move what is already planned."""
    assert jitter("r1", "20261224T090000", WINDOW, instant=AT) == timedelta(milliseconds=-7197)


def test_jitter_differs_by_reminder_and_by_occurrence_and_fills_its_window() -> None:
    """Temporal's was the same for every schedule."""
    drawn = [jitter(f"r{n}", "20261224T090000", WINDOW, instant=AT) for n in range(2000)]
    drawn += [jitter("r1", f"{n}", WINDOW, instant=AT) for n in range(2000)]
    assert len(set(drawn)) > 3500
    assert min(drawn) < -WINDOW * 0.99
    assert max(drawn) > WINDOW * 0.99
    assert abs(sum(drawn, timedelta(0)) / len(drawn)) < timedelta(seconds=1)


@given(st.text(max_size=8), st.integers(0, 60_000), gaps, gaps)
def test_jitter_keeps_to_its_window_and_to_its_neighbours(
    reminder: str, window_ms: int, back: timedelta | None, ahead: timedelta | None
) -> None:
    """Whole milliseconds, never beyond the half-way to a neighbour."""
    window = timedelta(milliseconds=window_ms)
    moved = jitter(
        reminder,
        "key",
        window,
        instant=AT,
        previous=None if back is None else AT - back,
        following=None if ahead is None else AT + ahead,
    )
    assert -window <= moved <= window
    assert moved % timedelta(milliseconds=1) == timedelta(0)
    assert back is None or -moved < back / 2
    assert ahead is None or moved < ahead / 2


@given(st.lists(st.integers(1, 5_000), min_size=3, max_size=20), st.integers(0, 60_000))
def test_jittered_occurrences_stay_in_order(steps_ms: list[int], window_ms: int) -> None:
    """Each with its own neighbours, as the planner calls it."""
    instants = [AT]
    for step in steps_ms:
        instants.append(instants[-1] + timedelta(milliseconds=step))
    rings = [
        at
        + jitter(
            "r",
            str(n),
            timedelta(milliseconds=window_ms),
            instant=at,
            previous=instants[n - 1] if n else None,
            following=instants[n + 1] if n + 1 < len(instants) else None,
        )
        for n, at in enumerate(instants)
    ]
    assert all(one < other for one, other in itertools.pairwise(rings))


def test_no_window_is_no_jitter() -> None:
    """Nor is a negative one."""
    assert jitter("r", "k", timedelta(0), instant=AT) == timedelta(0)
    assert jitter("r", "k", -WINDOW, instant=AT) == timedelta(0)

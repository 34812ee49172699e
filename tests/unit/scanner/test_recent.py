"""What was done lately, in bounded memory."""

from datetime import timedelta

from reminders.clock import ManualClock
from scanner.recent import Recent

SPAN = timedelta(seconds=10)


def test_it_remembers_for_at_least_a_span_and_at_most_two() -> None:
    """Whenever within a turn it was told."""
    clock = ManualClock()
    recent = Recent(clock, SPAN)
    clock.advance(SPAN * 0.9)
    recent.add("a")
    clock.advance(SPAN)
    assert "a" in recent
    clock.advance(SPAN)
    assert "a" not in recent


def test_it_holds_no_more_than_what_came_in_two_spans() -> None:
    """Whether anybody asks or not."""
    clock = ManualClock()
    recent = Recent(clock, SPAN)
    for n in range(1000):
        recent.add(str(n))
        clock.advance(SPAN / 10)
    assert len(recent) <= 21


def test_after_a_long_silence_it_is_empty() -> None:
    """Nothing of before counts as lately."""
    clock = ManualClock()
    recent = Recent(clock, SPAN)
    recent.add("a")
    clock.advance(SPAN * 5)
    assert "a" not in recent
    assert len(recent) == 0

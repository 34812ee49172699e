"""The token bucket: no window ever holds one too many."""

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.bucket import Bucket, Rate

RATES = st.builds(
    Rate,
    per_s=st.sampled_from([0.1, 1 / 3, 1.0, 3.0, 7.0, 50.0, 999.0]),
    burst=st.integers(1, 20),
)
GAPS = st.lists(st.sampled_from([0.0, 0.0, 0.001, 0.05, 0.3, 1.0, 4.0, 60.0]), max_size=120)
MAX_WAIT_S = 2.0


def sends(rate: Rate, gaps: list[float]) -> list[float]:
    """When those go that came so far apart: now, after a wait, or (too long a wait) not at all."""
    bucket, now, times = Bucket(rate), 0.0, []
    for gap in gaps:
        now += gap
        if bucket.wait_s(now) <= MAX_WAIT_S:
            times.append(now + bucket.take(now))
    return times


@given(RATES, GAPS)
def test_no_window_holds_more_than_its_burst_and_its_rate(rate: Rate, gaps: list[float]) -> None:
    """Any two sends, with all between them."""
    times = sends(rate, gaps)
    assert times == sorted(times)
    for first in range(len(times)):
        for last in range(first, len(times)):
            window_s = times[last] - times[first]
            allowed = rate.burst + math.floor(window_s * rate.per_s + 1e-6)
            assert last - first + 1 <= allowed


@given(RATES, GAPS)
def test_who_is_told_a_time_finds_a_token_then(rate: Rate, gaps: list[float]) -> None:
    """Exactly then, if nobody comes in between; and not before."""
    bucket, now = Bucket(rate), 0.0
    for gap in gaps:
        now += gap
        bucket.take(now)
    wait_s = bucket.wait_s(now)
    assert bucket.come_back_s(now) == wait_s
    if wait_s > 0.001:
        assert bucket.wait_s(now + wait_s - 0.001) > 0
    assert bucket.wait_s(now + wait_s + 1e-6) == 0


def test_those_who_are_sent_away_come_back_one_after_the_other() -> None:
    """One interval apart: a thousand do not come for the one token."""
    bucket = Bucket(Rate(per_s=10.0, burst=2))
    for _ in range(2):
        assert bucket.take(0.0) == 0
    waits = [bucket.come_back_s(0.0) for _ in range(1000)]
    assert waits[0] == 0.1
    assert all(0.0999 < b - a < 0.1001 for a, b in pairwise(waits))


def test_a_full_rate_is_reached() -> None:
    """Whoever asks all the time gets all of it."""
    rate = Rate(per_s=50.0, burst=5)
    times = sends(rate, [0.001] * 10_000)
    assert 5 + 50 * 9 <= len(times) <= 5 + 50 * 10 + 50 * MAX_WAIT_S + 1

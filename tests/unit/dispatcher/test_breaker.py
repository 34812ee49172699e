"""The circuit breaker: leaves alone who is down, and never for good."""

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.breaker import Breaker, BreakerPolicy, BreakerState

POLICY = BreakerPolicy(failures=3, open_s=5.0, longest_s=60.0)


def opened() -> Breaker:
    """At 0."""
    breaker = Breaker(POLICY)
    assert [breaker.failed(0.0, probe=False) for _ in range(3)] == [False, False, True]
    return breaker


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    """An answer in between starts the count anew."""
    breaker = Breaker(POLICY)
    for _ in range(5):
        assert not breaker.failed(0.0, probe=False)
        assert not breaker.failed(0.0, probe=False)
        assert not breaker.answered()
    assert breaker.wait_s(0.0) == 0
    assert opened().state(0.0) is BreakerState.OPEN


def test_after_its_time_one_probe_at_a_time_goes_out() -> None:
    """The others stay away meanwhile."""
    breaker = opened()
    assert breaker.wait_s(1.0) == 4.0
    assert not breaker.begin(4.9)
    assert breaker.state(5.0) is BreakerState.HALF_OPEN
    assert breaker.wait_s(5.0) == 0
    assert breaker.begin(5.0)
    assert breaker.wait_s(5.1) > 0
    assert not breaker.begin(5.1)


def test_a_probe_that_fails_doubles_the_time_up_to_a_bound() -> None:
    """5, 10, 20, 40, 60, 60 s."""
    breaker, now, waits = opened(), 5.0, []
    for _ in range(6):
        assert breaker.begin(now)
        assert breaker.failed(now, probe=True)
        waits.append(breaker.until - now)
        now = breaker.until
    assert waits == [10.0, 20.0, 40.0, 60.0, 60.0, 60.0]


def test_an_answered_probe_closes_it_and_forgets() -> None:
    """The next time it begins at the shortest time again."""
    breaker = opened()
    breaker.begin(5.0)
    assert breaker.answered()
    assert breaker.state(5.0) is BreakerState.CLOSED
    for _ in range(3):
        breaker.failed(6.0, probe=False)
    assert breaker.until == 11.0


def test_a_probe_that_tells_nothing_lets_the_next_one_go() -> None:
    """It found its delivery cancelled, for instance."""
    breaker = opened()
    assert breaker.begin(5.0)
    breaker.untold(probe=True)
    assert breaker.wait_s(5.0) == 0
    assert breaker.begin(5.0)


def test_what_began_before_it_opened_does_not_prolong_it() -> None:
    """Sixty time-outs of one burst are one outage."""
    breaker = opened()
    for _ in range(60):
        assert not breaker.failed(1.0, probe=False)
    assert breaker.until == 5.0
    assert breaker.answered()


STEPS = st.lists(st.sampled_from(["up", "down", "nothing", "wait", "begin"]), max_size=80)


@given(STEPS, st.integers(1, 6))
def test_it_never_keeps_out_for_longer_than_its_bound(steps: list[str], failures: int) -> None:
    """Whatever happened: when all attempts have ended, one may begin within `longest_s`, and one
    that may not begin now is told a time after which it may.
    """
    breaker = Breaker(BreakerPolicy(failures=failures, open_s=5.0, longest_s=60.0))
    now, under_way = 0.0, []
    for step in steps:
        if step == "wait":
            now += 7.0
        elif step == "begin":
            if breaker.wait_s(now) == 0:
                under_way.append(breaker.begin(now))
        elif under_way:
            probe = under_way.pop(0)
            if step == "up":
                breaker.answered()
            elif step == "down":
                breaker.failed(now, probe=probe)
            else:
                breaker.untold(probe=probe)
        assert sum(under_way) <= 1 or breaker.state(now) is BreakerState.CLOSED
    for probe in under_way:
        breaker.untold(probe=probe)
    wait_s = breaker.wait_s(now)
    assert 0 <= wait_s <= 60.0
    assert breaker.wait_s(now + wait_s) == 0

"""The chaos suite's judge: it must find each kind of broken promise, and no other."""

from collections.abc import Sequence
from datetime import UTC, datetime

from reminders.delivery_key import delivery_key
from tests.chaos.receiver import Request
from tests.chaos.rules import CHANNEL, Duty, Expected, Trouble, Verdict, judge

DUE = datetime(2026, 12, 1, 9, tzinfo=UTC)
NAME = "20261201T090000Z"


def promise(duty: Duty = Duty.MUST, number: int = 1) -> Expected:
    """One occurrence, at DUE."""
    return Expected(
        number=number,
        reminder_id=f"r{number}",
        occurrences={NAME: DUE},
        duties={NAME: duty},
    )


def request(after_s: float, *, number: int = 1, key: str = "", name: str = NAME) -> Request:
    """So long after DUE, with the key that it should have."""
    return Request(
        at_s=DUE.timestamp() + after_s,
        key=key or delivery_key(f"r{number}", name, CHANNEL),
        reminder_id=f"r{number}",
        occurrence_id=name,
        fire_at="",
        attempt=1,
        number=number,
    )


def trouble(start_s: float, end_s: float, *, explains: bool = True) -> Trouble:
    """So long after DUE."""
    at = DUE.timestamp()
    return Trouble(what="fault", start_s=at + start_s, end_s=at + end_s, explains=explains)


def judged(
    expected: Sequence[Expected],
    *requests: Request,
    unanswered: Sequence[int] = (),
    troubles: Sequence[Trouble] = (),
) -> Verdict:
    """In short."""
    return judge(expected, unanswered, requests, troubles)


def test_a_kept_promise() -> None:
    """Its wait is measured from its time, or from when it was acknowledged."""
    verdict = judged([promise()], request(0.25))
    assert verdict.held
    assert (verdict.created, verdict.delivered) == (1, 1)
    assert verdict.worst_gap_s == 0.25
    late = promise()
    late.told_s = DUE.timestamp() + 5
    assert judged([late], request(5.5)).worst_gap_s == 0.5


def test_what_does_not_come_is_lost() -> None:
    """Whatever else came."""
    verdict = judged([promise(), promise(number=2)], request(0.1))
    assert len(verdict.lost) == 1
    assert "r2" in verdict.lost[0]
    assert not verdict.held


def test_nothing_may_be_early() -> None:
    """Not by a millisecond."""
    assert "early" in judged([promise()], request(-0.001)).broken[0]


def test_what_answered_not_fired_must_not_come() -> None:
    """Neither before the answer nor after; unanswered changes leave both open."""
    never = [promise(Duty.NEVER)]
    assert judged(never).held
    assert "not fired" in judged(never, request(0.1)).broken[0]
    assert judged([promise(Duty.MAY)]).held
    assert judged([promise(Duty.MAY)], request(0.1)).held


def test_what_nobody_planned_must_not_come() -> None:
    """Except what an unanswered create may have made."""
    assert "nobody planned" in judged([], request(0.1, number=7)).broken[0]
    assert judged([], request(0.1, number=7), unanswered=[7]).held
    other = request(0.1, name="20261201T100000Z")
    assert "nobody planned" in judged([promise()], request(0.1), other, unanswered=[1]).broken[0]


def test_one_occurrence_has_one_key() -> None:
    """Two are two deliveries to whoever deduplicates by them."""
    verdict = judged([promise()], request(0.1), request(0.2, key="another"))
    assert any("two keys" in each for each in verdict.broken)


def test_a_repeat_needs_a_fault_that_explains_it() -> None:
    """One that can cause repeats, before the repeat and not over long before the first."""
    both = request(0.1), request(8)
    assert len(judged([promise()], *both).unexplained) == 1
    assert judged([promise()], *both, troubles=[trouble(2, 3)]).explained == 1
    for useless in (
        trouble(2, 3, explains=False),
        trouble(9, 10),
        trouble(-60, -50),
    ):
        assert len(judged([promise()], *both, troubles=[useless]).unexplained) == 1


def test_recovery_ends_with_the_last_late_one() -> None:
    """Counted from the fault's begin; what was late before it does not count."""
    expected = [promise(number=n) for n in range(3)]
    arrivals = [request(0.1, number=0), request(4, number=1), request(1.5, number=2)]
    verdict = judged(expected, *arrivals, troubles=[trouble(1, 2)])
    assert verdict.recovery_s == 3
    assert verdict.worst_gap_s == 4

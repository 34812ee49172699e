"""What is done about a leg, given its ledger row."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.decision import OUTCOME_UNKNOWN, Action, crashes, decide, spent
from reminders.model.entry import Occurrence
from reminders.model.ledger import Attempt, DeliveryStatus, LedgerRow

AT = datetime(2026, 12, 1, 9, tzinfo=UTC)
LOCAL = AT.replace(tzinfo=None)


def row(status: DeliveryStatus, *error_classes: str, dropped: int = 0) -> LedgerRow:
    """With these attempts, after `dropped` ones that are not listed any more."""
    return LedgerRow(
        namespace="default",
        reminder_id="r1",
        reminder_version=1,
        occurrence=Occurrence(
            occurrence_id="o",
            nominal_local=LOCAL,
            planned_local=LOCAL,
            zone="UTC",
            planned_at=AT,
            fire_at=AT,
            zone_data="2026a",
        ),
        channel_id="hook",
        delivery=status,
        attempts=tuple(
            Attempt(number=number, started_at=AT, error_class=error_class)
            for number, error_class in enumerate(error_classes, start=dropped + 1)
        ),
        attempt_count=dropped + len(error_classes),
        next_attempt_at=AT + timedelta(seconds=2) if status is DeliveryStatus.RETRYING else None,
    )


RETRYING_1 = row(DeliveryStatus.RETRYING, "timeout")
SENDING_1 = row(DeliveryStatus.SENDING, OUTCOME_UNKNOWN)
RETRIED = row(DeliveryStatus.SENDING, "timeout", OUTCOME_UNKNOWN)
"""The first attempt failed; its retry is under way, or died."""
SENDING_4 = row(DeliveryStatus.SENDING, *[OUTCOME_UNKNOWN] * 4)


@pytest.mark.parametrize(
    ("known", "attempt", "again", "expected"),
    [
        # nothing known
        (None, 1, False, (Action.SEND, 1, None)),
        (None, 1, True, (Action.SEND, 2, 1)),
        (None, 3, False, (Action.SEND, 3, None)),
        # a retry whose time has come, the first time and again
        (RETRYING_1, 2, False, (Action.SEND, 2, None)),
        (RETRYING_1, 2, True, (Action.SEND, 3, 2)),
        # a job of an attempt that ended, while its retry is under way: that has a job of its own
        (RETRIED, 1, True, (Action.SUPPRESS, 2, None)),
        (RETRIED, 2, True, (Action.SEND, 4, 3)),
        # the job of an attempt that is on record: only its successor may be missing
        (RETRYING_1, 1, False, (Action.REQUEUE, 1, None)),
        (RETRYING_1, 1, True, (Action.REQUEUE, 1, None)),
        # somebody began and did not end
        (SENDING_1, 1, True, (Action.SEND, 3, 2)),
        (SENDING_1, 1, False, (Action.SEND, 3, 2)),
        (SENDING_4, 1, True, (Action.POISON, 5, 5)),
    ],
)
def test_the_row_and_the_job_decide(
    known: LedgerRow | None, attempt: int, again: bool, expected: tuple[Action, int, int | None]
) -> None:
    """(action, attempt, what is recorded as unknown)."""
    decision = decide(known, attempt, given_before=again, max_crashes=5)
    assert (decision.action, decision.attempt, decision.unknown) == expected


@given(st.sampled_from([s for s in DeliveryStatus if s.terminal]), st.integers(1, 9), st.booleans())
def test_what_ended_is_never_sent(status: DeliveryStatus, attempt: int, again: bool) -> None:
    """Whatever the job says."""
    known = row(status, "", "timeout")
    assert decide(known, attempt, given_before=again, max_crashes=5).action is Action.SUPPRESS


@given(
    st.none() | st.lists(st.sampled_from(["timeout", OUTCOME_UNKNOWN]), max_size=6),
    st.sampled_from([DeliveryStatus.SENDING, DeliveryStatus.RETRYING]),
    st.integers(1, 9),
    st.booleans(),
)
def test_a_send_has_a_number_that_was_never_used(
    classes: list[str] | None, status: DeliveryStatus, attempt: int, again: bool
) -> None:
    """Numbers grow by one with each attempt that may have been made."""
    known = None if classes is None else row(status, *classes)
    recorded = 0 if known is None else known.attempt_count
    decision = decide(known, attempt, given_before=again, max_crashes=99)
    if decision.action is Action.SEND:
        assert decision.attempt > recorded
        assert decision.unknown in (None, decision.attempt - 1)
        if again:
            assert decision.unknown is not None


def test_only_crashes_in_a_row_count_towards_poison() -> None:
    """An attempt that ended, however badly, shows that the process survives it."""
    assert crashes(None) == 0
    assert crashes(row(DeliveryStatus.RETRYING, *[OUTCOME_UNKNOWN] * 4, "timeout")) == 0
    assert crashes(row(DeliveryStatus.SENDING, "timeout", *[OUTCOME_UNKNOWN] * 2)) == 2


def test_attempts_without_an_outcome_are_not_spent() -> None:
    """Of those that are not listed any more, all count."""
    known = row(DeliveryStatus.RETRYING, "timeout", OUTCOME_UNKNOWN, "http_5xx", dropped=20)
    assert spent(known) == 22

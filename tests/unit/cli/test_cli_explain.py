"""`tocsin explain`: what support reads to a user."""

import json
from typing import Any

from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls


def explanation(answers: Any) -> calls.ExplainReminderResponse:
    """A failed attempt that may have arrived, then one that was taken."""
    occurrence = answers.claimed(pb.OCCURRENCE_STATUS_COMPLETED)
    answer = calls.ExplainReminderResponse(
        reminder=answers.stored(), next_action=calls.NextAction(owner="nobody", action="all done")
    )
    one = answer.occurrences.add(
        occurrence=occurrence, policy="gap_next_valid", explanation="fired: 1 delivery went well"
    )
    one.next_action.owner, one.next_action.action = "nobody", "it has ended"
    delivery = pb.Delivery(channel_id="hook", delivery_key="dlv_1", acknowledged=True)
    delivery.status = pb.DELIVERY_STATUS_CONFIRMED
    for number, error in enumerate(("timeout", ""), 1):
        attempt = delivery.attempts.add(number=number, error_class=error)
        attempt.start_time.FromJsonString(f"2026-12-01T09:00:0{number}Z")
        attempt.outcome_unknown = bool(error)
    one.deliveries.add(
        delivery=delivery,
        replay_safety=calls.REPLAY_SAFETY_ACKNOWLEDGED,
        replay_command="tocsin replay r o",
    )
    return answer


def test_it_tells_promise_reason_attempts_and_whether_a_replay_is_safe(
    scheduler: Any, tocsin: Any, answers: Any
) -> None:
    """One line for each attempt."""
    scheduler.answers["ExplainReminder"] = [explanation(answers)]
    ran = tocsin("explain", "rem_1", "--limit", "7")
    assert ran.code == 0, ran.err
    (request,) = scheduler.requests
    assert (request.reminder_id, request.occurrence_limit) == ("rem_1", 7)
    for text in (
        "gap_next_valid",
        "fired: 1 delivery went well",
        "hook: confirmed, acknowledged by the receiver, key dlv_1",
        "attempt 1 at 2026-12-01 09:00:01Z: timeout (may have arrived)",
        "attempt 2 at 2026-12-01 09:00:02Z: taken",
        "replay: acknowledged: tocsin replay r o",
        "next: all done",
    ):
        assert text in ran.out


def test_a_run_of_occurrences_says_how_many_it_stands_for(
    scheduler: Any, tocsin: Any, answers: Any
) -> None:
    """A pause of a rule every second is one row, not one occurrence."""
    answer = explanation(answers)
    answer.occurrences[0].explanation = "did not fire (skipped): the reminder was paused"
    run = answer.occurrences[0].occurrence
    run.skipped_count, run.skipped_through_local = 300, "2026-12-01T09:05:00"
    scheduler.answers["ExplainReminder"] = [answer]
    ran = tocsin("explain", "rem_1")
    assert "  300 skipped through 2026-12-01 09:05:00" in ran.out.splitlines()


def test_as_json_it_is_the_answer_itself(scheduler: Any, tocsin: Any, answers: Any) -> None:
    """For scripts."""
    scheduler.answers["ExplainReminder"] = [explanation(answers)]
    ran = tocsin("explain", "rem_1", "--json")
    found = json.loads(ran.out)
    assert found["occurrences"][0]["deliveries"][0]["replaySafety"] == "REPLAY_SAFETY_ACKNOWLEDGED"

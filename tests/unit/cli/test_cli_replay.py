"""`tocsin replay`, and the waits of `create --retry-schedule`."""

from typing import Any

import pytest
from tocsin.v1 import reminder_service_pb2 as calls


def answer() -> calls.ReplayOccurrenceResponse:
    """One is sent again, one was refused."""
    made = calls.ReplayOccurrenceResponse(replay_count=1, suppressed_count=1)
    made.deliveries.add(channel_id="a", verdict=calls.REPLAY_VERDICT_ACKNOWLEDGED)
    made.deliveries.add(
        channel_id="b", delivery_key="dlv_1", verdict=calls.REPLAY_VERDICT_SENT_AGAIN
    )
    return made


def test_it_says_what_is_sent_and_what_is_refused(scheduler: Any, tocsin: Any) -> None:
    """With the way to have it all the same."""
    scheduler.answers["ReplayOccurrence"] = [answer()]
    ran = tocsin("replay", "rem_1", "20261201T090000", "--channel", "a", "--channel", "b")
    assert ran.code == 0, ran.err
    (request,) = scheduler.requests
    assert (request.reminder_id, request.occurrence_id) == ("rem_1", "20261201T090000")
    assert list(request.channel_ids) == ["a", "b"]
    assert not request.force
    assert not request.validate_only
    for text in ("acknowledged", "sent again", "dlv_1", "1 of 2 will be sent again", "--force"):
        assert text in ran.out


REFUSED = {
    calls.REPLAY_VERDICT_ACKNOWLEDGED: "1: taken already: --force",
    calls.REPLAY_VERDICT_UNDER_WAY: "1: still being tried by itself",
    calls.REPLAY_VERDICT_CHANNEL_GONE: "1: the reminder has no such channel",
    calls.REPLAY_VERDICT_SUBSCRIBER_GONE: "1: the topic has no such subscriber",
}


@pytest.mark.parametrize("flags", [(), ("--json",), ("--dry-run",)])
@pytest.mark.parametrize("verdict", REFUSED)
def test_it_fails_where_nothing_is_sent(
    scheduler: Any, tocsin: Any, verdict: calls.ReplayVerdict.ValueType, flags: tuple[str, ...]
) -> None:
    """A script must not take it for done; the reason is named, and the answer is printed."""
    made = calls.ReplayOccurrenceResponse(suppressed_count=1)
    made.deliveries.add(channel_id="a", verdict=verdict)
    scheduler.answers["ReplayOccurrence"] = [made]
    ran = tocsin("replay", "r", "20261201T090000", *flags)
    assert ran.code == 1
    assert "a" in ran.out
    assert "nothing is sent again" in ran.err
    assert REFUSED[verdict] in ran.err


@pytest.mark.parametrize(("sent", "refused", "code"), [(0, 3, 1), (1, 3, 0), (0, 0, 0)])
def test_of_a_topic_the_counts_decide(
    scheduler: Any, tocsin: Any, sent: int, refused: int, code: int
) -> None:
    """There are no deliveries one by one."""
    made = calls.ReplayOccurrenceResponse(replay_count=sent, suppressed_count=refused)
    scheduler.answers["ReplayOccurrence"] = [made]
    ran = tocsin("replay", "r", "20261201T090000")
    assert ran.code == code
    assert ("3: taken already" in ran.err) == bool(code)


def test_a_dry_run_and_force_are_passed_on(scheduler: Any, tocsin: Any) -> None:
    """And nothing is promised."""
    scheduler.answers["ReplayOccurrence"] = [answer()]
    ran = tocsin("replay", "r", "20261201T090000", "--dry-run", "--force", "--request-id", "q")
    (request,) = scheduler.requests
    assert (request.validate_only, request.force, request.request_id) == (True, True, "q")
    assert "would be sent again" in ran.out


def test_a_retry_schedule_is_a_list_of_durations(scheduler: Any, tocsin: Any) -> None:
    """As in the configuration."""
    words = ("--user", "u", "--in", "5s", "--log", "--retry-schedule", "0s,5s,1h")
    ran = tocsin("create", *words)
    assert ran.code == 0, ran.err
    (request,) = scheduler.requests
    waits = [each.seconds for each in request.reminder.policies.retry.schedule]
    assert waits == [0, 5, 3600]

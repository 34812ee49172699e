"""What the command line shows of a fan-out: one line, never its deliveries."""

from collections.abc import Callable
from typing import Any

import pytest
from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls

from reminders.cli.progress import fanout_text


def told(**changes: Any) -> pb.FanOut:
    """Under way: 4,200 of 8,000."""
    values: dict[str, Any] = {
        "topic_id": "deploys",
        "subscriber_count": 8_000,
        "target_count": 4_200,
        "delivered_count": 4_100,
        "failed_count": 60,
        "open_count": 40,
        "filtered_count": 7,
        "rate_per_second": 812.4,
    }
    made = pb.FanOut(**(values | changes))
    made.start_time.FromJsonString("2026-12-01T09:00:00Z")
    made.count_time.FromJsonString("2026-12-01T09:00:05Z")
    if not made.finished:
        made.estimated_end_time.FromJsonString("2026-12-01T09:00:09.700Z")
    return made


def test_a_line_tells_counts_rate_and_end() -> None:
    """What there is none of is not said."""
    assert fanout_text(told()) == (
        "4,200 of about 8,000 told: 4,100 delivered, 60 failed, 40 under way, 7 filtered out; "
        "812 a second, until about 2026-12-01 09:00:09Z"
    )
    ended = told(finished=True, open_count=0, failed_count=0, filtered_count=0, target_count=4_100)
    assert fanout_text(ended) == "4,100 told: 4,100 delivered"
    stopped = told(finished=True, stop_reason="cancelled", open_count=0, filtered_count=0)
    assert fanout_text(stopped).endswith("60 failed; stopped: cancelled")
    assert fanout_text(pb.FanOut(topic_id="deploys")) == "telling the subscribers of deploys"


@pytest.fixture
def fired(answers: Any) -> Callable[..., calls.ListOccurrencesResponse]:
    """An occurrence of a topic's reminder."""

    def make(status: int, fan_out: pb.FanOut) -> calls.ListOccurrencesResponse:
        one = answers.claimed(status)
        one.fan_out.CopyFrom(fan_out)
        return calls.ListOccurrencesResponse(occurrences=[one])

    return make


def test_watch_follows_the_counts_to_the_end(
    scheduler: Any, answers: Any, tocsin: Callable[..., Any], fired: Any
) -> None:
    """Not the deliveries, of which there may be a million; it ends when the counts are final."""
    of_topic = answers.fired()
    of_topic.topic_id = "deploys"
    scheduler.answers["GetReminder"] = [of_topic]
    scheduler.answers["ListOccurrences"] = [
        fired(pb.OCCURRENCE_STATUS_CLAIMED, told()),
        fired(pb.OCCURRENCE_STATUS_COMPLETED, told(finished=True, open_count=0)),
    ]
    delivery = pb.Delivery(
        occurrence_id="20261224T090000",
        channel_id="webhook",
        subscriber_id="s1",
        status=pb.DELIVERY_STATUS_RETRYING,
    )
    scheduler.answers["ListDeliveries"] = [calls.ListDeliveriesResponse(deliveries=[delivery])]
    result = tocsin("watch", "r1", "--every", "1ms")
    assert result.code == 0
    assert "4,200 of about 8,000 told" in result.out
    assert "4,200 told: 4,100 delivered, 60 failed" in result.out
    assert "webhook:" not in result.out


def test_get_and_explain_show_it_as_well(
    scheduler: Any, answers: Any, tocsin: Callable[..., Any], fired: Any
) -> None:
    """A reminder of a topic, with the occurrence that is under way."""
    of_topic = answers.stored()
    of_topic.topic_id = "deploys"
    scheduler.answers["GetReminder"] = [of_topic]
    listed = fired(pb.OCCURRENCE_STATUS_CLAIMED, told())
    scheduler.answers["ListOccurrences"] = [listed]
    assert "20261224T090000  4,200 of about 8,000 told" in tocsin("get", "r1").out
    answer = calls.ExplainReminderResponse(reminder=of_topic)
    answer.occurrences.add(occurrence=listed.occurrences[0], explanation="fired")
    scheduler.answers["ExplainReminder"] = [answer]
    assert "progress: 4,200 of about 8,000 told" in tocsin("explain", "r1").out


def test_deliveries_are_asked_for_by_status_and_subscriber(
    scheduler: Any, tocsin: Callable[..., Any]
) -> None:
    """And a word that is none is wrong usage."""
    scheduler.answers["ListDeliveries"] = [calls.ListDeliveriesResponse()]
    words = ("--subscriber", "s1", "--status", "failed", "--status", "retrying")
    assert tocsin("deliveries", "r1", *words).code == 0
    (request,) = scheduler.requests
    assert request.subscriber_id == "s1"
    assert list(request.statuses) == [pb.DELIVERY_STATUS_FAILED, pb.DELIVERY_STATUS_RETRYING]
    wrong = tocsin("deliveries", "r1", "--status", "lost")
    assert wrong.code == 2
    assert "retrying" in wrong.err


def test_a_replay_to_all_says_how_many(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """And to some, which."""
    everybody = calls.ReplayOccurrenceResponse(replay_count=1_234, suppressed_count=6_766)
    scheduler.answers["ReplayOccurrence"] = [everybody]
    ran = tocsin("replay", "r1", "20261201T090000")
    assert "1,234 will be sent again, 6,766 have it already" in ran.out
    one = calls.ReplayOccurrenceResponse(replay_count=1)
    one.deliveries.add(
        channel_id="webhook", subscriber_id="s1", verdict=calls.REPLAY_VERDICT_SENT_AGAIN
    )
    scheduler.answers["ReplayOccurrence"] = [one]
    ran = tocsin("replay", "r1", "20261201T090000", "--subscriber", "s1")
    assert "webhook/s1" in ran.out
    assert list(scheduler.requests[-1].subscriber_ids) == ["s1"]

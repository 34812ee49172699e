"""Following a reminder until it has ended."""

import json
from collections.abc import Callable
from typing import Any

from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls


def rings(scheduler: Any, answers: Any) -> None:
    """A reminder that is planned, then under way, then delivered."""
    scheduler.answers["GetReminder"] = [answers.stored(), answers.fired()]
    scheduler.answers["ListOccurrences"] = [
        calls.ListOccurrencesResponse(occurrences=[each])
        for each in (
            answers.occurrence(),
            answers.claimed(pb.OCCURRENCE_STATUS_CLAIMED),
            answers.claimed(pb.OCCURRENCE_STATUS_COMPLETED),
        )
    ]
    scheduler.answers["ListDeliveries"] = [
        calls.ListDeliveriesResponse(),
        *(
            calls.ListDeliveriesResponse(
                deliveries=[
                    pb.Delivery(
                        occurrence_id="20261224T090000",
                        channel_id="log",
                        status=status,
                        attempt_count=1,
                    )
                ]
            )
            for status in (pb.DELIVERY_STATUS_SENDING, pb.DELIVERY_STATUS_DELIVERED)
        ),
    ]


def test_each_change_is_a_line_and_the_end_ends_it(
    scheduler: Any, answers: Any, tocsin: Callable[..., Any]
) -> None:
    """What did not change is not said twice, and it does not end while a delivery is under way."""
    rings(scheduler, answers)
    result = tocsin("watch", "r1", "--every", "1ms")
    assert result.code == 0
    said = [line.partition("  ")[2] for line in result.out.splitlines()]
    assert said == [
        "r1  scheduled, version 1, rings 2026-12-24 09:00:00 Europe/Paris  =  2026-12-24 08:00:00Z",
        "r1  fired, version 1",
        "r1  20261224T090000 claimed, claimed 12 ms after its time",
        "r1  20261224T090000 log: sending, attempt 1",
        "r1  20261224T090000 completed, claimed 12 ms after its time",
        "r1  20261224T090000 log: delivered, attempt 1",
    ]


def test_a_fired_reminder_without_its_ledger_is_not_over(
    scheduler: Any, answers: Any, tocsin: Callable[..., Any]
) -> None:
    """The record may be ahead of the ledger for a moment."""
    rings(scheduler, answers)
    scheduler.answers["GetReminder"] = [answers.fired()]
    scheduler.answers["ListOccurrences"].insert(0, calls.ListOccurrencesResponse())
    assert "log: delivered" in tocsin("watch", "r1", "--every", "1ms").out


def test_a_user_is_followed_by_all_pending_reminders(
    scheduler: Any, answers: Any, tocsin: Callable[..., Any]
) -> None:
    """Over all pages; as JSON a line for each change."""
    scheduler.answers["ListReminders"] = [
        calls.ListRemindersResponse(reminders=[answers.stored()], next_page_token="t1"),
        calls.ListRemindersResponse(reminders=[answers.stored(reminder_id="r2")]),
    ]
    cancelled = answers.stored(status=pb.REMINDER_STATUS_CANCELLED)
    scheduler.answers["GetReminder"] = [cancelled]
    scheduler.answers["ListOccurrences"] = [calls.ListOccurrencesResponse()]
    lines = tocsin("watch", "--user", "u1", "--every", "1ms", "--json").out.splitlines()
    assert [json.loads(line)["status"] for line in lines] == ["REMINDER_STATUS_CANCELLED"]
    asked = {each.reminder_id for each in scheduler.requests if hasattr(each, "reminder_id")}
    assert asked == {"r1", "r2"}


def test_one_of_reminder_and_user_is_needed(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """Neither and both are wrong usage."""
    assert tocsin("watch").code == 2
    assert tocsin("watch", "r1", "--user", "u1").code == 2


def test_nothing_pending_says_so(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """And ends."""
    scheduler.answers["ListReminders"] = [calls.ListRemindersResponse()]
    assert tocsin("watch", "--user", "u1").out == "u1 has no pending reminders\n"

"""The other requests: names, etags, pages, batches."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.errors import InvalidRequest, Violation
from reminders.model.definition import After
from scheduler.tokens import etag_of, seal
from scheduler.validation import Validator
from scheduler.validation.requests import not_under


def problems(error: InvalidRequest) -> dict[str, str]:
    """Reason by field."""
    return {one.field: one.reason for one in error.violations}


def test_a_keyed_create_after_its_time_has_the_content_of_the_one_in_time(
    validator: Validator, now: datetime, request_of: Callable[..., pb.CreateReminderRequest]
) -> None:
    """Its key is compared by that; with params too."""
    request = request_of()
    request.request_id = "q"
    request.reminder.params.update({"a": 1})
    in_time = validator.create(request, now)
    late = validator.create(request, now + timedelta(days=1))
    assert late.too_late
    assert late.definition == in_time.definition


def test_get_names_a_reminder(validator: Validator) -> None:
    """The namespace has a default, the id has none."""
    name = validator.get(pb.GetReminderRequest(reminder_id="r1"))
    assert (name.namespace, name.reminder_id) == ("default", "r1")
    with pytest.raises(InvalidRequest) as caught:
        validator.get(pb.GetReminderRequest(namespace="ä"))
    assert problems(caught.value) == {
        "reminder_id": "FIELD_REQUIRED",
        "namespace": "NAMESPACE_INVALID",
    }
    with pytest.raises(InvalidRequest) as caught:
        validator.get(pb.GetReminderRequest(reminder_id="r" * 41))
    assert problems(caught.value) == {"reminder_id": "FIELD_TOO_LONG"}


def test_etag_becomes_the_expected_version(validator: Validator) -> None:
    """Only the etag of this very reminder does."""
    request = pb.CancelReminderRequest(reminder_id="r1", etag=etag_of("r1", 7), request_id="q")
    asked = validator.cancel(request)
    assert (asked.expected_version, asked.request_id) == (7, "q")
    assert validator.cancel(pb.CancelReminderRequest(reminder_id="r1")).expected_version is None
    for wrong in ("7", "v7", etag_of("r2", 7), "v-7", "v٧", f"v{'9' * 30}-00000000"):
        with pytest.raises(InvalidRequest) as caught:
            validator.cancel(pb.CancelReminderRequest(reminder_id="r1", etag=wrong))
        assert problems(caught.value) == {"etag": "VALUE_INVALID"}


def test_reschedule_reads_the_schedule(validator: Validator, now: datetime) -> None:
    """With paths of its own request, and everything that is wrong at once."""
    request = pb.RescheduleReminderRequest(reminder_id="r1")
    request.schedule.after.seconds = 5
    asked = validator.reschedule(request, now)
    assert isinstance(asked.schedule, After)
    request.schedule.local.time_zone = "Nowhere"
    request.request_id = "x" * 129
    with pytest.raises(InvalidRequest) as caught:
        validator.reschedule(request, now)
    assert problems(caught.value) == {
        "schedule.local.time": "FIELD_REQUIRED",
        "schedule.local.time_zone": "ZONE_UNKNOWN",
        "request_id": "FIELD_TOO_LONG",
    }


def test_paths_lose_the_prefix_that_a_reschedule_lacks() -> None:
    """What the use case says about `reminder.schedule` is `schedule` there."""
    found = Violation(field="reminder.schedule", reason="NOTHING_AHEAD", description="d")
    moved = not_under("reminder.", InvalidRequest(violations=[found]))
    assert problems(moved) == {"schedule": "NOTHING_AHEAD"}


def test_pages_have_limits(validator: Validator) -> None:
    """A default, a largest size, and tokens that belong to one list."""
    request = pb.ListRemindersRequest(user_id="u1")
    assert validator.list_reminders(request)[2].limit == 50
    window = validator.list_reminders(pb.ListRemindersRequest(user_id="u1", page_size=1000))[2]
    assert (window.limit, window.position) == (1000, "")
    token = seal("here", *window.scope)
    again = validator.list_reminders(pb.ListRemindersRequest(user_id="u1", page_token=token))[2]
    assert again.position == "here"
    for wrong in (
        pb.ListRemindersRequest(user_id="u1", page_size=1001),
        pb.ListRemindersRequest(user_id="u1", page_size=-1),
        pb.ListRemindersRequest(user_id="u2", page_token=token),
        pb.ListRemindersRequest(user_id="u1", page_token=f"{token}A"),
        pb.ListRemindersRequest(user_id="u1", page_token="é"),
        pb.ListRemindersRequest(),
    ):
        with pytest.raises(InvalidRequest) as caught:
            validator.list_reminders(wrong)
        assert len(caught.value.violations) == 1


def test_ledger_lists_are_told_apart(validator: Validator) -> None:
    """A token of one list is refused by the other, and by another occurrence."""
    _, window = validator.list_occurrences(pb.ListOccurrencesRequest(reminder_id="r1"))
    token = seal("x", *window.scope)
    with pytest.raises(InvalidRequest):
        validator.list_deliveries(pb.ListDeliveriesRequest(reminder_id="r1", page_token=token))
    one = pb.ListDeliveriesRequest(reminder_id="r1", occurrence_id="20261224T090000")
    name, wanted, window = validator.list_deliveries(one)
    assert (name.reminder_id, wanted.occurrence_id) == ("r1", "20261224T090000")
    one.page_token = seal("x", *window.scope)
    assert validator.list_deliveries(one)[2].position == "x"
    one.occurrence_id = "20261225T090000"
    with pytest.raises(InvalidRequest):
        validator.list_deliveries(one)
    with pytest.raises(InvalidRequest) as caught:
        validator.list_deliveries(
            pb.ListDeliveriesRequest(reminder_id="r1", occurrence_id="christmas")
        )
    assert problems(caught.value) == {"occurrence_id": "VALUE_INVALID"}


@pytest.mark.parametrize(("count", "reason"), [(0, "FIELD_REQUIRED"), (501, "BATCH_TOO_LARGE")])
def test_batches_have_1_to_500(validator: Validator, count: int, reason: str) -> None:
    """Neither none nor more."""
    request = pb.BatchCreateRemindersRequest()
    for _ in range(count):
        request.requests.add()
    with pytest.raises(InvalidRequest) as caught:
        validator.batch(request)
    assert problems(caught.value) == {"requests": reason}


def test_full_batch_is_taken(validator: Validator) -> None:
    """500 are fine."""
    request = pb.BatchCreateRemindersRequest(requests=[pb.CreateReminderRequest()] * 500)
    validator.batch(request)
    assert len(request.requests) == 500

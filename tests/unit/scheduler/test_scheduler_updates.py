"""Updates: which fields a mask may name, and what comes of what is stored."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1.reminder_pb2 import (
    GAP_POLICY_NEXT_VALID,
    GAP_POLICY_SHIFT_FORWARD,
    GAP_POLICY_SKIP,
)

from reminders.errors import InvalidRequest, Violation
from reminders.model.definition import At, Definition, Policies, Retry
from reminders.recurrence import Gap
from scheduler.tokens import etag_of
from scheduler.updates import Edit
from scheduler.validation import Validator
from scheduler.validation.masks import PATHS
from scheduler.validation.reminders import REMINDER_BYTES

RequestOf = Callable[..., pb.CreateReminderRequest]


def update(*paths: str) -> pb.UpdateReminderRequest:
    """Of r1, nothing set but its name."""
    request = pb.UpdateReminderRequest()
    request.reminder.reminder_id = "r1"
    request.update_mask.paths.extend(paths)
    return request


@pytest.fixture
def stored(validator: Validator, request_of: RequestOf, now: datetime) -> Definition:
    """A reminder with something in every field."""
    request = request_of()
    reminder = request.reminder
    reminder.params.update({"a": 1})
    reminder.template_id = "t"
    reminder.labels["k"] = "v"
    reminder.group_id, reminder.dedup_key = "g", "d"
    reminder.policies.jitter.seconds = 5
    reminder.policies.retry.max_attempts = 3
    reminder.policies.gap = GAP_POLICY_SHIFT_FORWARD
    return validator.create(request, now).definition


@pytest.fixture
def edited(validator: Validator, now: datetime) -> Callable[..., Definition]:
    """What an update makes of a definition."""

    def edit(request: pb.UpdateReminderRequest, stored: Definition) -> Definition:
        paths = validator.update(request).paths
        return Edit(request.reminder, paths, now, validator)(stored)

    return edit


def refused(validator: Validator, request: Any) -> list[Violation]:
    """Why it is."""
    with pytest.raises(InvalidRequest) as caught:
        validator.update(request)
    return caught.value.violations


def test_the_name_etag_and_id_are_those_of_every_change(validator: Validator) -> None:
    """The name stands in the reminder."""
    request = update("labels")
    request.reminder.namespace = "ns"
    request.etag, request.request_id = etag_of("r1", 3), "q"
    call = validator.update(request).call
    assert (call.namespace, call.reminder_id, call.expected_version, call.request_id) == (
        "ns",
        "r1",
        3,
        "q",
    )
    request.reminder.reminder_id = ""
    request.reminder.namespace = "ä"
    assert [one.field for one in refused(validator, request)] == [
        "reminder.reminder_id",
        "reminder.namespace",
        "etag",
    ]


def test_an_empty_mask_is_refused(validator: Validator) -> None:
    """It says which fields there are."""
    (problem,) = refused(validator, update())
    assert (problem.field, problem.reason) == ("update_mask", "FIELD_REQUIRED")
    assert "template_id" in problem.description


@pytest.mark.parametrize(
    ("path", "reason", "why"),
    [
        ("group_id", "FIELD_IMMUTABLE", "fixed at creation"),
        ("dedup_key", "FIELD_IMMUTABLE", "fixed at creation"),
        ("reminder_id", "FIELD_IMMUTABLE", "never changed"),
        ("namespace", "FIELD_IMMUTABLE", "never changed"),
        ("status", "FIELD_IMMUTABLE", "pause and resume"),
        ("create_time", "FIELD_IMMUTABLE", "by the server"),
        ("topic_id", "FIELD_IMMUTABLE", "fixed at creation"),
        ("colour", "FIELD_UNKNOWN", "user_id, schedule"),
        ("*", "FIELD_UNKNOWN", "user_id, schedule"),
        ("policies.colour", "FIELD_UNKNOWN", "gap, overlap"),
        ("params.a", "FIELD_UNKNOWN", "as a whole"),
        ("schedule.at", "FIELD_UNKNOWN", "as a whole"),
    ],
)
def test_a_path_that_can_not_be_updated_is_named_with_the_reason(
    validator: Validator, path: str, reason: str, why: str
) -> None:
    """All of them at once, each with what would be right."""
    (problem,) = refused(validator, update("labels", path))
    assert (problem.field, problem.reason) == ("update_mask", reason)
    assert path in problem.description
    assert why in problem.description


def test_only_what_is_named_is_taken(stored: Definition, edited: Callable[..., Definition]) -> None:
    """The rest of the message is ignored."""
    request = update("template_id")
    request.reminder.template_id = "u"
    request.reminder.user_id = "somebody"
    request.reminder.policies.gap = GAP_POLICY_NEXT_VALID
    assert edited(request, stored) == replace(stored, template_id="u")


def test_a_single_policy_is_replaced(stored: Definition, edited: Callable[..., Definition]) -> None:
    """Its neighbours stay."""
    request = update("policies.gap", "policies.retry.max_attempts")
    request.reminder.policies.gap = GAP_POLICY_SKIP
    request.reminder.policies.retry.max_attempts = 7
    policies = replace(stored.policies, gap=Gap.SKIP, retry=Retry(max_attempts=7))
    assert edited(request, stored) == replace(stored, policies=policies)


def test_what_is_named_and_not_set_takes_its_default(
    stored: Definition, edited: Callable[..., Definition]
) -> None:
    """Also a policy where no other one is given."""
    request = update("policies.jitter", "policies.gap", "labels", "params", "template_id")
    policies = replace(stored.policies, jitter=timedelta(0), gap=Gap.NEXT_VALID)
    expected = replace(stored, policies=policies, labels=(), params_json="{}", template_id=None)
    assert edited(request, stored) == expected
    assert edited(update("policies"), stored) == replace(stored, policies=Policies())


def test_what_is_required_can_not_be_taken_away(
    stored: Definition, edited: Callable[..., Definition]
) -> None:
    """As a create without it."""
    with pytest.raises(InvalidRequest) as caught:
        edited(update("user_id", "schedule", "channels"), stored)
    assert {one.field: one.reason for one in caught.value.violations} == {
        "reminder.user_id": "FIELD_REQUIRED",
        "reminder.schedule": "FIELD_REQUIRED",
        "reminder.channels": "FIELD_REQUIRED",
    }


def test_the_whole_is_as_large_as_a_create_may_be(
    stored: Definition, edited: Callable[..., Definition]
) -> None:
    """What is stored counts."""
    request = update("params")
    request.reminder.params.update({"a": "x" * (REMINDER_BYTES - 100)})
    assert request.reminder.ByteSize() <= REMINDER_BYTES
    with pytest.raises(InvalidRequest) as caught:
        edited(request, stored)
    assert caught.value.reason == "PAYLOAD_TOO_LARGE"


def test_a_time_that_has_passed_since_is_no_obstacle_unless_it_is_named(
    stored: Definition, edited: Callable[..., Definition], now: datetime
) -> None:
    """It was right when it was given; as a new one it is not."""
    passed = replace(stored, schedule=At(instant=now - timedelta(hours=1)))
    request = update("template_id")
    request.reminder.template_id = "u"
    assert edited(request, passed) == replace(passed, template_id="u")
    request = update("schedule")
    request.reminder.schedule.at.FromDatetime(now - timedelta(hours=1))
    with pytest.raises(InvalidRequest) as caught:
        edited(request, passed)
    assert caught.value.reason == "TIME_IN_PAST"


def test_content_tells_one_update_from_another(validator: Validator, now: datetime) -> None:
    """By mask and named fields, in whatever order; what is not named does not count."""

    def content(*paths: str, **fields: str) -> bytes:
        request = update(*paths)
        for name, value in fields.items():
            setattr(request.reminder, name, value)
        paths = validator.update(request).paths
        return Edit(request.reminder, paths, now, validator).content

    assert content("user_id", "labels", user_id="a") == content(
        "labels", "user_id", user_id="a", template_id="t"
    )
    different = [
        content("user_id", user_id="a"),
        content("user_id", user_id="b"),
        content("user_id", "labels", user_id="a"),
        content("labels"),
    ]
    assert len(set(different)) == len(different)


def test_every_field_of_the_policies_can_be_named() -> None:
    """A new one is not forgotten."""
    assert {"policies.catch_up", "policies.expire_after", "policies.retry.max_age"} <= PATHS


def test_pause_takes_a_reason_of_some_length(validator: Validator) -> None:
    """512 bytes."""
    request = pb.PauseReminderRequest(reminder_id="r1", reason="x" * 512)
    assert validator.pause(request).name.reminder_id == "r1"
    request.reason += "x"
    with pytest.raises(InvalidRequest) as caught:
        validator.pause(request)
    assert [one.field for one in caught.value.violations] == ["reason"]


def test_a_topics_reminder_stays_with_its_topic(
    edited: Callable[..., Definition], stored: Definition
) -> None:
    """And that of a test send with its one subscriber, whatever else is changed."""
    topical = replace(stored, user_id="", topic_id="t", channels=(), only_subscriber="s1")
    request = update("labels")
    request.reminder.labels["k"] = "w"
    assert edited(request, topical) == replace(topical, labels=(("k", "w"),))
    request = update("user_id")
    request.reminder.user_id = "u2"
    with pytest.raises(InvalidRequest) as caught:
        edited(request, topical)
    (problem,) = caught.value.violations
    assert (problem.field, problem.reason) == ("update_mask", "FIELD_IMMUTABLE")
    request = update("channels")
    request.reminder.channels.add().log.SetInParent()
    with pytest.raises(InvalidRequest) as caught:
        edited(request, topical)
    assert [one.reason for one in caught.value.violations] == ["CHANNELS_FORBIDDEN"]

"""What a refusal says: the thing in the caller's own terms, and what would be right."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from tocsin.v1 import delivery_service_pb2 as deliveries
from tocsin.v1 import topic_service_pb2 as topics

from reminders.errors import KeyConflict, NotFound, RecipientNotFound
from reminders.lifecycle.problems import Problems
from reminders.lifecycle.request_limits import DEFAULT_REQUEST_LIMITS
from reminders.lifecycle.texts import check_ahead, read_time
from reminders.recurrence import KeyInvalid
from reminders.recurrence.identity import parse_occurrence_key
from scheduler.validation.deliveries import read_endpoint
from scheduler.validation.topics import read_overlap

NOW = datetime(2026, 12, 1, 9, 0, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (timedelta(seconds=60.001), "2026-12-01T08:59:00.122456Z was 0:01:01 ago; give"),
        (timedelta(days=29, hours=3), "2026-11-02T06:00:00.123456Z was 29 days, 3:00:00 ago; give"),
    ],
)
def test_how_long_ago_is_said_in_seconds(late: timedelta, said: str) -> None:
    """Rounded up: what is over the limit never looks as if it were not."""
    problems = Problems()
    check_ahead(NOW - late, NOW, "at", problems, DEFAULT_REQUEST_LIMITS)
    assert problems.found[0].description.startswith(said)


def test_a_time_is_shown_as_it_is_written() -> None:
    """Nine o'clock without its nought is within every range that could be named."""
    problems = Problems()
    read_time("9:00", "time", problems)
    assert "such as 09:00" in problems.found[0].description


def test_a_bound_is_named_in_the_unit_of_the_field() -> None:
    """As JSON spells durations."""
    problems = Problems()
    request = topics.RotateSecretRequest(overlap=Duration(seconds=30 * 86_400 + 1))
    read_overlap(request, problems)
    assert problems.found[0].description == "must be from 0s to 2592000s"


@pytest.mark.parametrize(
    "request_type",
    [
        deliveries.GetEndpointRequest,
        deliveries.EnableEndpointRequest,
        deliveries.DisableEndpointRequest,
    ],
)
@pytest.mark.parametrize(
    "name", ["example.com", "EP_" + "a" * 26, "ep_" + "a" * 25, "ep_x\n", "🙂"]
)
def test_what_is_no_endpoints_id_is_not_called_healthy(request_type: Any, name: str) -> None:
    """Nothing on record means healthy, so a slip of the hand must not be looked up."""
    problems = Problems()
    read_endpoint(request_type(endpoint_id=name), problems)
    assert [each.field for each in problems.found] == ["endpoint_id"]
    assert "ListEndpoints" in problems.found[0].description
    right = Problems()
    read_endpoint(request_type(endpoint_id="ep_" + "a2" * 13), right)
    assert not right.found


def test_what_is_no_occurrence_id_shows_one() -> None:
    """The word is that of the field."""
    with pytest.raises(KeyInvalid, match=r"'x' is no occurrence id such as 20261224T090000"):
        parse_occurrence_key("x")


def test_a_key_in_use_says_what_for_and_what_to_do() -> None:
    """A redrive is no reminder's."""
    said = str(KeyConflict(key="dedup_key", reminder_id="r1"))
    assert said == "dedup_key stands for other content of reminder 'r1'; take another one for this"
    assert "reminder" not in str(KeyConflict(key="request_id"))


def test_what_is_not_there_says_where_it_was_looked_for() -> None:
    """A namespace that was forgotten is the usual reason."""
    assert "namespace 'default'" in str(NotFound(reminder_id="r1", namespace="default"))
    assert "namespace 'default'" in str(RecipientNotFound(user_id="u1", namespace="default"))

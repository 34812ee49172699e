"""A reminder that is fine, and what is wrong with one that is not."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from tocsin.v1 import reminder_service_pb2 as service_pb

from reminders.errors import InvalidRequest, Violation
from scheduler.validation import Validator

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)

Change = Callable[[service_pb.CreateReminderRequest], None]


@pytest.fixture
def now() -> datetime:
    """What the clock says in these tests."""
    return NOW


@pytest.fixture
def validator() -> Validator:
    """As in production."""
    return Validator(allow_loopback_http=False)


@pytest.fixture
def request_of() -> Callable[..., service_pb.CreateReminderRequest]:
    """Makes a valid request with the changes given."""

    def make(*changes: Change) -> service_pb.CreateReminderRequest:
        request = service_pb.CreateReminderRequest()
        reminder = request.reminder
        reminder.user_id = "u1"
        reminder.schedule.at.FromDatetime(NOW + timedelta(hours=2))
        reminder.channels.add().webhook.url = "https://hooks.example.com/x"
        for change in changes:
            change(request)
        return request

    return make


@pytest.fixture
def violations_of(
    validator: Validator, request_of: Callable[..., service_pb.CreateReminderRequest]
) -> Callable[..., list[Violation]]:
    """What the validator says about a valid request after the changes given."""

    def violations(*changes: Change) -> list[Violation]:
        with pytest.raises(InvalidRequest) as caught:
            validator.create(request_of(*changes), NOW)
        return caught.value.violations

    return violations

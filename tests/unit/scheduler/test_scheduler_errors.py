"""The table of errors: complete, with details that fit into trailers, without internals."""

import inspect
from datetime import timedelta
from typing import TypeVar

import pytest
from google.protobuf.message import Message
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from reminders import errors as model
from reminders.errors import (
    AlreadyEnded,
    AlreadyFired,
    CoordinationUnavailable,
    InvalidRequest,
    KeyConflict,
    NotFound,
    NotReady,
    NotRecurring,
    ReminderPaused,
    StoreUnavailable,
    TocsinError,
    VersionMismatch,
    Violation,
)
from scheduler.admission import Draining, Overloaded
from scheduler.errors import answer_of, status_of

M = TypeVar("M", bound=Message)

ERRORS = [
    one
    for one in vars(model).values()
    if inspect.isclass(one)
    and issubclass(one, TocsinError)
    and one not in (TocsinError, model.Unexpected)
]


def details(status: Status, kind: type[M]) -> M | None:
    """The detail of a kind, if it is there."""
    for packed in status.details:
        found = kind()
        if packed.Unpack(found):
            return found
    return None


def info(error: TocsinError) -> tuple[str, dict[str, str]]:
    """Reason and metadata."""
    found = details(status_of(error), ErrorInfo)
    assert found is not None
    assert found.domain == "tocsin"
    return found.reason, dict(found.metadata)


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_is_in_the_table(kind: type[TocsinError]) -> None:
    """An error that is added to the model and forgotten here would be INTERNAL."""
    error = kind()
    answer = answer_of(error)
    assert answer.code not in (code_pb2.OK, code_pb2.INTERNAL, code_pb2.UNKNOWN)
    assert 400 <= answer.http < 600
    status = status_of(error)
    assert status.code == answer.code
    assert info(error)[0] == error.reason
    assert status.message


@pytest.mark.parametrize(
    ("error", "code", "http", "reason", "metadata"),
    [
        (
            NotFound(reminder_id="r"),
            code_pb2.NOT_FOUND,
            404,
            "REMINDER_NOT_FOUND",
            {"reminder_id": "r"},
        ),
        (
            KeyConflict(key="dedup_key", reminder_id="r"),
            code_pb2.ALREADY_EXISTS,
            409,
            "DEDUP_CONFLICT",
            {"key": "dedup_key", "reminder_id": "r"},
        ),
        (
            KeyConflict(key="request_id"),
            code_pb2.ALREADY_EXISTS,
            409,
            "REQUEST_ID_CONFLICT",
            {"key": "request_id", "reminder_id": ""},
        ),
        (
            VersionMismatch(actual=4),
            code_pb2.ABORTED,
            409,
            "VERSION_MISMATCH",
            {"actual_version": "4"},
        ),
        (
            AlreadyFired(reminder_id="r"),
            code_pb2.FAILED_PRECONDITION,
            409,
            "ALREADY_FIRED",
            {"reminder_id": "r"},
        ),
        (
            AlreadyEnded(status="cancelled"),
            code_pb2.FAILED_PRECONDITION,
            409,
            "ALREADY_ENDED",
            {"status": "cancelled"},
        ),
        (
            NotRecurring(reminder_id="r"),
            code_pb2.FAILED_PRECONDITION,
            409,
            "NOT_RECURRING",
            {"reminder_id": "r"},
        ),
        (
            ReminderPaused(reminder_id="r"),
            code_pb2.FAILED_PRECONDITION,
            409,
            "REMINDER_PAUSED",
            {"reminder_id": "r"},
        ),
        (StoreUnavailable(), code_pb2.UNAVAILABLE, 503, "STORE_UNAVAILABLE", {}),
        (CoordinationUnavailable(), code_pb2.UNAVAILABLE, 503, "COORDINATION_UNAVAILABLE", {}),
        (NotReady(), code_pb2.UNAVAILABLE, 503, "NOT_READY", {}),
        (Overloaded(), code_pb2.UNAVAILABLE, 503, "OVERLOADED", {}),
        (Draining(), code_pb2.UNAVAILABLE, 503, "SHUTTING_DOWN", {}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, TocsinError) else "",
)
def test_codes_and_reasons(
    error: TocsinError, code: int, http: int, reason: str, metadata: dict[str, str]
) -> None:
    """What clients may rely on."""
    assert (answer_of(error).code, answer_of(error).http) == (code, http)
    assert info(error) == (reason, metadata)


def test_unavailable_says_when_to_come_back_and_not_why() -> None:
    """RetryInfo, and no step of ours in the text."""
    error = StoreUnavailable(operation="records.create", retry_after=timedelta(milliseconds=1500))
    status = status_of(error)
    retry = details(status, RetryInfo)
    assert retry is not None
    assert retry.retry_delay.ToTimedelta() == timedelta(milliseconds=1500)
    assert "records" not in str(status)
    assert details(status_of(NotFound()), RetryInfo) is None


def test_violations_are_all_told() -> None:
    """Field, reason and description of each; the first one's reason stands for the whole."""
    violations = [
        Violation(field=f"f{number}", reason=f"R{number}", description=f"d{number}")
        for number in range(20)
    ]
    status = status_of(InvalidRequest(violations=violations))
    found = details(status, BadRequest)
    assert found is not None
    told = [(one.field, one.reason, one.description) for one in found.field_violations]
    assert told == [(f"f{n}", f"R{n}", f"d{n}") for n in range(20)]
    assert info(InvalidRequest(violations=violations))[0] == "R0"
    assert status.message == "f0: d0 (and 19 more)"


def test_very_many_violations_still_fit() -> None:
    """Clients refuse trailers over 8 KiB, and then would see nothing at all."""
    violations = [
        Violation(field="é" * 999, reason="VALUE_INVALID", description="ü" * 9_999)
        for _ in range(500)
    ]
    status = status_of(InvalidRequest(violations=violations))
    assert status.ByteSize() < 5_500
    found = details(status, BadRequest)
    assert found is not None
    shown = len(found.field_violations) - 1
    assert shown >= 1
    assert found.field_violations[-1].description == f"and {500 - shown} more violations"


def test_what_nobody_expected_tells_nothing() -> None:
    """Only the incident."""
    status = status_of(model.Unexpected(incident="abc123"))
    assert status.code == code_pb2.INTERNAL
    found = details(status, ErrorInfo)
    assert found is not None
    assert (found.reason, dict(found.metadata)) == ("INTERNAL", {"incident": "abc123"})
    assert status_of(TocsinError()).code == code_pb2.INTERNAL

"""One table: what each error of `reminders.errors` is on the wire.

Codes follow google.rpc.Code (AIP-193; AIP-154 for etags). Nothing here depends on gRPC, so an HTTP
edge can answer `status_of(error)` as JSON under `answer_of(error).http`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from reminders.errors import (
    AlreadyEnded,
    AlreadyFired,
    InvalidRequest,
    KeyConflict,
    NotFound,
    NotRecurring,
    RecipientNotFound,
    ReminderPaused,
    RotationUnderWay,
    SubscriberNotFound,
    TocsinError,
    Unavailable,
    Unexpected,
    VersionMismatch,
    Violation,
)
from scheduler.deadlines import DeadlineExceeded

DOMAIN = "tocsin"
DETAIL_BYTES = 3_584
"""Of violations in one status: it travels base64-coded in trailers, of which clients take 8 KiB."""
MESSAGE_CHARACTERS = 200
FIELD_CHARACTERS = 200
DESCRIPTION_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The two codes of a kind of error."""

    code: int
    """google.rpc.Code."""
    http: int


ANSWERS: Final[Mapping[type[TocsinError], Answer]] = {
    InvalidRequest: Answer(code=code_pb2.INVALID_ARGUMENT, http=400),
    NotFound: Answer(code=code_pb2.NOT_FOUND, http=404),
    RecipientNotFound: Answer(code=code_pb2.NOT_FOUND, http=404),
    SubscriberNotFound: Answer(code=code_pb2.NOT_FOUND, http=404),
    RotationUnderWay: Answer(code=code_pb2.FAILED_PRECONDITION, http=409),
    KeyConflict: Answer(code=code_pb2.ALREADY_EXISTS, http=409),
    VersionMismatch: Answer(code=code_pb2.ABORTED, http=409),
    AlreadyFired: Answer(code=code_pb2.FAILED_PRECONDITION, http=409),
    AlreadyEnded: Answer(code=code_pb2.FAILED_PRECONDITION, http=409),
    NotRecurring: Answer(code=code_pb2.FAILED_PRECONDITION, http=409),
    ReminderPaused: Answer(code=code_pb2.FAILED_PRECONDITION, http=409),
    DeadlineExceeded: Answer(code=code_pb2.DEADLINE_EXCEEDED, http=504),
    Unavailable: Answer(code=code_pb2.UNAVAILABLE, http=503),
    TocsinError: Answer(code=code_pb2.INTERNAL, http=500),
}
"""A subclass that is not named is answered as its nearest base."""


def answer_of(error: TocsinError) -> Answer:
    """The codes of an error."""
    return next(ANSWERS[kind] for kind in type(error).__mro__ if kind in ANSWERS)


def status_of(error: TocsinError) -> Status:
    """The error with all its details, as it goes to callers."""
    code = answer_of(error).code
    if code == code_pb2.INTERNAL:
        return _internal_status(error.incident if isinstance(error, Unexpected) else "")
    status = Status(code=code, message=_message(error))
    if isinstance(error, InvalidRequest):
        _pack(status, _bad_request(error.violations))
    _pack(status, ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=_metadata(error)))
    if isinstance(error, Unavailable):
        delay = Duration()
        delay.FromTimedelta(error.retry_after)
        _pack(status, RetryInfo(retry_delay=delay))
    return status


def _internal_status(incident: str) -> Status:
    """For what nobody expected: the id finds the log line, nothing else is told."""
    status = Status(
        code=code_pb2.INTERNAL,
        message=f"an internal error; it may or may not have taken effect; incident {incident}",
    )
    metadata = {"incident": incident}
    _pack(status, ErrorInfo(reason="INTERNAL", domain=DOMAIN, metadata=metadata))
    return status


def _message(error: TocsinError) -> str:
    if isinstance(error, Unavailable):  # its text names the step, which is for logs
        name = error.reason.lower().replace("_", " ")
        return f"{name} for now; repeating the same call is safe"
    if isinstance(error, InvalidRequest) and len(error.violations) > 1:
        first = f"{error.violations[0].field}: {error.violations[0].description}"
        return f"{_cut(first, MESSAGE_CHARACTERS)} (and {len(error.violations) - 1} more)"
    return _cut(str(error) or error.reason, MESSAGE_CHARACTERS)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _metadata(error: TocsinError) -> dict[str, str]:
    found: dict[str, str] = {}
    match error:
        case NotFound() | AlreadyFired() | NotRecurring() | ReminderPaused():
            found["reminder_id"] = error.reminder_id
        case RecipientNotFound():
            found["user_id"] = error.user_id
        case SubscriberNotFound():
            found["topic_id"], found["subscriber_id"] = error.topic_id, error.subscriber_id
        case RotationUnderWay() if error.until is not None:
            found["until"] = error.until.isoformat()
        case KeyConflict():
            found["key"], found["reminder_id"] = error.key, error.reminder_id
        case VersionMismatch():
            found["actual_version"] = str(error.actual)
        case AlreadyEnded():
            found["status"] = error.status
    return found


def _bad_request(violations: Sequence[Violation]) -> BadRequest:
    """All of them; of very many, as many as fit and a last one that says how many are left."""
    details = BadRequest()
    size = 0
    for position, one in enumerate(violations):
        field = _cut(one.field, FIELD_CHARACTERS)
        description = _cut(one.description, DESCRIPTION_CHARACTERS)
        size += len(field.encode()) + len(description.encode()) + len(one.reason) + 16
        if size > DETAIL_BYTES and position:
            details.field_violations.add(
                description=f"and {len(violations) - position} more violations"
            )
            break
        details.field_violations.add(field=field, description=description, reason=one.reason)
    return details


def _pack(status: Status, detail: BadRequest | ErrorInfo | RetryInfo) -> None:
    packed = AnyMessage()
    packed.Pack(detail)
    status.details.append(packed)

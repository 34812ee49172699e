"""The errors that callers can meet: fields, which the edges turn into status and details."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing that is wrong with a request."""

    field: str
    """Path in the request, such as `reminder.schedule.local.time_zone`."""
    reason: str
    """A stable word such as `ZONE_UNKNOWN`."""
    description: str
    """What is wrong and what would be right, for a person."""


@dataclass(eq=False)
class TocsinError(Exception):
    """Base of all. `reason` is stable and public."""

    reason = "INTERNAL"

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class InvalidRequest(TocsinError):
    """The request can't be taken; nothing changed. `violations` names everything that is wrong."""

    violations: list[Violation] = field(default_factory=list)

    @property
    def reason(self) -> str:  # type: ignore[override]
        """The first violation's, as the most specific word that fits."""
        return self.violations[0].reason if self.violations else "INVALID_REQUEST"

    def __str__(self) -> str:
        return "; ".join(f"{v.field}: {v.description}" for v in self.violations)


@dataclass(eq=False)
class Unexpected(TocsinError):
    """A bug of ours; it may or may not have taken effect."""

    incident: str = ""
    """Finds the line in the log that tells more; callers are told nothing else."""


@dataclass(eq=False)
class NotFound(TocsinError):
    """No such reminder in this namespace."""

    reason = "REMINDER_NOT_FOUND"
    reminder_id: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        return f"namespace {self.namespace!r} has no reminder {self.reminder_id!r}"


@dataclass(eq=False)
class RecipientNotFound(TocsinError):
    """This namespace has no record of the user."""

    reason = "RECIPIENT_NOT_FOUND"
    user_id: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        return f"namespace {self.namespace!r} has no recipient record of user {self.user_id!r}"


@dataclass(eq=False)
class SubscriberNotFound(TocsinError):
    """The topic has no such subscriber in this namespace."""

    reason = "SUBSCRIBER_NOT_FOUND"
    topic_id: str = ""
    subscriber_id: str = ""

    def __str__(self) -> str:
        return f"topic {self.topic_id!r} has no subscriber {self.subscriber_id!r}"


@dataclass(eq=False)
class RotationUnderWay(TocsinError):
    """Two secrets are valid already; nothing changed."""

    reason = "ROTATION_UNDER_WAY"
    until: datetime | None = None

    def __str__(self) -> str:
        until = self.until.isoformat() if self.until is not None else "a while ahead"
        return (
            f"the secret before the last is valid until {until}; rotate after that, or with an "
            "overlap of 0, which ends all others at once"
        )


@dataclass(eq=False)
class KeyConflict(TocsinError):
    """A dedup_key or request_id that stands for other content already."""

    key: str = ""
    """`dedup_key` or `request_id`."""
    reminder_id: str = ""

    @property
    def reason(self) -> str:  # type: ignore[override]
        """`DEDUP_CONFLICT` or `REQUEST_ID_CONFLICT`."""
        return "DEDUP_CONFLICT" if self.key == "dedup_key" else "REQUEST_ID_CONFLICT"

    def __str__(self) -> str:
        whose = f" of reminder {self.reminder_id!r}" if self.reminder_id else ""
        return f"{self.key} stands for other content{whose}; take another one for this"


@dataclass(eq=False)
class VersionMismatch(TocsinError):
    """The etag is not that of the stored version."""

    reason = "VERSION_MISMATCH"
    actual: int = 0
    what: str = "reminder"

    def __str__(self) -> str:
        return f"the {self.what} is at version {self.actual}: get it and decide again"


@dataclass(eq=False)
class AlreadyFired(TocsinError):
    """The occurrence was claimed before the change could be made; nothing changed."""

    reason = "ALREADY_FIRED"
    reminder_id: str = ""

    def __str__(self) -> str:
        return f"reminder {self.reminder_id!r} has fired already; create a new one"


@dataclass(eq=False)
class AlreadyEnded(TocsinError):
    """A cancelled or failed reminder can't be changed."""

    reason = "ALREADY_ENDED"
    status: str = ""

    def __str__(self) -> str:
        return f"the reminder is {self.status}; create a new one"


@dataclass(eq=False)
class NotRecurring(TocsinError):
    """Only a rule has occurrences to backfill."""

    reason = "NOT_RECURRING"
    reminder_id: str = ""

    def __str__(self) -> str:
        return f"reminder {self.reminder_id!r} has no rule: trigger it to have it ring once more"


@dataclass(eq=False)
class ReminderPaused(TocsinError):
    """It is silent until it is resumed."""

    reason = "REMINDER_PAUSED"
    reminder_id: str = ""

    def __str__(self) -> str:
        return f"reminder {self.reminder_id!r} is paused: resume it first"


@dataclass(eq=False)
class Unavailable(TocsinError):
    """For now it can't be done; repeating the same call is safe."""

    operation: str = ""
    """The step that failed, for logs."""
    retry_after: timedelta = timedelta(seconds=1)

    def __str__(self) -> str:
        return f"{self.reason.lower().replace('_', ' ')} during {self.operation}"


@dataclass(eq=False)
class StoreUnavailable(Unavailable):
    """Cassandra did not answer in time or lacks replicas."""

    reason = "STORE_UNAVAILABLE"


@dataclass(eq=False)
class CoordinationUnavailable(Unavailable):
    """Redis did not answer in time."""

    reason = "COORDINATION_UNAVAILABLE"


@dataclass(eq=False)
class NotReady(Unavailable):
    """This process must not act now, such as when its clock drifts."""

    reason = "NOT_READY"

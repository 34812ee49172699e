"""Collects what is wrong with what a caller asked for, and checks plain text."""

from collections.abc import Iterable
from enum import StrEnum

from reminders.errors import InvalidRequest, Violation


class Reason(StrEnum):
    """The stable words of field violations."""

    FIELD_REQUIRED = "FIELD_REQUIRED"
    FIELD_TOO_LONG = "FIELD_TOO_LONG"
    """Longer, or more items, than the limit."""
    FIELD_UNKNOWN = "FIELD_UNKNOWN"
    """In a mask: there is no such field."""
    FIELD_IMMUTABLE = "FIELD_IMMUTABLE"
    """In a mask: it can't be changed."""
    VALUE_INVALID = "VALUE_INVALID"
    NAMESPACE_INVALID = "NAMESPACE_INVALID"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    BATCH_TOO_LARGE = "BATCH_TOO_LARGE"
    ZONE_UNKNOWN = "ZONE_UNKNOWN"
    ZONE_IS_OFFSET = "ZONE_IS_OFFSET"
    TIME_IN_PAST = "TIME_IN_PAST"
    TIME_TOO_FAR = "TIME_TOO_FAR"
    TIME_AHEAD = "TIME_AHEAD"
    """Where only what is past makes sense."""
    RANGE_INVALID = "RANGE_INVALID"
    """Empty, or longer than the limit."""
    RULE_INVALID = "RULE_INVALID"
    RULE_TOO_FREQUENT = "RULE_TOO_FREQUENT"
    HOLIDAY_CALENDAR_UNKNOWN = "HOLIDAY_CALENDAR_UNKNOWN"
    URL_FORBIDDEN = "URL_FORBIDDEN"
    CHANNEL_UNAVAILABLE = "CHANNEL_UNAVAILABLE"
    CHANNELS_FORBIDDEN = "CHANNELS_FORBIDDEN"
    """Of a topic's reminder, whose subscribers have endpoints of their own."""
    SECRET_INVALID = "SECRET_INVALID"  # noqa: S105 - a word
    """Not in the form of a signing secret, or where none belongs."""
    SECRET_DIFFERS = "SECRET_DIFFERS"  # noqa: S105 - a word
    """Not the one that the subscriber has."""
    SECRET_UNKNOWN = "SECRET_UNKNOWN"  # noqa: S105 - a word
    """A signing secret's name that is not configured."""
    NO_ADDRESS = "NO_ADDRESS"
    """Nobody says where to."""
    ADDRESS_INVALID = "ADDRESS_INVALID"


class Problems:
    """The violations of one request, in the order of its fields."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[Violation] = []

    def add(self, field: str, reason: Reason, description: str) -> None:
        """Notes one."""
        self.found.append(Violation(field=field, reason=reason.value, description=description))

    def required(self, field: str, what: str) -> None:
        """Notes that a field is empty; `what` says what belongs there."""
        self.add(field, Reason.FIELD_REQUIRED, f"is required: {what}")

    def only(self, *reasons: Reason) -> bool:
        """Whether nothing else was found."""
        return all(violation.reason in reasons for violation in self.found)

    def raise_if_any(self) -> None:
        """Raises `InvalidRequest` with all of them."""
        if self.found:
            raise InvalidRequest(violations=self.found)


def check_length(value: str, limit: int, field: str, problems: Problems) -> None:
    """`limit` counts bytes of UTF-8."""
    size = len(value)
    if size > limit or (not value.isascii() and (size := len(value.encode())) > limit):
        problems.add(field, Reason.FIELD_TOO_LONG, f"has {size} bytes; at most {limit} are taken")


def optional(value: str, limit: int, field: str, problems: Problems) -> str | None:
    """A text whose absence means None."""
    if not value:
        return None
    check_length(value, limit, field, problems)
    return value


def shown(value: str, limit: int = 40) -> str:
    """What a caller sent, quoted and cut, for a description."""
    return repr(value if len(value) <= limit else f"{value[:limit]}…")


def check_count(count: int, limit: int, field: str, problems: Problems) -> None:
    """How many items a list or map holds."""
    if count > limit:
        problems.add(field, Reason.FIELD_TOO_LONG, f"has {count} items; at most {limit} are taken")


def one_of(names: Iterable[str]) -> str:
    """The choices, for a description."""
    return ", ".join(names)

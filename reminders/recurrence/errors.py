"""What can be wrong with a zone, a rule or a series. Fields, not prose; the edges map them.

Every error is a `RecurrenceError`: `part` names what is wrong (`time_zone`, `BYMONTH`,
`day-of-month`, `exdates`), `reason` says what is wrong with it and what would be right.
"""


class RecurrenceError(ValueError):
    """Base of all."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(part, reason)
        self.part = part
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.part}: {self.reason}"


class ZoneError(RecurrenceError):
    """A name that is no zone of ours. `suggestion` is a name that is, or None."""

    def __init__(self, name: str, reason: str, suggestion: str | None = None) -> None:
        hint = "" if suggestion is None else f"; did you mean {suggestion}?"
        super().__init__("time_zone", f"{name[:64]!r} {reason}{hint}")
        self.args = (name, reason, suggestion)  # so that it survives pickling
        self.name = name
        self.suggestion = suggestion


class ZoneUnknown(ZoneError):
    """No IANA zone has this name."""


class ZoneIsOffset(ZoneError):
    """A numeric offset or an abbreviation: it can't say when the place's clocks change."""


class RuleInvalid(RecurrenceError):
    """An RRULE that RFC 5545 forbids, that can never occur, or that we do not take."""


class CronInvalid(RuleInvalid):
    """A cron expression that we do not take."""


class RuleExhausted(RecurrenceError):
    """No occurrence was found within the bound of work; there may be one further on."""

    def __init__(self, part: str, steps: int) -> None:
        super().__init__(part, f"found no occurrence within {steps} steps of work")
        self.args = (part, steps)
        self.steps = steps


class HolidayCalendarUnknown(RecurrenceError):
    """Not the name of a country ("FR") or of one of its subdivisions ("US-CA")."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "holiday_calendar",
            f"{name[:64]!r} is neither a country such as FR nor a subdivision such as US-CA",
        )
        self.args = (name,)
        self.name = name


class SeriesInvalid(RecurrenceError):
    """The parts of a series do not fit together, or a local time is not naive."""


class KeyInvalid(RecurrenceError):
    """Not an occurrence key."""

"""What start-up checks say about a server."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """What to do about a finding."""

    REFUSE = "refuse"
    """Do not start: a guarantee would not hold."""
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be."""

    severity: Severity
    name: str
    """A stable word for logs."""
    remedy: str
    """What to change, for a person."""


def refuse(name: str, remedy: str) -> Finding:
    """A finding that forbids to start."""
    return Finding(severity=Severity.REFUSE, name=name, remedy=remedy)


def warn(name: str, remedy: str) -> Finding:
    """A finding to be logged."""
    return Finding(severity=Severity.WARNING, name=name, remedy=remedy)

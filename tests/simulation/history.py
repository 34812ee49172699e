"""What happened in a run, as a judge needs it: what was promised, answered, sent, claimed."""

from collections import defaultdict
from datetime import UTC, datetime

from msgspec import Struct

from reminders.model.entry import Occurrence
from reminders.model.record import OccurrenceAnswer, Record

BASE = datetime(2026, 3, 28, 23, 58, tzinfo=UTC)
"""When a run begins by the reference clock: shortly before a day ends."""


class Promise(Struct, frozen=True, kw_only=True):
    """A create that was acknowledged."""

    at_us: int
    name: str
    record: Record


class Answer(Struct, frozen=True, kw_only=True):
    """What a change answered to its caller."""

    at_us: int
    reminder_id: str
    action: str
    version: int
    applied: bool
    answers: tuple[OccurrenceAnswer, ...]


class Triggered(Struct, frozen=True, kw_only=True):
    """A trigger that was acknowledged."""

    reminder_id: str
    occurrence_id: str


class Refilled(Struct, frozen=True, kw_only=True):
    """A backfill that somebody asked for."""

    reminder_id: str
    asked_us: int
    start: datetime
    before: datetime | None
    """None: until it is asked for."""
    answered_us: int | None = None
    """None: nobody was told."""
    named: tuple[Occurrence, ...] = ()
    """What it said that it rings, in order; not all if these are many."""


class GroupEnd(Struct, frozen=True, kw_only=True):
    """A group that was cancelled."""

    asked_us: int
    answered_us: int | None
    """None: nobody was told."""
    cancelled_at: datetime | None = None
    """What was created up to then is void."""


class Edition(Struct, frozen=True, kw_only=True):
    """A version of a record as the store took it; by the world's eyes, not by anybody's answer."""

    at_us: int
    record: Record
    ended: bool
    """Whether the change that made it has ended with this."""


class Sending(Struct, kw_only=True):
    """One attempt at a receiver."""

    at_us: int
    at: datetime
    """By the reference clock, the latest that any server showed."""
    process: str
    key: str
    reminder_id: str
    occurrence_id: str
    fire_at: datetime
    channel_id: str
    target: str
    """The subscriber of a topic; empty for a user's."""
    attempt: int
    arrived: bool = False
    answered: int = 0
    """The status code that came back; 0: none."""
    given_us: int = 0
    """When the job was given to the process."""


class Trouble(Struct, frozen=True, kw_only=True):
    """A fault, while it lasted."""

    start_us: int
    end_us: int
    what: str
    process: str = ""
    """Empty: all of them."""


class Violation(Struct, frozen=True, kw_only=True):
    """A promise that was broken."""

    rule: str
    """A stable word."""
    at_us: int
    what: str
    reminder_id: str = ""

    def __str__(self) -> str:
        return f"{self.rule} at {self.at_us / 1e6:.3f} s: {self.what}"


class History:
    """The record of a run."""

    def __init__(self) -> None:
        self.promises: dict[str, Promise] = {}
        """By reminder id."""
        self.answers: list[Answer] = []
        self.subscribers: dict[str, tuple[str, ...]] = {}
        """Ids, by topic."""
        self.triggers: list[Triggered] = []
        self.asked_triggers: dict[str, int] = defaultdict(int)
        """So many were asked for, by reminder id."""
        self.triggered: dict[str, dict[str, Occurrence]] = defaultdict(dict)
        """What triggers wrote, acknowledged or not, by reminder and occurrence id."""
        self.backfills: list[Refilled] = []
        self.backfilled: dict[str, dict[str, Occurrence]] = defaultdict(dict)
        """What backfills wrote, in the same way."""
        self.walks_us: list[int] = []
        """When a walk that moves by newer zone data was through, with all processes having it."""
        self.group_ends: dict[str, GroupEnd] = {}
        self.editions: dict[str, list[Edition]] = defaultdict(list)
        """By reminder id, oldest first."""
        self.sendings: dict[str, list[Sending]] = defaultdict(list)
        """By delivery key."""
        self.troubles: list[Trouble] = []
        self.violations: list[Violation] = []
        """Those seen as they happened."""
        self.trace: list[str] | None = None
        """Every step in words, if asked for."""

    def tell(self, at_us: int, who: str, what: str) -> None:
        """A line of the trace."""
        if self.trace is not None:
            self.trace.append(f"{at_us / 1e6:11.6f} {who:14} {what}")

"""Where the parts of an entry are stored. Pure; the in-memory store follows the same rules."""

from msgspec.structs import replace

from reminders.model.entry import DueEntry, Kind, Origin

INLINE_BODY_LIMIT = 2048
"""Bytes. Bodies up to this stand in the due entry, so that firing needs one read; larger ones would
make a minute's partition too big (FACTS: 156,000 rows at one :00) and stand in the live entry."""


def body_by_reference(entry: DueEntry) -> bool:
    """Whether the body stands in the live entry. Only an occurrence has a live entry of its own
    id.
    """
    return entry.kind is Kind.OCCURRENCE and len(entry.body) > INLINE_BODY_LIMIT


def bare(entry: DueEntry) -> DueEntry:
    """Without its body."""
    return replace(entry, body=b"") if entry.body else entry


def due_form(entry: DueEntry) -> DueEntry:
    """As the due entry holds it. A backfilled one, a replay and a page of a fan-out are sent after
    a look at their record, which has what a large body is made of.
    """
    of_record = entry.kind in (Kind.BACKFILLED, Kind.REPLAY, Kind.FANOUT)
    large = of_record and len(entry.body) > INLINE_BODY_LIMIT
    return bare(entry) if large or body_by_reference(entry) else entry


def triggered(entry: DueEntry) -> bool:
    """Whether a live entry belongs to a trigger rather than to the schedule."""
    return entry.occurrence is not None and entry.occurrence.origin is Origin.TRIGGER

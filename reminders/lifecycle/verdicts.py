"""What the ledger's words mean for a person: why, who acts next, whether a replay is safe. Pure."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from reminders.lifecycle.requests import OccurrenceView
from reminders.model.entry import DueEntry, EntryState, Fate
from reminders.model.fanout import Fanout
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus

SCANNER, DISPATCHER, CALLER, NOBODY = "scanner", "dispatcher", "caller", "nobody"


class NextAction(Struct, frozen=True, kw_only=True):
    """Who acts next."""

    owner: str
    """A stable word: scanner, dispatcher, caller, nobody."""
    what: str
    """A sentence's end, for a person."""
    at: datetime | None = None
    """None: now, or never."""


ENDED = NextAction(owner=NOBODY, what="it has ended")
LOST = NextAction(owner=CALLER, what="replays it once what failed is mended, or leaves it")
_LOST = (DeliveryStatus.FAILED, DeliveryStatus.EXPIRED)


class Replay(StrEnum):
    """Whether sending a delivery again can do harm. The key is the same in every case."""

    SAFE = "safe"
    """Nobody can have taken it."""
    MAY_REPEAT = "may_repeat"
    """An attempt of unknown outcome may have been taken: safe where the receiver keeps to the key.
    """
    ACKNOWLEDGED = "acknowledged"
    """It was taken: sending again would repeat it."""
    UNDER_WAY = "under_way"
    """It is still being tried by itself."""


_REASONS = {
    "superseded": "its next occurrence was due as well, and only the latest missed one rings",
    "too_old": "it was missed for longer than catch_up_max_age",
    "paused": "the reminder was paused",
    "pause": "the reminder was paused before it was claimed",
    "cancelled": "the reminder or its group was cancelled",
    "cancel": "the reminder was cancelled before it was claimed",
    "rescheduled": "the reminder was rescheduled",
    "reschedule": "the reminder was rescheduled before it was claimed",
    "update": "the reminder was updated before it was claimed",
    "expired": "it could not ring until expire_after had passed",
    "attempts_exhausted": "every attempt that the retry policy allows has failed",
    "max_age": "no further attempt was possible within the retry policy's max_age",
    "poison": "it took dispatchers down again and again",
    "unreadable": "no process could read its due entry",
    "body_missing": "its content was gone when it was due",
    "outdated": "a change of the reminder ended it",
    "opted_out": "the user has opted out, in the recipient record or at the provider",
    "quiet_hours": "it fell into the user's quiet hours, whose rule is to drop",
    "no_address": "neither the channel nor the user's recipient record had an address",
    "endpoint_disabled": "its endpoint was disabled; `tocsin endpoints` shows why",
    "orphan": "its record was gone when it was due",
    "unsubscribed": "whom it was for had unsubscribed",
    "subscriber_paused": "whom it was for was paused",
    "no_subscribers": "the topic had no subscribers",
    "left_out": "every subscriber was paused, or left out by its filter",
}


def why(view: OccurrenceView, rows: Sequence[LedgerRow]) -> str:
    """Why it did or did not fire."""
    reason = _REASONS.get(view.reason, f"the receiver's answer was final: {view.reason}")
    if view.fanout is not None and view.fanout.counts.targets:
        return _fanout_why(view, view.fanout, reason)
    match view.status:
        case OccurrenceStatus.PLANNED:
            return "has not fired: it was not claimed yet"
        case OccurrenceStatus.CLAIMED:
            ended = sum(row.delivery is not None and row.delivery.terminal for row in rows)
            said = f"fired: {ended} of {len(rows)} deliveries have ended, the others are under way"
            until = [row.next_attempt_at for row in rows if row.next_attempt_at and _put_off(row)]
            if until:
                said += f"; the user's quiet hours put {len(until)} off, until {_instant(until)}"
            return said
        case OccurrenceStatus.COMPLETED:
            return f"fired: {_count(rows)} went well"
        case OccurrenceStatus.FAILED if rows:
            bad = [row for row in rows if not _taken(row)]
            return f"fired, but {_count(bad)} did not arrive: {reason}"
        case _:
            return (
                f"did not fire ({view.status.value}): {reason}"
                if not _sent(rows)
                else (f"fired and was given up ({view.status.value}): {reason}")
            )


def _fanout_why(view: OccurrenceView, fanout: Fanout, reason: str) -> str:
    """Of a topic's: counts, and what would send the failed ones again; never the deliveries."""
    counts = fanout.counts
    said = f"fired to {counts.targets} subscribers of {fanout.topic_id}: {counts.taken} delivered"
    others = {
        "failed": counts.failed,
        "stopped": counts.stopped,
        "under way": counts.open,
        "left out as paused": fanout.paused,
        "left out by their filter": fanout.filtered,
    }
    said += "".join(f", {count} {name}" for name, count in others.items() if count)
    if fanout.why:
        said += f"; the others were not told: {reason}"
    elif not fanout.finished and fanout.passed < fanout.subscribers:
        said += f"; about {fanout.subscribers - fanout.passed} are still to be told"
    if fanout.finished and counts.failed:
        command = f"tocsin replay {view.reminder_id} {view.occurrence.occurrence_id}"
        if view.namespace != "default":
            command += f" --namespace {view.namespace}"
        said += f"; `{command}` sends the failed ones again"
    return said


def next_of_fanout(fanout: Fanout, *, stops: bool) -> NextAction:
    """Of a topic's occurrence as a whole. `stops`: as in `next_of_delivery`."""
    if fanout.next_at is None:
        return LOST if fanout.counts.failed and not stops else ENDED
    what = "claims what is due of it, page by page and retry by retry, and has it counted again"
    return NextAction(owner=SCANNER, what=what, at=fanout.next_at)


def replay_of(row: LedgerRow) -> Replay:
    """By what is on record; the last 20 attempts of it."""
    if row.acknowledged or _taken(row):
        return Replay.ACKNOWLEDGED
    if row.delivery is not None and not row.delivery.terminal:
        return Replay.UNDER_WAY
    if any(one.outcome_unknown or one.error_class == "outcome_unknown" for one in row.attempts):
        return Replay.MAY_REPEAT
    return Replay.SAFE


def replay_command(row: LedgerRow, *, stops: bool) -> str:
    """What sends it again; empty while it is tried by itself. `stops`: only a forced one passes."""
    safety = replay_of(row)
    if safety is Replay.UNDER_WAY:
        return ""
    words = ["tocsin replay", row.reminder_id, row.occurrence.occurrence_id]
    words.append(f"--channel {row.channel_id}")
    if row.namespace != "default":
        words.append(f"--namespace {row.namespace}")
    if stops or safety is Replay.ACKNOWLEDGED:
        words.append("--force")
    return " ".join(words)


def next_of_delivery(row: LedgerRow, *, waits: bool, stops: bool, now: datetime) -> NextAction:
    """`waits`: the entry of its next attempt is on disk; `stops`: its record says cancelled or
    paused.
    """
    if row.delivery is None or row.delivery.terminal:
        return LOST if row.delivery in _LOST and not stops else ENDED
    if row.delivery is DeliveryStatus.SENDING or row.next_attempt_at is None:
        what = "puts the attempt under way on record, or whoever takes its job over does"
        return NextAction(owner=DISPATCHER, what=what)
    if not waits:
        return NextAction(owner=DISPATCHER, what="writes the entry of the next attempt")
    number = row.attempt_count + 1
    if stops:
        what = f"claims attempt {number}, which ends unsent"
    elif row.next_attempt_at <= now:
        what = f"claims attempt {number}, unless a dispatcher has it already"
    elif _put_off(row):
        what = f"claims attempt {number} when the user's quiet hours end"
    else:
        what = f"claims attempt {number}, which the dispatcher sends"
    return NextAction(owner=SCANNER, what=what, at=row.next_attempt_at)


def next_of_planned(entry: DueEntry, state: EntryState | None, now: datetime) -> NextAction:
    """Of one that the ledger does not know. `state`: its due entry, if it is on disk."""
    at = entry.key.ring_at
    if state is None:
        return NextAction(owner=CALLER, what="repeats the call that has not answered yet", at=at)
    if state.handled_at is not None:
        return NextAction(owner=NOBODY, what="it has ended without a delivery")
    if state.fate is Fate.VOID:
        return NextAction(owner=SCANNER, what="closes it: a change made it void", at=at)
    if at > now:
        return NextAction(owner=SCANNER, what="claims it at its time", at=at)
    what = "claims it, unless a dispatcher is sending it: its time has come"
    return NextAction(owner=SCANNER, what=what, at=at)


def _put_off(row: LedgerRow) -> bool:
    return row.reason == "quiet_hours" and row.next_attempt_at is not None


def _instant(some: Sequence[datetime]) -> str:
    """The first of them, in UTC."""
    return f"{min(some):%Y-%m-%d %H:%M:%SZ}"


def _taken(row: LedgerRow) -> bool:
    return row.delivery in (DeliveryStatus.DELIVERED, DeliveryStatus.CONFIRMED)


def _sent(rows: Sequence[LedgerRow]) -> bool:
    return any(row.attempt_count for row in rows)


def _count(rows: Sequence[LedgerRow]) -> str:
    return "1 delivery" if len(rows) == 1 else f"{len(rows)} deliveries"

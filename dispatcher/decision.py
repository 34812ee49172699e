"""What to do about one leg (one channel of an occurrence), given what the ledger knows. Pure.

    ledger row ─▶ ended ───────────────────────────────▶ SUPPRESS   somebody did it
                  sending, and what the job was for
                  has ended before ────────────────────▶ SUPPRESS   the retry has a job of its own
                  this attempt is recorded, retrying ──▶ REQUEUE    write the retry's entry again
                  it is parked or put off, and this is
                  the job before that ─────────────────▶ REQUEUE    write the waiting entry again
                  an attempt began and may have ended
                  unseen, too often in a row ──────────▶ POISON     it takes processes down
                  … otherwise ─────────────────────────▶ SEND       after `unknown` is on record
                  nothing of the kind ─────────────────▶ SEND
                  ended, and the job is a replay ──────▶ as if it had not

An attempt began unseen if the row says `sending`, or if the job was given to somebody before (or
may have been: `recheck`) and the row lacks the attempt it is for. Such attempts are numbered like
others, but do not use up `retry.max_attempts`: nobody knows whether they reached anybody.
"""

from enum import Enum

from msgspec import Struct

from reminders.model.entry import Replay
from reminders.model.ledger import DeliveryStatus, LedgerRow

OUTCOME_UNKNOWN = "outcome_unknown"


class Action(Enum):
    """What to do."""

    SEND = "send"
    SUPPRESS = "suppress"
    REQUEUE = "requeue"
    POISON = "poison"


class Decision(Struct, frozen=True, kw_only=True, gc=False):
    """What to do, and the number of the attempt that it is about."""

    action: Action
    attempt: int
    """SEND: the number of this attempt."""
    unknown: int | None = None
    """SEND, POISON: the attempt to record as `outcome_unknown`."""


def decide(
    row: LedgerRow | None,
    attempt: int,
    *,
    given_before: bool,
    max_crashes: int,
    replay: Replay | None = None,
    parked: int = 0,
) -> Decision:
    """`attempt` is the one that the job is for, `parked` how often it was parked or put off;
    `given_before`: redelivered, or to be rechecked. A `replay` goes on where a delivery had ended,
    unless it was taken since or its attempt made.
    """
    recorded = row.attempt_count if row is not None else 0
    upcoming = max(attempt, recorded + 1)
    sending = False
    if row is not None and row.delivery is not None:
        if row.delivery.terminal and not _resent(row, attempt, replay):
            return Decision(action=Action.SUPPRESS, attempt=recorded)
        sending = row.delivery is DeliveryStatus.SENDING
        if sending and _ended(row, attempt):
            return Decision(action=Action.SUPPRESS, attempt=recorded)
        if _awaits_another(row, attempt, parked):
            return Decision(action=Action.REQUEUE, attempt=recorded)
    if not sending and not given_before:
        return Decision(action=Action.SEND, attempt=upcoming)
    since = replay.after if replay is not None else 0
    if crashes(row, since) + 1 >= max_crashes:
        return Decision(action=Action.POISON, attempt=upcoming, unknown=upcoming)
    return Decision(action=Action.SEND, attempt=upcoming + 1, unknown=upcoming)


def _awaits_another(row: LedgerRow, attempt: int, parked: int) -> bool:
    """Whether what is on record comes after this job: a later attempt, or the same put off."""
    retrying = row.delivery is DeliveryStatus.RETRYING and row.attempt_count >= attempt
    put_off = row.parked > 0 and (attempt, parked) < (row.attempt_count + 1, row.parked)
    return retrying or put_off


def _resent(row: LedgerRow, attempt: int, replay: Replay | None) -> bool:
    if replay is None or row.attempt_count >= attempt:
        return False
    return replay.forced or not row.taken


def _ended(row: LedgerRow, attempt: int) -> bool:
    """Whether that attempt, or one that repeated it, ended. What began since is a retry."""
    return any(
        each.number >= attempt and each.error_class != OUTCOME_UNKNOWN for each in row.attempts
    )


def crashes(row: LedgerRow | None, since: int = 0) -> int:
    """How many of the last attempts after the `since`-th, in a row, began and never ended."""
    count = 0
    for attempt in reversed(row.attempts if row is not None else ()):
        if attempt.error_class != OUTCOME_UNKNOWN or attempt.number <= since:
            break
        count += 1
    return count


def spent(row: LedgerRow, since: int = 0) -> int:
    """Attempts that count towards `retry.max_attempts`: those after the `since`-th with an outcome.

    Exact for the attempts that the row still lists.
    """
    unknown = sum(a.error_class == OUTCOME_UNKNOWN and a.number > since for a in row.attempts)
    return row.attempt_count - since - unknown

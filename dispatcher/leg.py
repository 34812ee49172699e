"""One leg: one channel of an occurrence, from a place at its destination to what is to be recorded.

place? ── no ──▶ parked entry
  │
ledger, record     (not for a first send that nobody can have begun)
  │   └─▶ done already: nothing; cancelled, expired, poison ─▶ LegEnd
"attempt n: outcome unknown" ─▶ ledger     (only where it may be a repeat)
  │
send ─▶ LegEnd: the ledger row, and the retry's entry after a transient failure (`settler`)
"""

import time
from datetime import datetime

import structlog
from msgspec import Struct

from dispatcher import rows
from dispatcher.channels import Outcome, Outgoing, Result, Senders, kind_of
from dispatcher.decision import Action, decide, spent
from dispatcher.destinations import Destinations
from dispatcher.facts import Event, fact
from dispatcher.gate import RecordGate
from dispatcher.insistence import Insistence
from dispatcher.requeue import Requeue
from dispatcher.retry import refusal
from dispatcher.settings import DispatcherSettings
from dispatcher.settler import LegEnd
from dispatcher.telemetry import Reporter
from dispatcher.work import LegWork
from reminders.model.entry import Kind, Origin
from reminders.model.ledger import LedgerRow
from reminders.platform import Platform

log = structlog.get_logger()


class Cleared(Struct, frozen=True, kw_only=True):
    """Leave to send."""

    row: LedgerRow
    attempt: int
    written_at: datetime | None = None
    """When the row was written last, if it was."""


class LegRunner:
    """Brings legs to their end, or to their next due entry."""

    def __init__(
        self,
        platform: Platform,
        settings: DispatcherSettings,
        senders: Senders,
        gate: RecordGate,
        destinations: Destinations,
        reporter: Reporter,
    ) -> None:
        self._clock = platform.clock
        self._ledger = platform.store.ledger
        self._max_crashes = settings.max_crashes
        self._schedule = settings.retry_schedule
        self._senders = senders
        self._gate = gate
        self._destinations = destinations
        self._reporter = reporter
        self._requeue = Requeue(platform, settings)
        self._insist = Insistence(platform.clock)

    async def run(self, leg: LegWork) -> LegEnd | None:
        """Its end, to be put on record; None: what there is to say is on record already."""
        sender = self._senders.get(kind_of(leg.channel))
        destination = sender.destination(leg.channel) if sender is not None else ""
        if not await self._destinations.enter(destination):
            await self._insist(self._requeue.park, leg)
            self._report(Event.PARKED, leg, row=None, attempt=leg.attempt)
            return None
        entered = time.monotonic()
        try:
            cleared = await self._clearance(leg)
            if not isinstance(cleared, Cleared):
                return cleared
            started_at = self._clock.now()
            result = await self._send(leg, cleared.attempt)
            ended_at = self._clock.now()
        finally:
            self._destinations.leave(destination, time.monotonic() - entered)
        if result.outcome is not Outcome.OK and await self._overtaken(leg, cleared.attempt):
            return None
        return self._attempted(leg, cleared, (started_at, ended_at), result)

    # --- before -----------------------------------------------------------------------------------

    async def _clearance(self, leg: LegWork) -> Cleared | LegEnd | None:
        """Leave to send, or how it ended without."""
        work = leg.work
        row: LedgerRow | None = None
        if not work.first_hand:
            row = await self._insist(
                self._ledger.read,
                work.entry.reminder_id,
                work.occurrence.occurrence_id,
                leg.channel.channel_id,
                leg.target,
            )
        decision = decide(
            row,
            leg.attempt,
            given_before=work.given_before,
            max_crashes=self._max_crashes,
            replay=leg.replay,
        )
        if decision.action is Action.SUPPRESS:
            self._report(Event.SUPPRESSED, leg, row=row, attempt=decision.attempt)
            return None
        if decision.action is Action.REQUEUE:
            await self._requeued(leg, row)
            return None
        known = row if row is not None else rows.blank(leg)
        reason = await self._objection(leg, known)
        if reason is not None:
            return self._ended(leg, known, reason, Event.ENDED)
        if decision.unknown is None:
            return Cleared(row=known, attempt=decision.attempt)
        at = self._clock.now()
        known = rows.unknown(leg, known, decision.unknown, at)
        if decision.action is Action.POISON:
            return self._ended(leg, known, "poison", Event.POISONED)
        await self._insist(self._ledger.write, [known], at=at)
        self._report(Event.OUTCOME_UNKNOWN, leg, row=known, attempt=decision.unknown)
        return Cleared(row=known, attempt=decision.attempt, written_at=at)

    async def _objection(self, leg: LegWork, row: LedgerRow) -> str | None:
        """Why it is not sent any more."""
        work = leg.work
        reason = refusal(
            work.body,
            work.occurrence,
            spent(row, leg.before),
            self._clock.now(),
            claimed_at=row.claimed_at,
            replay=leg.replay,
        )
        if reason is None and work.entry.kind is not Kind.OCCURRENCE:
            reason = await self._insist(self._gate.objection, work.entry)
        return reason

    def _ended(self, leg: LegWork, row: LedgerRow, reason: str, event: Event) -> LegEnd | None:
        if leg.replay is not None and row.delivery is not None and row.delivery.terminal:
            # It was not sent, so the delivery stands as it had ended.
            self._report(event, leg, row=row, attempt=row.attempt_count)
            return None
        row = rows.given_up(leg, row, reason)
        now = self._clock.now()
        said = fact(event, leg, now, row=row, attempt=row.attempt_count)
        if leg.work.occurrence.origin is Origin.BACKFILL and not row.attempts:
            self._reporter.report([said])  # no row: another backfill may ring it
            return None
        return LegEnd(leg=leg, row=row, fact=said, ended_at=now)

    async def _requeued(self, leg: LegWork, row: LedgerRow | None) -> None:
        """The attempt is on record, but perhaps not the entry of the next one."""
        if row is not None and row.next_attempt_at is not None:
            await self._insist(self._requeue.retry, leg, row.attempt_count + 1, row.next_attempt_at)
            self._report(Event.REQUEUED, leg, row=row, attempt=row.attempt_count)

    # --- sending and after ------------------------------------------------------------------------

    async def _send(self, leg: LegWork, attempt: int) -> Result:
        sender = self._senders.get(kind_of(leg.channel))
        if sender is None:
            return Result(outcome=Outcome.PERMANENT, error_class="channel_unavailable")
        work = leg.work
        outgoing = Outgoing(
            delivery_key=leg.delivery_key,
            channel=leg.channel,
            namespace=work.entry.namespace,
            reminder_id=work.entry.reminder_id,
            occurrence=work.occurrence,
            attempt=attempt,
            user_id=work.body.user_id,
            template_id=leg.channel.template_id or work.body.template_id,
            params_json=work.body.params_json,
            replay=leg.replay is not None,
        )
        try:
            return await sender.send(outgoing)
        except Exception:  # one channel's bug must not keep the others from being settled
            log.exception("channel.failed", delivery_key=leg.delivery_key)
            return Result(outcome=Outcome.TRANSIENT, error_class="internal")

    async def _overtaken(self, leg: LegWork, attempt: int) -> bool:
        """Whether another run of this delivery, begun because this one seemed dead, got further.

        A failure that ends late must not replace a success, nor have anything sent again.
        """
        entry, occurrence_id = leg.work.entry, leg.work.occurrence.occurrence_id
        row = await self._insist(
            self._ledger.read, entry.reminder_id, occurrence_id, leg.channel.channel_id, leg.target
        )
        if row is None or row.delivery is None:
            return False
        ongoing = not row.delivery.terminal or leg.replay is not None
        if ongoing and row.attempt_count <= attempt:
            return False
        self._report(Event.SUPPRESSED, leg, row=row, attempt=attempt)
        return True

    def _attempted(
        self, leg: LegWork, cleared: Cleared, span: tuple[datetime, datetime], result: Result
    ) -> LegEnd:
        row = rows.attempted(leg, cleared.row, cleared.attempt, span, result, self._schedule)
        said = fact(
            Event.ATTEMPTED,
            leg,
            span[0],
            row=row,
            attempt=cleared.attempt,
            outcome=result.outcome.value,
        )
        return LegEnd(leg=leg, row=row, fact=said, ended_at=span[1], written_at=cleared.written_at)

    def _report(self, event: Event, leg: LegWork, *, row: LedgerRow | None, attempt: int) -> None:
        self._reporter.report([fact(event, leg, self._clock.now(), row=row, attempt=attempt)])

"""One leg: one channel of an occurrence, from a place at its destination to what is to be recorded.

address, opt-outs, quiet hours     (of what reaches a person: `addressing`)
  │
place? ── turned away ──▶ parked entry, unless it has waited long and nobody wants it any more
  │                       (none is needed where nothing will be sent)
  │
ledger, record     (not for a first send that nobody can have begun)
  │   └─▶ done already: nothing; cancelled, expired, poison, opted out ─▶ LegEnd
  │       quiet hours: LegEnd with the entry at their end
"attempt n: outcome unknown" ─▶ ledger     (only where it may be a repeat)
  │
send ─▶ LegEnd: the ledger row, and the retry's entry after a transient failure (`settler`)
"""

from datetime import datetime

import structlog
from msgspec import Struct

from dispatcher import rows
from dispatcher.addressing import NO_ADDRESS, QUIET_HOURS, Addressing, Hold, personal, reachable
from dispatcher.channels import NOBODY, Outcome, Outgoing, Result, Senders, kind_of
from dispatcher.decision import Action, Decision, decide, spent
from dispatcher.destinations import Destinations
from dispatcher.ended import DISABLED
from dispatcher.facts import Event, fact, put_off
from dispatcher.gate import RecordGate
from dispatcher.insistence import Insistence
from dispatcher.requeue import Requeue
from dispatcher.retry import expired, refusal
from dispatcher.settings import DispatcherSettings
from dispatcher.settler import LegEnd
from dispatcher.standing import TurnedAway
from dispatcher.telemetry import Reporter
from dispatcher.work import LegWork
from reminders.lifecycle.grouping import CLOCKS_APART
from reminders.model.entry import Kind, Origin
from reminders.model.ledger import LedgerRow
from reminders.platform import Platform

log = structlog.get_logger()


ASK_FROM = 4
"""What was parked so often is parked again only if it is still wanted: a minute has passed."""


class Open(Struct, frozen=True, kw_only=True, gc=False):
    """Nothing ends it now."""

    row: LedgerRow
    decision: Decision


class Cleared(Struct, frozen=True, kw_only=True, gc=False):
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
        self.turn = destinations.turn
        """To be awaited before each leg of many that others go before, such as a page's."""
        self._reporter = reporter
        self._requeue = Requeue(platform, settings)
        self._addressing = Addressing(platform)
        self._insist = Insistence(platform.clock)

    async def run(self, leg: LegWork) -> LegEnd | None:
        """Its end, to be put on record; None: what there is to say is on record already."""
        hold: Hold | None = None
        if personal(leg):
            leg, hold = await self._insist(self._addressing.look, leg)
        stopped = leg.stopped or self._gate.disabled(leg)
        burdens = hold is None and reachable(leg) and not stopped
        sender = self._senders.get(kind_of(leg.channel)) if burdens else None
        destination = sender.destination(leg.channel) if sender is not None else NOBODY
        place = await self._destinations.enter(destination)
        if isinstance(place, TurnedAway):
            return await self._turned_away(leg, place)
        result: Result | None = None
        try:
            cleared = await self._clearance(leg, hold)
            if not isinstance(cleared, Cleared):
                return cleared
            self._destinations.sending(place)
            started_at = self._clock.now()
            result = await self._send(leg, cleared.attempt)
            ended_at = self._clock.now()
        finally:
            self._destinations.leave(place, result)
        end = self._attempted(leg, cleared, (started_at, ended_at), result)
        final = result.outcome is not Outcome.OK and end.yields_from is None
        if final and await self._overtaken(leg, end):
            return None
        return end

    # --- before -----------------------------------------------------------------------------------

    async def _turned_away(self, leg: LegWork, turned: TurnedAway) -> LegEnd | None:
        """Comes back later. It may have waited so long for that by now that it ends."""
        work = leg.work
        if work.entry.parked >= ASK_FROM or expired(work.body, work.occurrence, self._clock.now()):
            still = await self._look(leg, None)
            if not isinstance(still, Open):
                return still
        await self._insist(self._requeue.park, leg, turned)
        now = self._clock.now()
        said = fact(Event.PARKED, leg, now, row=None, attempt=leg.attempt, reason=turned.reason)
        self._reporter.report([said])
        return None

    async def _clearance(self, leg: LegWork, hold: Hold | None) -> Cleared | LegEnd | None:
        """Leave to send, or how it ended without, or until when it waits."""
        still = await self._look(leg, hold)
        if not isinstance(still, Open):
            return still
        return await self._decided(leg, still.row, still.decision, hold)

    async def _look(self, leg: LegWork, hold: Hold | None) -> Open | LegEnd | None:
        """Whether it is still to be sent, by ledger and record; else how it ends."""
        work = leg.work
        row = leg.found
        if not leg.looked and not work.first_hand:
            row = await self._insist(self._ledger.read, *leg.place)
        decision = decide(
            row,
            leg.attempt,
            given_before=work.given_before,
            max_crashes=self._max_crashes,
            replay=leg.replay,
            parked=work.entry.parked,
        )
        if decision.action is Action.SUPPRESS:
            self._report(Event.SUPPRESSED, leg, row=row, attempt=decision.attempt)
            return None
        if decision.action is Action.REQUEUE:
            await self._requeued(leg, row)
            return None
        known = row if row is not None else rows.blank(leg)
        reason = await self._objection(leg, known, hold)
        if reason is None:
            return Open(row=known, decision=decision)
        if decision.unknown is not None and work.job.deliveries > 1:
            # Whoever was given it before may have sent it. (A `recheck` alone says much less.)
            known = rows.unknown(leg, known, decision.unknown, self._clock.now())
        return self._ended(leg, known, reason, Event.ENDED)

    async def _decided(
        self, leg: LegWork, known: LedgerRow, decision: Decision, hold: Hold | None
    ) -> Cleared | LegEnd | None:
        """What nobody objects to: an earlier attempt is put on record where there may be one."""
        at = self._clock.now()
        if decision.unknown is not None:
            known = rows.unknown(leg, known, decision.unknown, at)
        if decision.action is Action.POISON:
            return self._ended(leg, known, "poison", Event.POISONED)
        if hold is not None and hold.until is not None:
            return self._put_off(leg, known, decision.attempt, hold.reason, hold.until)
        if decision.unknown is None:
            return Cleared(row=known, attempt=decision.attempt)
        await self._insist(self._ledger.write, [known], at=at)
        self._report(Event.OUTCOME_UNKNOWN, leg, row=known, attempt=decision.unknown)
        return Cleared(row=known, attempt=decision.attempt, written_at=at)

    async def _objection(self, leg: LegWork, row: LedgerRow, hold: Hold | None) -> str | None:
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
        if reason is None and hold is not None and hold.until is None:
            reason = hold.reason
        if reason is None and leg.stopped:
            reason = leg.stopped
        # Of a page the record was asked when it was turned.
        if reason is None and work.entry.kind not in (Kind.OCCURRENCE, Kind.FANOUT):
            reason = await self._insist(self._gate.objection, work.entry)
        return reason or self._gate.disabled(leg)

    def _put_off(
        self, leg: LegWork, row: LedgerRow, attempt: int, reason: str, until: datetime
    ) -> LegEnd | None:
        """It waits; what would be too late by then ends now."""
        work = leg.work
        late = refusal(
            work.body,
            work.occurrence,
            spent(row, leg.before),
            until,
            claimed_at=row.claimed_at,
            replay=leg.replay,
        )
        if late is not None:
            return self._ended(leg, row, late, Event.ENDED)
        row = rows.waiting(leg, row, attempt, reason, until)
        now = self._clock.now()
        said = fact(Event.WAITING, leg, now, row=row, attempt=attempt)
        return LegEnd(leg=leg, row=row, fact=said, ended_at=now)

    def _ended(self, leg: LegWork, row: LedgerRow, reason: str, event: Event) -> LegEnd | None:
        if leg.replay is not None and row.delivery is not None and row.delivery.terminal:
            # It was not sent, so the delivery stands as it had ended.
            self._report(event, leg, row=row, attempt=row.attempt_count)
            return None
        known, row = row, rows.given_up(leg, row, reason)
        now = self._clock.now()
        said = fact(event, leg, now, row=row, attempt=row.attempt_count)
        unheard_of = not row.attempts and not known.parked
        if leg.work.occurrence.origin is Origin.BACKFILL and unheard_of and reason != DISABLED:
            self._reporter.report([said])  # no row: another backfill may ring it
            return None
        return LegEnd(leg=leg, row=row, fact=said, ended_at=now)

    async def _requeued(self, leg: LegWork, row: LedgerRow | None) -> None:
        """The attempt is on record, but perhaps not the entry of the next one. Where that was
        parked meanwhile, it is; but a row about quiet hours, or a subscriber's, is written before
        its entry.
        """
        if row is None or row.next_attempt_at is None:
            return
        if leg.target or not row.parked or row.reason == QUIET_HOURS:
            await self._insist(self._requeue.again, [(leg, row)])
            self._report(Event.REQUEUED, leg, row=row, attempt=row.attempt_count)

    # --- sending and after ------------------------------------------------------------------------

    async def _send(self, leg: LegWork, attempt: int) -> Result:
        sender = self._senders.get(kind_of(leg.channel))
        if sender is None:
            return Result(outcome=Outcome.PERMANENT, error_class="channel_unavailable")
        if not reachable(leg):
            said = "neither the channel nor the recipient record has an address"
            return Result(outcome=Outcome.PERMANENT, error_class=NO_ADDRESS, excerpt=said)
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
            locale=leg.locale,
            subscriber=leg.subscriber,
            test=bool(work.body.only_subscriber),
        )
        try:
            return await sender.send(outgoing)
        except Exception:
            # A channel's bug must not keep the others from being settled. It may have been sent.
            log.exception("channel.failed", delivery_key=leg.delivery_key)
            return Result(outcome=Outcome.UNKNOWN, error_class="internal")

    async def _overtaken(self, leg: LegWork, end: LegEnd) -> bool:
        """Whether another run of this delivery, begun because this one seemed dead, got further:
        then it has not failed for good, and nobody must read so in the list of what has.

        Of one that is tried again its stamp takes care, without a read (`LegEnd.yields_from`).
        """
        row = await self._insist(self._ledger.read, *leg.place)
        if row is None or row.delivery is None:
            return False
        ongoing = not row.delivery.terminal or leg.replay is not None
        if ongoing and row.attempt_count <= end.row.attempt_count:
            return False
        self._report(Event.SUPPRESSED, leg, row=row, attempt=end.row.attempt_count)
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
        before = cleared.row
        if before.reason == QUIET_HOURS and before.next_attempt_at is not None:
            said = put_off(said, before.next_attempt_at, span[0])
        retries = row.next_attempt_at is not None
        return LegEnd(
            leg=leg,
            row=row,
            fact=said,
            ended_at=span[1],
            written_at=cleared.written_at,
            yields_from=span[0] + CLOCKS_APART if retries else None,
        )

    def _report(self, event: Event, leg: LegWork, *, row: LedgerRow | None, attempt: int) -> None:
        self._reporter.report([fact(event, leg, self._clock.now(), row=row, attempt=attempt)])

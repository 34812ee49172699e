"""Jobs whose handling raises: a bug of ours, or a row that nobody can read. They come to an end.

A raise is counted only where the job ran alone (from its third delivery on), so that nothing is
blamed for its neighbours. After `settings.max_failures` of these it is given up: an outcome
`failed` with the reason `poison`, handled, and an alarm. Otherwise it would come back for ever and
hold its shard's watermark.

What can't even be decoded names no due entry, so nothing is written for it. Its message goes, and
the trailing scan decides: it hands a row that is sound on again, and ends one that is not.

Attempts that take the process down are counted apart, in the ledger: see `decision`.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec
import structlog
from opentelemetry import metrics

from dispatcher import rows
from dispatcher.fanout import Fanouts
from dispatcher.insistence import Insistence
from dispatcher.receivers import Receivers
from dispatcher.settings import DispatcherSettings
from dispatcher.work import LegWork, Work
from reminders.lifecycle.endings import ended_row, write_ends
from reminders.model.codec import decode_body, decode_entry
from reminders.model.entry import DueEntry, Kind, Occurrence
from reminders.model.ledger import LedgerRow, OccurrenceStatus
from reminders.platform import Platform
from reminders.ports import Job

REASON = "poison"
REMEMBERED = 10_000
"""Jobs whose failures are known; the oldest are forgotten above it."""

Tell = Callable[[str, dict[str, str]], None]
"""Told the namespace of a job that is given up, empty where it is not known, and what it was."""

log = structlog.get_logger()
_given_up = metrics.get_meter("tocsin.dispatcher").create_counter(
    "tocsin_jobs_given_up", description="Jobs that raised again and again, by kind: alarm on any"
)


class Poison:
    """Counts failures of this process, and ends what fails too often."""

    def __init__(
        self,
        platform: Platform,
        settings: DispatcherSettings,
        fanouts: Fanouts,
        alone_from: int,
        *,
        tell: Tell | None = None,
    ) -> None:
        """`tell`: the operator."""
        self._tell = tell
        self._store = platform.store
        self._clock = platform.clock
        self._fanouts = fanouts
        self._receivers = Receivers(platform)
        self._most = settings.max_failures
        self._alone_from = alone_from
        self._failures: dict[tuple[int, str], int] = {}
        self._insist = Insistence(platform.clock)

    def failed(self, job: Job) -> None:
        """Its handling raised."""
        if job.deliveries < self._alone_from:
            return
        name = job.shard, job.job_id
        self._failures[name] = self._failures.pop(name, 0) + 1
        if len(self._failures) > REMEMBERED:
            del self._failures[next(iter(self._failures))]

    def exhausted(self, job: Job) -> bool:
        """Whether it is to be given up."""
        return self._failures.get((job.shard, job.job_id), 0) >= self._most

    async def give_up(self, job: Job) -> None:
        """When this returns, its end is on record, as far as it can be."""
        try:
            entry = decode_entry(job.raw)
        except msgspec.DecodeError:
            self._alarm(job, "unreadable")
        else:
            await self._end(job, entry)
            self._alarm(job, entry.kind.value, entry)
        self._failures.pop((job.shard, job.job_id), None)

    async def _end(self, job: Job, entry: DueEntry) -> None:
        now = self._clock.now()
        try:
            await self._record(job, entry, now)
        except Exception:  # what made the job raise may be in the way here as well
            log.exception("job.unrecorded", entry_id=entry.key.entry_id)
        await self._insist(self._store.due.handled, [entry], at=now)

    async def _record(self, job: Job, entry: DueEntry, now: datetime) -> None:
        if entry.occurrence is None or entry.kind is Kind.TALLY:
            return
        work = _work(job, entry, entry.occurrence)
        if entry.page is not None:
            if work is not None:
                await self._fanouts.give_up(work)
            return
        ended = await self._ended(work)
        if ended is None:
            known = await self._insist(
                self._store.ledger.read, entry.reminder_id, entry.occurrence_id
            )
            if known is not None and known.fanout is not None:
                return  # its pages are on their way
            failed = OccurrenceStatus.FAILED
            row = ended_row(entry, entry.occurrence, failed, REASON, claimed_at=job.claimed_at)
            ended = [row]
        if ended:
            await self._insist(write_ends, self._store, ended, at=now)

    async def _ended(self, work: Work | None) -> list[LedgerRow] | None:
        """A row for each leg that has not ended; None if its legs are unknown."""
        try:
            legs = await self._receivers.legs(work) if work is not None else []
        except LookupError:
            legs = []
        if not legs:
            return None
        found = [(leg, await self._row(leg)) for leg in legs]
        return [
            rows.given_up(leg, row, REASON)
            for leg, row in found
            if row.delivery is None or not row.delivery.terminal
        ]

    async def _row(self, leg: LegWork) -> LedgerRow:
        row = await self._insist(self._store.ledger.read, *leg.place)
        return row if row is not None else rows.blank(leg)

    def _alarm(self, job: Job, kind: str, entry: DueEntry | None = None) -> None:
        _given_up.add(1, {"kind": kind})
        log.error(
            "job.given_up",
            kind=kind,
            shard=job.shard,
            job_id=job.job_id,
            times=job.deliveries,
            entry_id=entry.key.entry_id if entry is not None else "",
            reminder_id=entry.reminder_id if entry is not None else "",
        )
        if self._tell is not None:
            sample = {"kind": kind, "shard": str(job.shard), "jobId": job.job_id}
            if entry is not None:
                sample |= {"reminderId": entry.reminder_id, "occurrenceId": entry.occurrence_id}
            self._tell(entry.namespace if entry is not None else "", sample)


def _work(job: Job, entry: DueEntry, occurrence: Occurrence) -> Work | None:
    """None where the body can't be had or read."""
    if not entry.body:
        return None
    try:
        body = decode_body(entry.body)
    except msgspec.DecodeError:
        return None
    return Work(job=job, entry=entry, occurrence=occurrence, raw_body=entry.body, body=body)

"""Watches a run as it goes: what breaks the protocol at once, without waiting for the harm.

| call               | must hold                                                                   |
|--------------------|-----------------------------------------------------------------------------|
| `claims.claim`     | what is handed on was due by the reference; the caller holds the lease      |
| `jobs.done`        | the entry is handled: a job leaves after it is settled                      |
| `fires.done`       | the entry is expanded                                                       |
| `progress.advance` | what it passes is settled                                                   |
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from reminders.lifecycle.recomputing import DATA_CHANGED
from reminders.model.codec import decode_entry
from reminders.model.entry import DueEntry, EntryState, Fate, Kind, Origin
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.record import Record
from reminders.ports import ClaimAnswer, Job, LeaseAnswer
from tests.simulation.history import Edition, Sending
from tests.simulation.link import Call, at_once
from tests.simulation.process import Process
from tests.simulation.subscribing import part_for, part_of

if TYPE_CHECKING:
    from tests.simulation.world import World

DELIVERED = (DeliveryStatus.DELIVERED, DeliveryStatus.CONFIRMED)
LATE = timedelta(seconds=29)
"""Nothing is skipped before it is so late, by whatever clock."""
TAKEN_AWAY = ("paused", DATA_CHANGED)
"""What is skipped for these reasons need not be late."""
QUIET = ("time", "ping", "leases.renew", "leases.beat", "jobs.lengths", "due.counts", "due.slice")
"""Calls that would fill a trace and tell nothing."""
IDS = re.compile(r"entry_id='([^']+)'|Fate\.(\w+)|ClaimAnswer\.(\w+)")
BRIEF = 100
HANDED_ON = (ClaimAnswer.CLAIMED, ClaimAnswer.READDED)


class Judge:
    """Observes calls as they take effect."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._network = world.network
        self._passed: dict[int, datetime] = {}
        """Watermark by shard."""
        self._given: dict[tuple[str, str], int] = {}
        """When an occurrence's job was given to a process (by its number), by both."""
        self.settled_us: dict[str, int] = {}
        """When the ledger first knew that a key is delivered."""
        self.claims = 0
        before, after = self._network.before, self._network.after
        before["claims.claim"] = self._before_claim
        before["jobs.done"] = self._settled_first
        before["fires.done"] = self._expanded_first
        after["claims.claim"] = self._claimed
        after["jobs.read"] = after["jobs.reclaim"] = self._gave
        after["ledger.write"] = self._recorded
        after["records.create"] = self._created
        after["records.add_live"] = after["due.put"] = self._wrote
        after["records.begin"] = self._begun
        after["records.end"] = self._ended
        after["progress.advance"] = self._advanced
        self._holder: str | None = None
        if world.history.trace is not None:
            self._network.listen = self._tell

    # --- claims and jobs --------------------------------------------------------------------------

    def _before_claim(self, call: Call) -> None:
        self._holder = self._network.coordination.server.holder(call.arguments[0])

    def _claimed(self, call: Call) -> None:
        shard, token, copies = call.arguments
        if isinstance(call.result, LeaseAnswer):
            return
        now = self._network.clock.now()
        for copy, answer in zip(copies, call.result, strict=True):
            if answer not in HANDED_ON:
                continue
            self.claims += 1
            entry: DueEntry = copy.state.entry
            early = entry.key.ring_at - now
            if early > self._world.limits.claim_ahead:
                self._broken("claimed-early", entry, f"claimed {early} early")
            if self._holder != token:
                self._broken("claimed-without-lease", entry, f"shard {shard} by {call.process}")

    def _gave(self, call: Call) -> None:
        if not isinstance(call.result, list):
            return
        now_us = self._world.loop.now_us
        for job in call.result:
            entry = decode_entry(job.raw)
            if entry.occurrence is not None:
                self._given[repr(call.process), part_of(entry)] = now_us

    def _settled_first(self, call: Call) -> None:
        for entry, state in self._states(call.arguments[0]):
            if state is not None and state.handled_at is None:
                self._broken("acknowledged-unsettled", entry, f"{entry.dedupe_id} left the stream")

    def _expanded_first(self, call: Call) -> None:
        for entry, state in self._states(call.arguments[0]):
            if state is not None and state.expanded_at is None:
                self._broken("acknowledged-unexpanded", entry, f"{entry.dedupe_id} left the stream")

    def _states(self, jobs: list[Job]) -> Iterator[tuple[DueEntry, EntryState | None]]:
        for job in jobs:
            entry = decode_entry(job.raw)
            yield entry, self.state_of(entry)

    def state_of(self, entry: DueEntry) -> EntryState | None:
        """As it is in the store."""
        partition = self._network.store.due._partitions.get((entry.key.minute, entry.key.shard))
        row = partition.rows.get((entry.key.ring_at, entry.key.entry_id)) if partition else None
        return row.state() if row else None

    # --- sending ----------------------------------------------------------------------------------

    def sending(self, process: Process, sending: Sending) -> None:
        """An attempt begins."""
        name = part_for(sending.reminder_id, sending.occurrence_id, sending.target)
        sending.given_us = self._given.get((repr(process), name), sending.at_us)
        self._world.history.sendings[sending.key].append(sending)
        if sending.fire_at > sending.at:
            self._world.broken(
                "sent-early", f"{name} {sending.fire_at - sending.at} early", sending.reminder_id
            )
        self._world.tell(process.name, f"sends {sending.key[:12]} {name} #{sending.attempt}")

    def _recorded(self, call: Call) -> None:
        for row in call.arguments[0]:
            if row.delivery in DELIVERED and self._stands(row):
                self.settled_us.setdefault(row.delivery_key, self._world.loop.now_us)
            elif row.ended is OccurrenceStatus.SKIPPED and row.reason not in TAKEN_AWAY:
                late_by = self._world.reference_now() - row.occurrence.fire_at
                if late_by < LATE:
                    what = f"{row.reminder_id} {row.occurrence.occurrence_id} {row.reason}"
                    self._world.broken("skipped-in-time", what, row.reminder_id)

    def _stands(self, row: LedgerRow) -> bool:
        """Whether the ledger says so now: what is written late has the stamp of when it was, and
        another attempt may have begun since.
        """
        stands = at_once(self._network.store.ledger.read(*row.place))
        return stands is not None and stands.delivery in DELIVERED

    # --- records ----------------------------------------------------------------------------------

    def _created(self, call: Call) -> None:
        for new in call.arguments[0]:
            editions = self._world.history.editions[new.record.reminder_id]
            if not editions:
                self._note(new.record, ended=True)

    def _begun(self, call: Call) -> None:
        record: Record = call.arguments[0]
        editions = self._world.history.editions[record.reminder_id]
        if call.result is True and editions[-1].record.version < record.version:
            self._note(record, ended=False)

    def _ended(self, call: Call) -> None:
        if call.result is True:
            self._note(call.arguments[0], ended=True)

    def _note(self, record: Record, *, ended: bool) -> None:
        edition = Edition(at_us=self._world.loop.now_us, record=record, ended=ended)
        self._world.history.editions[record.reminder_id].append(edition)

    def _wrote(self, call: Call) -> None:
        """Notes what is beside the schedule."""
        history = self._world.history
        into = {Origin.TRIGGER: history.triggered, Origin.BACKFILL: history.backfilled}
        for entry in call.arguments[0]:
            if entry.occurrence is not None and entry.occurrence.origin in into:
                known = into[entry.occurrence.origin][entry.reminder_id]
                known[entry.occurrence.occurrence_id] = entry.occurrence

    # --- the watermark ----------------------------------------------------------------------------

    def _advanced(self, call: Call) -> None:
        shard, through = call.arguments
        partitions = self._network.store.due._partitions
        start = self._passed.get(shard)
        self._passed[shard] = max(through, start or through)
        minutes = [m for m, s in partitions if s == shard and m < through]
        for minute in sorted(m for m in minutes if start is None or m >= start):
            for row in partitions[minute, shard].rows.values():
                state = row.state()
                if state is not None and not self.settled(state):
                    self._broken("watermark-passed-open", state.entry, f"{state.entry.key}")

    def settled(self, state: EntryState) -> bool:
        """As DESIGN §6 says it; and of a `finish` whose change is over or never began, nothing is
        left to do, wherever it landed.
        """
        expanded = not state.entry.recurs or state.expanded_at is not None
        if state.handled_at is not None and expanded:
            return True
        reminder = self._network.store.records._reminders.get(state.entry.reminder_id)
        changing = reminder is not None and reminder.change is not None
        return not changing and (state.fate is Fate.VOID or state.entry.kind is Kind.FINISH)

    def watermark(self, shard: int) -> datetime:
        """As the store has it."""
        return self._network.store.progress._settled[shard]

    def unsettled(self, before: datetime) -> list[EntryState]:
        """What should be settled and is not, oldest first."""
        found = []
        for (minute, _), partition in self._network.store.due._partitions.items():
            if minute >= before:
                continue
            for row in partition.rows.values():
                state = row.state()
                if (
                    state is not None
                    and state.entry.key.ring_at < before
                    and not self.settled(state)
                    and not self._unacknowledged(state.entry)
                ):
                    found.append(state)
        return sorted(found, key=lambda state: state.entry.key)

    def _unacknowledged(self, entry: DueEntry) -> bool:
        """Of a create that nobody was told has succeeded, what landed too late to be seen."""
        known = entry.reminder_id in self._world.history.promises
        return not known and entry.key.minute < self.watermark(entry.key.shard)

    def entries(self) -> Iterator[DueEntry]:
        """All due entries there are."""
        for partition in self._network.store.due._partitions.values():
            for row in partition.rows.values():
                if row.entry.value is not None:
                    yield row.entry.value

    def settled_through(self) -> datetime:
        """The watermark of the slowest shard."""
        return min(self._network.store.progress._settled.values())

    # --- words ------------------------------------------------------------------------------------

    def _broken(self, rule: str, entry: DueEntry, what: str) -> None:
        self._world.broken(rule, f"{entry.key.entry_id}: {what}", entry.reminder_id)

    def _tell(self, call: Call) -> None:
        if call.name in QUIET or (
            call.name.startswith(("hints.tail", "jobs.", "fires.")) and not call.result
        ):
            return
        found = IDS.finditer(repr(call.arguments) + repr(call.options))
        what = " ".join(dict.fromkeys(match.group(match.lastindex or 0) for match in found))
        self._world.tell(call.process.name, f"{call.name} {what} → {brief(call.result)}")


def brief(result: object) -> str:
    """The first words of an answer."""
    words = repr(result)
    return words if len(words) <= BRIEF else f"{words[:BRIEF]}…"

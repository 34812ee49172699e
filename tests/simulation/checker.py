"""Judges a run at its end: was every promise kept?

`expected` says what should have rung. What must is satisfied by a delivery that was answered with
success, or by a reason on record; what was answered "not fired" did not ring, and nothing rang that
nobody planned.
"""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from reminders.delivery_key import delivery_key
from reminders.model.definition import Definition, LocalTime, Recurring
from reminders.model.entry import DueEntry, Kind, Occurrence
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.record import Record
from tests.simulation.expected import Expectations, Expected, shifts
from tests.simulation.history import BASE, Sending
from tests.simulation.process import MICROSECOND
from tests.simulation.zonedata import OFFSET_S, ZONE

if TYPE_CHECKING:
    from tests.simulation.world import World

AFTERMATH_US = 5_000_000
"""A fault that was over for so long did no harm to what was sent for the first time then: half of
the time for which a dispatcher keeps a job that it can't start."""
LATEST_US = 60_000_000
"""So long after a fault what it had kept from being settled is sent again at the latest: its jobs
are taken over after 14 s, and the trailing scan comes by."""
HARMLESS = ("stop", "drift")
"""Faults that are no reason to send anything twice."""
ON_TIME = timedelta(seconds=1)
"""How late anything may be in a run without faults."""
CLAIMED_BY_THEN = timedelta(seconds=2)
"""So long after its time nothing is claimed that was planned for it and has been moved."""
UNDER_WAY = timedelta(seconds=3)
"""What rings on, such as a rule that nobody could cancel, may be in a stream for so long."""
STOPPED = ("cancelled", "paused", "rescheduled")
"""Reasons of a delivery that was begun and given up because of a change."""


Route = tuple[str, str]
"""A channel, and the subscriber of a topic."""


class Checker:
    """The end of a run."""

    def __init__(self, world: "World", rest: datetime) -> None:
        self._world = world
        self._history = world.history
        self._rest = rest
        self._expectations = Expectations(world, rest)
        self._rows: dict[str, list[LedgerRow]] = {
            reminder_id: [cell.value for cell in cells.values() if cell.value is not None]
            for reminder_id, cells in world.network.store.ledger._reminders.items()
        }

    def check(self) -> None:
        """Adds to the history's violations."""
        known: set[str] = set()
        for reminder_id, editions in self._history.editions.items():
            expected = self._expectations.of(reminder_id)
            self._answered(reminder_id, expected)
            known |= self._rang(reminder_id, expected)
            if reminder_id in self._history.promises:
                self._kept(editions[0].record, expected)
            self._triggers(reminder_id)
        for key, sendings in self._history.sendings.items():
            if key not in known:
                self._broken("rang-unplanned", sendings[0], "no version planned it")
            self._repeats(sendings)
        self._moved()
        self._at_rest()

    def _answered(self, reminder_id: str, expected: Expected) -> None:
        """What the callers heard must be what was recorded."""
        for answer in self._history.answers:
            if answer.reminder_id != reminder_id:
                continue
            for each in answer.answers:
                if not each.was_fired and not (
                    each.occurrence_id in expected.not_fired
                    or each.occurrence_id in expected.must
                    or each.occurrence_id in expected.may
                ):
                    self._world.broken(
                        "answered-otherwise",
                        f"{reminder_id} {each.occurrence_id}: not fired",
                        reminder_id,
                    )

    # --- what rang --------------------------------------------------------------------------------

    def _routes(self, reminder_id: str) -> list[set[Route]]:
        """Of each version."""
        return [
            self._routes_of(edition.record.definition)
            for edition in self._history.editions[reminder_id]
        ]

    def _routes_of(self, definition: Definition) -> set[Route]:
        if definition.topic_id:
            subscribers = self._history.subscribers[definition.topic_id]
            return {("webhook", subscriber_id) for subscriber_id in subscribers}
        return {(channel.channel_id, "") for channel in definition.channels}

    def _rang(self, reminder_id: str, expected: Expected) -> set[str]:
        """The keys that may be on record for it."""
        allowed = expected.allowed
        routes = sorted(set().union(*self._routes(reminder_id)))
        keys = set()
        for name in allowed | expected.not_fired:
            for route in routes:
                key = delivery_key(reminder_id, name, *route)
                keys.add(key)
                if name not in allowed and key in self._history.sendings:
                    self._broken("rang-though-not-fired", self._history.sendings[key][0], name)
        return keys

    def _triggers(self, reminder_id: str) -> None:
        """Each rang once, whoever repeated the call."""
        rang = {
            sendings[0].occurrence_id
            for sendings in self._history.sendings.values()
            if sendings[0].reminder_id == reminder_id
        } & self._history.triggered.get(reminder_id, {}).keys()
        if len(rang) > self._history.asked_triggers[reminder_id]:
            self._world.broken("triggered-twice", f"{reminder_id}: {sorted(rang)}", reminder_id)

    def _kept(self, record: Record, expected: Expected) -> None:
        routes = sorted(set.intersection(*self._routes(record.reminder_id)))
        for each in expected.must.values():
            again = each.occurrence_id in expected.asked_again
            for route in routes:
                key = delivery_key(record.reminder_id, each.occurrence_id, *route)
                sendings = self._history.sendings.get(key, [])
                if any(s.arrived and s.answered == 200 for s in sendings):
                    if not again:
                        self._on_time(max(each.fire_at, record.created_at), sendings[0])
                elif not self._excused(record, each, route[0], sendings, again=again):
                    self._world.broken(
                        "lost",
                        f"{record.reminder_id} {each.occurrence_id} for {route}, "
                        f"due {each.fire_at}, {len(sendings)} attempts",
                        record.reminder_id,
                    )

    def _on_time(self, at: datetime, first: Sending) -> None:
        changed = self._history.editions[first.reminder_id][-1].record.updated_at
        late_by = first.at - max(at, changed)
        if not self._history.troubles and late_by > ON_TIME:
            self._broken("late-without-cause", first, f"{late_by} late")

    def _excused(
        self,
        record: Record,
        occurrence: Occurrence,
        channel_id: str,
        sendings: list[Sending],
        *,
        again: bool,
    ) -> bool:
        """Whether a reason is on record. `again`: it was asked for because it had been skipped."""
        rule = any(
            isinstance(edition.record.definition.schedule, Recurring)
            for edition in self._history.editions[record.reminder_id]
        )
        for row in self._rows.get(record.reminder_id, []):
            skipped = row.ended is OccurrenceStatus.SKIPPED and rule and not again
            if skipped and _covers(row, occurrence):
                return row.reason == "paused" or bool(self._history.troubles)
            if (row.occurrence.occurrence_id, row.channel_id) != (
                occurrence.occurrence_id,
                channel_id,
            ):
                continue
            if row.delivery is DeliveryStatus.RETRYING and self._waits(row):
                return True
            if row.delivery is not None and row.delivery.terminal:
                begun = bool(sendings) or self._was_parked(row)
                return row.reason == "poison" or (begun and row.reason in STOPPED)
        return False

    def _was_parked(self, row: LedgerRow) -> bool:
        """Whether its first attempt found no place at its destination."""
        return any(
            entry.kind is Kind.PARKED
            and entry.reminder_id == row.reminder_id
            and entry.occurrence_id == row.occurrence.occurrence_id
            and entry.leg is not None
            and entry.leg.channel_id == row.channel_id
            for entry in self._world.judge.entries()
        )

    def _waits(self, row: LedgerRow) -> bool:
        """Whether its retry has an entry, for a time after this run."""
        return any(
            entry.kind is Kind.RETRY
            and entry.reminder_id == row.reminder_id
            and entry.leg is not None
            and (entry.leg.channel_id, entry.leg.attempt) == (row.channel_id, row.attempt_count + 1)
            and entry.key.ring_at >= self._rest
            for entry in self._world.judge.entries()
        )

    # --- newer zone data ----------------------------------------------------------------------

    def _moved(self) -> None:
        """Behind a walk that was through, local times are kept by the newer data."""
        walked_at = BASE + MICROSECOND * min(self._history.walks_us, default=0) + CLAIMED_BY_THEN
        newer_s = max(shifts(self._world.plan), key=abs)
        for sendings in self._history.sendings.values() if self._history.walks_us else ():
            first = sendings[0]
            promise = self._history.promises.get(first.reminder_id)
            if promise is None or not _by_the_clock(promise.record, first):
                continue
            local = datetime.strptime(first.occurrence_id, "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
            instants = [local - timedelta(seconds=OFFSET_S + each) for each in (0, newer_s)]
            if min(instants) > walked_at and first.fire_at != instants[1]:
                self._broken("not-moved", first, f"promised for {first.fire_at}")

    # --- repeats ----------------------------------------------------------------------------------

    def _repeats(self, sendings: list[Sending]) -> None:
        """Each after the first success must have a cause."""
        first: Sending | None = None
        before: set[str] = set()
        settled_us = self._world.judge.settled_us.get(sendings[0].key)
        for each in sendings:
            before.add(each.process)
            if settled_us is not None and each.given_us > settled_us:
                self._broken("sent-after-settled", each, f"the ledger knew since {settled_us} us")
            elif first is not None and not self._explained(before, first, each):
                self._broken("unexplained-repeat", each, f"first at {first.at_us / 1e6:.3f} s")
            if first is None and each.answered == 200:
                first = each

    def _explained(self, before: set[str], first: Sending, again: Sending) -> bool:
        """Whether a fault can have kept one of those who tried from settling in time, or from
        noticing that others did, or made everybody forget it.
        """
        return any(
            trouble.start_us <= again.at_us <= trouble.end_us + LATEST_US
            and trouble.end_us + AFTERMATH_US >= first.at_us
            and trouble.what not in HARMLESS
            and any(name.startswith(trouble.process) for name in before)
            for trouble in self._history.troubles
        )

    # --- the end ----------------------------------------------------------------------------------

    def _at_rest(self) -> None:
        network = self._world.network
        for reminder_id, reminder in network.store.records._reminders.items():
            if reminder.change is not None:
                self._world.broken("left-changing", reminder_id, reminder_id)
        before = self._world.now() - UNDER_WAY
        for (name, shard), stream in network.coordination.server.data.streams.items():
            left = sum(message.at < before for message in stream.messages.values())
            if name != "near" and left:
                self._world.broken("left-in-stream", f"{left} in {name}:{shard}")
        self._retries()

    def _retries(self) -> None:
        """What follows one attempt is one row, however often it is written, unless so late that its
        minute may be settled.
        """
        places: dict[str, list[DueEntry]] = defaultdict(list)
        for entry in self._world.judge.entries():
            if entry.kind is Kind.RETRY and not entry.parked:
                places[entry.key.entry_id].append(entry)
        for entry_id, entries in places.items():
            leg = entries[0].leg
            assert leg is not None
            assert entries[0].occurrence is not None
            key = delivery_key(
                entries[0].reminder_id,
                entries[0].occurrence.occurrence_id,
                leg.channel_id,
                leg.target,
            )
            sendings = self._history.sendings.get(key, [])
            made = sum(sending.attempt == leg.attempt - 1 for sending in sendings)
            at = [entry.key.ring_at for entry in entries]
            if len(at) > made and max(at) - min(at) < self._world.limits.grace / 2:
                self._world.broken(
                    "retry-drawn-anew", f"{entry_id}: {len(at)} places", entries[0].reminder_id
                )

    def _broken(self, rule: str, sending: Sending, what: str) -> None:
        self._world.broken(
            rule,
            f"{sending.reminder_id} {sending.occurrence_id} by {sending.process} "
            f"at {sending.at_us / 1e6:.3f} s: {what}",
            sending.reminder_id,
        )


def _covers(row: LedgerRow, occurrence: Occurrence) -> bool:
    """Whether a row of skipped ones is about it; by the clock as well, which newer data leaves."""
    first, last = row.occurrence, row.skipped_through or row.occurrence
    return (
        first.planned_at <= occurrence.planned_at <= last.planned_at
        or first.occurrence_id <= occurrence.occurrence_id <= last.occurrence_id
    )


def _by_the_clock(record: Record, sending: Sending) -> bool:
    """Whether an occurrence was promised by the clocks of the zone whose data changes."""
    schedule = record.definition.schedule
    of_zone = isinstance(schedule, LocalTime | Recurring) and schedule.zone == ZONE
    return of_zone and not sending.occurrence_id.endswith("Z")

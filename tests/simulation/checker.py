"""Judges a run at its end: was every promise kept?

What should have rung follows from the versions that the store took (`History.editions`) and from
what each change answered. For each occurrence of a reminder:

    must       a version promised it, and no change answered "not fired" about it
    open       near a change's moment: both are right
    forbidden  answered "not fired", and no later version promised it again

`must` is satisfied by a delivery that was answered with success, or by a reason on record.
"""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reminders.delivery_key import delivery_key
from reminders.lifecycle.occurrences import jittered, once, record_series
from reminders.model.definition import Recurring
from reminders.model.entry import DueEntry, Kind, Occurrence
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.record import Outcome, Record, Status
from tests.simulation.history import BASE, Edition, Sending
from tests.simulation.process import MICROSECOND

if TYPE_CHECKING:
    from tests.simulation.world import World

AFTERMATH_US = 20_000_000
"""So long after a fault something that it caused may still happen."""
HARMLESS = ("stop", "drift")
"""Faults that are no reason to send anything twice."""
ON_TIME = timedelta(seconds=1)
"""How late anything may be in a run without faults."""
STOPPED = ("cancelled", "paused", "rescheduled")
"""Reasons of a delivery that was begun and given up because of a change."""
ASKED_FOR = 64
"""Occurrences of a rule that are computed at first."""


class Expected(Struct):
    """What a reminder's occurrences should have done, by id."""

    must: dict[str, Occurrence] = field(default_factory=dict)
    may: set[str] = field(default_factory=set)
    not_fired: set[str] = field(default_factory=set)


class Checker:
    """The end of a run."""

    def __init__(self, world: "World", rest: datetime) -> None:
        self._world = world
        self._history = world.history
        self._rest = rest
        """What was due before must be settled."""
        self._rows: dict[str, list[LedgerRow]] = {
            reminder_id: [cell.value for cell in cells.values() if cell.value is not None]
            for reminder_id, cells in world.network.store.ledger._reminders.items()
        }

    def check(self) -> None:
        """Adds to the history's violations."""
        known: set[str] = set()
        for reminder_id, editions in self._history.editions.items():
            expected = self._expected(editions)
            self._with_group(editions[0].record, expected)
            self._answered(reminder_id, expected)
            record = editions[0].record
            known |= self._rang(record, expected)
            if reminder_id in self._history.promises:
                self._kept(record, expected)
        for key, sendings in self._history.sendings.items():
            if key not in known:
                self._broken("rang-unplanned", sendings[0], "no version planned it")
            self._repeats(sendings)
        self._at_rest()

    # --- what should have rung --------------------------------------------------------------------

    def _expected(self, editions: list[Edition]) -> Expected:
        expected = Expected()
        ended = [each for each in editions if each.ended]
        for edition, following in zip(ended, [*ended[1:], None], strict=True):
            if edition.record.status is Status.SCHEDULED:
                vague = _vague(edition.record)
                into = Expected() if vague else expected
                self._of_edition(edition.record, following, into, counted=not vague)
                if vague:
                    expected.may |= into.must.keys() | into.may
                    expected.not_fired |= into.not_fired
        return expected

    def _of_edition(
        self, record: Record, following: Edition | None, expected: Expected, *, counted: bool
    ) -> None:
        occurrences = self._occurrences(record, counted=counted)
        if record.version > 1 and _outcome(record).action == "resume":
            # What is overdue then, the catch-up policy or the pause may have taken away.
            overdue = [each for each in occurrences if each.fire_at <= record.updated_at]
            expected.may |= {each.occurrence_id for each in overdue}
            occurrences = occurrences[len(overdue) :]
        if following is None:
            self._in_force(occurrences, expected)
        else:
            self._until_changed(occurrences, following, expected)

    def _with_group(self, record: Record, expected: Expected) -> None:
        """What was cancelled with its group rings no more; around the call, both are right."""
        end = self._history.group_ends.get(record.definition.group_id or "")
        if end is None or (end.cancelled_at and record.created_at > end.cancelled_at):
            return
        asked_at = BASE + MICROSECOND * end.asked_us
        for name, each in list(expected.must.items()):
            if end.answered_us and each.fire_at > BASE + MICROSECOND * end.answered_us:
                del expected.must[name]
                expected.not_fired.add(name)
            elif each.fire_at > asked_at or self._history.troubles:
                del expected.must[name]
                expected.may.add(name)

    def _in_force(self, occurrences: list[Occurrence], expected: Expected) -> None:
        for each in occurrences:
            if each.fire_at < self._rest:
                expected.must[each.occurrence_id] = each
            else:
                expected.may.add(each.occurrence_id)

    def _until_changed(
        self, occurrences: list[Occurrence], following: Edition, expected: Expected
    ) -> None:
        outcome = _outcome(following.record)
        fired = {answer.occurrence_id: answer.was_fired for answer in outcome.answers}
        last = max((answer.planned_at for answer in outcome.answers), default=None)
        changed_at = BASE + MICROSECOND * following.at_us
        for each in occurrences:
            name = each.occurrence_id
            if fired.get(name) is False:
                expected.not_fired.add(name)
                expected.must.pop(name, None)
            elif fired.get(name) or (last is not None and each.planned_at < last):
                expected.must[name] = each
            elif each.fire_at <= changed_at:
                expected.may.add(name)  # settled by then, so nobody was asked about it

    def _occurrences(self, record: Record, *, counted: bool) -> list[Occurrence]:
        schedule = record.definition.schedule
        if not isinstance(schedule, Recurring):
            return once(record)
        if not counted:
            endless = replace(schedule, max_occurrences=None)
            record = replace(record, definition=replace(record.definition, schedule=endless))
        series, asked_for = record_series(record), ASKED_FOR
        first = series.first_after(record.updated_at)
        while True:
            planned = series.next(first, asked_for)
            if len(planned) < asked_for or planned[-1].instant > self._rest:
                return jittered(record, planned, None)
            asked_for *= 4

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

    def _rang(self, record: Record, expected: Expected) -> set[str]:
        """The keys that may be on record for it."""
        allowed = expected.must.keys() | expected.may
        channels = record.definition.channels
        keys = set()
        for name in allowed | expected.not_fired:
            for channel in channels:
                key = delivery_key(record.reminder_id, name, channel.channel_id)
                keys.add(key)
                if name not in allowed and key in self._history.sendings:
                    self._broken("rang-though-not-fired", self._history.sendings[key][0], name)
        return keys

    def _kept(self, record: Record, expected: Expected) -> None:
        for each in expected.must.values():
            for channel in record.definition.channels:
                key = delivery_key(record.reminder_id, each.occurrence_id, channel.channel_id)
                sendings = self._history.sendings.get(key, [])
                if any(s.arrived and s.answered == 200 for s in sendings):
                    self._on_time(max(each.fire_at, record.created_at), sendings[0])
                elif not self._excused(record, each, channel.channel_id, sendings):
                    self._world.broken(
                        "lost",
                        f"{record.reminder_id} {each.occurrence_id} for {channel.channel_id}, "
                        f"due {each.fire_at}, {len(sendings)} attempts",
                        record.reminder_id,
                    )

    def _on_time(self, at: datetime, first: Sending) -> None:
        changed = self._history.editions[first.reminder_id][-1].record.updated_at
        late_by = first.at - max(at, changed)
        if not self._history.troubles and late_by > ON_TIME:
            self._broken("late-without-cause", first, f"{late_by} late")

    def _excused(
        self, record: Record, occurrence: Occurrence, channel_id: str, sendings: list[Sending]
    ) -> bool:
        """Whether a reason is on record."""
        rule = any(
            isinstance(edition.record.definition.schedule, Recurring)
            for edition in self._history.editions[record.reminder_id]
        )
        for row in self._rows.get(record.reminder_id, []):
            if row.ended is OccurrenceStatus.SKIPPED and rule:
                through = (row.skipped_through or row.occurrence).planned_at
                if row.occurrence.planned_at <= occurrence.planned_at <= through:
                    return row.reason == "paused" or bool(self._history.troubles)
            if (row.occurrence.occurrence_id, row.channel_id) != (
                occurrence.occurrence_id,
                channel_id,
            ):
                continue
            if row.delivery is DeliveryStatus.RETRYING and self._waits(row):
                return True
            if row.delivery is not None and row.delivery.terminal:
                return row.reason == "poison" or (bool(sendings) and row.reason in STOPPED)
        return False

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
            trouble.start_us <= again.at_us
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
        for (name, shard), stream in network.coordination.server.data.streams.items():
            if name != "near" and stream.messages:
                self._world.broken("left-in-stream", f"{len(stream.messages)} in {name}:{shard}")
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
                entries[0].reminder_id, entries[0].occurrence.occurrence_id, leg.channel_id
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


def _vague(record: Record) -> bool:
    """Whether nobody here knows which occurrences of a version remain.

    What a pause swallowed is not counted. And where Redis had lost its data, what lay ahead counts
    as fired by then: the new rule begins after it.
    """
    if record.version == 1:
        return False
    outcome, schedule = _outcome(record), record.definition.schedule
    if isinstance(schedule, Recurring) and schedule.max_occurrences and outcome.action == "resume":
        return True
    return any(each.was_fired and each.planned_at > record.updated_at for each in outcome.answers)


def _outcome(record: Record) -> Outcome:
    """Of the change that made this version."""
    return next(each for each in record.outcomes if each.version == record.version)

"""Following reminders until they have ended: a line for each change, and on a terminal a clock."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from google.protobuf.message import Message
from rich.console import Console
from rich.status import Status
from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.cli import render, rpc
from reminders.cli.progress import fanout_text

_ENDED = {
    pb.REMINDER_STATUS_FIRED,
    pb.REMINDER_STATUS_CANCELLED,
    pb.REMINDER_STATUS_FAILED,
}
_UNDER_WAY = {
    pb.DELIVERY_STATUS_PENDING,
    pb.DELIVERY_STATUS_SENDING,
    pb.DELIVERY_STATUS_RETRYING,
}
_OPEN = {pb.OCCURRENCE_STATUS_PLANNED, pb.OCCURRENCE_STATUS_CLAIMED}
_NEWEST = 20
"""Occurrences and deliveries looked at, newest first."""


@dataclass(slots=True, kw_only=True)
class Watcher:
    """Asks again and again, and prints what is new."""

    stub: ReminderServiceStub
    namespace: str
    json: bool
    shown: dict[str, str] = field(default_factory=dict)
    """The last line about each reminder, occurrence and delivery."""
    ended: set[str] = field(default_factory=set)
    """What looked ended once. It takes two looks: record and ledger are read apart."""

    def follow(self, *, reminder: str | None, user: str | None, every: timedelta) -> None:
        """Returns when everything has ended."""
        names = [reminder] if reminder else self._pending_of(user or "")
        console = render.console()
        if not names and not self.json:
            console.print(f"{user} has no pending reminders")
        with _clock(console, quiet=self.json) as clock:
            while names:
                ahead: list[datetime] = []
                names = [name for name in names if not self._look(name, console, ahead)]
                if names:
                    clock.update(_waiting(len(names), ahead))
                    time.sleep(every.total_seconds())

    def _pending_of(self, user: str) -> list[str]:
        """Every pending reminder of the user, once each."""
        names: dict[str, None] = {}
        token = ""
        while True:
            request = calls.ListRemindersRequest(
                namespace=self.namespace, user_id=user, page_size=1000, page_token=token
            )
            page = self.stub.ListReminders(request, timeout=rpc.DEADLINE_S)
            names.update({each.reminder_id: None for each in page.reminders})
            token = page.next_page_token
            if not token:
                return list(names)

    def _look(self, name: str, console: Console, ahead: list[datetime]) -> bool:
        """Prints what changed; True when nothing more can happen."""
        reminder = self.stub.GetReminder(
            calls.GetReminderRequest(namespace=self.namespace, reminder_id=name),
            timeout=rpc.DEADLINE_S,
        )
        occurrences = self.stub.ListOccurrences(
            calls.ListOccurrencesRequest(
                namespace=self.namespace, reminder_id=name, page_size=_NEWEST
            ),
            timeout=rpc.DEADLINE_S,
        ).occurrences
        deliveries = self.stub.ListDeliveries(
            calls.ListDeliveriesRequest(
                namespace=self.namespace, reminder_id=name, page_size=_NEWEST
            ),
            timeout=rpc.DEADLINE_S,
        ).deliveries
        ahead += [render.moment(each.fire_time) for each in reminder.next_occurrences]
        for key, message, line in _lines(reminder, list(occurrences), list(deliveries)):
            if self.shown.get(key) != line:
                self.shown[key] = line
                self._print(console, message, line)
        over = (
            reminder.status in _ENDED
            and not any(each.status in _UNDER_WAY for each in deliveries if not each.subscriber_id)
            and not any(each.status in _OPEN for each in occurrences)
            and (len(occurrences) > 0 or reminder.status != pb.REMINDER_STATUS_FIRED)
        )
        known = name in self.ended
        (self.ended.add if over else self.ended.discard)(name)
        return over and known

    def _print(self, console: Console, message: Message, line: str) -> None:
        if self.json:
            render.print_json(message, compact=True)
        else:
            console.print(f"{datetime.now(UTC):%H:%M:%SZ}  {line}")


def _lines(
    reminder: pb.Reminder, occurrences: list[pb.Occurrence], deliveries: list[pb.Delivery]
) -> Iterator[tuple[str, Message, str]]:
    """What there is to say now, oldest first: a key, the message, the line."""
    name = reminder.reminder_id
    state = render.word(pb.ReminderStatus.Name(reminder.status), "REMINDER_STATUS_")
    line = f"{name}  {state}, version {reminder.version}"
    if reminder.next_occurrences:
        line += f", rings {render.when_text(reminder.next_occurrences[0])}"
    happened: list[tuple[str, Message, str]] = []
    for occurrence in reversed(occurrences):
        if occurrence.status == pb.OCCURRENCE_STATUS_PLANNED:
            continue
        status = render.word(pb.OccurrenceStatus.Name(occurrence.status), "OCCURRENCE_STATUS_")
        text = f"{name}  {occurrence.occurrence_id} {status}"
        if occurrence.HasField("claim_time"):
            late = render.moment(occurrence.claim_time) - render.moment(occurrence.fire_time)
            text += f", claimed {render.claim_text(late)} its time"
        key = f"{name}/{occurrence.occurrence_id}"
        happened.append(
            (key, occurrence, text + (f" ({occurrence.reason})" * bool(occurrence.reason)))
        )
        if occurrence.HasField("fan_out"):
            said = f"{name}  {occurrence.occurrence_id} {fanout_text(occurrence.fan_out)}"
            happened.append((f"{key}/fan-out", occurrence, said))
    for delivery in reversed(deliveries):
        if delivery.subscriber_id:
            continue  # there may be a million: the line above counts them
        key = f"{name}/{delivery.occurrence_id}/{delivery.channel_id}/{delivery.subscriber_id}"
        text = f"{name}  {delivery.occurrence_id} {delivery.channel_id}: "
        text += f"{render.delivery_word(delivery)}, attempt {delivery.attempt_count}"
        happened.append(
            (key, delivery, text + (f" ({delivery.error_class})" * bool(delivery.error_class)))
        )
    yield name, reminder, line
    yield from happened


def _waiting(count: int, ahead: list[datetime]) -> str:
    text = f"following {count} reminder{'s' * (count != 1)}"
    if not ahead:
        return text
    left = max(timedelta(0), min(ahead) - datetime.now(UTC))
    return f"{text}, next in {timedelta(seconds=round(left.total_seconds()))}"


def _clock(console: Console, *, quiet: bool) -> Status:
    """A line at the bottom of a terminal; nowhere else."""
    hidden = quiet or not console.is_terminal
    return Status("looking …", console=Console(quiet=True) if hidden else console)

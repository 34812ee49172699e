"""`tocsin demo`, which is `make run`: real reminders through real servers, shown as they ring."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Empty
from zoneinfo import ZoneInfo

import grpc
from rich.console import Console
from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.cli import render, rpc
from reminders.cli.children import HOST
from reminders.cli.options import Connection
from reminders.cli.receiver import Arrival, Receiver, receiving
from reminders.cli.stack import Stack, local_stack, remembered_ports

USER = "demo"
EVERY_MINUTE_FILE = "every-minute-reminder"
"""In the data folder: the id of the endless one, so that the next run does not add another."""
ALIVE_EVERY_S = 0.5
ROW = "{:<14} {:>9}  {:<36} {}"


def demo(data_dir: Path) -> None:
    """Runs until Ctrl-C."""
    console = render.console()

    def say(line: str) -> None:
        console.print(f"  {line}", style="dim")

    console.print("Tocsin: starting everything on this machine. Ctrl-C stops it.", style="bold")
    port = remembered_ports(data_dir).choose("demo receiver", HOST)
    # The receiver comes first: what earlier runs left rings as soon as the services are up.
    with receiving(HOST, port) as receiver, local_stack(data_dir, say) as stack:
        show = Show(stack=stack, console=console, webhook=f"http://{HOST}:{port}/", data=data_dir)
        show.until_interrupted(receiver)


@dataclass(slots=True, kw_only=True)
class Show:
    """What the demo does once everything runs."""

    stack: Stack
    console: Console
    webhook: str
    data: Path

    def until_interrupted(self, receiver: Receiver) -> None:
        """Creates the reminders, then shows what arrives."""
        with rpc.scheduler(Connection(address=self.stack.grpc_address)) as stub:
            self.create_reminders(stub)
        self.introduce()
        self.print_arrivals(receiver)

    def create_reminders(self, stub: ReminderServiceStub) -> None:
        """Three of them; the endless one only if an earlier run has not left it."""
        before = stub.ListReminders(
            calls.ListRemindersRequest(user_id=USER, page_size=1000), timeout=rpc.DEADLINE_S
        )
        # What rings at this moment may be in one of the two only.
        pending = max(before.total_size, len(before.reminders))
        kept = f"{pending} reminder{'s' * (pending != 1)} of earlier runs pending"
        self.console.print(f"\n{kept}", style="bold")
        self.create(stub, self.in_five_seconds())
        if not self.kept_from_before(stub):
            (self.data / EVERY_MINUTE_FILE).write_text(self.create(stub, self.every_minute()))
        self.create(stub, self.at_a_local_time())

    def create(self, stub: ReminderServiceStub, reminder: pb.Reminder) -> str:
        """Creates it, says so, and gives its id."""
        answer = stub.CreateReminder(
            calls.CreateReminderRequest(reminder=reminder), timeout=rpc.DEADLINE_S
        )
        made = answer.reminder
        rings = render.when_text(made.next_occurrences[0])
        self.console.print(f"created {made.reminder_id}  {made.params['title']}: {rings}")
        return made.reminder_id

    def kept_from_before(self, stub: ReminderServiceStub) -> bool:
        """Whether an earlier run's endless reminder lives, and comes to this receiver."""
        file = self.data / EVERY_MINUTE_FILE
        if not file.exists():
            return False
        request = calls.GetReminderRequest(reminder_id=file.read_text().strip())
        try:
            found = stub.GetReminder(request, timeout=rpc.DEADLINE_S)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return False  # another Cassandra than last time
            raise
        mine = any(channel.webhook.url == self.webhook for channel in found.channels)
        ended = found.status in {pb.REMINDER_STATUS_CANCELLED, pb.REMINDER_STATUS_FAILED}
        return mine and not ended

    def in_five_seconds(self) -> pb.Reminder:
        """A delay."""
        schedule = pb.Schedule()
        schedule.after.FromTimedelta(timedelta(seconds=5))
        return self.reminder("in 5 seconds", schedule)

    def every_minute(self) -> pb.Reminder:
        """A rule in a named zone."""
        zone = "Europe/Paris"
        start = datetime.now(ZoneInfo(zone)) + timedelta(minutes=1)
        rule = pb.Recurrence(
            rrule="FREQ=MINUTELY", start=start.strftime("%Y-%m-%dT%H:%M"), time_zone=zone
        )
        return self.reminder("every minute in Paris", pb.Schedule(recurrence=rule))

    def at_a_local_time(self) -> pb.Reminder:
        """A wall-clock time, between half a minute and a minute and a half ahead."""
        zone = "America/New_York"
        soon = datetime.now(ZoneInfo(zone)) + timedelta(seconds=90)
        local = pb.LocalTime(
            date=soon.date().isoformat(), time=soon.strftime("%H:%M"), time_zone=zone
        )
        return self.reminder(f"{local.time} in New York", pb.Schedule(local=local))

    def reminder(self, title: str, schedule: pb.Schedule) -> pb.Reminder:
        """What they have in common."""
        channel = pb.Channel(webhook=pb.WebhookChannel(url=self.webhook))
        made = pb.Reminder(user_id=USER, schedule=schedule, channels=[channel])
        made.params["title"] = title
        return made

    def introduce(self) -> None:
        """Where things are, what to type next, and the head of the table."""
        address = self.stack.grpc_address
        flag = "" if address == rpc.DEFAULT_ADDRESS else f" --address {address}"
        self.console.print(
            f"\ngRPC listens on {address}. Loopback HTTP is allowed here, for webhooks to "
            f"{self.webhook}:\nonly local runs do that. Data and logs: {self.data}\n\n"
            "In another terminal:\n"
            f"  .venv/bin/tocsin create{flag} --user {USER} --in 10s --webhook {self.webhook} "
            '--param title="Tea is ready"\n'
            f"  .venv/bin/tocsin list{flag} --user {USER}\n"
            f"  .venv/bin/tocsin watch{flag} --user {USER}\n"
            f"  {self.stack.servers}\n"
            "  .venv/bin/tocsin shards\n",
            soft_wrap=True,  # to be copied: a line's end that the console made would cut it in two
        )
        self.console.print(ROW.format("ARRIVED (UTC)", "LATE BY", "PROMISED", "WHAT"), style="bold")

    def print_arrivals(self, receiver: Receiver) -> None:
        """A row for each, as it comes; ends only by a failure or an interrupt."""
        while True:
            try:
                arrival = receiver.arrivals.get(timeout=ALIVE_EVERY_S)
            except Empty:
                self.stack.ensure_alive()
                continue
            self.console.print(row(arrival))


def row(arrival: Arrival) -> str:
    """One line of the table."""
    title = str(arrival.payload.get("title", arrival.reminder_id))
    return ROW.format(
        f"{arrival.received_at.astimezone(UTC):%H:%M:%S.%f}"[:-3],
        render.lateness_text(arrival.lateness),
        f"{render.local_text(arrival.planned_local)} {arrival.time_zone}",
        title + "  (a repeat: same delivery key)" * arrival.repeat,
    )

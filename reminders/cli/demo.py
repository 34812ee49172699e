"""`tocsin demo`, which is `make run`: real reminders through real servers, shown as they ring."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import grpc
from rich.console import Console
from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.cli import render, rpc
from reminders.cli.children import HOST
from reminders.cli.failure import CommandError
from reminders.cli.receiver import Arrival, Receiver, receiving
from reminders.cli.stack import Stack, local_stack

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub  # only in the .pyi

USER = "demo"
EVERY_MINUTE_LABEL = "every-minute"
ALIVE_EVERY_S = 0.5
ROW = "{:<14} {:>9}  {:<36} {}"


def demo(data_dir: Path) -> None:
    """Runs until Ctrl-C."""
    console = render.console()

    def say(line: str) -> None:
        console.print(f"  {line}", style="dim")

    console.print("Tocsin: starting everything on this machine. Ctrl-C stops it.", style="bold")
    with local_stack(data_dir, say) as stack:
        port = stack.ports.choose("demo receiver", HOST)
        show = Show(stack=stack, console=console, webhook=f"http://{HOST}:{port}/", data=data_dir)
        asyncio.run(show.until_interrupted(port))


@dataclass(slots=True, kw_only=True)
class Show:
    """What the demo does once everything runs."""

    stack: Stack
    console: Console
    webhook: str
    data: Path
    count: int = 0
    worst: timedelta = field(default=timedelta(0))

    async def until_interrupted(self, port: int) -> None:
        """Creates the reminders, then shows what arrives."""
        async with receiving(HOST, port) as receiver, self.connected() as stub:
            await self.create_reminders(stub)
            self.introduce()
            await self.print_arrivals(receiver)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["ReminderServiceAsyncStub"]:
        """A stub; its failures end the demo with the server's explanation."""
        async with grpc.aio.insecure_channel(self.stack.grpc_address) as channel:
            try:
                yield ReminderServiceStub(channel)
            except grpc.RpcError as error:
                lines = rpc.explain(error, self.stack.grpc_address)
                raise CommandError("the demo's reminders were refused", *lines) from error

    async def create_reminders(self, stub: "ReminderServiceAsyncStub") -> None:
        """Three of them; the endless one only if an earlier run has not left it."""
        before = await stub.ListReminders(
            calls.ListRemindersRequest(user_id=USER, page_size=1000), timeout=rpc.DEADLINE_S
        )
        self.console.print()
        if before.total_size:
            kept = f"{before.total_size} reminder{'s' * (before.total_size != 1)}"
            self.console.print(f"{kept} of earlier runs still pending", style="bold")
        wanted = [self.in_five_seconds(), self.at_a_local_time()]
        if not any(self.is_mine(each) for each in before.reminders):
            wanted.insert(1, self.every_minute())
        for reminder in wanted:
            answer = await stub.CreateReminder(
                calls.CreateReminderRequest(reminder=reminder), timeout=rpc.DEADLINE_S
            )
            title = answer.reminder.params["title"]
            local, instant = render.both_times(answer.reminder.next_occurrences[0])
            rings = instant if local == render.NONE else f"{instant} = {local}"
            self.console.print(f"created {answer.reminder.reminder_id}  {title}: {rings}")

    def is_mine(self, reminder: pb.Reminder) -> bool:
        """Whether it is an earlier run's endless reminder, and comes to this receiver."""
        return reminder.labels.get("demo") == EVERY_MINUTE_LABEL and any(
            channel.webhook.url == self.webhook for channel in reminder.channels
        )

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
        reminder = self.reminder("every minute in Paris", pb.Schedule(recurrence=rule))
        reminder.labels["demo"] = EVERY_MINUTE_LABEL
        return reminder

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
        )
        self.console.print(ROW.format("ARRIVED (UTC)", "LATE BY", "PROMISED", "WHAT"), style="bold")

    async def print_arrivals(self, receiver: Receiver) -> None:
        """A row for each, as it comes; ends only by a failure or an interrupt."""
        while True:
            try:
                arrival = await asyncio.wait_for(receiver.arrivals.get(), ALIVE_EVERY_S)
            except TimeoutError:
                self.stack.ensure_alive()
                continue
            self.console.print(row(arrival))


def row(arrival: Arrival) -> str:
    """One line of the table."""
    title = str(arrival.payload.get("title", arrival.reminder_id))
    return ROW.format(
        f"{arrival.received_at.astimezone(UTC):%H:%M:%S.%f}"[:-3],
        render.lateness_text(arrival.lateness),
        f"{arrival.planned_local.replace('T', ' ')} {arrival.time_zone}",
        title + "  (a repeat: same delivery key)" * arrival.repeat,
    )

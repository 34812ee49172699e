"""The reminders that benchmarks create: one webhook, a small payload, about 300 bytes a row.

As a request, for whoever goes through the service; as what storage writes, for the references.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from tocsin.v1 import reminder_service_pb2 as pb

from reminders.lifecycle.planning import Planner
from reminders.lifecycle.writing import stamp_of
from reminders.model.definition import At, Channel, Definition, Webhook
from reminders.model.record import NewReminder, Record, Status
from reminders.reminder_id import new_reminder_id

AHEAD = timedelta(hours=2)
SPREAD_S = 6 * 3600
"""Creates that never ring here are due in these hours: they meet many partitions."""
STEP_S = 61
"""Coprime to the spread's length in seconds: neighbours are in different minutes."""
USERS = 10_000
TITLE = "Take the blue pill with water"
FAR_URL = "http://127.0.0.1:9/hook/far-ahead"


def request(
    due: datetime, user: str, url: str, number: int, group: str = ""
) -> pb.CreateReminderRequest:
    """For the service."""
    made = pb.CreateReminderRequest()
    made.reminder.user_id = user
    made.reminder.group_id = group
    made.reminder.schedule.at.FromDatetime(due.replace(tzinfo=None))
    made.reminder.channels.add().webhook.url = url
    made.reminder.params.update({"title": TITLE, "number": number})
    return made


def far_requests(count: int) -> Iterator[pb.CreateReminderRequest]:
    """Due hours ahead."""
    for number, (due, user) in enumerate(_far(count)):
        yield request(due, user, FAR_URL, number)


def far_reminders(
    count: int, shards: int, *, user: str = "user", group: str | None = None
) -> Iterator[NewReminder]:
    """The same as the scheduler plans them."""
    planner = Planner(shards=shards)
    for number, (due, user_id) in enumerate(_far(count, user)):
        now = datetime.now(UTC).replace(microsecond=0)
        definition = Definition(
            user_id=user_id,
            schedule=At(instant=due),
            group_id=group,
            channels=(Channel(channel_id="webhook", target=Webhook(url=FAR_URL)),),
            params_json=f'{{"number":{number},"title":"{TITLE}"}}',
        )
        record = Record(
            namespace="default",
            reminder_id=new_reminder_id(),
            version=1,
            status=Status.SCHEDULED,
            definition=definition,
            created_at=now,
            updated_at=now,
            stamp=stamp_of(now - timedelta(seconds=60)),
        )
        yield NewReminder(record=record, entries=planner.first(record))


def _far(count: int, user: str = "user") -> Iterator[tuple[datetime, str]]:
    start = datetime.now(UTC).replace(second=0, microsecond=0) + AHEAD
    for number in range(count):
        due = start + timedelta(seconds=number * STEP_S % SPREAD_S)
        yield due, f"{user}-{number % USERS}"

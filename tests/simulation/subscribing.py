"""Subscribers of topics, and which part of a fan-out somebody is in."""

from datetime import datetime

from reminders.model.definition import Channel, Webhook
from reminders.model.entry import DueEntry, Kind
from reminders.model.subscriber import Subscriber, bucket_of

NAMESPACE = "sim"
RECEIVER = "crowd"
"""Always well: what becomes of failed deliveries, users' reminders show."""


def subscriber(namespace: str, topic: str, number: int, at: datetime) -> Subscriber:
    """One who is told everything."""
    return Subscriber(
        namespace=namespace,
        topic_id=topic,
        subscriber_id=f"s{number}",
        channel=Channel(channel_id="webhook", target=Webhook(url=RECEIVER)),
        created_at=at,
        updated_at=at,
        stamp=1,
    )


def part_of(entry: DueEntry) -> str:
    """Which sends a job leads to: an occurrence's; of a fan-out also the chain of its pages."""
    name = f"{entry.reminder_id}.{entry.occurrence_id}"
    if entry.kind is Kind.FANOUT and entry.page is not None:
        return part(name, entry.page.bucket)
    if entry.leg is not None and entry.leg.target:
        return part(name, bucket_of(entry.leg.target))
    return name


def part_for(reminder_id: str, occurrence_id: str, target: str) -> str:
    """The same, of a send."""
    name = f"{reminder_id}.{occurrence_id}"
    return part(name, bucket_of(target)) if target else name


def part(name: str, bucket: int) -> str:
    """One chain of a fan-out."""
    return f"{name}/{bucket}"

"""A topic's reminder in a dispatcher's world, and whoever rings what is due in it."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from reminders.model.codec import encode
from reminders.model.definition import Channel, Webhook
from reminders.model.entry import Body, DueEntry
from reminders.model.ledger import LedgerRow
from reminders.model.subscriber import SUBSCRIBER_BUCKETS, Subscriber

OCCURRENCE = "20261201T090000"
TOPIC = "deploys"


def subscriber(world: Any, name: str, **more: Any) -> Subscriber:
    """With a webhook of its own."""
    return Subscriber(
        namespace="default",
        topic_id=TOPIC,
        subscriber_id=name,
        channel=Channel(channel_id="webhook", target=Webhook(url=f"https://{name}/")),
        created_at=world.AT,
        updated_at=world.AT,
        stamp=more.pop("stamp", 1),
        **more,
    )


async def subscribed(world: Any, count: int, **more: Any) -> list[str]:
    """So many; their ids."""
    everybody = [subscriber(world, f"s{n:06}", **more) for n in range(count)]
    await world.store.subscribers.put(everybody)
    return [each.subscriber_id for each in everybody]


async def topic_entry(world: Any, **body: Any) -> DueEntry:
    """The due entry of a reminder for all of them."""
    entry: DueEntry = await world.reminder()
    made = Body(user_id="", channels=(), topic_id=TOPIC, **body)
    return replace(entry, body=encode(made))


async def fan_out(
    world: Any,
    entry: DueEntry,
    *,
    rounds: int = 10_000,
    runner: Callable[[DueEntry], Awaitable[None]] | None = None,
    until: timedelta = timedelta(seconds=30),
) -> None:
    """Rings the entry and what follows from it, one after the other, each when it is due."""
    run = runner or (lambda each: world.runner().run(world.job(each)))
    await run(entry)
    waiting: list[DueEntry] = []
    for _ in range(rounds):
        waiting = sorted(await due(world, until), key=lambda each: each.key)
        if not waiting:
            return
        world.clock.move_to(max(world.clock.now(), waiting[0].key.ring_at))
        await run(waiting[0])
    raise AssertionError(f"still due after {rounds} rounds: {waiting[0]}")


async def due(world: Any, until: timedelta) -> list[DueEntry]:
    """What waits until then."""
    found = await world.waiting(hours=(until + timedelta(minutes=1)) / timedelta(hours=1))
    return [each for each in found if each.key.ring_at <= world.AT + until and each.page]


async def rows_of(world: Any) -> dict[str, LedgerRow]:
    """By subscriber."""
    on_point, world.on_point = world.on_point, None
    found: dict[str, LedgerRow] = {}
    for bucket in range(SUBSCRIBER_BUCKETS):
        rows = await world.store.fanouts.targets("r1", OCCURRENCE, bucket, limit=1_000_000)
        found |= {row.target: row for row in rows}
    world.on_point = on_point
    return found


async def occurrence_row(world: Any) -> Any:
    """The occurrence's own, if it is there: a `LedgerRow`."""
    return await world.store.ledger.read("r1", OCCURRENCE)

"""What ends failed or expired is in the list, whatever the process dies at; nothing else is."""

from typing import Any

import pytest

from reminders.buckets import hour_of
from reminders.model.definition import Retry
from reminders.model.ended import Ended, stands
from reminders.model.endpoint import address_of
from reminders.model.ledger import DeliveryStatus

URL = "https://example.com/hook"


async def ended(world: Any) -> list[Ended]:
    """All of the hour."""
    found = await world.store.ended.page("default", hour_of(world.AT), limit=99)
    return list(found)


async def test_a_failure_is_listed_with_its_endpoint(world: Any) -> None:
    """And says the same as the ledger."""
    entry = await world.reminder(urls=(URL,))
    world.sender.results = [world.GONE]
    await world.runner().run(world.job(entry))
    (one,) = await ended(world)
    row = await world.row()
    assert stands(one, row)
    assert (one.status, one.reason, one.kind) == ("failed", "http_410", "webhook")
    address = address_of("default", world.sender.sent[0].channel)
    assert address is not None
    assert one.endpoint_id == address.endpoint_id


async def test_what_goes_well_or_goes_on_costs_nothing(world: Any) -> None:
    """No more calls of the store than before."""
    entry = await world.reminder(retry=Retry(max_attempts=2))
    world.sender.results = [world.BUSY]
    await world.runner().run(world.job(entry))
    other = await world.reminder("r2")
    await world.runner().run(world.job(other))
    assert await ended(world) == []
    assert not [each for each in world.points if each.startswith(("ended.add", "endpoints."))]


@pytest.mark.parametrize("point", ["ended.add", "ended.add.done", "ledger.write", "due.handled"])
async def test_wherever_it_dies_one_row_stands(world: Any, point: str) -> None:
    """A row too many says another time than the ledger, and is passed over."""
    entry = await world.reminder(urls=(URL,))
    world.sender.results = [world.GONE, world.GONE]

    async def die(name: str) -> None:
        if name == point:
            raise world.Crash

    world.on_point = die
    with pytest.raises(world.Crash):
        await world.runner().run(world.job(entry))
    world.on_point = None
    world.clock.advance(world.settings.claim_idle)
    await world.runner().run(world.job(entry, deliveries=2))
    row = await world.row()
    assert row is not None
    assert row.delivery is DeliveryStatus.FAILED
    found = await ended(world)
    assert [stands(one, row) for one in found].count(True) == 1

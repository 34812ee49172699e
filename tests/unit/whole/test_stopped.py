"""A cancel after the fire, through scanner, dispatcher and scheduler's use cases."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from dispatcher.channels.port import Outcome, Result
from reminders.lifecycle.requests import CreateRequest
from reminders.model.definition import At, Channel, Log, Policies, Retry
from reminders.model.ledger import DeliveryStatus, LedgerRow
from reminders.model.record import Status
from tests.unit.lifecycle.world import HOUR, MINUTE, NOON, SECOND, World, created, definition
from tests.unit.whole.harness import OK, everything

BUSY = Result(outcome=Outcome.TRANSIENT, status_code=503, error_class="http_503")
WAITS = (timedelta(0), HOUR)


@pytest.fixture
def world() -> World:
    """At noon, with one shard."""
    return World()


async def one_shot(world: World, *channels: str) -> str:
    """In a minute, to these; what fails is tried again within an hour."""
    targets = tuple(Channel(channel_id=each, target=Log()) for each in channels)
    policies = Policies(retry=Retry(schedule=WAITS))
    wanted = replace(definition(At(instant=NOON + MINUTE), policies=policies), channels=targets)
    (made,) = await world.reminders.create([CreateRequest(namespace="ns", definition=wanted)])
    return created(made).view.record.reminder_id


async def by_channel(world: World, name: str) -> dict[str, LedgerRow]:
    """Its ledger."""
    return {row.channel_id: row for row in await world.ledger(name)}


@pytest.mark.parametrize("waited", [3 * SECOND, 3 * MINUTE])
async def test_the_waiting_retry_never_goes_out(world: World, waited: timedelta) -> None:
    """What was delivered stays so, what waited is cancelled at once, and nothing follows."""
    name = await one_shot(world, "a", "b", "c")
    async with everything(world) as receiver:
        receiver.answer = lambda sent: OK if sent.channel.channel_id == "a" else BUSY
        await world.clock.run_until(NOON + MINUTE + waited)
        before = await by_channel(world, name)
        assert before["b"].delivery is before["c"].delivery is DeliveryStatus.RETRYING
        changed = await world.cancel(name, request_id="q")
        assert (changed.was_fired, changed.stopped) == (True, 2)
        assert changed.view.status is Status.FIRED
        after = await by_channel(world, name)
        assert after["a"] == before["a"]
        for each in ("b", "c"):
            assert (after[each].delivery, after[each].reason) == (
                DeliveryStatus.CANCELLED,
                "cancelled",
            )
        await world.clock.run_until(NOON + 3 * HOUR)
        assert len(receiver.attempts) == 3
        assert await by_channel(world, name) == after
        assert (await world.cancel(name, request_id="q")).stopped == 2
        explained = await world.reminders.explain("ns", name, limit=5)
        assert explained.following.owner == "nobody"
    assert all(state.settled or state.fate for state in await world.entries(name))


async def test_an_attempt_under_way_ends_and_nothing_follows_it(world: World) -> None:
    """It was claimed before: not counted; its failure is the last word but for the cancel."""
    name = await one_shot(world, "a")
    async with everything(world) as receiver:
        receiver.answer = lambda _: BUSY
        stopped = []

        async def meanwhile(_: object) -> None:
            stopped.append((await world.cancel(name)).stopped)

        receiver.on_send = meanwhile
        await world.clock.run_until(NOON + 3 * HOUR)
        assert stopped == [0]
        assert len(receiver.attempts) == 1
    row = (await by_channel(world, name))["a"]
    assert (row.delivery, row.attempt_count) == (DeliveryStatus.CANCELLED, 1)

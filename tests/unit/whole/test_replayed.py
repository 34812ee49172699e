"""A replay, through scanner and dispatcher: the same keys, on record, and never what was taken."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dispatcher.channels.port import Outcome, Result
from reminders.errors import AlreadyEnded, InvalidRequest, KeyConflict, ReminderPaused
from reminders.lifecycle.replaying import Asked, Replayed, Replays, Verdict
from reminders.lifecycle.requests import CreateRequest
from reminders.model.definition import At, Channel, Log, Policies, Retry
from reminders.model.entry import Kind
from reminders.model.ledger import DeliveryStatus, LedgerRow
from tests.unit.lifecycle.world import (
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    World,
    created,
    definition,
    every,
)
from tests.unit.whole.harness import OK, Receiver, everything

GONE = Result(outcome=Outcome.PERMANENT, status_code=410, error_class="http_410")
BUSY = Result(outcome=Outcome.TRANSIENT, status_code=503, error_class="http_503")
OCCURRENCE = "20260601T120100Z"


@pytest.fixture
def world() -> World:
    """At noon, with one shard."""
    return World()


class Suppressed:
    """What the counter of refused replays says."""

    def __init__(self, world: World) -> None:
        self._reader = InMemoryMetricReader()
        meter = MeterProvider(metric_readers=[self._reader]).get_meter("test")
        service = world.reminders
        service.replays = Replays(
            world.platform, service.writer, service.reads, service.changes.finish, meter
        )

    def count(self) -> int:
        """Over all labels."""
        data = self._reader.get_metrics_data()
        points: list[Any] = []
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                points += [p for metric in scope.metrics for p in metric.data.data_points]
        return sum(point.value for point in points)


async def replay(world: World, name: str, **asked: Any) -> tuple[Replayed, ...]:
    """As the edge calls it."""
    request_id = asked.pop("request_id", None)
    given = Asked(**{"occurrence_id": OCCURRENCE, **asked})
    found = await world.reminders.replay("ns", name, given, request_id=request_id)
    assert isinstance(found, tuple)
    return found


def verdicts(found: tuple[Replayed, ...]) -> dict[str, Verdict]:
    """By channel."""
    return {one.row.channel_id: one.verdict for one in found}


async def run(world: World, span: timedelta) -> None:
    """So long."""
    await world.clock.run_until(world.now + span)


async def rows(world: World, name: str) -> dict[str, LedgerRow]:
    """Of its one occurrence, by channel."""
    found = await world.store.ledger.page(name, limit=99)
    return {row.channel_id: row for row in found if row.delivery is not None}


async def two_channels(world: World, **policies: Any) -> str:
    """A one-shot in a minute with the channels a and b."""
    channels = tuple(Channel(channel_id=each, target=Log()) for each in ("a", "b"))
    wanted = definition(At(instant=NOON + MINUTE), policies=Policies(**policies))
    request = CreateRequest(namespace="ns", definition=replace(wanted, channels=channels))
    (made,) = await world.reminders.create([request])
    return created(made).view.record.reminder_id


def refusing(receiver: Receiver, *channels: str, result: Result = GONE) -> None:
    """Those answer so, the others take it."""
    receiver.answer = lambda sent: result if sent.channel.channel_id in channels else OK


async def test_what_failed_is_sent_again_under_its_key_and_marked(world: World) -> None:
    """What was taken is refused, and counted once; attempts are numbered on."""
    suppressed = Suppressed(world)
    name = await two_channels(world)
    async with everything(world) as receiver:
        refusing(receiver, "b")
        await run(world, 2 * MINUTE)
        before = await rows(world, name)
        refusing(receiver)
        found = await replay(world, name)
        assert verdicts(found) == {"a": Verdict.ACKNOWLEDGED, "b": Verdict.SENT_AGAIN}
        assert suppressed.count() == 1
        await run(world, 2 * SECOND)
        after = await rows(world, name)
        assert after["a"] == before["a"]
        assert after["b"].delivery is DeliveryStatus.CONFIRMED
        assert [(one.number, bool(one.replay)) for one in after["b"].attempts] == [
            (1, False),
            (2, True),
        ]
        sent = [one for one in receiver.attempts if one.channel.channel_id == "b"]
        assert len({one.delivery_key for one in sent}) == 1
        assert [one.replay for one in sent] == [False, True]
        assert len(receiver.attempts) == 3


async def test_a_dry_run_answers_the_same_and_does_nothing(world: World) -> None:
    """Nothing is written, sent or counted."""
    suppressed = Suppressed(world)
    name = await two_channels(world)
    async with everything(world) as receiver:
        refusing(receiver, "b")
        await run(world, 2 * MINUTE)
        found = await replay(world, name, dry_run=True)
        assert verdicts(found) == {"a": Verdict.ACKNOWLEDGED, "b": Verdict.SENT_AGAIN}
        await run(world, MINUTE)
        assert len(receiver.attempts) == 2
        assert suppressed.count() == 0


async def test_a_repeat_of_the_call_is_the_same_replay(world: World) -> None:
    """Before it is sent and after; with other content the id is refused."""
    name = await two_channels(world)
    async with everything(world) as receiver:
        refusing(receiver, "b")
        await run(world, 2 * MINUTE)
        for _ in range(2):
            found = await replay(world, name, channels=("b",), request_id="q")
            assert verdicts(found) == {"b": Verdict.SENT_AGAIN}
        await run(world, 2 * SECOND)
        found = await replay(world, name, channels=("b",), request_id="q")
        assert verdicts(found) == {"b": Verdict.SENT_AGAIN}
        await run(world, 2 * SECOND)
        assert len(receiver.attempts) == 3
        with pytest.raises(KeyConflict):
            await replay(world, name, channels=("a",), request_id="q")


async def test_two_replays_at_once_send_it_once(world: World) -> None:
    """Both are for the same attempt."""
    name = await two_channels(world)
    async with everything(world) as receiver:
        refusing(receiver, "b")
        await run(world, 2 * MINUTE)
        await replay(world, name, channels=("b",))
        await replay(world, name, channels=("b",))
        await run(world, 4 * MINUTE)
        assert len(receiver.attempts) == 3
    open_ones = [s for s in await world.entries(name) if s.entry.kind is Kind.REPLAY]
    assert len(open_ones) == 2
    assert all(state.handled_at is not None for state in open_ones)


async def test_its_retries_follow_the_policy_anew(world: World) -> None:
    """Attempts and age count from the call, long after the time that it was promised for."""
    retry = Retry(max_attempts=2, max_age=5 * MINUTE)
    name = await two_channels(world, retry=retry, expire_after=5 * MINUTE)
    async with everything(world) as receiver:
        refusing(receiver, "b", result=BUSY)
        await run(world, 8 * MINUTE)
        assert (await rows(world, name))["b"].reason == "attempts_exhausted"
        await replay(world, name, channels=("b",))
        await run(world, 4 * MINUTE)
        row = (await rows(world, name))["b"]
        assert (row.delivery, row.reason) == (DeliveryStatus.FAILED, "attempts_exhausted")
        assert row.attempt_count == 4
        assert [bool(one.replay) for one in row.attempts] == [False, False, True, True]


@pytest.mark.parametrize("result", [GONE, BUSY])
async def test_a_forced_one_that_fails_does_not_undo_the_acknowledgement(
    world: World, result: Result
) -> None:
    """It stays on record that the receiver has it."""
    name = await two_channels(world, retry=Retry(max_attempts=2))
    async with everything(world) as receiver:
        await run(world, 2 * MINUTE)
        refusing(receiver, "a", result=result)
        found = await replay(world, name, channels=("a",), force=True)
        assert verdicts(found) == {"a": Verdict.SENT_AGAIN}
        await run(world, 4 * MINUTE)
        row = (await rows(world, name))["a"]
        assert (row.delivery, row.acknowledged) == (DeliveryStatus.CONFIRMED, True)
        assert row.attempts[-1].error_class == result.error_class
        assert len(receiver.attempts) == 2 + (2 if result is BUSY else 1)


@pytest.mark.parametrize(("how", "error"), [("cancel", AlreadyEnded), ("pause", ReminderPaused)])
async def test_cancelled_or_paused_only_a_forced_one_goes_out(
    world: World, how: str, error: type[Exception]
) -> None:
    """Also where the change comes after the call and before the send."""
    name = await world.create(every("FREQ=DAILY", start_local=(NOON + MINUTE).replace(tzinfo=None)))
    first = {"occurrence_id": "20260601T120100"}
    async with everything(world) as receiver:
        receiver.answer = lambda _: GONE
        await run(world, 2 * MINUTE)
        await replay(world, name, **first)
        await (world.cancel(name) if how == "cancel" else world.pause(name))
        await run(world, MINUTE)
        assert len(receiver.attempts) == 1
        (row,) = (await rows(world, name)).values()
        assert (row.delivery, row.reason) == (DeliveryStatus.FAILED, "http_410")
        with pytest.raises(error):
            await replay(world, name, **first)
        receiver.answer = lambda _: OK
        await replay(world, name, force=True, **first)
        await run(world, MINUTE)
        assert len(receiver.attempts) == 2


async def test_a_forced_one_passes_the_fence_of_its_group(world: World) -> None:
    """Nothing else of the group does."""
    name = await world.create(At(instant=NOON + MINUTE), group_id="g")
    async with everything(world) as receiver:
        receiver.answer = lambda _: GONE
        await run(world, 2 * MINUTE)
        cancelling = world.reminders.cancel_group("ns", "g")
        task = asyncio.create_task(cancelling)
        await run(world, 2 * SECOND)
        await task
        with pytest.raises(AlreadyEnded):
            await replay(world, name)
        await replay(world, name, force=True)
        await run(world, 2 * SECOND)
        assert len(receiver.attempts) == 2


async def test_what_is_tried_by_itself_is_left_alone(world: World) -> None:
    """A retry waits; a second round beside it would be a duplicate."""
    name = await two_channels(world)
    async with everything(world) as receiver:
        refusing(receiver, "b", result=replace(BUSY, retry_after=HOUR))
        await run(world, 2 * MINUTE)
        assert verdicts(await replay(world, name, channels=("b",), force=True)) == {
            "b": Verdict.UNDER_WAY
        }
        await run(world, MINUTE)
        assert len(receiver.attempts) == 2


async def test_what_was_never_attempted_is_refused_by_field(world: World) -> None:
    """An occurrence without deliveries, and a channel that is not its."""
    name = await two_channels(world)
    with pytest.raises(InvalidRequest) as refused:
        await replay(world, name)
    assert refused.value.violations[0].field == "occurrence_id"
    async with everything(world):
        await run(world, 2 * MINUTE)
    with pytest.raises(InvalidRequest) as refused:
        await replay(world, name, channels=("a", "x"))
    assert refused.value.violations[0].field == "channel_ids[1]"


async def test_the_drill_of_document_002(world: World) -> None:
    """Read ahead at :59, attempt at :00, 429 with Retry-After 15 at :02, retry at :17, acknowledged
    at :18; then a replay: one accepted event, and the suppression counter moved once.
    """
    suppressed = Suppressed(world)
    promised = NOON + MINUTE
    name = await world.create(At(instant=promised))
    began: list[timedelta] = []
    accepted: list[str] = []
    async with everything(world) as receiver:
        limited = Result(
            outcome=Outcome.RATE_LIMITED,
            status_code=429,
            error_class="http_429",
            retry_after=15 * SECOND,
        )

        async def takes_time(sent: Any) -> None:
            began.append(world.now - promised)
            await world.clock.sleep_until(world.now + (2 if sent.attempt == 1 else 1) * SECOND)

        def answer(sent: Any) -> Result:
            if sent.attempt == 1:
                return limited
            accepted.append(sent.delivery_key)
            return OK

        receiver.on_send, receiver.answer = takes_time, answer
        await world.clock.run_until(promised - SECOND)
        assert receiver.attempts == []
        await world.clock.run_until(promised + 30 * SECOND)
        (row,) = (await rows(world, name)).values()
        first, second = row.attempts
        assert began == [timedelta(0), 17 * SECOND]
        assert (first.started_at, first.duration) == (promised, 2 * SECOND)
        assert second.started_at + second.duration == promised + 18 * SECOND
        assert row.acknowledged
        assert suppressed.count() == 0
        found = await replay(world, name)
        assert list(verdicts(found).values()) == [Verdict.ACKNOWLEDGED]
        await run(world, 4 * MINUTE)
        assert len({one.delivery_key for one in receiver.attempts}) == 1
        assert accepted == [row.delivery_key]
        assert suppressed.count() == 1

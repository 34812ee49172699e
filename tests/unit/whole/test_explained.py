"""Explain, of what real services did: the five questions of an incident in one answer (R-OPS-1)."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from dispatcher.channels.port import Outcome, Outgoing, Result
from reminders.errors import NotFound
from reminders.lifecycle.explaining import ExplainedOccurrence, Explanation
from reminders.lifecycle.requests import CreateRequest
from reminders.lifecycle.verdicts import Replay
from reminders.model.definition import At, Channel, LocalTime, Log, Policies
from reminders.model.ledger import DeliveryStatus, OccurrenceStatus
from tests.unit.lifecycle.world import HOUR, MINUTE, NOON, SECOND, World, created, definition, every
from tests.unit.whole.harness import OK, everything

BUSY = Result(outcome=Outcome.RATE_LIMITED, status_code=429, error_class="http_429")
GONE = Result(outcome=Outcome.PERMANENT, status_code=410, error_class="http_410")
LOST = Result(outcome=Outcome.UNKNOWN, error_class="timeout")


@pytest.fixture
def world() -> World:
    """At noon, with one shard."""
    return World()


async def explain(world: World, name: str, limit: int = 20) -> Explanation:
    """As the edge calls it."""
    return await world.reminders.explain("ns", name, limit=limit)


async def only(world: World, name: str) -> ExplainedOccurrence:
    """Of a one-shot."""
    (one,) = (await explain(world, name)).occurrences
    return one


async def run(world: World, span: timedelta) -> None:
    """So long."""
    await world.clock.run_until(world.now + span)


async def test_the_promise_and_the_policy_that_made_the_instant(world: World) -> None:
    """02:30 does not exist in Paris on that day; the scanner owns what is ahead."""
    local = LocalTime(date="2027-03-28", time="02:30", zone="Europe/Paris")
    name = await world.create(local)
    one = await only(world, name)
    occurrence = one.view.occurrence
    assert str(occurrence.nominal_local) == "2027-03-28 02:30:00"
    assert str(occurrence.planned_local) == "2027-03-28 03:00:00"
    assert one.policy == "gap_next_valid"
    assert one.view.status is OccurrenceStatus.PLANNED
    assert (one.following.owner, one.following.at) == ("scanner", occurrence.fire_at)
    assert one.deliveries == ()


async def test_attempts_acknowledgements_and_a_retry_that_waits(world: World) -> None:
    """One channel took it, one said 429: its retry belongs to the scanner, at its time."""
    channels = tuple(Channel(channel_id=each, target=Log()) for each in ("a", "b"))
    wanted = replace(definition(At(instant=NOON + MINUTE)), channels=channels)
    made = await world.reminders.create([CreateRequest(namespace="ns", definition=wanted)])
    name = created(made[0]).view.record.reminder_id
    async with everything(world) as receiver:
        receiver.answer = lambda sent: OK if sent.channel.channel_id == "a" else asking(HOUR)
        await run(world, 2 * MINUTE)
        answer = await explain(world, name)
        (one,) = answer.occurrences
        found = {each.row.channel_id: each for each in one.deliveries}
        assert found["a"].row.acknowledged
        assert found["a"].replay is Replay.ACKNOWLEDGED
        assert found["a"].following.owner == "nobody"
        assert [each.status_code for each in found["b"].row.attempts] == [429]
        assert found["b"].replay is Replay.UNDER_WAY
        retry_at = found["b"].row.next_attempt_at
        assert retry_at is not None
        assert retry_at >= NOON + MINUTE + HOUR
        assert (found["b"].following.owner, found["b"].following.at) == ("scanner", retry_at)
        assert answer.following == one.following == found["b"].following
        assert one.why.startswith("fired: 1 of 2 deliveries have ended")


def asking(wait: timedelta) -> Result:
    """Too many requests."""
    return replace(BUSY, retry_after=wait)


async def test_a_retry_whose_entry_is_missing_belongs_to_the_dispatcher(world: World) -> None:
    """It died before it wrote the entry: whoever gets the job again does."""
    name = await world.create(At(instant=NOON + MINUTE))
    async with everything(world) as receiver:
        receiver.answer = lambda _: asking(HOUR)
        await run(world, 2 * MINUTE)
    (delivery,) = (await only(world, name)).deliveries
    assert delivery.following.owner == "scanner"
    moved = replace(delivery.row, next_attempt_at=NOON + 3 * HOUR)
    await world.store.ledger.write([moved], at=world.now + SECOND)
    (delivery,) = (await only(world, name)).deliveries
    assert delivery.following.owner == "dispatcher"


@pytest.mark.parametrize(
    ("answers", "safety", "said"),
    [
        ([GONE], Replay.SAFE, "the receiver's answer was final: http_410"),
        ([LOST, GONE], Replay.MAY_REPEAT, "the receiver's answer was final: http_410"),
        ([OK], Replay.ACKNOWLEDGED, "fired: 1 delivery went well"),
    ],
)
async def test_whether_a_replay_is_safe(
    world: World, answers: list[Result], safety: Replay, said: str
) -> None:
    """By every attempt that is on record, not by the last one alone."""
    name = await world.create(At(instant=NOON + MINUTE))

    def answer(sent: Outgoing) -> Result:
        return answers[min(sent.attempt, len(answers)) - 1]

    async with everything(world) as receiver:
        receiver.answer = answer
        await run(world, 3 * MINUTE)
    one = await only(world, name)
    (delivery,) = one.deliveries
    assert delivery.replay is safety
    owner = "nobody" if safety is Replay.ACKNOWLEDGED else "caller"
    assert delivery.following.owner == one.following.owner == owner
    assert said in one.why


async def test_a_loss_is_the_callers_and_hides_nothing_that_happens_by_itself(
    world: World,
) -> None:
    """Of the reminder as a whole the next ring comes first; what was cancelled is nobody's."""
    name = await world.create(every("FREQ=MINUTELY;INTERVAL=10"))
    async with everything(world) as receiver:
        receiver.answer = lambda _sent: GONE
        await run(world, 11 * MINUTE)
    answer = await explain(world, name)
    by_status = {one.view.status: one for one in answer.occurrences}
    assert by_status[OccurrenceStatus.FAILED].following.owner == "caller"
    assert "replays it" in by_status[OccurrenceStatus.FAILED].following.what
    assert answer.following == by_status[OccurrenceStatus.PLANNED].following
    await world.cancel(name)
    answer = await explain(world, name)
    owners = {one.following.owner for one in answer.occurrences}
    assert owners | {answer.following.owner} == {"nobody"}


async def test_why_missed_occurrences_did_not_fire(world: World) -> None:
    """After downtime only the latest rings; the ledger's run of skipped ones says why."""
    name = await world.create(every("FREQ=MINUTELY;INTERVAL=10"), policies=Policies())
    world.clock.advance(HOUR + 5 * MINUTE)
    async with everything(world):
        await run(world, MINUTE)
    answer = await explain(world, name)
    by_status = {one.view.status: one for one in answer.occurrences}
    skipped = by_status[OccurrenceStatus.SKIPPED]
    assert "only the latest missed one rings" in skipped.why
    assert by_status[OccurrenceStatus.COMPLETED].deliveries
    assert by_status[OccurrenceStatus.PLANNED].following.owner == "scanner"
    assert answer.following.owner == "scanner"
    names = [one.view.occurrence.occurrence_id for one in answer.occurrences]
    assert names == sorted(names, reverse=True)


@pytest.mark.parametrize("how", ["cancel", "pause"])
async def test_what_a_change_kept_from_firing_is_told(world: World, how: str) -> None:
    """There is no ledger row about it; the record knows."""
    name = await world.create(At(instant=NOON + HOUR))
    await (world.cancel(name) if how == "cancel" else world.pause(name))
    answer = await explain(world, name)
    (one,) = answer.occurrences
    assert one.view.status is OccurrenceStatus.CANCELLED
    assert one.following.owner == "nobody"
    word = {"cancel": "cancelled", "pause": "paused"}[how]
    assert f"the reminder was {word} before it was claimed" in one.why
    assert answer.following.owner == ("nobody" if how == "cancel" else "caller")


async def test_a_retry_of_a_paused_reminder_ends_unsent(world: World) -> None:
    """The answer says so before it happens; a cancel ends it at once."""
    name = await world.create(every("FREQ=DAILY", start_local=(NOON + MINUTE).replace(tzinfo=None)))
    async with everything(world) as receiver:
        receiver.answer = lambda _: asking(HOUR)
        await run(world, 2 * MINUTE)
        await world.pause(name)
        (delivery,) = (await explain(world, name)).occurrences[-1].deliveries
        assert "which ends unsent" in delivery.following.what
        await run(world, 2 * HOUR)
        (delivery,) = (await explain(world, name)).occurrences[-1].deliveries
        assert delivery.row.delivery is DeliveryStatus.CANCELLED
        assert len(receiver.attempts) == 1


async def test_a_trigger_is_told_before_it_rings(world: World) -> None:
    """It stands beside the schedule."""
    name = await world.create(At(instant=NOON + HOUR))
    view = await world.reminders.trigger("ns", name, request_id=None)
    answer = await explain(world, name)
    statuses = {
        one.view.occurrence.occurrence_id: one.following.owner for one in answer.occurrences
    }
    assert statuses[view.occurrence.occurrence_id] == "scanner"
    assert len(statuses) == 2


async def test_only_so_many_and_nobody_elses(world: World) -> None:
    """The newest; a reminder of another namespace is not there."""
    name = await world.create(every("FREQ=MINUTELY"))
    async with everything(world):
        await run(world, 5 * MINUTE)
    answer = await explain(world, name, limit=3)
    assert answer.truncated
    assert len(answer.occurrences) == 3
    assert not (await explain(world, name, limit=100)).truncated
    with pytest.raises(NotFound):
        await world.reminders.explain("other", name, limit=3)

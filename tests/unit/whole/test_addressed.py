"""Recipient records, on the whole way: where it goes, who does not want it, and who sleeps."""

from collections.abc import Callable
from datetime import UTC, datetime, time
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.channels.port import Outcome, Outgoing, Result
from reminders.lifecycle.requests import CreateRequest
from reminders.model.definition import (
    At,
    Channel,
    Email,
    Log,
    Policies,
    Push,
    PushProvider,
    Retry,
    Sms,
    Target,
)
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.recipient import OptOut, PushAddress, QuietHours, QuietRule, Recipient
from tests.unit.lifecycle.world import DAY, HOUR, NOON, SECOND, World, created, definition, every
from tests.unit.whole.harness import OK, Receiver, everything

BUSY = Result(outcome=Outcome.TRANSIENT, status_code=450, error_class="smtp_450")
SOON = NOON + 10 * SECOND
NIGHT = QuietHours(start=time(22), end=time(7))
FCM = PushAddress(token="f1", provider=PushProvider.FCM)
APNS = PushAddress(token="a1", provider=PushProvider.APNS)


@pytest.fixture
def world() -> World:
    """At noon, with one shard."""
    return World()


async def put(world: World, **fields: Any) -> None:
    """The record of ann, whole."""
    asked = Recipient(
        namespace="ns",
        user_id="ann",
        version=0,
        created_at=world.now,
        updated_at=world.now,
        **fields,
    )
    await world.reminders.recipients.put(asked, expected_version=None)


async def remind(world: World, target: Target, at: datetime = SOON, **policies: Any) -> str:
    """Of ann, over that channel."""
    wanted = replace(
        definition(At(instant=at)),
        channels=(Channel(channel_id="c", target=target),),
        policies=Policies(**policies),
    )
    (made,) = await world.reminders.create([CreateRequest(namespace="ns", definition=wanted)])
    return created(made).view.record.reminder_id


async def only(world: World, name: str) -> LedgerRow:
    """Its one delivery."""
    (row,) = await world.ledger(name)
    return row


async def run(
    world: World, until: datetime, answer: Callable[[Outgoing], Result] = lambda _: OK
) -> Receiver:
    """All services until then; they stop, so that the clock can be moved on at once."""
    async with everything(world) as receiver:
        receiver.answer = answer
        await world.clock.run_until(until)
    return receiver


def to(sent: Outgoing) -> str:
    """Where it went."""
    target = sent.channel.target
    assert isinstance(target, Email | Sms | Push)
    return target.to


ANN = {"email": "ann@example.com", "sms": "+33123456789", "push": (FCM, APNS)}


@pytest.mark.parametrize(
    ("target", "address"),
    [
        (Email(to=""), "ann@example.com"),
        (Email(to="work@example.com"), "work@example.com"),
        (Sms(to=""), "+33123456789"),
        (Push(to="", provider=None), "f1"),
        (Push(to="", provider=PushProvider.APNS), "a1"),
        (Push(to="f9", provider=PushProvider.FCM), "f9"),
    ],
)
async def test_its_own_address_or_that_of_the_record(
    world: World, target: Target, address: str
) -> None:
    """Once, to the first device that fits; templates are told the locale."""
    await put(world, locale="fr-CA", **ANN)
    name = await remind(world, target)
    (sent,) = (await run(world, SOON + SECOND)).attempts
    assert (to(sent), sent.locale) == (address, "fr-CA")
    row = await only(world, name)
    assert (row.delivery, row.delivery_key) == (DeliveryStatus.CONFIRMED, sent.delivery_key)


async def test_the_log_asks_no_record(world: World) -> None:
    """Neither for an address nor for opt-outs: its way costs nothing more."""
    await put(world, quiet_hours=QuietHours(start=time(0), end=time(23, 59)), time_zone="UTC")
    await remind(world, Log())
    world.points.clear()
    assert len((await run(world, SOON + SECOND)).attempts) == 1
    assert "recipients.read" not in world.points


async def test_a_retry_goes_to_the_new_address_under_the_same_key(world: World) -> None:
    """What the record says at each attempt decides."""
    await put(world, email="old@example.com")
    name = await remind(world, Email(to=""))
    first = await run(world, SOON + SECOND, lambda _: replace(BUSY, retry_after=3 * SECOND))
    await put(world, email="new@example.com")
    second = await run(world, SOON + 10 * SECOND)
    sent = [*first.attempts, *second.attempts]
    assert [to(each) for each in sent] == ["old@example.com", "new@example.com"]
    assert len({each.delivery_key for each in sent}) == 1
    assert (await only(world, name)).delivery is DeliveryStatus.CONFIRMED


async def test_an_address_that_is_gone_fails_the_delivery(world: World) -> None:
    """For good, with a class of its own; explain says where it was looked for."""
    await put(world, email="ann@example.com")
    name = await remind(world, Email(to=""))
    await put(world, sms="+33123456789")
    assert not (await run(world, SOON + 3 * SECOND)).attempts
    row = await only(world, name)
    assert (row.delivery, row.reason) == (DeliveryStatus.FAILED, "no_address")
    assert [each.error_class for each in row.attempts] == ["no_address"]
    (one,) = (await world.reminders.explain("ns", name, limit=1)).occurrences
    assert "neither the channel nor the user's recipient record had an address" in one.why


async def test_who_opts_out_between_fire_and_retry_gets_no_retry(world: World) -> None:
    """The delivery ends as cancelled, and says why."""
    await put(world, **ANN)
    name = await remind(world, Email(to="ann@example.com"))
    first = await run(world, SOON + SECOND, lambda _: replace(BUSY, retry_after=3 * SECOND))
    assert len(first.attempts) == 1
    await put(world, opt_outs=(OptOut.EMAIL,), **ANN)
    assert not (await run(world, SOON + 10 * SECOND)).attempts
    row = await only(world, name)
    assert (row.delivery, row.reason) == (DeliveryStatus.CANCELLED, "opted_out")
    assert (row.attempt_count, row.next_attempt_at) == (1, None)
    (one,) = (await world.reminders.explain("ns", name, limit=1)).occurrences
    assert one.view.status is OccurrenceStatus.CANCELLED
    assert "the user has opted out" in one.why


@pytest.mark.parametrize(("opted_out", "sends"), [(OptOut.EMAIL, 0), (OptOut.SMS, 1)])
async def test_an_opt_out_is_of_one_kind_whoever_named_the_address(
    world: World, opted_out: OptOut, sends: int
) -> None:
    """Also where the caller did."""
    await put(world, opt_outs=(opted_out,))
    await remind(world, Email(to="ann@example.com"))
    assert len((await run(world, SOON + SECOND)).attempts) == sends


# --- quiet hours ----------------------------------------------------------------------------------


def utc(text: str) -> datetime:
    """An instant."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("rings", "ends"),
    [
        ("2026-06-01T21:30", "2026-06-02T05:00"),  # 23:30 in Paris, until 07:00
        ("2026-06-02T01:00", "2026-06-02T05:00"),  # after midnight
        ("2026-10-24T20:30", "2026-10-25T06:00"),  # the night has an hour more
        ("2026-03-28T21:30", "2026-03-29T05:00"),  # and here one less
    ],
)
async def test_it_waits_until_the_night_is_over(rings: str, ends: str) -> None:
    """Over midnight and over a transition; on record meanwhile, and no attempt."""
    at, end = utc(rings), utc(ends)
    world = World(start=at - 10 * SECOND)
    await put(world, time_zone="Europe/Paris", quiet_hours=NIGHT, **ANN)
    name = await remind(world, Email(to=""), at)
    assert not (await run(world, at + SECOND)).attempts
    row = await only(world, name)
    assert (row.delivery, row.reason) == (DeliveryStatus.PENDING, "quiet_hours")
    assert (row.next_attempt_at, row.attempt_count) == (end, 0)
    answer = await world.reminders.explain("ns", name, limit=1)
    assert (answer.following.owner, answer.following.at) == ("scanner", end)
    assert "when the user's quiet hours end" in answer.following.what
    said = f"the user's quiet hours put 1 off, until {end:%Y-%m-%d %H:%M}"
    assert said in answer.occurrences[0].why
    world.clock.move_to(end - 10 * SECOND)
    receiver = await run(world, end + 3 * SECOND)
    (times,) = receiver.came.values()
    assert [end <= each < end + SECOND for each in times] == [True]
    row = await only(world, name)
    assert (row.delivery, row.reason) == (DeliveryStatus.CONFIRMED, "")
    assert [each.number for each in row.attempts] == [1]
    assert all(state.settled for state in await world.entries(name, since=at - DAY))


AT_NIGHT = NOON + 11 * HOUR
MORNING = NOON + 19 * HOUR


async def asleep(world: World, **fields: Any) -> None:
    """From 22:00 to 07:00 in UTC."""
    await put(world, **{"time_zone": "UTC", "quiet_hours": NIGHT, **ANN, **fields})


async def at_night() -> World:
    """Just before a reminder will fall into quiet hours."""
    world = World(start=AT_NIGHT - 10 * SECOND)
    await asleep(world)
    return world


async def test_hours_that_drop_end_it() -> None:
    """Cancelled, with the reason, and explained."""
    world = await at_night()
    await asleep(world, quiet_hours=replace(NIGHT, rule=QuietRule.DROP))
    name = await remind(world, Sms(to="+33999999999"), AT_NIGHT)
    assert not (await run(world, AT_NIGHT + SECOND)).attempts
    row = await only(world, name)
    assert (row.delivery, row.reason) == (DeliveryStatus.CANCELLED, "quiet_hours")
    assert row.next_attempt_at is None
    (one,) = (await world.reminders.explain("ns", name, limit=1)).occurrences
    assert one.why.startswith("did not fire (cancelled)")
    assert "quiet hours" in one.why


async def test_what_would_expire_before_they_end_ends_at_once() -> None:
    """There is no sense in waiting for it."""
    world = await at_night()
    name = await remind(world, Email(to=""), AT_NIGHT, expire_after=8 * HOUR - SECOND)
    assert not (await run(world, AT_NIGHT + SECOND)).attempts
    row = await only(world, name)
    assert (row.delivery, row.reason) == (DeliveryStatus.EXPIRED, "expired")


async def test_a_retry_waits_as_well_and_its_attempts_count_on() -> None:
    """The wait uses up none of them."""
    evening = AT_NIGHT - HOUR - 5 * SECOND
    world = World(start=evening - 10 * SECOND)
    await asleep(world)
    name = await remind(world, Email(to=""), evening, retry=Retry(max_attempts=2))
    first = await run(world, evening + 10 * SECOND, lambda _: replace(BUSY, retry_after=6 * SECOND))
    row = await only(world, name)
    assert (row.delivery, row.reason) == (DeliveryStatus.RETRYING, "quiet_hours")
    assert (row.attempt_count, row.next_attempt_at) == (1, MORNING)
    world.clock.move_to(MORNING - 10 * SECOND)
    second = await run(world, MORNING + SECOND)
    assert [each.attempt for each in (*first.attempts, *second.attempts)] == [1, 2]
    row = await only(world, name)
    assert (row.delivery, row.attempt_count) == (DeliveryStatus.CONFIRMED, 2)


async def test_the_record_of_the_morning_decides() -> None:
    """Longer hours: it waits again; the address is that of then, and a cancel stops it."""
    world = await at_night()
    names = [await remind(world, Email(to=""), AT_NIGHT) for _ in range(2)]
    await run(world, AT_NIGHT + SECOND)
    longer = replace(NIGHT, end=time(9))
    await asleep(world, quiet_hours=longer, email="new@example.com")
    world.clock.move_to(MORNING - 10 * SECOND)
    assert not (await run(world, MORNING + SECOND)).attempts
    later = MORNING + 2 * HOUR
    assert {(await only(world, name)).next_attempt_at for name in names} == {later}
    await world.cancel(names[0])
    world.clock.move_to(later - 10 * SECOND)
    receiver = await run(world, later + SECOND)
    assert [to(each) for each in receiver.attempts] == ["new@example.com"]
    cancelled, delivered = [await only(world, name) for name in names]
    assert (cancelled.delivery, cancelled.reason) == (DeliveryStatus.CANCELLED, "cancelled")
    assert delivered.delivery is DeliveryStatus.CONFIRMED


async def test_only_what_disturbs_waits() -> None:
    """The log is written at once; e-mail and SMS come in the morning, each once."""
    world = await at_night()
    targets: dict[str, Target] = {
        "log": Log(),
        "email": Email(to=""),
        "sms": Sms(to="+33999999999"),
    }
    wanted = replace(
        definition(At(instant=AT_NIGHT)),
        channels=tuple(Channel(channel_id=each, target=one) for each, one in targets.items()),
    )
    (made,) = await world.reminders.create([CreateRequest(namespace="ns", definition=wanted)])
    name = created(made).view.record.reminder_id
    first = await run(world, AT_NIGHT + SECOND)
    assert [each.channel.channel_id for each in first.attempts] == ["log"]
    (one,) = (await world.reminders.explain("ns", name, limit=1)).occurrences
    assert one.why.startswith("fired: 1 of 3 deliveries have ended")
    assert "quiet hours put 2 off" in one.why
    world.clock.move_to(MORNING - 10 * SECOND)
    second = await run(world, MORNING + SECOND)
    assert sorted(each.channel.channel_id for each in second.attempts) == ["email", "sms"]
    assert {row.delivery for row in await world.ledger(name)} == {DeliveryStatus.CONFIRMED}


async def test_a_rule_goes_on_while_its_occurrences_wait() -> None:
    """Nothing is skipped, nothing rings twice, and what the night brought comes in the morning."""
    world = await at_night()
    start = AT_NIGHT.replace(tzinfo=None)
    rule = every("FREQ=SECONDLY;INTERVAL=5;COUNT=3", start_local=start)
    channels = (Channel(channel_id="c", target=Email(to="")),)
    wanted = replace(definition(rule), channels=channels)
    (made,) = await world.reminders.create([CreateRequest(namespace="ns", definition=wanted)])
    name = created(made).view.record.reminder_id
    assert not (await run(world, AT_NIGHT + 15 * SECOND)).attempts
    assert {row.next_attempt_at for row in await world.ledger(name)} == {MORNING}
    world.clock.move_to(MORNING - 10 * SECOND)
    receiver = await run(world, MORNING + SECOND)
    assert [len(times) for times in receiver.came.values()] == [1, 1, 1]
    assert len({each.delivery_key for each in receiver.attempts}) == 3


async def test_who_opts_out_while_it_waits_gets_nothing() -> None:
    """Opt-outs are asked for again in the morning."""
    world = await at_night()
    name = await remind(world, Push(to="", provider=None), AT_NIGHT)
    await run(world, AT_NIGHT + SECOND)
    await asleep(world, opt_outs=(OptOut.PUSH,))
    world.clock.move_to(MORNING - 10 * SECOND)
    assert not (await run(world, MORNING + SECOND)).attempts
    row = await only(world, name)
    assert (row.delivery, row.reason) == (DeliveryStatus.CANCELLED, "opted_out")


async def test_a_providers_word_for_opted_out_is_a_failure(world: World) -> None:
    """It is an answer to an attempt; only the record's cancels."""
    name = await remind(world, Sms(to="+33123456789"))
    stopped = Result(outcome=Outcome.PERMANENT, status_code=400, error_class="opted_out")
    assert len((await run(world, SOON + SECOND, lambda _: stopped)).attempts) == 1
    assert (await only(world, name)).delivery is DeliveryStatus.FAILED

"""What the recipient record says, and crashes: a job that comes again ends where it would have."""

from collections.abc import Callable
from datetime import time, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from dispatcher.addressing import addressed, hold
from dispatcher.work import LegWork, Work
from reminders.buckets import retry_entry_id
from reminders.model.codec import decode_body, encode
from reminders.model.definition import Channel, Email, Log, Push, PushProvider, Sms, Target, Webhook
from reminders.model.entry import DueEntry, Kind
from reminders.model.ledger import DeliveryStatus
from reminders.model.recipient import OptOut, PushAddress, QuietHours, QuietRule, Recipient

OCCURRENCE = "20261201T090000"
QUIET = QuietHours(start=time(8), end=time(10))
"""The reminder rings at 09:00."""
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def recipient(world: Any, **fields: Any) -> Recipient:
    """Of u1."""
    return Recipient(
        namespace="default",
        user_id="u1",
        version=1,
        created_at=world.AT,
        updated_at=world.AT,
        **{"email": "ada@example.com", "time_zone": "UTC", **fields},
    )


async def mailed(world: Any, target: Target | None = None, **record: Any) -> DueEntry:
    """The entry of a reminder of u1 over e-mail, and u1's record."""
    entry: DueEntry = await world.reminder()
    body = decode_body(entry.body)
    channel = Channel(channel_id="hook", target=target or Email(to=""))
    entry = replace(entry, body=encode(replace(body, channels=(channel,))))
    await put(world, **record)
    world.points.clear()
    return entry


async def put(world: Any, **record: Any) -> None:
    """The record of u1, whole."""
    stands = await world.store.recipients.read("default", "u1")
    expected = stands.version if stands is not None else None
    new = replace(recipient(world, **record), version=(expected or 0) + 1)
    assert await world.store.recipients.put(new, expected=expected)


def raising(world: Any, at: int) -> Callable[[str], Any]:
    """Dies at the n-th point that is passed from now on."""
    passed = -1

    async def hook(_name: str) -> None:
        nonlocal passed
        passed += 1
        if passed == at:
            raise world.Crash

    return hook


# --- crashes --------------------------------------------------------------------------------------

ENDS: dict[str, dict[str, Any]] = {
    "delivered": {},
    "opted_out": {"opt_outs": (OptOut.EMAIL,)},
    "dropped": {"quiet_hours": replace(QUIET, rule=QuietRule.DROP)},
    "waits": {"quiet_hours": QUIET},
    "no_address": {"email": ""},
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_crash_anywhere_ends_as_an_undisturbed_run(worlds: Any, end: str) -> None:
    """At each point in turn. What waits comes back at the same time, under the same name."""
    undisturbed = worlds()
    entry = await mailed(undisturbed, **ENDS[end])
    await undisturbed.runner().run(undisturbed.job(entry))
    points = len(undisturbed.points)
    expected = await undisturbed.row()
    for at in range(points):
        world = worlds()
        entry = await mailed(world, **ENDS[end])
        world.on_point = raising(world, at)
        with pytest.raises(world.Crash):
            await world.runner().run(world.job(entry))
        world.on_point = None
        world.clock.advance(timedelta(seconds=30))
        await world.runner().run(world.job(entry, deliveries=2))
        row = await world.row()
        assert (row.delivery, row.reason) == (
            # after a crash nobody can say that it was not sent: that attempt is on record
            DeliveryStatus.RETRYING if end == "waits" and row.attempts else expected.delivery,
            expected.reason,
        )
        assert row.next_attempt_at == expected.next_attempt_at
        assert await world.handled(entry)
        waiting = await world.waiting()
        assert len(waiting) == (1 if end == "waits" else 0)
        if waiting:
            assert waiting[0].leg.attempt == row.attempt_count + 1
            assert waiting[0].parked == row.parked == 1
        assert len(world.sender.sent) <= (2 if end == "delivered" else 0)


async def test_what_was_sent_before_a_crash_is_on_record_while_it_waits(world: Any) -> None:
    """It died with an attempt under way, and comes back in quiet hours: the repeat waits."""
    entry = await mailed(world)

    async def dies(name: str) -> None:
        if name == "send.after":
            raise world.Crash

    world.on_point = dies
    with pytest.raises(world.Crash):
        await world.runner().run(world.job(entry))
    world.on_point = None
    assert len(world.sender.sent) == 1
    await put(world, quiet_hours=QUIET)
    await world.runner().run(world.job(entry, deliveries=2))
    row = await world.row()
    assert (row.delivery, row.reason) == (DeliveryStatus.RETRYING, "quiet_hours")
    assert [each.error_class for each in row.attempts] == ["outcome_unknown"]
    (waiting,) = await world.waiting()
    world.clock.move_to(waiting.key.ring_at)
    await world.runner().run(world.job(waiting))
    assert [each.attempt for each in world.sender.sent] == [1, 2]
    assert len({each.delivery_key for each in world.sender.sent}) == 1


# --- what waits -----------------------------------------------------------------------------------


async def test_the_job_that_was_put_off_sends_nothing_any_more(world: Any) -> None:
    """Also long after the hours are over: the entry that waits does, once."""
    entry = await mailed(world, quiet_hours=QUIET)
    await world.runner().run(world.job(entry))
    (waiting,) = await world.waiting()
    assert waiting.key.ring_at == world.AT + HOUR
    assert waiting.kind is Kind.PARKED
    first_try = retry_entry_id("r1", OCCURRENCE, "hook", 1)
    assert waiting.key.entry_id == f"{first_try}!1"
    world.clock.move_to(waiting.key.ring_at)
    await world.runner().run(world.job(entry, deliveries=2))
    assert not world.sender.sent
    await world.runner().run(world.job(waiting))
    await world.runner().run(world.job(waiting, deliveries=2))
    await world.runner().run(world.job(entry, deliveries=3))
    assert len(world.sender.sent) == 1
    row = await world.row()
    assert (row.delivery, row.reason, row.parked) == (DeliveryStatus.CONFIRMED, "", 0)


async def test_a_clock_a_little_behind_does_not_find_the_night_going_on(world: Any) -> None:
    """A claim is never early by the reference clock, so the entry's own time counts."""
    entry = await mailed(world, quiet_hours=QUIET)
    await world.runner().run(world.job(entry))
    (waiting,) = await world.waiting()
    world.clock.move_to(waiting.key.ring_at - timedelta(milliseconds=90))
    await world.runner().run(world.job(waiting))
    assert len(world.sender.sent) == 1


async def test_a_night_after_the_night_is_another_wait(world: Any) -> None:
    """Its entry has a name of its own, so that it can be claimed again."""
    entry = await mailed(world, quiet_hours=QUIET)
    await world.runner().run(world.job(entry))
    (first,) = await world.waiting()
    await put(world, quiet_hours=replace(QUIET, end=time(11)))
    world.clock.move_to(first.key.ring_at)
    await world.runner().run(world.job(first))
    (second,) = await world.waiting()
    assert second.key.ring_at == world.AT + 2 * HOUR
    assert second.dedupe_id != first.dedupe_id
    assert (await world.row()).parked == second.parked == 2


async def test_the_wait_is_no_lateness(world: Any) -> None:
    """What the receiver asked for must not look like a slow service."""
    entry = await mailed(world, quiet_hours=QUIET)
    await world.runner().run(world.job(entry))
    (waiting,) = await world.waiting()
    world.clock.move_to(waiting.key.ring_at + 2 * SECOND)
    with capture_logs() as lines:
        await world.runner().run(world.job(waiting))
    (said,) = [line for line in lines if line["event"] == "delivery.attempted"]
    assert said["lateness_ms"] == 2000.0


async def test_nobody_is_burdened_by_what_is_not_sent(world: Any) -> None:
    """It takes no place at its destination, and needs none to end."""
    entry = await mailed(world, opt_outs=(OptOut.EMAIL,))
    world.sender.destination = None  # would raise
    await world.runner().run(world.job(entry))
    assert (await world.row()).reason == "opted_out"


# --- pure -----------------------------------------------------------------------------------------

FCM = PushAddress(token="f", provider=PushProvider.FCM)
APNS = PushAddress(token="a", provider=PushProvider.APNS)


@pytest.mark.parametrize(
    ("target", "record", "found"),
    [
        (Email(to="", subject="s"), {"email": "e"}, Email(to="e", subject="s")),
        (Email(to="own"), {"email": "e"}, Email(to="own")),
        (Email(to=""), {"email": "", "sms": "1"}, Email(to="")),
        (Sms(to=""), {"sms": "1"}, Sms(to="1")),
        (Push(to="", provider=None), {"push": (APNS, FCM)}, Push(to="a", provider=APNS.provider)),
        (
            Push(to="", provider=FCM.provider),
            {"push": (APNS, FCM)},
            Push(to="f", provider=FCM.provider),
        ),
        (
            Push(to="", provider=FCM.provider),
            {"push": (APNS,)},
            Push(to="", provider=FCM.provider),
        ),
        (
            Push(to="x", provider=FCM.provider),
            {"push": (APNS,)},
            Push(to="x", provider=FCM.provider),
        ),
        (Webhook(url="u"), {}, Webhook(url="u")),
        (Log(), {}, Log()),
    ],
)
def test_which_address(world: Any, target: Target, record: dict[str, Any], found: Target) -> None:
    """Its own, else the record's of that kind, else none."""
    assert addressed(target, recipient(world, **record)) == found


async def test_opting_out_goes_before_quiet_hours(world: Any) -> None:
    """What never comes need not wait."""
    entry = await mailed(world)
    work = Work(
        job=world.job(entry),
        entry=entry,
        occurrence=entry.occurrence,  # type: ignore[arg-type]
        raw_body=entry.body,
        body=decode_body(entry.body),
    )
    leg = LegWork(work=work, channel=work.body.channels[0], target="", attempt=1)
    both = recipient(world, quiet_hours=QUIET, opt_outs=(OptOut.EMAIL,))
    found = hold(leg, both, world.AT)
    assert found is not None
    assert (found.reason, found.until) == ("opted_out", None)
    other = recipient(world, quiet_hours=QUIET, opt_outs=(OptOut.SMS,))
    found = hold(leg, other, world.AT)
    assert found is not None
    assert (found.reason, found.until) == ("quiet_hours", world.AT + HOUR)
    assert hold(leg, other, world.AT + HOUR) is None


async def test_a_zone_that_is_not_known_here_disturbs_nobodys_reminder(world: Any) -> None:
    """Zone data may be older here than where the record was checked: it is sent."""
    entry = await mailed(world, quiet_hours=QUIET, time_zone="Mars/Olympus_Mons")
    await world.runner().run(world.job(entry))
    assert len(world.sender.sent) == 1

"""Get, list and ledger."""

import pytest

from reminders.errors import InvalidRequest, NotFound
from reminders.lifecycle import reading
from reminders.lifecycle.targets import Wanted
from reminders.model.definition import At
from reminders.model.entry import DueEntry, Occurrence
from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.record import Status
from tests.unit.lifecycle.world import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    Crash,
    World,
    behind_the_scenes,
    every,
)


async def ring(world: World, entry: DueEntry) -> None:
    """At its time, to its end."""
    world.clock.move_to(max(world.now, entry.key.ring_at))
    await world.claim(entry)
    await world.dispatch()


async def listed(world: World, *, limit: int = 3) -> list[str]:
    """All pages of ann's list."""
    found: list[str] = []
    token = ""
    while True:
        page, _, _ = await world.reminders.pending("ns", "ann", limit=limit, token=token)
        assert len(page.items) <= limit
        found += [view.record.reminder_id for view in page.items]
        token = page.next_token
        if not token:
            return found
        assert len(page.items) == limit


async def total(world: World) -> tuple[int, bool]:
    """And whether it is cut."""
    _, count, capped = await world.reminders.pending("ns", "ann", limit=1, token="")
    return count, capped


# --- get ----------------------------------------------------------------------------------------


async def test_another_namespaces_reminder_reads_as_not_there(world: World) -> None:
    """So ids tell nothing."""
    reminder_id = await world.create()
    for namespace, name in (("other", reminder_id), ("ns", "nobody")):
        with pytest.raises(NotFound):
            await world.reminders.get(namespace, name)


async def test_a_one_shot_is_scheduled_until_it_was_handled_and_fired_from_then_on(
    world: World,
) -> None:
    """Overdue and in flight, it is still ahead."""
    reminder_id = await world.create()
    (entry,) = (await world.stored(reminder_id)).current
    world.clock.advance(2 * HOUR)
    view = await world.reminders.get("ns", reminder_id)
    assert (view.status, len(view.ahead)) == (Status.SCHEDULED, 1)
    await world.claim(entry)
    assert (await world.reminders.get("ns", reminder_id)).status is Status.SCHEDULED
    await world.dispatch()
    view = await world.reminders.get("ns", reminder_id)
    assert (view.status, view.ahead) == (Status.FIRED, ())


async def test_a_rule_between_two_occurrences_is_scheduled(world: World) -> None:
    """Also while its last one ahead waits for the next to be expanded."""
    reminder_id = await world.create(every("FREQ=DAILY"))
    first, second = (await world.stored(reminder_id)).current
    await ring(world, first)
    view = await world.reminders.get("ns", reminder_id)
    assert (view.status, view.ahead[0].key) == (Status.SCHEDULED, second.key)
    await ring(world, second)
    view = await world.reminders.get("ns", reminder_id)
    assert (view.status, view.ahead) == (Status.SCHEDULED, ())


async def test_a_rule_that_has_ended_is_fired(world: World) -> None:
    """Its last occurrence waits for no expansion."""
    reminder_id = await world.create(every("FREQ=DAILY;COUNT=1"))
    (entry,) = (await world.stored(reminder_id)).current
    await ring(world, entry)
    assert (await world.reminders.get("ns", reminder_id)).status is Status.FIRED


async def test_get_finishes_a_change_that_it_meets(world: World) -> None:
    """What it answers is decided."""
    reminder_id = await world.create()

    async def die(point: str) -> None:
        if point == "due.mark":
            raise Crash

    world.on_point = die
    with pytest.raises(Crash):
        await world.cancel(reminder_id)
    world.on_point = None
    assert (await world.reminders.get("ns", reminder_id)).status is Status.CANCELLED


# --- pending ------------------------------------------------------------------------------------


async def test_pages_hold_each_reminder_once_soonest_first(world: World) -> None:
    """A rule has two rows in the index."""
    expected = []
    for hours in range(1, 8):
        if hours % 2:
            start = (NOON + hours * HOUR).replace(tzinfo=None)
            expected.append(await world.create(every("FREQ=DAILY", start_local=start)))
        else:
            expected.append(await world.create(At(instant=NOON + hours * HOUR)))
    for limit in (1, 2, 3, 7, 50):
        assert await listed(world, limit=limit) == expected
    assert await total(world) == (7, False)


async def test_rows_of_one_instant_are_paged_without_loss(world: World) -> None:
    """Ties are broken by id."""
    ids = {await world.create(At(instant=NOON + HOUR)) for _ in range(10)}
    found = await listed(world, limit=3)
    assert (len(found), set(found)) == (10, ids)


async def test_cancelled_ones_leave_and_rescheduled_ones_move(world: World) -> None:
    """At once."""
    a = await world.create(At(instant=NOON + HOUR))
    b = await world.create(At(instant=NOON + 2 * HOUR))
    c = await world.create(every("FREQ=HOURLY"))
    assert await listed(world) == [c, a, b]
    await world.cancel(c)
    await world.reschedule(a, At(instant=NOON + 3 * HOUR))
    assert await listed(world) == [b, a]
    assert await total(world) == (2, False)


async def test_overdue_ones_stay_visible_and_count_and_rung_ones_do_not(world: World) -> None:
    """A list shows what should have rung and did not."""
    a = await world.create(At(instant=NOON + MINUTE))
    b = await world.create(At(instant=NOON + MINUTE))
    (entry,) = (await world.stored(a)).current
    await ring(world, entry)
    world.clock.advance(10 * MINUTE)
    assert await listed(world) == [b]
    assert await total(world) == (1, False)


async def test_a_rule_whose_first_occurrence_hangs_is_listed_by_its_next(world: World) -> None:
    """The first one is too long overdue for the list."""
    reminder_id = await world.create(every("FREQ=DAILY"))
    world.clock.advance(5 * HOUR)
    assert await listed(world) == [reminder_id]
    assert await total(world) == (1, False)


async def test_one_that_a_late_writer_moved_is_still_listed(world: World) -> None:
    """The index knows the promise, not the place."""

    async def slow(point: str) -> None:
        if point == "records.create.done":
            world.on_point = None
            world.clock.advance(5 * MINUTE)

    world.on_point = slow
    reminder_id = await world.create(At(instant=NOON + SECOND))
    assert await listed(world) == [reminder_id]


async def test_the_total_is_cut_where_counting_would_cost_too_much(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so."""
    monkeypatch.setattr(reading, "COUNTED", 3)
    for _ in range(3):
        await world.create()
    assert await total(world) == (3, False)
    await world.create()
    assert await total(world) == (3, True)


@pytest.mark.parametrize("token", ["x", "====", "é", "gaFh"])
async def test_a_page_token_that_is_none_is_refused(world: World, token: str) -> None:
    """As the caller's mistake."""
    with pytest.raises(InvalidRequest):
        await world.reminders.pending("ns", "ann", limit=1, token=token)


# --- ledger -------------------------------------------------------------------------------------


async def record_ring(world: World, reminder_id: str, entry: DueEntry, *channels: str) -> None:
    """Into the ledger only."""
    assert entry.occurrence is not None
    with behind_the_scenes():
        await world.store.ledger.write(
            [row(reminder_id, entry.occurrence, channel) for channel in channels], at=world.now
        )


def row(
    reminder_id: str,
    occurrence: Occurrence,
    channel: str,
    delivery: DeliveryStatus = DeliveryStatus.DELIVERED,
) -> LedgerRow:
    """One delivery."""
    return LedgerRow(
        namespace="ns",
        reminder_id=reminder_id,
        reminder_version=1,
        occurrence=occurrence,
        channel_id=channel,
        delivery=delivery,
    )


async def all_occurrences(world: World, reminder_id: str, limit: int) -> list[tuple[str, str]]:
    """Over all pages: id and status."""
    found: list[tuple[str, str]] = []
    token = ""
    while True:
        page = await world.reminders.occurrences("ns", reminder_id, limit=limit, token=token)
        found += [(view.occurrence.occurrence_id, view.status.value) for view in page.items]
        token = page.next_token
        if not token:
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
async def test_occurrence_pages_go_from_planned_to_past(world: World, limit: int) -> None:
    """Planned ones are not lost where a page ends among them."""
    reminder_id = await world.create(every("FREQ=DAILY"))
    one, two = (await world.stored(reminder_id)).current
    for days in (3, 2, 1):
        past = one.occurrence
        assert past is not None
        local = past.nominal_local - days * DAY
        old = Occurrence(
            occurrence_id=local.strftime("%Y%m%dT%H%M%S"),
            nominal_local=local,
            planned_local=local,
            zone="UTC",
            planned_at=past.planned_at - days * DAY,
            fire_at=past.fire_at - days * DAY,
            zone_data="x",
        )
        with behind_the_scenes():
            await world.store.ledger.write(
                [row(reminder_id, old, c) for c in ("log", "web")], at=world.now
            )
    world.clock.advance(SECOND)
    await ring(world, one)
    assert await all_occurrences(world, reminder_id, limit) == [
        ("20260602T120000", "planned"),
        ("20260601T120000", "completed"),
        ("20260531T120000", "completed"),
        ("20260530T120000", "completed"),
        ("20260529T120000", "completed"),
    ]
    assert two.key.ring_at > world.now


async def test_one_that_was_moved_nearer_is_listed_in_its_place(world: World) -> None:
    """Behind what was recorded of a later local time."""
    reminder_id = await world.create(At(instant=NOON + 5 * HOUR))
    (entry,) = (await world.stored(reminder_id)).current
    await record_ring(world, reminder_id, entry, "log")
    await world.reschedule(reminder_id, At(instant=NOON + HOUR))
    for limit in (1, 10):
        assert await all_occurrences(world, reminder_id, limit) == [
            ("20260601T170000Z", "completed"),
            ("20260601T130000Z", "planned"),
        ]


@pytest.mark.parametrize(
    ("deliveries", "expected"),
    [
        ([DeliveryStatus.DELIVERED, DeliveryStatus.CONFIRMED], OccurrenceStatus.COMPLETED),
        ([DeliveryStatus.DELIVERED, DeliveryStatus.RETRYING], OccurrenceStatus.CLAIMED),
        ([DeliveryStatus.DELIVERED, DeliveryStatus.FAILED], OccurrenceStatus.FAILED),
        ([DeliveryStatus.CANCELLED, DeliveryStatus.CANCELLED], OccurrenceStatus.CANCELLED),
        ([DeliveryStatus.DELIVERED, DeliveryStatus.CANCELLED], OccurrenceStatus.COMPLETED),
        ([DeliveryStatus.FAILED, DeliveryStatus.CANCELLED], OccurrenceStatus.FAILED),
        ([DeliveryStatus.EXPIRED], OccurrenceStatus.EXPIRED),
    ],
)
async def test_an_occurrence_sums_up_its_deliveries(
    world: World, deliveries: list[DeliveryStatus], expected: OccurrenceStatus
) -> None:
    """Of all channels."""
    reminder_id = await world.create()
    (entry,) = (await world.stored(reminder_id)).current
    assert entry.occurrence is not None
    with behind_the_scenes():
        await world.store.ledger.write(
            [row(reminder_id, entry.occurrence, f"c{i}", d) for i, d in enumerate(deliveries)],
            at=world.now,
        )
    page = await world.reminders.occurrences("ns", reminder_id, limit=5, token="")
    assert [(v.status, v.target_count) for v in page.items] == [(expected, len(deliveries))]


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_delivery_pages_hold_each_row_once(world: World, limit: int) -> None:
    """Newest occurrence first; one without deliveries has no row."""
    reminder_id = await world.create(every("FREQ=DAILY"))
    one, two = (await world.stored(reminder_id)).current
    await record_ring(world, reminder_id, one, "a", "b", "c")
    await record_ring(world, reminder_id, two, "a")
    found: list[tuple[str, str]] = []
    token = ""
    while True:
        page = await world.reminders.deliveries(
            "ns", reminder_id, Wanted(), limit=limit, token=token
        )
        found += [(r.occurrence.occurrence_id[:8], r.channel_id) for r in page.items]
        token = page.next_token
        if not token:
            break
    assert found == [("20260602", "a")] + [("20260601", name) for name in "cba"]


async def test_the_ledger_is_read_by_its_owner_only(world: World) -> None:
    """As everything else."""
    reminder_id = await world.create()
    with pytest.raises(NotFound):
        await world.reminders.occurrences("other", reminder_id, limit=1, token="")
    with pytest.raises(NotFound):
        await world.reminders.deliveries("other", reminder_id, Wanted(), limit=1, token="")

"""What happened."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.ports import Store
from tests.contract.store.samples import SECOND, US, fresh_minute, ledger_row, unique

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOW = datetime.now(UTC)


def order(row: LedgerRow) -> tuple[str, str, str]:
    """Its place in the ledger."""
    return row.occurrence.occurrence_id, row.channel_id, row.target


async def test_rows_read_as_written(store: Store) -> None:
    """One by occurrence, channel and target; an occurrence without deliveries has an empty
    channel.
    """
    reminder_id, at = unique("r"), fresh_minute()
    delivery = ledger_row(reminder_id, at, target="t")
    skipped = ledger_row(
        reminder_id, at, "", delivery=None, ended=OccurrenceStatus.SKIPPED, reason="superseded"
    )
    await store.ledger.write([delivery, skipped], at=NOW)
    occurrence_id = delivery.occurrence.occurrence_id
    assert await store.ledger.read(reminder_id, occurrence_id, "log", "t") == delivery
    assert await store.ledger.read(reminder_id, occurrence_id) == skipped
    assert await store.ledger.read(reminder_id, occurrence_id, "log") is None
    assert await store.ledger.read(unique("r"), occurrence_id) is None


async def test_the_later_write_replaces_a_row_whole(store: Store) -> None:
    """By `at`, in whichever order they arrive."""
    first = ledger_row(unique("r"), fresh_minute(), delivery=DeliveryStatus.SENDING, attempts=())
    second = replace(first, delivery=DeliveryStatus.DELIVERED, provider_event_id="p")
    place = (first.reminder_id, *order(first))
    await store.ledger.write([first], at=NOW)
    await store.ledger.write([second], at=NOW + US)
    assert await store.ledger.read(*place) == second
    await store.ledger.write([first], at=NOW)
    assert await store.ledger.read(*place) == second
    await store.ledger.write([first], at=NOW + SECOND)
    assert await store.ledger.read(*place) == first


async def test_pages_run_from_the_newest(store: Store) -> None:
    """Then by channel descending; page after page, none twice and none missing. Rows of a topic's
    subscribers are not among them, however many there are.
    """
    reminder_id, minute = unique("r"), fresh_minute()
    told = [ledger_row(reminder_id, minute, "a", target=f"s{n}") for n in range(50)]
    await store.ledger.write(told, at=NOW)
    rows = [
        ledger_row(reminder_id, minute + n * SECOND, channel)
        for n in range(4)
        for channel in ("", "a", "b", "c")
    ]
    await store.ledger.write(rows, at=NOW)
    rows.sort(key=order, reverse=True)
    for limit in (1, 5, 100):
        seen: list[LedgerRow] = []
        while True:
            page = await store.ledger.page(
                reminder_id, after=order(seen[-1]) if seen else None, limit=limit
            )
            seen += page
            if len(page) < limit:
                break
        assert seen == rows


async def test_pages_of_one_occurrence(store: Store) -> None:
    """Only its rows, wherever `after` stands."""
    reminder_id, minute = unique("r"), fresh_minute()
    rows = [
        ledger_row(reminder_id, minute + n * SECOND, channel)
        for n in range(3)
        for channel in ("a", "b", "c")
    ]
    await store.ledger.write(rows, at=NOW)
    rows.sort(key=order, reverse=True)
    newest, middle, oldest = rows[:3], rows[3:6], rows[6:]
    occurrence_id = middle[0].occurrence.occurrence_id

    async def page(after: LedgerRow | None, limit: int = 9) -> list[LedgerRow]:
        return await store.ledger.page(
            reminder_id,
            occurrence_id=occurrence_id,
            after=order(after) if after else None,
            limit=limit,
        )

    assert await page(None) == middle
    assert await page(None, limit=2) == middle[:2]
    assert await page(middle[0]) == middle[1:]
    assert await page(newest[2]) == middle
    assert await page(oldest[0]) == []

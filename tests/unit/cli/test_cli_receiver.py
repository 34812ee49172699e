"""The demo's webhook, and the row it prints."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from time_machine import travel

from reminders.cli.demo import row
from reminders.cli.receiver import Arrival, Receiver, receiving

PLANNED = datetime(2026, 12, 24, 8, 0, tzinfo=UTC)
BODY = {
    "eventId": "k1",
    "payload": {"title": "Tea"},
    "reminderId": "r1",
    "occurrenceId": "20261224T090000",
    "plannedLocal": "2026-12-24T09:00:00",
    "timeZone": "Europe/Paris",
    "plannedAt": "2026-12-24T08:00:00.000Z",
}


@pytest.fixture
def receiver(unused_tcp_port: int) -> Iterator[tuple[Receiver, str]]:
    """A receiver that listens, and its URL."""
    with receiving("127.0.0.1", unused_tcp_port) as listening:
        yield listening, f"http://127.0.0.1:{unused_tcp_port}/hook"


async def post(url: str, body: Any) -> int:
    """The status of the answer."""
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
        return answer.status


async def test_an_arrival_knows_how_late_it_is_and_whether_it_is_a_repeat(
    receiver: tuple[Receiver, str],
) -> None:
    """Lateness is received less promised; a repeat has a delivery key that came before."""
    listening, url = receiver
    with travel(PLANNED + timedelta(milliseconds=12), tick=False):
        assert await post(url, BODY) == 200
        assert await post(url, BODY) == 200
    first, second = listening.arrivals.get_nowait(), listening.arrivals.get_nowait()
    assert first.lateness == timedelta(milliseconds=12)
    assert (first.repeat, second.repeat) == (False, True)


@pytest.mark.parametrize("body", [[], {}, {**BODY, "plannedAt": "soon"}])
async def test_what_is_no_reminder_is_refused(receiver: tuple[Receiver, str], body: Any) -> None:
    """400, and nothing is shown."""
    listening, url = receiver
    assert await post(url, body) == 400
    assert listening.arrivals.empty()


def test_a_port_that_is_taken_is_an_error(receiver: tuple[Receiver, str]) -> None:
    """And leaves no thread behind."""
    port = int(receiver[1].rpartition(":")[2].partition("/")[0])
    with pytest.raises(OSError, match="in use"), receiving("127.0.0.1", port):
        pytest.fail("two listen on one port")
    assert [each.name for each in threading.enumerate()].count("demo-receiver") == 1


def test_a_row_shows_lateness_promise_and_title() -> None:
    """What the demo prints for a delivery."""
    arrival = Arrival(
        received_at=PLANNED + timedelta(milliseconds=12),
        planned_at=PLANNED,
        planned_local="2026-12-24T09:00:00",
        time_zone="Europe/Paris",
        reminder_id="r1",
        payload={"title": "Tea"},
        repeat=False,
    )
    assert row(arrival).split() == [
        "08:00:00.012",
        *("12", "ms", "2026-12-24", "09:00:00", "Europe/Paris", "Tea"),
    ]

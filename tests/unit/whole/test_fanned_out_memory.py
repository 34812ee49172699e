"""What a dispatcher holds of a fan-out does not grow with the topic."""

import logging
import os
import tracemalloc
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
import structlog
from msgspec.structs import replace

from dispatcher.channels.port import Outgoing, Result
from dispatcher.fanout import Fanouts
from dispatcher.room import PAGES, UNSETTLED
from dispatcher.stretch import PAGE, Stretch, Stretches
from dispatcher.work import Work
from reminders.lifecycle import CreateRequest
from reminders.model.definition import At, Channel, Log
from reminders.model.ledger import LedgerRow
from reminders.model.subscriber import Subscriber, bucket_of
from tests.unit.lifecycle.world import MINUTE, NOON, SECOND, World, definition
from tests.unit.whole.harness import OK, Receiver, everything

MANY = int(os.environ.get("TOCSIN_TEST_FANOUT", "8000"))
TOPIC = "all"


class Crowd:
    """So many subscribers, none of them kept: each is made when its page is read."""

    def __init__(self, count: int) -> None:
        self._count = count

    async def count(self, _namespace: str, _topic_id: str) -> int:
        """All."""
        return self._count

    async def page(
        self, namespace: str, topic_id: str, bucket: int, *, after: str | None = None, limit: int
    ) -> list[Subscriber]:
        """By their numbers."""
        found: list[Subscriber] = []
        for number in range(int(after) + 1 if after else 0, self._count):
            name = f"{number:08}"
            if bucket_of(name) == bucket:
                found.append(
                    Subscriber(
                        namespace=namespace,
                        topic_id=topic_id,
                        subscriber_id=name,
                        channel=Channel(channel_id="log", target=Log()),
                        created_at=NOON,
                        updated_at=NOON,
                        stamp=1,
                    )
                )
                if len(found) == limit:
                    break
        return found

    async def read_many(
        self, _namespace: str, _topic_id: str, _ids: Collection[str]
    ) -> Mapping[str, Subscriber]:
        """Nobody is sent anything again."""
        return {}


class Forgetful:
    """A ledger that keeps the rows of occurrences, and of deliveries only how many there were."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger
        self.page = ledger.page
        self.read = ledger.read
        self.deliveries = 0

    async def write(self, rows: Sequence[LedgerRow], *, at: datetime) -> None:
        """Counts."""
        self.deliveries += sum(bool(row.target) for row in rows)
        await self._ledger.write([row for row in rows if not row.target], at=at)


class Nowhere(list[str]):
    """Keeps nothing of where the code has been."""

    def append(self, _point: str) -> None:
        """Forgets it."""


class Counting(Receiver):
    """Remembers only how much it was."""

    number = 0

    async def send(self, _outgoing: Outgoing) -> Result:
        """Takes a moment, so that as many as may be are under way."""
        self.number += 1
        await self.world.clock.sleep_until(self.world.now + timedelta(milliseconds=50))
        return OK


class InHand:
    """How many legs of fan-outs are in memory: from their page's reading to their end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        self.most = 0
        read, deliver = Stretches.read, Fanouts._deliver

        async def reading(stretches: Stretches, work: Work) -> Stretch:
            found = await read(stretches, work)
            self.now += len(found.legs)
            self.most = max(self.most, self.now)
            return found

        async def delivering(fanouts: Fanouts, *leg: Any) -> None:
            await deliver(fanouts, *leg)
            self.now -= 1

        monkeypatch.setattr(Stretches, "read", reading)
        monkeypatch.setattr(Fanouts, "_deliver", delivering)


async def tell(count: int) -> None:
    """A reminder to so many, until the last one has it."""
    world = World()
    world.points = Nowhere()
    ledger = Forgetful(world.store.ledger)
    world.store.subscribers = Crowd(count)  # type: ignore[assignment]
    world.store.ledger = ledger  # type: ignore[assignment]
    made = replace(definition(At(instant=NOON + MINUTE)), user_id="", channels=(), topic_id=TOPIC)
    await world.reminders.create([CreateRequest(namespace="ns", definition=made)])
    async with everything(world, Counting) as receiver:
        while ledger.deliveries < count:
            await world.clock.run_until(world.now + 10 * SECOND)
            assert world.now < NOON + 60 * MINUTE
    assert isinstance(receiver, Counting)
    assert receiver.number == count


@pytest.fixture
def quiet() -> Iterator[None]:
    """A line for each delivery is most of the work here."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    yield
    structlog.reset_defaults()


@pytest.mark.usefixtures("quiet")
async def test_what_is_in_hand_is_bounded_whatever_the_topic_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A few pages, the sends under way, and a batch that is being recorded. The receivers take a
    moment, so as many are under way as may be.
    """
    in_hand = InHand(monkeypatch)
    await tell(MANY)
    assert in_hand.now == 0
    assert 128 < in_hand.most <= PAGES * PAGE + UNSETTLED


@pytest.mark.skipif("TOCSIN_TEST_FANOUT" not in os.environ, reason="slow: bench tells a million")
@pytest.mark.usefixtures("quiet")
async def test_memory_does_not_grow_with_the_topic() -> None:
    """By the bytes that Python has given out; the stores here keep a little for each page."""
    peaks = []
    for count in (MANY // 10, MANY):
        tracemalloc.start()
        await tell(count)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0], peaks

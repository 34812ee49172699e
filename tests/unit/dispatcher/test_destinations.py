"""Places, seats and the line: a slow receiver keeps nobody else out. All in virtual time."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dispatcher.bucket import Rate
from dispatcher.channels.port import NOBODY, Destination, Outcome, Result
from dispatcher.destinations import Destinations, Limits
from dispatcher.line import Place
from dispatcher.standing import Change, Standings, Terms, TurnedAway
from reminders.clock import ManualClock

OK = Result(outcome=Outcome.OK, status_code=200)
TIMED_OUT = Result(outcome=Outcome.UNKNOWN, error_class="timeout")
SECOND = timedelta(seconds=1)
TIMEOUT_S = 8.0


def at(host: str, endpoint: str = "e") -> Destination:
    """An endpoint at a host."""
    return Destination(name=host, endpoint=endpoint)


@dataclass
class Run:
    """What became of attempts."""

    clock: ManualClock = field(default_factory=ManualClock)
    changes: list[Change] = field(default_factory=list)
    seats: int = 16
    terms: Terms = field(default_factory=lambda: Terms(places=4))
    max_wait: timedelta = 2 * SECOND
    started: dict[str, list[float]] = field(default_factory=dict)
    """By host: how long each attempt waited."""
    away: dict[str, list[TurnedAway]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.destinations = Destinations(
            self.clock,
            Limits(seats=self.seats, max_wait=self.max_wait),
            Standings(self.terms, self.changes.append),
        )
        self.began_at = self.clock.now()

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return (self.clock.now() - self.began_at).total_seconds()

    async def until(self, seconds: float) -> None:
        """Lets time pass."""
        await self.clock.run_until(self.began_at + timedelta(seconds=seconds))

    async def attempt(
        self, destination: Destination, took_s: float, *, came: float | None = None
    ) -> None:
        """One, which takes so long or its time is up."""
        came = self.now if came is None else came
        place = await self.destinations.enter(destination)
        if isinstance(place, TurnedAway):
            self.away.setdefault(destination.name, []).append(place)
            return
        self.started.setdefault(destination.name, []).append(self.now - came)
        self.destinations.sending(place)
        took = timedelta(seconds=min(took_s, TIMEOUT_S))
        try:
            await self.clock.sleep_until(self.clock.now() + took)
        finally:
            self.destinations.leave(place, OK if took_s < TIMEOUT_S else TIMED_OUT)

    def begin(self, destination: Destination, took_s: float, **more: float) -> asyncio.Task[None]:
        """The same beside others."""
        return asyncio.create_task(self.attempt(destination, took_s, **more))

    async def prove(self, hosts: Iterable[str]) -> None:
        """They answer at once, twice."""
        for _ in range(2):
            tasks = [self.begin(at(host), 0.001) for host in hosts]
            await self.until(self.now + 0.5)
            await asyncio.gather(*tasks)
        self.started.clear()
        self.away.clear()


@asynccontextmanager
async def running(run: Run) -> AsyncIterator[Run]:
    """With the loops of the service."""
    loops = [
        asyncio.create_task(run.destinations.keep_seats()),
        asyncio.create_task(run.destinations.keep_line()),
    ]
    others = asyncio.all_tasks()
    try:
        yield run
        for loop in loops:
            if loop.done():
                loop.result()
    finally:
        left = [*loops, *(asyncio.all_tasks() - others)]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def test_places_are_given_in_order_of_waiting() -> None:
    """First come, first served, one for each that leaves."""
    async with running(Run()) as run:
        await run.prove(["a"])
        for _ in range(6):
            run.begin(at("a"), 0.2)
        await run.until(run.now + 1)
        assert run.started["a"] == pytest.approx([0, 0, 0, 0, 0.2, 0.2])


async def test_hosts_do_not_share_places_and_nobody_has_no_limit() -> None:
    """Eight run at once; what burdens nobody needs no place."""
    async with running(Run(seats=64)) as run:
        await run.prove(["a", "b"])
        for host in ("a", "b"):
            for _ in range(4):
                run.begin(at(host), 0.2)
        for _ in range(50):
            assert isinstance(await run.destinations.enter(NOBODY), Place)
        await run.until(run.now + 0.1)
        assert run.started == {"a": [0] * 4, "b": [0] * 4}


async def test_what_hangs_goes_aside_and_the_rest_is_turned_away_at_once() -> None:
    """Of the sixteen seats none is held any longer than a second, and nothing of it waits."""
    async with running(Run(terms=Terms(places=64))) as run:
        for number in range(40):
            run.begin(at(f"h{number}"), TIMEOUT_S)
        await run.until(1.05)
        assert run.destinations.capacity.seated <= 4
        await run.until(2.2)
        assert run.destinations.pressing == 0
        known = list(run.started)
        assert len(known) >= 6
        run.away.clear()
        capacity = run.destinations.capacity
        places = capacity.shares.aside - capacity.aside
        for number in range(places + 10):
            run.begin(at(known[number % len(known)]), TIMEOUT_S)
        await asyncio.sleep(0)
        turned = [away for host in known for away in run.away.get(host, [])]
        assert [away.reason for away in turned] == ["slow"] * 10


async def test_who_finds_no_place_aside_is_told_when_there_may_be_one() -> None:
    """Everybody another time, as far apart as places get free; nobody to wait more than a minute.

    Coming back on a schedule of its own, each would be turned away again and again.
    """
    async with running(Run(seats=1, terms=Terms(places=64))) as run:
        await run.prove(["a"])
        for _ in range(2):  # now it is known to be slow
            run.begin(at("a"), 4)
            await run.until(run.now + 4.5)
        for _ in range(40):  # both places aside, taken for 4 s each
            run.begin(at("a"), 4)
            run.begin(at("a"), 4)
            await run.until(run.now + 4.1)
        for _ in range(2):
            run.begin(at("a"), 4)
        run.away.clear()
        for _ in range(50):
            run.begin(at("a"), 4)
        await asyncio.sleep(0)
        waits = [away.wait_s for away in run.away["a"]]
        assert waits[:20] == pytest.approx([2 * n for n in range(1, 21)], rel=0.05)
        assert waits[-1] == 60
        run.away.clear()
        await run.until(run.now + 50)
        for _ in range(3):
            run.begin(at("a"), 4)
        await asyncio.sleep(0)
        assert 10 < run.away["a"][0].wait_s < 15, "behind those who were told before"


async def test_slow_endpoints_of_a_host_leave_three_quarters_of_its_places() -> None:
    """The customers of one platform do not share each other's fate."""
    async with running(Run(terms=Terms(places=8), seats=64)) as run:
        await run.prove(["saas"])
        for number in range(20):
            run.begin(at("saas", f"bad{number}"), TIMEOUT_S)
            await run.until(run.now + 1.2)
        waits = run.started["saas"]
        run.started.clear()
        for _ in range(6):
            run.begin(at("saas"), 0.1)
        await run.until(run.now + 0.05)
        assert run.started["saas"] == [0] * 6
        assert len(waits) < 20


async def test_a_hiccup_makes_nobody_slow_and_two_in_a_row_do() -> None:
    """Until it has answered soon for a while."""
    async with running(Run()) as run:
        await run.prove(["a"])
        run.begin(at("a"), 3)
        await run.until(run.now + 1.5)
        run.begin(at("a"), 0.01)
        await run.until(run.now + 2)
        assert "a" not in run.away
        for _ in range(2):
            run.begin(at("a"), 3)
        await run.until(run.now + 1.5)
        for _ in range(6):
            run.begin(at("a"), 0.01)
        await run.until(run.now + 3)
        assert {away.reason for away in run.away["a"]} == {"slow"}
        run.away.clear()
        for _ in range(12):
            run.begin(at("a"), 0.01)
            await run.until(run.now + 0.1)
        for _ in range(4):
            run.begin(at("a"), 0.01)
        assert not run.away


async def test_time_in_which_this_process_stood_still_is_nobodys_slowness() -> None:
    """Five seconds, with four attempts under way that had been answered long before."""
    async with running(Run()) as run:
        await run.prove(["a"])
        for _ in range(4):
            run.begin(at("a"), 0.05)
        await run.until(run.now)
        run.clock.advance(5 * SECOND)
        await run.until(run.now + 0.2)
        for _ in range(4):
            run.begin(at("a"), 0.05)
        await run.until(run.now + 0.2)
        assert run.started["a"] == [0] * 8
        assert run.destinations.capacity.aside == 0


async def test_a_provider_is_never_slow() -> None:
    """It is the operator's own, and there is no other."""
    mail = Destination(name="smtp", provider=True)
    async with running(Run(terms=Terms(places=64, own_places={"smtp": 3}))) as run:
        for _ in range(12):
            run.begin(mail, 1.5)
            await run.until(run.now + 1)
        assert len(run.started["smtp"]) == 12
        for _ in range(5):
            run.begin(mail, 1.5)
        await run.until(run.now + 0.01)
        assert run.destinations._queues["smtp"].running == 3


async def test_a_breaker_turns_away_until_its_time_and_then_lets_one_through() -> None:
    """And everybody once that one was answered."""
    async with running(Run()) as run:
        for _ in range(5):
            run.begin(at("a"), TIMEOUT_S)
            await run.until(run.now + 9)
        assert [change.state.value for change in run.changes] == ["open"]
        run.started.clear()
        run.begin(at("a"), 0.1)
        await run.until(run.now + 0.5)
        assert run.away["a"][-1].reason == "open"
        assert run.away["a"][-1].wait_s == pytest.approx(4.0)
        await run.until(run.now + 4)
        run.begin(at("a"), 0.1)
        run.begin(at("a"), 0.1)
        await run.until(run.now + 0.5)
        assert len(run.started["a"]) == 1
        run.begin(at("a"), 0.1)
        await run.until(run.now + 0.5)
        assert len(run.started["a"]) == 2
        assert [change.state.value for change in run.changes] == ["open", "half_open", "closed"]


async def test_retry_after_keeps_the_whole_endpoint_away_and_no_other() -> None:
    """For exactly as long."""
    asked = Result(outcome=Outcome.RATE_LIMITED, status_code=429, retry_after=15 * SECOND)
    async with running(Run()) as run:
        place = await run.destinations.enter(at("a", "x"))
        assert isinstance(place, Place)
        run.destinations.leave(place, asked)
        assert isinstance(await run.destinations.enter(at("a", "y")), Place)
        await run.until(5)
        again = await run.destinations.enter(at("a", "x"))
        assert again == TurnedAway(reason="asked", wait_s=10.0)
        await run.until(15)
        assert isinstance(await run.destinations.enter(at("a", "x")), Place)


async def test_a_rate_is_kept_to_and_the_rest_told_when_to_come() -> None:
    """Two at once, then ten a second; who would wait longer than the wait comes back in turn."""
    terms = Terms(places=64, rate_of=lambda _: Rate(per_s=10, burst=2))
    async with running(Run(terms=terms, seats=256, max_wait=0.5 * SECOND)) as run:
        for _ in range(10):
            run.begin(at("a"), 0.001)
        await run.until(1)
        assert run.started["a"] == pytest.approx([0, 0, 0.1, 0.2, 0.3, 0.4, 0.5])
        waits = [away.wait_s for away in run.away["a"]]
        assert {away.reason for away in run.away["a"]} == {"rate"}
        assert waits == pytest.approx([0.6, 0.7, 0.8])


@pytest.mark.parametrize("in_hand", [False, True])
async def test_a_cancelled_waiter_gives_its_place_on(in_hand: bool) -> None:
    """Whether the place came in the same instant or not."""
    async with running(Run(terms=Terms(places=1))) as run:
        await run.prove(["a"])
        place = await run.destinations.enter(at("a"))
        assert isinstance(place, Place)
        first = asyncio.create_task(run.destinations.enter(at("a")))
        second = asyncio.create_task(run.destinations.enter(at("a")))
        await run.until(run.now)
        if in_hand:
            run.destinations.leave(place)
            first.cancel()
        else:
            first.cancel()
            await run.until(run.now)
            run.destinations.leave(place)
        given = await second
        assert isinstance(given, Place)
        run.destinations.leave(given)
        assert run.destinations.pressing == 0
        assert not run.destinations._queues


async def test_pages_leave_half_of_the_seats() -> None:
    """A fan-out begins its legs one by one, as `turn` lets it; what hangs does not count."""
    async with running(Run(terms=Terms(places=64))) as run:
        await run.prove(["a"])

        async def page() -> None:
            for _ in range(100):
                await run.destinations.turn()
                run.begin(at("a"), TIMEOUT_S)
                await asyncio.sleep(0)

        asyncio.create_task(page())  # noqa: RUF006 - cancelled with the run
        await run.until(run.now + 0.5)
        assert run.destinations.capacity.seated == 8
        assert run.destinations.room == 8
        await run.until(run.now + 1)
        assert len(run.started["a"]) == 8 + 16, (
            "known as slow by now, it has a quarter of the places"
        )
        assert len(run.away["a"]) == 76


async def test_destinations_that_nobody_uses_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There may be a million over time; those in use are kept."""
    monkeypatch.setattr("dispatcher.standing.REMEMBERED", 100)
    run = Run(terms=Terms(places=1))
    kept = await run.destinations.enter(at("kept"))
    assert isinstance(kept, Place)
    for number in range(500):
        place = await run.destinations.enter(at(f"host{number % 50}", str(number)))
        assert isinstance(place, Place)
        run.destinations.leave(place, OK)
    standings = run.destinations._standings
    assert len(standings) == 100
    assert len(standings._hosts) <= 51
    assert kept.endpoint is standings.find(at("kept"))
    assert list(run.destinations._queues) == ["kept"]


HOSTS = 12
LOAD = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.0, 0.1, 0.5, 2.0]),
        st.integers(0, HOSTS - 1),
        st.integers(1, 12),
        st.sampled_from([0.05, 0.9, TIMEOUT_S, TIMEOUT_S, TIMEOUT_S]),
    ),
    max_size=30,
)
"""After so many seconds: that host is sent so many, each of which takes so long."""


TURNED_AWAY_AND_BACK = [(0, 0, 4, 0.9), (0.1, 0, 1, 0.05), (0.1, 0, 1, 0.05)]
TURNED_AWAY_AND_BACK += [(0.1, 1, 1, 0.05), (0.5, 0, 1, 0.05), (0.0, 1, 1, 0.05)]
SHORT_OF_SEATS = [(0.0, 1, 7, 0.9), (0.0, 2, 6, 0.9), (0.0, 3, 7, 0.9)]
SHORT_OF_SEATS += [(0.0, 0, 1, 0.05)] * 6


@settings(max_examples=40, deadline=None)
@given(LOAD, st.booleans())
@example(TURNED_AWAY_AND_BACK, False)
@example(SHORT_OF_SEATS, True)
async def test_a_healthy_destination_starts_within_its_bound_whatever_hangs_beside_it(
    load: list[tuple[float, int, int, float]], proven: bool
) -> None:
    """Through one stream in its order, read as the service reads it. Where the others were proven
    before, each can hold its places for `slow_after` once; where they were not, two looks.
    """
    async with running(Run()) as run:
        others = [f"h{number}" for number in range(HOSTS)]
        await run.prove(["healthy", *(others if proven else ())])
        stream: asyncio.Queue[tuple[float, str, float]] = asyncio.Queue()
        moved = run.destinations.capacity.moved

        async def read() -> None:
            while True:
                came, host, took_s = await stream.get()
                while run.destinations.room <= 0:
                    moved.clear()
                    await moved.wait()
                run.begin(at(host), took_s, came=came)

        asyncio.create_task(read())  # noqa: RUF006 - cancelled with the run
        sent = 0
        for gap_s, number, count, took_s in load:
            for _ in range(count):
                stream.put_nowait((run.now, others[number], took_s))
            stream.put_nowait((run.now, "healthy", 0.01))
            sent += 1
            await run.until(run.now + gap_s)
        await run.until(run.now + 20)
        assert "healthy" not in run.away
        waits = run.started.get("healthy", [])
        assert len(waits) == sent
        rounds = math.ceil(HOSTS * run.terms.places / run.seats) if proven else 0
        honest_s = sum(count * took_s for _, _, count, took_s in load if took_s < 1)
        bound_s = rounds * 1.0 + honest_s / run.terms.places + 0.5
        assert max(waits, default=0) <= bound_s
        assert run.destinations.pressing == 0

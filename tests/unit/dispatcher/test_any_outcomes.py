"""Whatever a receiver answers, and whenever a process dies: the attempts obey the schedule and end
in one terminal state.
"""

import asyncio
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dispatcher.channels.port import Outcome, Result
from dispatcher.decision import OUTCOME_UNKNOWN
from dispatcher.retry import SOONEST
from reminders.buckets import retry_entry_id
from reminders.model.definition import RETRY_SCHEDULE, Retry
from reminders.model.entry import DueEntry, DueKey
from reminders.model.ledger import Attempt, DeliveryStatus, LedgerRow

MILLISECOND = timedelta(milliseconds=1)
IDLE = timedelta(seconds=12)
"""After which a dead process's job is taken over."""
UNAVAILABLE = Result(outcome=Outcome.TRANSIENT, error_class="http_503")
FAILURES = (Outcome.TRANSIENT, Outcome.RATE_LIMITED, Outcome.UNKNOWN)

Script = list[Result | None]
"""What becomes of each send; None: the process dies before it is on record. At its end: BUSY."""


def _scripts() -> st.SearchStrategy[Script]:
    """Mostly failures, or nothing would ever be long."""
    failed = st.builds(
        Result,
        outcome=st.sampled_from(FAILURES),
        error_class=st.just("http_503"),
        retry_after=st.none() | st.timedeltas(timedelta(0), timedelta(hours=20)),
    )
    taken = st.builds(Result, outcome=st.just(Outcome.OK), acknowledged=st.booleans())
    refused = st.just(Result(outcome=Outcome.PERMANENT, error_class="http_410"))
    return st.lists(st.one_of(failed, failed, failed, failed, taken, refused, st.none()))


def _retries() -> st.SearchStrategy[Retry]:
    """The defaults, or a reminder's own."""
    waits = st.lists(st.timedeltas(timedelta(0), timedelta(hours=12)), max_size=4)
    own = st.builds(
        Retry,
        max_attempts=st.integers(1, 10),
        max_age=st.timedeltas(timedelta(seconds=1), timedelta(days=3)),
        schedule=waits.map(lambda rest: (timedelta(0), *rest)),
    )
    return st.just(Retry()) | own


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(script=_scripts(), retry=_retries())
@example(script=[], retry=Retry())
@example(script=[None] * 9, retry=Retry())
@example(script=[UNAVAILABLE, None], retry=Retry(max_attempts=2, max_age=IDLE / 12))
def test_attempts_obey_the_schedule_and_end_in_one_terminal_state(
    worlds: Any, script: Script, retry: Retry
) -> None:
    """By the real runner, settler and rows, up to the last due entry."""
    asyncio.run(_to_the_end(worlds(), script, retry))


async def _to_the_end(world: Any, script: Script, retry: Retry) -> None:
    entry = await world.reminder(retry=retry)
    entries = [entry]
    while (row := await _ended(world, entry, script)).delivery is DeliveryStatus.RETRYING:
        _check_wait(row, retry)
        entry = await _following(world, row)
        entries.append(entry)
        world.clock.move_to(max(entry.key.ring_at, world.clock.now()))
    assert row.delivery is not None
    assert row.delivery.terminal
    assert row.next_attempt_at is None
    assert row.delivery in (DeliveryStatus.CONFIRMED, DeliveryStatus.DELIVERED) or row.reason
    _check_bounds(world, row, retry)
    sent = len(world.sender.sent)
    for each in entries:  # nothing that comes again, however late, changes the end
        await world.runner().run(world.job(each, recheck=True))
    assert await world.row() == row
    assert len(world.sender.sent) == sent
    assert len({one.delivery_key for one in world.sender.sent}) == 1


async def _ended(world: Any, entry: DueEntry, script: Script) -> LedgerRow:
    """The row once that entry is handled, by however many processes."""
    for deliveries in range(1, 99):
        result = script.pop(0) if script else world.BUSY
        world.sender.results = [result or world.BUSY]
        world.on_point = None if result is not None else _dies(world)
        try:
            await world.runner().run(world.job(entry, deliveries=deliveries))
        except world.Crash:
            world.clock.advance(IDLE)
            continue
        world.on_point = None
        assert await world.handled(entry)
        row: LedgerRow = await world.row()
        return row
    raise AssertionError("it never came to an end")


def _dies(world: Any) -> Any:
    async def hook(name: str) -> None:
        if name == "send.after":
            raise world.Crash

    return hook


async def _following(world: Any, row: LedgerRow) -> DueEntry:
    """The entry of the next attempt, where the row says that it is."""
    assert row.next_attempt_at is not None
    number = row.attempt_count + 1
    name = retry_entry_id("r1", row.occurrence.occurrence_id, "hook", number)
    state = await world.store.due.read(DueKey(ring_at=row.next_attempt_at, entry_id=name, shard=0))
    assert state is not None, "a retry that nothing will ring"
    entry: DueEntry = state.entry
    assert entry.leg is not None
    assert entry.leg.attempt == number
    return entry


def _check_wait(row: LedgerRow, retry: Retry) -> None:
    """No longer than the schedule says, unless the receiver asked for more (checked elsewhere that
    it is honoured exactly); never before the attempt is over.
    """
    assert row.next_attempt_at is not None
    last = row.attempts[-1]
    schedule = retry.schedule or RETRY_SCHEDULE
    longest = schedule[min(last.number, len(schedule) - 1)]
    wait = row.next_attempt_at - last.started_at - last.duration
    assert wait >= SOONEST
    assert wait <= max(longest, SOONEST, timedelta(hours=20)) + MILLISECOND


def _check_bounds(world: Any, row: LedgerRow, retry: Retry) -> None:
    """In number, in age, and in order."""
    with_outcome = [one for one in row.attempts if one.error_class != OUTCOME_UNKNOWN]
    assert len(with_outcome) <= retry.max_attempts
    assert all(one.started_at <= world.AT + retry.max_age for one in with_outcome[1:])
    assert [one.number for one in row.attempts] == _numbers(row.attempts)
    assert len(world.sender.sent) <= row.attempt_count
    if row.reason == "attempts_exhausted":
        assert len(with_outcome) == retry.max_attempts


def _numbers(attempts: tuple[Attempt, ...]) -> list[int]:
    """Without a gap up to the last one."""
    last = attempts[-1].number if attempts else 0
    return list(range(last - len(attempts) + 1, last + 1))

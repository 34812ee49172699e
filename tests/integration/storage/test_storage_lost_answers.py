"""What LWTs, dedup claims and grouped writes do when an answer is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from cassandra import OperationTimedOut, WriteTimeout
from msgspec.structs import replace

from reminders.errors import StoreUnavailable
from reminders.model.record import Change, DedupClaim, NewReminder, Record
from reminders.storage.store import CassandraStore
from tests.contract.store.samples import (
    change_of,
    ended,
    fresh_minute,
    new,
    next_record,
    stamp_now,
    unique,
)

Meanwhile = Callable[[], Awaitable[Any]]


class Faults:
    """Loses answers of conditional requests: the first ones, in the ways named.

    `applied`: it took effect; `never`: it did not reach the server; then `meanwhile` happens.
    """

    def __init__(self, store: CassandraStore, monkeypatch: pytest.MonkeyPatch) -> None:
        bridge = store._access.bridge
        self._statements = {
            id(store._access.prepared[name].statement) for name in ("change_begin", "change_end")
        }
        self._run, self._run_conditional = bridge.run, bridge.run_conditional
        self.plan: list[str] = []
        self.meanwhile: Meanwhile | None = None
        self.sent = 0
        monkeypatch.setattr(bridge, "run", self.run)
        monkeypatch.setattr(bridge, "run_conditional", self.run_conditional)

    async def run(self, bound: Any) -> Any:
        """LWTs of records fail as planned, the rest passes."""
        if id(bound.prepared_statement) not in self._statements:
            return await self._run(bound)
        return await self._faulty(lambda: self._run(bound))

    async def run_conditional(self, mutations: Any) -> Any:
        """Dedup batches fail as planned."""
        return await self._faulty(lambda: self._run_conditional(mutations))

    async def _faulty(self, send: Meanwhile) -> Any:
        self.sent += 1
        fault = self.plan.pop(0) if self.plan else None
        if fault is None:
            return await send()
        if fault == "applied":
            await send()
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        raise OperationTimedOut if fault == "never" else WriteTimeout("lost", write_type=0)


@pytest.fixture
def faults(store: CassandraStore, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """No fault yet."""
    return Faults(store, monkeypatch)


@pytest.fixture
async def reminder(store: CassandraStore) -> NewReminder:
    """Created."""
    reminder = new()
    await store.records.create([reminder])
    return reminder


async def stands(store: CassandraStore, reminder_id: str) -> tuple[Record, Change | None]:
    """Record and change as they are."""
    stored = await store.records.read(reminder_id)
    assert stored is not None
    return stored.record, stored.change


@pytest.mark.parametrize("plan", [["applied"], ["never"], ["never", "applied"], ["applied"] * 3])
async def test_begin_and_end_find_out(
    store: CassandraStore, faults: Faults, reminder: NewReminder, plan: list[str]
) -> None:
    """True in the end, and it stands."""
    record, change = change_of(reminder, to=fresh_minute())
    faults.plan = [*plan]
    assert await store.records.begin(record, change)
    assert await stands(store, record.reminder_id) == (record, change)
    faults.plan = [*plan]
    outcome = ended(record, change)
    assert await store.records.end(outcome, change)
    assert await stands(store, record.reminder_id) == (outcome, None)


async def test_begin_that_lost_to_another_change(
    store: CassandraStore, faults: Faults, reminder: NewReminder
) -> None:
    """False for sure: the record is at the next version by somebody else."""
    record, change = change_of(reminder)
    rival = change_of(reminder)

    async def meanwhile() -> None:
        assert await store.records.begin(*rival)

    faults.plan, faults.meanwhile = ["never"], meanwhile
    assert not await store.records.begin(record, change)
    assert await stands(store, record.reminder_id) == rival


async def test_begin_that_somebody_else_ended_already(
    store: CassandraStore, faults: Faults, reminder: NewReminder
) -> None:
    """False: nothing is left to do, and the record names the outcome."""
    record, change = change_of(reminder)
    outcome = ended(record, change)

    async def meanwhile() -> None:
        assert await store.records.end(outcome, change)

    faults.plan, faults.meanwhile = ["applied"], meanwhile
    assert not await store.records.begin(record, change)
    assert (await stands(store, record.reminder_id))[0].outcomes[0].request_id == change.request_id


async def test_end_after_which_the_record_went_on(
    store: CassandraStore, faults: Faults, reminder: NewReminder
) -> None:
    """True: the outcome that is still recorded is ours."""
    record, change = change_of(reminder)
    assert await store.records.begin(record, change)
    outcome = ended(record, change)
    following = replace(change, request_id=unique("req"), version=3)

    async def meanwhile() -> None:
        assert await store.records.begin(next_record(outcome, following), following)

    faults.plan, faults.meanwhile = ["applied"], meanwhile
    assert await store.records.end(outcome, change)


async def test_end_that_lost_to_another_outcome(
    store: CassandraStore, faults: Faults, reminder: NewReminder
) -> None:
    """False for sure: what is recorded differs."""
    record, change = change_of(reminder)
    assert await store.records.begin(record, change)
    theirs = ended(record, change, applied=False)

    async def meanwhile() -> None:
        assert await store.records.end(theirs, change)

    faults.plan, faults.meanwhile = ["never"], meanwhile
    assert not await store.records.end(ended(record, change), change)
    assert await stands(store, record.reminder_id) == (theirs, None)


async def test_no_answer_at_all(
    store: CassandraStore, faults: Faults, reminder: NewReminder
) -> None:
    """Then it says so, rather than guess."""
    record, change = change_of(reminder)
    faults.plan = ["never"] * 10
    with pytest.raises(StoreUnavailable, match=r"records\.begin"):
        await store.records.begin(record, change)
    faults.plan = []
    assert await store.records.begin(record, change)
    faults.plan = ["never"] * 10
    with pytest.raises(StoreUnavailable, match=r"records\.end"):
        await store.records.end(ended(record, change), change)


@pytest.mark.parametrize("plan", [["applied"], ["never"], ["applied", "never", "applied"]])
async def test_dedup_finds_its_own_claim(
    store: CassandraStore, faults: Faults, plan: list[str]
) -> None:
    """A claim that was made before the answer got lost is success."""
    claims = [
        DedupClaim(
            namespace="n",
            key=unique("key:"),
            reminder_id=unique("r"),
            content_hash=b"h",
            created_at=fresh_minute(),
            stamp=stamp_now(),
        )
        for _ in range(3)
    ]
    faults.plan = [*plan]
    assert await store.dedup.claim(claims) == claims
    assert faults.sent > len(plan)
    faults.plan = ["never"] * 100
    with pytest.raises(StoreUnavailable, match=r"dedup\.claim"):
        await store.dedup.claim(claims)


async def test_a_batch_that_timed_out_is_sent_again_alone(
    store: CassandraStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its reminders once, with the same bytes."""
    bridge = store._access.bridge
    send = bridge.send
    sizes: list[int] = []

    def lossy(mutations: Any, done: Any) -> None:
        sizes.append(len(mutations))
        if len(mutations) > 1:
            send(mutations, lambda rows, _error: done(rows, WriteTimeout("lost", write_type=0)))
        else:
            send(mutations, done)

    monkeypatch.setattr(bridge, "send", lossy)
    reminders = [new() for _ in range(12)]
    await store.records.create(reminders)
    assert sizes == [12] + [1] * 12
    found = await store.records.read_many(one.record.reminder_id for one in reminders)
    assert len(found) == 12


async def test_statements_that_the_server_forgot_are_prepared_again(store: CassandraStore) -> None:
    """A new column evicts what was prepared for its table; grouped writes and reads go on."""
    keyspace = store._access.settings.keyspace
    session = store._access.bridge._session
    add = f"ALTER TABLE {keyspace}.due ADD of_a_later_release int"
    await asyncio.to_thread(session.execute, add, timeout=60)
    reminder = new()
    await store.records.create([reminder])
    state = await store.due.read(reminder.entries[0].key)
    assert state is not None
    assert state.entry == reminder.entries[0]

"""Revocation: it stops first claims, and tells which came before it."""

import asyncio
import random
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from reminders.model.entry import Fate, Kind
from reminders.ports import ClaimAnswer, Copy, LeaseAnswer
from tests.contract.coordination.conftest import OpenWorld
from tests.contract.coordination.support import CLAIMED, MS, NO_WAIT, MemoryWorld, World

VOID = [ClaimAnswer.VOID]


async def test_a_void_stops_versions_up_to_it(held: World) -> None:
    """Later ones pass; other reminders are untouched."""
    copies = [held.due(reminder_id="r", version=version) for version in (1, 2, 3)]
    await held.coordination.claims.revoke(0, "r", through_version=2, entries=[])
    assert await held.claim(*copies, held.due()) == [*VOID, *VOID, *CLAIMED, *CLAIMED]


async def test_a_void_never_shrinks(held: World) -> None:
    """A late repeat of an older change takes nothing back."""
    revoke = held.coordination.claims.revoke
    await revoke(0, "r", through_version=5, entries=[])
    await revoke(0, "r", through_version=2, entries=[])
    assert await held.claim(held.due(reminder_id="r", version=5)) == VOID


async def test_a_void_stops_occurrences_only(held: World) -> None:
    """Everything else looks at the record itself."""
    await held.coordination.claims.revoke(0, "r", through_version=9, entries=[])
    kinds = [Kind.RETRY, Kind.PARKED, Kind.FINISH]
    assert (
        await held.claim(*[held.due(reminder_id="r", kind=kind) for kind in kinds]) == CLAIMED * 3
    )


async def test_revoke_tells_which_were_claimed(held: World) -> None:
    """By dedupe id; what it did not report can't be claimed any more."""
    claimed, open_ = held.due(reminder_id="r"), held.due(reminder_id="r2")
    assert await held.claim(claimed) == CLAIMED
    entries = [claimed.state.entry, open_.state.entry]
    found = await held.coordination.claims.revoke(0, "r2", through_version=1, entries=entries)
    assert found.claimed == {claimed.state.entry.dedupe_id}
    assert not found.moved
    assert abs(found.server_now - held.now()) < timedelta(seconds=1)
    assert await held.claim(open_) == VOID


async def test_what_was_claimed_is_added_again_void_or_not(held: World) -> None:
    """It rings, also if Redis loses the job: a void stops first claims."""
    copy = held.due(reminder_id="r", recheck=True)
    assert await held.claim(copy) == CLAIMED
    (job,) = await held.coordination.jobs.read("c", [0], count=9, wait=NO_WAIT)
    await held.lose_job(0, job.job_id)
    await held.coordination.claims.revoke(0, "r", through_version=1, entries=[])
    assert await held.claim(copy) == [ClaimAnswer.READDED]


async def test_what_a_change_told_to_be_claimed_rings_at_once(held: World) -> None:
    """In doubt a change answers "fired" and marks the entry: its own void must not hold that up."""
    told, not_told = held.due(reminder_id="r"), held.due(reminder_id="r")
    told = Copy(
        state=replace(told.state, fate=Fate.CLAIMED),
        read_at=held.now() - timedelta(days=1),
        recheck=True,
    )
    assert told.state.entry.dedupe_id == not_told.state.entry.dedupe_id
    await held.coordination.claims.revoke(0, "r", through_version=1, entries=[])
    assert await held.claim(not_told) == VOID
    assert await held.claim(told) == CLAIMED
    (job,) = await held.coordination.jobs.read("c", [0], count=9, wait=NO_WAIT)
    assert job.recheck
    assert await held.claim(not_told) == [ClaimAnswer.DUPLICATE]


async def test_asking_makes_nothing_void(held: World) -> None:
    """Of many reminders at once, in one answer, as `revoke` tells it."""
    claimed, open_ = held.due(), held.due()
    assert await held.claim(claimed) == CLAIMED
    entries = [claimed.state.entry, open_.state.entry]
    found = await held.coordination.claims.claimed(0, entries)
    assert found.claimed == {claimed.state.entry.dedupe_id}
    assert found.known_since is not None
    assert found.known_since <= found.server_now
    assert await held.claim(open_) == CLAIMED
    assert (await held.coordination.claims.claimed(0, [])).claimed == frozenset()


async def test_what_is_known_begins_where_data_was_lost(held: World) -> None:
    """Not with each lease: a hand-over loses nothing. Whoever asks can tell what may be missing."""
    copy = held.due(reminder_id="r")
    assert await held.claim(copy) == CLAIMED

    async def known_since() -> datetime:
        entries = [copy.state.entry]
        found = await held.coordination.claims.revoke(0, "r", through_version=0, entries=entries)
        assert (found.known_since is None) == found.moved
        since: datetime | None = found.known_since
        assert since is not None
        return since

    began = await known_since()
    await held.elapse(5 * MS)
    await held.coordination.leases.release(0, "t")
    await held.hold(0, "next")
    assert await known_since() == began
    await held.lose_everything()
    lost_at = held.now()
    await held.elapse(5 * MS)
    await held.hold(0, "after")
    again = await known_since()
    assert again > lost_at
    await held.elapse(5 * MS)
    await held.become_another()
    await held.hold(0, "promoted")
    assert await known_since() > again


async def test_a_void_is_set_on_a_moved_server_too(held: World) -> None:
    """Who acquires there next must meet it; what it says of claims may be incomplete."""
    copy = held.due(reminder_id="r")
    await held.lose_everything()
    found = await held.coordination.claims.revoke(
        0, "r", through_version=1, entries=[copy.state.entry]
    )
    assert found.moved
    assert found.claimed == frozenset()
    await held.hold(0, "new")
    fresh = Copy(state=copy.state, read_at=held.now())
    assert await held.claim(fresh, token="new") == VOID


async def test_a_promoted_server_tells_of_the_move(held: World) -> None:
    """Its claims are told as far as it has them."""
    copy = held.due(reminder_id="r")
    assert await held.claim(copy) == CLAIMED
    await held.become_another()
    found = await held.coordination.claims.revoke(
        0, "r", through_version=1, entries=[copy.state.entry]
    )
    assert found.moved
    assert found.claimed == {copy.state.entry.dedupe_id}


async def test_a_void_outlives_every_copy_read_before_it(open_world: OpenWorld) -> None:
    """At no time can a copy from before the void be claimed: it is void, then stale."""
    world = await open_world(lookahead=200 * MS, margin=200 * MS)
    await world.hold()
    copy = world.due(reminder_id="r")
    await world.coordination.claims.revoke(0, "r", through_version=1, entries=[])
    seen = []
    for _ in range(6):
        answers = await world.claim(copy)
        assert not isinstance(answers, LeaseAnswer)
        seen += answers
        await world.elapse(90 * MS)
    assert set(seen) == {ClaimAnswer.VOID, ClaimAnswer.STALE}
    assert seen[-1] is ClaimAnswer.STALE
    fresh = Copy(state=copy.state, read_at=world.now())
    assert await world.claim(fresh) == CLAIMED, "the void has gone: what is read now decides"


@pytest.mark.parametrize("seed", range(8))
async def test_each_occurrence_is_claimed_and_reported_or_never_claimed(
    held: World, seed: int
) -> None:
    """Claims and revocations in random interleavings: never claimed without being reported."""
    dice = random.Random(seed)
    copies = [held.due() for _ in range(60)]

    async def pause(_point: str = "") -> None:
        for _ in range(dice.randrange(6)):
            await asyncio.sleep(0)

    if isinstance(held, MemoryWorld):
        held.coordination.server.on_point = pause
    answers: dict[str, ClaimAnswer] = {}
    reported: dict[str, bool] = {}

    async def claim(batch: list[Copy]) -> None:
        await pause()
        got = await held.claim(*batch)
        for copy, answer in zip(batch, got, strict=True):
            answers[copy.state.entry.dedupe_id] = answer

    async def revoke(copy: Copy) -> None:
        await pause()
        entry = copy.state.entry
        found = await held.coordination.claims.revoke(
            0, entry.reminder_id, through_version=1, entries=[entry]
        )
        reported[entry.dedupe_id] = entry.dedupe_id in found.claimed

    size = dice.choice([1, 4, 15])
    work = [claim(copies[at : at + size]) for at in range(0, 60, size)]
    work += [revoke(copy) for copy in copies]
    dice.shuffle(work)
    await asyncio.gather(*work)

    for name, answer in answers.items():
        assert answer is (ClaimAnswer.CLAIMED if reported[name] else ClaimAnswer.VOID)
    lengths = await held.coordination.jobs.lengths([0])
    assert lengths == {0: sum(reported.values())}

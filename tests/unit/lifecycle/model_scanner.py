"""A scanner reduced to its claims: it may hold any copy it ever read, and looks at everything."""

from reminders.model.entry import Fate, Kind
from reminders.ports import ClaimAnswer, Copy, LeaseAnswer
from tests.unit.lifecycle.world import World, behind_the_scenes


class ModelScanner:
    """Claims what a real one could, in the worst order: old copies first."""

    def __init__(self, world: World, reminder_id: str) -> None:
        self._world = world
        self._reminder_id = reminder_id
        self.heap: list[Copy] = []
        self.first_claims: list[str] = []
        """Dedupe ids that were claimed for the first time."""

    async def read(self) -> None:
        """Into the heap, as slices do ahead of time."""
        now = self._world.now
        for state in await self._world.entries(self._reminder_id):
            if state.handled_at is None and state.fate is not Fate.VOID:
                self.heap.append(Copy(state=state, read_at=now))

    async def ring(self) -> None:
        """What of the heap is due."""
        due = [c for c in self.heap if c.state.entry.key.ring_at <= self._world.now]
        self.heap = [c for c in self.heap if c.state.entry.key.ring_at > self._world.now]
        await self._claim(due)

    async def trail(self) -> None:
        """What is open although its time has passed."""
        now = self._world.now
        copies = []
        for state in await self._world.entries(self._reminder_id):
            if state.entry.key.ring_at > now or state.handled_at is not None:
                continue
            if state.fate is Fate.VOID:
                with behind_the_scenes():
                    await self._world.reminders.changes.finish(self._reminder_id)
            else:
                copies.append(Copy(state=state, read_at=now, recheck=True))
        await self._claim(copies)

    async def everything(self) -> None:
        """Ring, trail and dispatch, twice: a change may have been finished on the way."""
        for _ in range(2):
            await self.ring()
            await self.trail()
            await self._world.dispatch()

    async def _claim(self, copies: list[Copy]) -> None:
        shard = copies[0].state.entry.key.shard if copies else 0
        token = await self._world.take_lease(shard)
        with behind_the_scenes():
            answers = await self._world.coordination.claims.claim(shard, token, copies)
        assert not isinstance(answers, LeaseAnswer)
        for copy, answer in zip(copies, answers, strict=True):
            if answer is ClaimAnswer.CLAIMED and copy.state.entry.kind is Kind.OCCURRENCE:
                self.first_claims.append(copy.state.entry.dedupe_id)

"""Claims and revocations, in memory."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from reminders.buckets import minute_of
from reminders.memory.coordination.server import Message, Server
from reminders.model.entry import DueEntry, EntryState
from reminders.ports import ClaimAnswer, Copy, LeaseAnswer, Revocation


class MemoryClaims:
    """Implements `ports.Claims`, with the checks in the order of the Redis adapter's claim.lua."""

    def __init__(
        self, server: Server, *, lookahead: timedelta, margin: timedelta, fired_life: timedelta
    ) -> None:
        self._server = server
        self._void_life = lookahead + margin
        self._oldest_age = lookahead + margin / 2
        self._fired_life = fired_life

    async def claim(
        self,
        shard: int,
        token: str,
        copies: Sequence[Copy],
        *,
        ahead: timedelta = timedelta(0),
    ) -> Sequence[ClaimAnswer] | LeaseAnswer:
        """Claim what is due."""

        def work() -> Sequence[ClaimAnswer] | LeaseAnswer:
            standing = self._server.standing(shard, token)
            if standing is not LeaseAnswer.HELD and copies:
                return standing
            return [self._claim_one(shard, copy, ahead) for copy in copies]

        return await self._server.step("claim", work)

    def _claim_one(self, shard: int, copy: Copy, ahead: timedelta) -> ClaimAnswer:
        server, entry, now = self._server, copy.state.entry, self._server.clock.now()
        if entry.key.ring_at > now + ahead:
            return ClaimAnswer.EARLY
        minute = minute_of(entry.promised_at)
        jobs = server.jobs_of(shard, minute)
        job = jobs.get(entry.dedupe_id)
        answer = self._may_claim(shard, copy) if job is None else ClaimAnswer.DUPLICATE
        if job is not None and copy.recheck and job not in server.stream("jobs", shard).messages:
            answer = ClaimAnswer.READDED
        if answer in (ClaimAnswer.CLAIMED, ClaimAnswer.READDED):
            message = Message(copy.state.raw, now, recheck=copy.recheck)
            jobs[entry.dedupe_id] = server.add("jobs", shard, message)
            server.data.fired[shard, minute] = (jobs, now + self._fired_life)
            if answer is ClaimAnswer.CLAIMED and entry.recurs:
                server.add("fires", shard, Message(copy.state.raw, now))
        return answer

    def _may_claim(self, shard: int, copy: Copy) -> ClaimAnswer:
        """Whether voids let a first claim pass."""
        server, entry, now = self._server, copy.state.entry, self._server.clock.now()
        if not copy.voidable:
            return ClaimAnswer.CLAIMED
        since = server.home_since(shard)
        if since is None or copy.read_at < max(since, now - self._oldest_age):
            return ClaimAnswer.STALE
        version, until = server.data.voids.get((shard, entry.reminder_id), (0, now))
        fence = server.fence(shard, entry.namespace, entry.group_id) if entry.group_id else None
        fenced = fence is not None and entry.record_created_at <= fence
        if fenced or (until > now and entry.version <= version):
            return ClaimAnswer.VOID
        return ClaimAnswer.CLAIMED

    async def refire(self, shard: int, token: str, states: Sequence[EntryState]) -> LeaseAnswer:
        """Hand entries to `fires` again."""

        def work() -> LeaseAnswer:
            standing = self._server.standing(shard, token)
            if standing is LeaseAnswer.HELD:
                for state in states:
                    message = Message(state.raw, self._server.clock.now())
                    self._server.add("fires", shard, message)
            return standing

        return await self._server.step("refire", work)

    async def revoke(
        self, shard: int, reminder_id: str, *, through_version: int, entries: Sequence[DueEntry]
    ) -> Revocation:
        """Make entries up to a version void."""

        def work() -> Revocation:
            server, now = self._server, self._server.clock.now()
            version, until = server.data.voids.get((shard, reminder_id), (0, now))
            version = max(version if until > now else 0, through_version)
            server.data.voids[shard, reminder_id] = (version, now + self._void_life)
            return self._known(shard, entries)

        return await self._server.step("revoke", work)

    async def claimed(self, shard: int, entries: Sequence[DueEntry]) -> Revocation:
        """Only ask."""
        return await self._server.step("claimed", lambda: self._known(shard, entries))

    def _known(self, shard: int, entries: Sequence[DueEntry]) -> Revocation:
        server = self._server
        return Revocation(
            claimed=frozenset(
                entry.dedupe_id
                for entry in entries
                if entry.dedupe_id in server.jobs_of(shard, minute_of(entry.promised_at))
            ),
            known_since=server.known_since(shard),
            server_now=server.clock.now(),
        )

    async def fence(
        self, shards: Sequence[int], namespace: str, group_id: str, cancelled_at: datetime
    ) -> None:
        """Make a group void on these shards."""

        def work() -> None:
            server, until = self._server, self._server.clock.now() + self._void_life
            for shard in shards:
                standing = server.fence(shard, namespace, group_id)
                fence = cancelled_at if standing is None else max(standing, cancelled_at)
                server.data.groups[shard, namespace, group_id] = (fence, until)

        await self._server.step("fence", work)

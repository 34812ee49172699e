"""The scanner's life: which shards are ours, and everything that runs while they are."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import uuid4

import structlog

from reminders.errors import CoordinationUnavailable
from reminders.lifecycle.reading import Finish
from reminders.platform import Platform
from reminders.ports import LeaseAnswer
from scanner.lead import Lead
from scanner.metrics import Metrics
from scanner.placement import owned_by
from scanner.reader import Reader
from scanner.settler import Settler
from scanner.timer import Timer

log = structlog.get_logger(__name__)

TRUST_MARGIN = timedelta(milliseconds=500)
"""A lease is trusted until its renewal started + life − this."""
EAGER = 4
"""So much more often a scanner asks for shards that others still have: what they give up for it is
led again at once.
"""
LONG_STREAM = 20_000
"""Jobs of a shard that nobody took: above it the shard claims nothing more."""
HINT_WAIT = timedelta(milliseconds=200)
DRAIN = timedelta(seconds=2)
"""Less than a lease's life: at the end nobody renews them any more."""


class Scanner:
    """One process of the scanner; run as many as you like."""

    def __init__(self, platform: Platform, finish: Finish) -> None:
        self.member = str(uuid4())
        self._platform = platform
        self._coordination = platform.coordination
        self._clock = platform.clock
        self._limits = platform.limits
        self._metrics = Metrics()
        self._timer = Timer(platform.clock, platform.limits.claim_ahead)
        self._reader = Reader(platform, self._timer)
        self._settler = Settler(platform, self._reader, finish, self._metrics)
        self._leads: dict[int, Lead] = {}
        self._renewed_at: datetime | None = None
        self._missing = False
        """Somebody else has shards that should be ours."""
        self._metrics.watch(
            oldest_due=lambda: self._age(lead.oldest_due for lead in self._leads.values()),
            unsettled=lambda: self._age(lead.settled_through for lead in self._leads.values()),
            refused=lambda: len(self._refused),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then claims what is due, releases its shards and returns."""
        async with asyncio.TaskGroup() as group:
            working = [
                group.create_task(self._timer.run(), name="timer"),
                group.create_task(self._keep_leases(group), name="leases"),
                group.create_task(self._listen(), name="hints"),
            ]
            await stop.wait()
            for task in working[1:]:
                task.cancel()
            await self._hand_over()
            working[0].cancel()

    def problems(self) -> Sequence[str]:
        """Why this process is not fit to claim; empty if it is."""
        found = []
        if not self._clock.in_bounds():
            found.append("the clock is out of bounds or was not checked against Redis lately")
        if (
            self._renewed_at is None
            or self._clock.now() - self._renewed_at > 2 * self._limits.lease_life
        ):
            found.append("leases could not be renewed lately")
        return found

    @property
    def _refused(self) -> Sequence[int]:
        """Shards whose watermark may not go on."""
        return [shard for shard, lead in self._leads.items() if lead.refused]

    def _age(self, times: Iterable[datetime | None]) -> timedelta:
        now = self._clock.now()
        return max(now - min((at for at in times if at is not None), default=now), timedelta(0))

    @property
    def shards(self) -> Sequence[int]:
        """The shards that are led now."""
        return sorted(self._leads)

    # --- leases -----------------------------------------------------------------------------------

    async def _keep_leases(self, group: asyncio.TaskGroup) -> None:
        while True:
            started = self._clock.now()
            self._missing = False
            try:
                await self._renew(started)
                await self._place(group, started)
                await self._measure()
                self._renewed_at = started
            except CoordinationUnavailable as error:
                log.warning("leases.unavailable", operation=error.operation)
                self._drop_untrusted()
            pause = self._limits.renew_every / (EAGER if self._missing else 1)
            await self._clock.sleep_until(started + pause)

    async def _renew(self, started: datetime) -> None:
        if not self._leads:
            return
        answers = await self._coordination.leases.renew(
            {shard: lead.token for shard, lead in self._leads.items()}
        )
        for shard, answer in answers.items():
            lead = self._leads[shard]
            if answer is LeaseAnswer.HELD:
                lead.trusted_until = started + self._limits.lease_life - TRUST_MARGIN
            else:
                self._end(lead, answer.name.lower())

    async def _place(self, group: asyncio.TaskGroup, started: datetime) -> None:
        """Gives up what others should lead, and takes what we should and is free."""
        if not self._clock.in_bounds():
            await self._stand_back(started + self._limits.renew_every)
            return
        members = await self._coordination.leases.beat(self.member)
        wanted = owned_by(self.member, members, self._limits.shards)
        # Neither may take so long that the other leases expire meanwhile.
        until = started + self._limits.renew_every
        for shard, lead in sorted(self._leads.items()):
            if shard not in wanted or lead.lost.is_set():
                await self._release(lead, until)
        for shard in sorted(wanted - self._leads.keys()):
            if self._clock.now() >= until:
                return
            token = f"{self.member}/{uuid4().hex}"
            answer = await self._coordination.leases.acquire(shard, token)
            if answer is LeaseAnswer.HELD:
                await self._lead(group, shard, token, started)
            else:
                self._missing = True

    async def _stand_back(self, until: datetime) -> None:
        """With a clock that must not be trusted nothing is claimed: let others lead our shards."""
        await self._coordination.leases.leave(self.member)
        if self._leads:
            log.error("leases.given_up", why="the clock is out of bounds", shards=self.shards)
        for lead in list(self._leads.values()):
            await self._release(lead, until)

    async def _lead(
        self, group: asyncio.TaskGroup, shard: int, token: str, started: datetime
    ) -> None:
        lead = Lead(
            shard,
            token,
            trusted_until=started + self._limits.lease_life - TRUST_MARGIN,
            platform=self._platform,
            metrics=self._metrics,
            later=self._timer.again,
        )
        await self._reader.open(lead)
        self._leads[shard] = lead
        self._metrics.leads(+1)
        log.info("lead.began", shard=shard)
        lead.tasks += [
            group.create_task(self._reader.run(lead), name=f"reader-{shard}"),
            group.create_task(self._settler.run(lead), name=f"settler-{shard}"),
            group.create_task(lead.run(), name=f"claims-{shard}"),
        ]

    async def _release(self, lead: Lead, until: datetime) -> None:
        await lead.drain(until)
        await self._coordination.leases.release(lead.shard, lead.token)
        self._end(lead, "released")

    async def _hand_over(self) -> None:
        """Drains first, releases after: nobody else claims while we still do."""
        until = self._clock.now() + DRAIN
        try:
            async with asyncio.timeout(2 * DRAIN.total_seconds()):
                await self._coordination.leases.leave(self.member)
                for lead in list(self._leads.values()):
                    await self._release(lead, until)
        except (CoordinationUnavailable, TimeoutError) as error:
            log.warning("leases.unreleased", why=str(error))
        for lead in list(self._leads.values()):
            self._end(lead, "stopping")

    async def _measure(self) -> None:
        lengths = await self._coordination.jobs.lengths(sorted(self._leads))
        for shard, length in lengths.items():
            lead = self._leads.get(shard)
            if lead is None:
                continue
            if lead.congested != (length > LONG_STREAM):
                log.warning("lead.congested", shard=shard, jobs=length)
            lead.congested = length > LONG_STREAM

    def _drop_untrusted(self) -> None:
        """Somebody else may hold what we could not renew: stop trying, their token is the fence
        anyway.
        """
        now = self._clock.now()
        for lead in list(self._leads.values()):
            if lead.trusted_until <= now:
                self._end(lead, "untrusted")

    def _end(self, lead: Lead, why: str) -> None:
        lead.end(why)
        if self._leads.get(lead.shard) is lead:
            del self._leads[lead.shard]
            self._metrics.leads(-1)

    # --- hints ------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            leads = dict(self._leads)
            after = {shard: lead.hinted_through for shard, lead in leads.items()}
            if not after:
                await self._clock.sleep_until(self._clock.now() + HINT_WAIT)
                continue
            try:
                heard = await self._coordination.hints.tail(after, wait=HINT_WAIT)
            except CoordinationUnavailable:
                await self._clock.sleep_until(self._clock.now() + HINT_WAIT)
                continue
            for shard, hints in heard.items():
                leads[shard].hinted_through = hints[-1][0]
                await self._reader.hear(leads[shard], hints)

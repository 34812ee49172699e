"""What a page of a fan-out is about: whom it tells, and what is on record of them already."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from dispatcher.insistence import Insistence
from dispatcher.receivers import subscribed
from dispatcher.work import LegWork, Work
from reminders.model.entry import FanoutPage, Leg, Replay
from reminders.model.fanout import Standing, TargetCounts
from reminders.model.ledger import DeliveryStatus, LedgerRow, counted
from reminders.model.subscriber import Subscriber
from reminders.platform import Platform

PAGE = 200
"""Subscribers of one page."""
ROWS = 500
"""Deliveries in one read."""
BEHIND = "\U0010ffff"
"""Behind every channel id: strictly after all rows of a target."""


class Stretch(Struct, frozen=True, kw_only=True):
    """A page, read."""

    legs: Sequence[LegWork]
    """What is left to do, in order of their targets."""
    done: TargetCounts
    """What has ended already."""
    paused: int
    filtered: int
    following: FanoutPage | None
    """The next page of the chain."""


class Stretches:
    """Reads them. The ledger is always asked, so a page that comes again goes on where it was."""

    def __init__(self, platform: Platform) -> None:
        self._subscribers = platform.store.subscribers
        self._fanouts = platform.store.fanouts
        self._insist = Insistence(platform.clock)

    async def read(self, work: Work) -> Stretch:
        """For a job of kind `fanout`."""
        page = work.entry.page
        assert page is not None
        if page.replay is not None:
            return await self._again(work, page, page.replay)
        subscribers = await self._told(work, page)
        full = len(subscribers) == PAGE and not work.body.only_subscriber
        following = _following(page, subscribers[-1].subscriber_id) if full else None
        through = following.after if following is not None else None
        only = work.body.only_subscriber
        rows = [
            row for row in await self._rows(work, page, through) if not only or row.target == only
        ]
        return _stretch(work, {one.subscriber_id: one for one in subscribers}, rows, following)

    async def _told(self, work: Work, page: FanoutPage) -> list[Subscriber]:
        namespace, body = work.entry.namespace, work.body
        if body.only_subscriber:
            one = await self._insist(
                self._subscribers.read, namespace, body.topic_id, body.only_subscriber
            )
            return [one] if one is not None else []
        return await self._insist(
            self._subscribers.page,
            namespace,
            body.topic_id,
            page.bucket,
            after=page.after or None,
            limit=PAGE,
        )

    async def _rows(self, work: Work, page: FanoutPage, through: str | None) -> list[LedgerRow]:
        found: list[LedgerRow] = []
        after = page.after, BEHIND
        while True:
            rows = await self._targets(work, page.bucket, after, through, ROWS)
            found += rows
            if len(rows) < ROWS:
                return found
            after = rows[-1].target, rows[-1].channel_id

    async def _targets(
        self, work: Work, bucket: int, after: tuple[str, str], through: str | None, limit: int
    ) -> list[LedgerRow]:
        return await self._insist(
            self._fanouts.targets,
            work.entry.reminder_id,
            work.occurrence.occurrence_id,
            bucket,
            after=after,
            through=through,
            limit=limit,
        )

    async def _again(self, work: Work, page: FanoutPage, replay: Replay) -> Stretch:
        """Deliveries that had ended and that nobody took."""
        after = page.after, BEHIND if page.after else ""
        rows = await self._targets(work, page.bucket, after, None, PAGE)
        following = _following(page, rows[-1].target) if len(rows) == PAGE else None
        chosen = [(row, leg) for row in rows if (leg := replayed(row, replay)) is not None]
        subscribers = await self._insist(
            self._subscribers.read_many,
            work.entry.namespace,
            work.body.topic_id,
            {row.target for row, _ in chosen},
        )
        legs = [
            replace(subscribed(work, leg, subscribers.get(row.target)), looked=True, found=row)
            for row, leg in chosen
        ]
        kept = {row.place for row, _ in chosen}
        done = counted(row for row in rows if row.place not in kept)
        return Stretch(legs=legs, done=done, paused=0, filtered=0, following=following)


def replayed(row: LedgerRow, replay: Replay) -> Leg | None:
    """The leg of a replay that sends it again; None: it is left as it is."""
    assert row.delivery is not None
    begun = next((each.number for each in row.attempts if each.replay == replay.replay_id), None)
    if begun is not None:
        if row.delivery.terminal:
            return None  # the replay of it has ended
        number, stood = begun, DeliveryStatus.FAILED.value
    elif row.standing in (Standing.FAILED, Standing.STOPPED) and not row.taken:
        number, stood = row.attempt_count + 1, row.delivery.value
    else:
        return None
    again = replace(replay, after=number - 1, stood=stood)
    return Leg(channel_id=row.channel_id, target=row.target, attempt=number, replay=again)


def _following(page: FanoutPage, after: str) -> FanoutPage:
    return replace(page, page=page.page + 1, after=after)


def _stretch(
    work: Work,
    subscribers: Mapping[str, Subscriber],
    rows: Iterable[LedgerRow],
    following: FanoutPage | None,
) -> Stretch:
    """By the subscribers, and by what is on record of those who are gone by now."""
    known = {row.target: row for row in rows}
    legs: list[LegWork] = []
    done: list[LedgerRow] = []
    paused = filtered = 0
    for target in sorted(subscribers.keys() | known.keys()):
        subscriber, row = subscribers.get(target), known.get(target)
        if row is not None and row.delivery is not None and row.delivery.terminal:
            done.append(row)
            continue
        if row is None and subscriber is not None and not work.body.only_subscriber:
            if subscriber.paused:
                paused += 1
                continue
            if not subscriber.wants(work.body.labels):
                filtered += 1
                continue
        legs.append(_leg(work, target, subscriber, row))
    return Stretch(
        legs=legs,
        done=counted(done),
        paused=paused,
        filtered=filtered,
        following=following,
    )


def _leg(work: Work, target: str, subscriber: Subscriber | None, row: LedgerRow | None) -> LegWork:
    """Under the channel id that it has on record: the endpoint may have become another since."""
    channel_id = row.channel_id if row is not None else ""
    if not channel_id and subscriber is not None:
        channel_id = subscriber.channel.channel_id
    leg = Leg(channel_id=channel_id, target=target, attempt=1)
    return replace(subscribed(work, leg, subscriber), looked=True, found=row)

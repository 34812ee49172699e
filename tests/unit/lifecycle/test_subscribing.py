"""Subscribers of topics: puts that undo nothing, secrets that are handed over once, whole lists."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from reminders.errors import (
    InvalidRequest,
    NotReady,
    RotationUnderWay,
    StoreUnavailable,
    SubscriberNotFound,
    TocsinError,
)
from reminders.lifecycle.subscriber_puts import Asked, Put
from reminders.lifecycle.subscriber_secrets import OVERLAP, REPEATED
from reminders.lifecycle.subscribing import LOOKED_AT, Rotated, Subscribing
from reminders.model.definition import Channel, Log, Webhook
from reminders.model.subscriber import Subscriber, bucket_of
from reminders.signing_secrets import SecretText, key_of, new_secret
from tests.unit.lifecycle.world import DAY, HOUR, MINUTE, NOON, SECOND, World, behind_the_scenes

WEBHOOK = Channel(channel_id="webhook", target=Webhook(url="https://example.com/hook"))
LOG = Channel(channel_id="log", target=Log())


def asked(subscriber_id: str = "s1", **changes: Any) -> Asked:
    """A webhook of topic t."""
    values = {"namespace": "ns", "topic_id": "t", "channel": WEBHOOK, **changes}
    return Asked(subscriber_id=subscriber_id, **values)


async def put(subscribing: Subscribing, one: Asked) -> Put:
    """Or what it failed with."""
    (result,) = await subscribing.put([one])
    if isinstance(result, TocsinError):
        raise result
    return result


async def rotate(subscribing: Subscribing, **changes: Any) -> Rotated:
    """Of s1."""
    values: dict[str, Any] = {"overlap": OVERLAP, "secret": None, "request_id": None, **changes}
    return await subscribing.rotate("ns", "t", "s1", **values)


@pytest.fixture
def subscribing(world: World) -> Subscribing:
    """The use cases at noon."""
    return world.reminders.subscribing


async def test_a_webhook_gets_a_secret_that_is_shown_once(
    world: World, subscribing: Subscribing
) -> None:
    """At the put that made it: neither the next put nor a get hands it over again."""
    first = await put(subscribing, asked())
    assert first.shown is not None
    assert len(key_of(first.shown.value)) == 32
    assert not first.replaced
    world.clock.advance(MINUTE)
    again = await put(subscribing, asked(labels={"plan": "gold"}))
    assert (again.shown, again.replaced) == (None, True)
    found = await subscribing.get("ns", "t", "s1")
    assert found == again.subscriber
    assert found.secrets == (first.shown,)
    assert (found.created_at, found.updated_at) == (NOON, NOON + MINUTE)


async def test_what_signs_nothing_gets_no_secret_until_it_is_a_webhook(
    subscribing: Subscribing,
) -> None:
    """And keeps it when it is none any more."""
    assert (await put(subscribing, asked(channel=LOG))).shown is None
    second = await put(subscribing, asked())
    assert second.shown is not None
    assert second.replaced
    await put(subscribing, asked(channel=LOG))
    assert (await subscribing.get("ns", "t", "s1")).secrets == (second.shown,)


async def test_the_callers_own_secret_is_taken_and_not_sent_back(
    subscribing: Subscribing,
) -> None:
    """A put with another one changes nothing: a rotation has an overlap, a put has not."""
    own = new_secret()
    first = await put(subscribing, asked(secret=own))
    assert first.shown is None
    assert first.subscriber.secrets[0].value == own
    assert (await put(subscribing, asked(secret=own, time_zone="Asia/Tokyo"))).replaced
    with pytest.raises(InvalidRequest) as caught:
        await put(subscribing, asked(secret=new_secret(), time_zone="Europe/Paris"))
    assert caught.value.reason == "SECRET_DIFFERS"
    assert own not in str(caught.value)
    assert (await subscribing.get("ns", "t", "s1")).time_zone == "Asia/Tokyo"


async def test_a_repeated_put_answers_the_secret_again_for_a_while(
    world: World, subscribing: Subscribing
) -> None:
    """To the same request id alone, and as if it were the first."""
    first = await put(subscribing, asked(request_id="q"))
    world.clock.advance(REPEATED - SECOND)
    again = await put(subscribing, asked(request_id="q"))
    assert again.shown == first.shown is not None
    assert not again.replaced
    assert (await put(subscribing, asked(request_id="other"))).shown is None
    world.clock.advance(SECOND)
    assert (await put(subscribing, asked(request_id="q"))).shown is None


async def test_one_that_comes_twice_in_a_batch_is_made_once(subscribing: Subscribing) -> None:
    """The later one counts, and the secret is the first's."""
    first, second = await subscribing.put([asked(), asked(labels={"n": "2"})])
    assert isinstance(first, Put)
    assert isinstance(second, Put)
    assert (second.shown, second.replaced) == (None, True)
    found = await subscribing.get("ns", "t", "s1")
    assert found.labels == {"n": "2"}
    assert found.secrets == (first.shown,)


async def test_a_bad_one_fails_alone(subscribing: Subscribing) -> None:
    """The others are put."""
    await put(subscribing, asked("s2", secret=new_secret()))
    batch = [asked("s1"), asked("s2", secret=new_secret()), asked("s3")]
    good, bad, last = await subscribing.put(batch)
    assert isinstance(bad, InvalidRequest)
    for one in (good, last):
        assert isinstance(one, Put)
        stands = await subscribing.get("ns", "t", one.subscriber.subscriber_id)
        assert stands == one.subscriber


@pytest.mark.parametrize("point", ["subscribers.read_many", "subscribers.put"])
async def test_a_store_that_is_away_fails_all_of_a_batch(
    world: World, subscribing: Subscribing, point: str
) -> None:
    """And nothing is half there."""

    async def away(reached: str) -> None:
        if reached == point:
            raise StoreUnavailable(operation=point)

    world.on_point = away
    results = await subscribing.put([asked("s1"), asked("s2")])
    assert [type(one) for one in results] == [StoreUnavailable] * 2
    world.on_point = None
    assert await world.store.subscribers.count("ns", "t") == 0


async def test_a_rotation_makes_a_second_secret_beside_the_first(
    world: World, subscribing: Subscribing
) -> None:
    """Both sign until the overlap is over, the newer one first; then the newer one alone."""
    first = (await put(subscribing, asked())).shown
    world.clock.advance(HOUR)
    rotated = await rotate(subscribing)
    second = rotated.shown
    assert first is not None
    assert second is not None
    assert first.value != second.value
    found = await subscribing.get("ns", "t", "s1")
    assert found == rotated.subscriber
    assert found.valid_secrets(world.clock.now()) == (second, first)
    assert rotated.others_end_at == found.valid_until(first) == NOON + HOUR + OVERLAP
    world.clock.advance(OVERLAP - SECOND / 1000)
    assert found.valid_secrets(world.clock.now()) == (second, first)
    world.clock.advance(SECOND / 1000)
    assert found.valid_secrets(world.clock.now()) == (second,)


async def test_two_secrets_are_valid_at_most(world: World, subscribing: Subscribing) -> None:
    """A third one waits; with no overlap it ends all others at once. What ended is not kept."""
    await put(subscribing, asked())
    world.clock.advance(MINUTE)
    await rotate(subscribing)
    world.clock.advance(HOUR)
    with pytest.raises(RotationUnderWay) as caught:
        await rotate(subscribing)
    assert caught.value.until == NOON + MINUTE + OVERLAP
    leaked = await rotate(subscribing, overlap=timedelta(0))
    found = await subscribing.get("ns", "t", "s1")
    assert found.secrets == (leaked.shown,)
    world.clock.advance(DAY)
    await rotate(subscribing)
    world.clock.advance(2 * DAY)
    last = await rotate(subscribing)
    found = await subscribing.get("ns", "t", "s1")
    assert found.valid_secrets(world.clock.now()) == found.secrets
    assert found.secrets[0] == last.shown
    assert len(found.secrets) == 2


async def test_a_repeated_rotation_rotates_once(world: World, subscribing: Subscribing) -> None:
    """And answers the same secret, for a while; a put's request id is another one."""
    await put(subscribing, asked(request_id="q"))
    first = await rotate(subscribing, request_id="q")
    again = await rotate(subscribing, request_id="q")
    assert again == first
    assert first.shown is not None
    world.clock.advance(REPEATED + SECOND)
    late = await rotate(subscribing, request_id="q")
    assert (late.shown, late.others_end_at) == (None, first.others_end_at)
    assert len((await subscribing.get("ns", "t", "s1")).secrets) == 2


async def test_two_rotations_at_once_leave_both_secrets_valid(
    world: World, subscribing: Subscribing
) -> None:
    """Each caller has one that verifies: nobody's is lost."""
    await put(subscribing, asked())
    crossing: list[Rotated] = []
    begun = False

    async def between(point: str) -> None:
        nonlocal begun
        if point == "subscribers.add_secret" and not begun:
            begun = True
            crossing.append(await rotate(subscribing))

    world.on_point = between
    one = await rotate(subscribing)
    found = await subscribing.get("ns", "t", "s1")
    valid = found.valid_secrets(world.clock.now() + MINUTE)
    assert len(valid) == 3
    assert one.shown in valid
    assert crossing[0].shown in valid


async def test_two_puts_at_once_leave_both_secrets_valid(
    world: World, subscribing: Subscribing
) -> None:
    """Neither saw the other; each was handed one over."""
    crossing: list[Put] = []
    begun = False

    async def between(point: str) -> None:
        nonlocal begun
        if point == "subscribers.put" and not begun:
            begun = True
            crossing.append(await put(subscribing, asked()))

    world.on_point = between
    one = await put(subscribing, asked())
    found = await subscribing.get("ns", "t", "s1")
    handed = {each.shown.value for each in (one, *crossing) if each.shown is not None}
    assert len(handed) == 2
    valid = found.valid_secrets(world.clock.now() + OVERLAP - SECOND)
    assert {each.value for each in valid} == handed


async def test_a_put_that_crosses_a_rotation_and_a_pause_undoes_neither(
    world: World, subscribing: Subscribing
) -> None:
    """It had read the subscriber before both."""
    await put(subscribing, asked())
    crossing: list[object] = []

    async def between(point: str) -> None:
        if point == "subscribers.put" and not crossing:
            crossing.append(None)
            crossing.append((await rotate(subscribing)).shown)
            await subscribing.set_paused("ns", "t", "s1", paused=True)

    world.on_point = between
    await put(subscribing, asked(labels={"plan": "gold"}))
    found = await subscribing.get("ns", "t", "s1")
    assert found.labels == {"plan": "gold"}
    assert found.paused
    assert found.secrets[0] == crossing[1]


async def test_only_webhooks_that_are_there_rotate(subscribing: Subscribing) -> None:
    """Else there is nothing to sign."""
    with pytest.raises(SubscriberNotFound):
        await rotate(subscribing)
    await put(subscribing, asked(channel=LOG))
    with pytest.raises(InvalidRequest):
        await rotate(subscribing)


async def test_a_pause_stays_until_it_is_ended(subscribing: Subscribing) -> None:
    """Repeating changes nothing."""
    await put(subscribing, asked())
    for paused in (True, True, False, False):
        found = await subscribing.set_paused("ns", "t", "s1", paused=paused)
        assert found.paused is paused
        assert await subscribing.get("ns", "t", "s1") == found
    with pytest.raises(SubscriberNotFound):
        await subscribing.set_paused("ns", "t", "another", paused=True)


async def test_what_is_deleted_leaves_nothing_behind(subscribing: Subscribing) -> None:
    """Put again at the very same time it is a new one: another secret, not paused."""
    first = await put(subscribing, asked())
    await rotate(subscribing)
    await subscribing.set_paused("ns", "t", "s1", paused=True)
    assert await subscribing.delete("ns", "t", "s1")
    assert not await subscribing.delete("ns", "t", "s1")
    with pytest.raises(SubscriberNotFound):
        await subscribing.get("ns", "t", "s1")
    again = await put(subscribing, asked())
    found = await subscribing.get("ns", "t", "s1")
    assert not again.replaced
    assert again.shown is not None
    assert again.shown != first.shown
    assert found.secrets[0].value == again.shown.value
    assert not found.paused


async def test_a_put_stands_though_a_clock_ahead_stamped_the_delete_before_it(
    world: World, subscribing: Subscribing
) -> None:
    """A put that was acknowledged is there."""
    with behind_the_scenes():
        ahead = int((NOON + SECOND / 2).timestamp() * 1_000_000)
        await world.store.subscribers.delete("ns", "t", "s1", stamp=ahead)
    made = await put(subscribing, asked())
    found = await subscribing.get("ns", "t", "s1")
    assert made.shown is not None
    assert [one.value for one in found.secrets] == [made.shown.value]


async def test_nothing_is_written_by_a_clock_that_is_not_trusted(
    world: World, subscribing: Subscribing
) -> None:
    """Its stamps could hide what others write."""
    await put(subscribing, asked())
    world.clock.bounds = False
    (result,) = await subscribing.put([asked("s2")])
    assert isinstance(result, NotReady)
    with pytest.raises(NotReady):
        await rotate(subscribing)
    with pytest.raises(NotReady):
        await subscribing.delete("ns", "t", "s1")


async def listed(subscribing: Subscribing, limit: int, **filters: Any) -> list[Subscriber]:
    """All pages."""
    found: list[Subscriber] = []
    position = ""
    while True:
        wanted = {"labels": {}, "paused": None, **filters}
        page = await subscribing.page("ns", "t", limit=limit, position=position, **wanted)
        assert len(page.items) <= limit
        found += page.items
        if not page.next_token:
            return found
        assert page.next_token > position
        position = page.next_token


@pytest.mark.parametrize("limit", [1, 7, 300, 1000])
async def test_a_list_is_whole_and_in_order(subscribing: Subscribing, limit: int) -> None:
    """Whatever the size of its pages."""
    many = [asked(f"s{number}", channel=LOG) for number in range(300)]
    await subscribing.put(many)
    found = [one.subscriber_id for one in await listed(subscribing, limit)]
    assert sorted(found) == sorted(one.subscriber_id for one in many)
    assert found == sorted(found, key=lambda each: (bucket_of(each), each))


async def test_a_list_can_be_filtered(subscribing: Subscribing) -> None:
    """By labels, of which all must be there, and by the pause."""
    many = [
        asked(f"s{n}", channel=LOG, labels={"even": str(n % 2 == 0), "third": str(n % 3 == 0)})
        for n in range(100)
    ]
    await subscribing.put(many)
    await subscribing.set_paused("ns", "t", "s6", paused=True)

    def ids(found: Sequence[Subscriber]) -> set[str]:
        return {one.subscriber_id for one in found}

    sixth = {f"s{n}" for n in range(0, 100, 6)}
    both = {"even": "True", "third": "True"}
    assert ids(await listed(subscribing, 3, labels=both)) == sixth
    assert ids(await listed(subscribing, 3, labels=both, paused=False)) == sixth - {"s6"}
    assert ids(await listed(subscribing, 3, paused=True)) == {"s6"}
    assert await listed(subscribing, 3, labels={"even": "maybe"}) == []


async def test_a_page_of_a_filtered_list_looks_at_a_bounded_number(
    world: World, subscribing: Subscribing
) -> None:
    """So it may be empty and not the last."""
    topic = [asked(f"s{n}", channel=LOG) for n in range(LOOKED_AT + 1_000)]
    for first in range(0, len(topic), 500):
        await subscribing.put(topic[first : first + 500])
    reads: list[str] = []

    async def count(point: str) -> None:
        reads.append(point)

    world.on_point = count
    page = await subscribing.page(
        "ns", "t", labels={"no": "such"}, paused=None, limit=10, position=""
    )
    assert page.items == ()
    assert page.next_token
    assert len(reads) < 50
    assert await listed(subscribing, 10, labels={"no": "such"}) == []


@pytest.mark.parametrize("position", ["16", "xx", "999", "s1"])
async def test_a_position_that_is_none_is_refused(subscribing: Subscribing, position: str) -> None:
    """It can only be somebody's own invention."""
    with pytest.raises(InvalidRequest):
        await subscribing.page("ns", "t", labels={}, paused=None, limit=1, position=position)


async def test_no_secret_is_in_anything_that_could_be_logged(
    subscribing: Subscribing, caplog: pytest.LogCaptureFixture
) -> None:
    """Values of every kind hide them when they are printed."""
    own = new_secret()
    with caplog.at_level(logging.DEBUG):
        made = await put(subscribing, asked())
        other = await put(subscribing, asked("s2", secret=own))
        rotated = await rotate(subscribing)
    assert made.shown is not None
    assert rotated.shown is not None
    printed = f"{made!r} {other!r} {rotated!r} {asked(secret=own)!r} {own!r} {caplog.text}"
    for secret in (made.shown.value, rotated.shown.value, own):
        assert str.__str__(secret).removeprefix("whsec_") not in printed


def test_a_filter_wants_all_of_its_labels() -> None:
    """More labels are no harm; an empty filter takes all."""
    base = Subscriber(
        namespace="ns",
        topic_id="t",
        subscriber_id="s",
        channel=LOG,
        created_at=NOON,
        updated_at=NOON,
        stamp=0,
    )
    picky = replace(base, filter={"kind": "news", "lang": "en"})
    assert base.wants(())
    assert picky.wants((("kind", "news"), ("lang", "en"), ("x", "y")))
    assert not picky.wants((("kind", "news"),))
    assert not picky.wants((("kind", "news"), ("lang", "fr")))
    assert SecretText("whsec_x") == "whsec_x"

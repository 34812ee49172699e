"""Which stretches are looked at, and when."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from reminders.buckets import TRUSTED_LIFE
from scanner.trail import LONGEST_WAIT, STRETCH, TRAIL, Stretch, Trail
from tests.unit.lifecycle.world import DAY, HOUR, MINUTE, NOON, SECOND

GRACE = 2 * MINUTE


def look(trail: Trail, now: datetime, *, settled: bool = True) -> list[Stretch]:
    """At everything that is due."""
    found = trail.due(now)
    for stretch in found:
        trail.looked(stretch, settled=settled, now=now)
    return found


def test_a_stretch_is_looked_at_once_its_time_has_passed_by_the_trail() -> None:
    """Not before: an ordinary delivery needs a moment."""
    trail = Trail(NOON, GRACE)
    assert trail.due(NOON + STRETCH + TRAIL - SECOND) == []
    (stretch,) = trail.due(NOON + STRETCH + TRAIL)
    assert (stretch.start, stretch.before) == (NOON, NOON + STRETCH)


def test_every_instant_is_looked_at_twice_by_the_time_it_is_settled() -> None:
    """Once in its stretch, and once with its whole minute after the grace."""
    trail = Trail(NOON, GRACE)
    looks: list[Stretch] = []
    now = NOON
    while now < NOON + 10 * MINUTE:
        looks += look(trail, now)
        now += 2 * SECOND
    for at in range(0, 300, 7):
        instant = NOON + at * SECOND
        finals = [s.final for s in looks if s.start <= instant < s.before]
        assert finals == [False, True]


def test_what_is_under_way_is_looked_at_again_soon_while_its_minute_is_young() -> None:
    """So that a job that was lost from its stream is missed; when it is old, ever more rarely."""
    trail, now, looks = Trail(NOON, GRACE), NOON, []
    while now < NOON + 10 * MINUTE:
        for stretch in trail.due(now):
            if stretch.minute == NOON and stretch.start == NOON:
                looks.append(now - NOON)
            trail.looked(stretch, settled=stretch.minute != NOON, under_way=True, now=now)
        now += 2 * SECOND
    young = [at for at in looks if at < MINUTE + GRACE]
    old = [at for at in looks if at >= MINUTE + GRACE]
    assert max(later - at for at, later in pairwise(young)) <= 4 * SECOND
    assert max(later - at for at, later in pairwise(old)) == LONGEST_WAIT


def test_the_watermark_follows_the_grace() -> None:
    """And moves by whole minutes."""
    trail = Trail(NOON, GRACE)
    look(trail, NOON + MINUTE + GRACE - SECOND)
    assert trail.settled_through == NOON
    look(trail, NOON + MINUTE + GRACE)
    assert trail.settled_through == NOON + MINUTE


def test_the_watermark_never_passes_an_open_minute() -> None:
    """Later ones are settled meanwhile, and are not looked at again."""
    trail = Trail(NOON, GRACE)
    now = NOON
    looked_at: list[datetime] = []
    while now < NOON + HOUR:
        for stretch in trail.due(now):
            trail.looked(stretch, settled=stretch.minute != NOON + MINUTE, now=now)
            if stretch.final:
                looked_at.append(stretch.minute)
        now += 2 * SECOND
    assert trail.settled_through == NOON + MINUTE
    assert all(looked_at.count(NOON + n * MINUTE) == 1 for n in range(2, 50))
    for stretch in trail.due(now + MINUTE):
        trail.looked(stretch, settled=True, now=now)
    assert trail.settled_through > NOON + 50 * MINUTE


def test_an_open_stretch_is_looked_at_ever_less_often() -> None:
    """But never more rarely than the longest wait."""
    trail = Trail(NOON, GRACE)
    at = [
        now
        for now in (NOON + n * SECOND for n in range(150))
        if look(trail, now, settled=False) and now < NOON + 40 * SECOND
    ]
    assert at[:3] == [NOON + 15 * SECOND, NOON + 17 * SECOND, NOON + 21 * SECOND]
    trail = Trail(NOON, GRACE)
    finals = [
        now
        for now in (NOON + n * SECOND for n in range(190, 400))
        if any(s.final and s.minute == NOON for s in look(trail, now, settled=False))
    ]
    gaps = [later - earlier for earlier, later in pairwise(finals)]
    assert max(gaps) == LONGEST_WAIT


def test_what_rang_lately_comes_before_the_backlog() -> None:
    """After a downtime of a day."""
    trail = Trail(NOON - DAY, GRACE)
    found = trail.due(NOON)
    finals = [stretch.final for stretch in found]
    assert finals == sorted(finals)
    assert found[0].start > NOON - 4 * MINUTE
    assert sum(finals) == 1440 - 2


def test_a_new_lead_first_looks_at_what_came_due_just_before_it() -> None:
    """Up to its beginning, not behind it, and nothing twice."""
    began = NOON + 10 * MINUTE + 7 * SECOND
    found = Trail(NOON, GRACE).young(began)
    assert found[-1].before == began
    assert found[0].start <= began - GRACE - MINUTE
    assert all(a.before == b.start for a, b in pairwise(found))
    assert Trail(NOON, GRACE).young(NOON) == []


@pytest.mark.parametrize("grace", [timedelta(0), 90 * SECOND, 5 * MINUTE])
def test_minutes_begin_where_minutes_begin_whatever_the_grace(grace: timedelta) -> None:
    """A partition is one minute."""
    trail = Trail(NOON, grace)
    for stretch in (*trail.young(NOON + HOUR), *trail.due(NOON + HOUR)):
        assert stretch.minute.second == 0
        assert stretch.minute <= stretch.start < stretch.before <= stretch.minute + MINUTE


def test_a_look_at_a_stretch_that_grew_old_meanwhile_counts_for_nothing() -> None:
    """The whole minute is looked at anyway."""
    trail = Trail(NOON, GRACE)
    (stretch,) = trail.due(NOON + STRETCH + TRAIL)
    trail.due(NOON + MINUTE + GRACE)
    trail.looked(stretch, settled=True, now=NOON + MINUTE + GRACE)
    assert any(s.final and s.minute == NOON for s in trail.due(NOON + MINUTE + GRACE))


def test_a_stuck_minute_holds_the_watermark_until_it_is_too_old() -> None:
    """It is open for weeks. The minutes behind it are settled, and its own is refused in the end,
    though it is settled at last: by then it may have lost entries.
    """
    trail = Trail(NOON, GRACE)
    late = NOON + TRUSTED_LIFE
    for now in (NOON + 10 * MINUTE, late - MINUTE):
        for stretch in trail.due(now):
            trail.looked(stretch, settled=stretch.minute != NOON, now=now)
    assert (trail.settled_through, trail.refused) == (NOON, False)
    look(trail, late)
    assert (trail.settled_through, trail.refused) == (NOON, True)
    assert all(stretch.minute != NOON for stretch in trail.due(late + MINUTE)), "looked at once"
    trail.go_on_from(NOON + MINUTE)
    assert not trail.refused
    assert trail.settled_through > NOON + MINUTE


def test_a_minute_that_is_settled_in_time_is_passed() -> None:
    """The last instant at which it may be."""
    trail = Trail(NOON, GRACE)
    look(trail, NOON + TRUSTED_LIFE - SECOND)
    assert trail.settled_through > NOON + MINUTE
    assert not trail.refused

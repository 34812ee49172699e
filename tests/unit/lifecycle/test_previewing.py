"""What a preview shows: which occurrences, from where, what was left out, and how much work."""

# ruff: noqa: DTZ001  naive wall times are its subject

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reminders.errors import InvalidRequest
from reminders.lifecycle import Planner
from reminders.lifecycle.bounded import BoundedPlan
from reminders.lifecycle.previewing import PREVIEW_STEPS, Preview, PreviewRequest, preview
from reminders.model.definition import (
    After,
    At,
    Definition,
    LocalTime,
    Policies,
    Recurring,
    Schedule,
)
from reminders.model.record import Record, Status
from reminders.recurrence import (
    MAX_STEPS,
    Cursor,
    Gap,
    MissingDay,
    Overlap,
    Rule,
    RuleExhausted,
    Series,
    Work,
)

NOW = datetime(2026, 3, 27, 12, 0, 0, 1000, tzinfo=UTC)
PARIS = "Europe/Paris"
HOURS = ",".join(map(str, range(24)))
MINUTES = ",".join(map(str, range(60)))


def rule(text: str, start: str | None = None, **fields: Any) -> Recurring:
    """In Paris unless said otherwise; cron has no equals sign."""
    return Recurring(
        rrule=text if "=" in text else None,
        cron=None if "=" in text else text,
        start_local=datetime.fromisoformat(start) if start else None,
        zone=fields.pop("zone", PARIS),
        **fields,
    )


def shown(
    schedule: Schedule, *, count: int = 3, after: datetime | None = None, **policies: Any
) -> Preview:
    """The preview at `NOW`."""
    return preview(
        PreviewRequest(schedule=schedule, policies=Policies(**policies), after=after, count=count),
        NOW,
    )


def locals_of(found: Preview) -> list[str]:
    """The planned local times, to the minute."""
    return [one.local.isoformat(timespec="minutes") for one in found.occurrences]


def ids_left_out(found: Preview) -> list[str]:
    """The days and hours that were left out."""
    return [one.occurrence_id[:13] for one in found.left_out]


def test_a_rule_with_a_start_is_shown_from_its_beginning() -> None:
    """Long past or not; the count begins there."""
    found = shown(rule("FREQ=DAILY", "2020-01-01T09:00", max_occurrences=2))
    assert locals_of(found) == ["2020-01-01T09:00", "2020-01-02T09:00"]
    assert (found.stopped, found.left_out) == ("", ())


def test_cron_without_a_start_is_shown_from_now() -> None:
    """As if it were created now."""
    found = shown(rule("0 9 * * 1"))
    assert locals_of(found) == ["2026-03-30T09:00", "2026-04-06T09:00", "2026-04-13T09:00"]


def test_after_is_a_place_to_go_on_from() -> None:
    """Strictly after, so that the last instant of a page begins the next one."""
    schedule = rule("FREQ=DAILY", "2026-03-27T09:00")
    pages = [shown(schedule, count=2)]
    pages.append(shown(schedule, count=2, after=pages[0].occurrences[-1].instant))
    whole = shown(schedule, count=4)
    assert [one for page in pages for one in page.occurrences] == list(whole.occurrences)


def test_after_stands_for_the_time_of_the_create() -> None:
    """A delay, a wall-clock time, cron and a count begin there, whatever the clock says."""
    after = datetime(2027, 1, 1, 12, tzinfo=UTC)
    tea = shown(After(delay=timedelta(hours=2)), after=after)
    assert [one.instant for one in tea.occurrences] == [after + timedelta(hours=2)]
    assert locals_of(shown(LocalTime(date=None, time="09:00", zone=PARIS), after=after)) == [
        "2027-01-02T09:00"
    ]
    assert locals_of(shown(rule("0 9 * * *"), after=after))[:1] == ["2027-01-02T09:00"]
    counted = rule("FREQ=DAILY", "2026-03-27T09:00", max_occurrences=2)
    assert locals_of(shown(counted, after=after)) == ["2027-01-02T09:00", "2027-01-03T09:00"]


def test_a_time_that_is_not_after_is_not_shown() -> None:
    """A one-shot, too, comes after `after`, or not at all."""
    at = At(instant=NOW + timedelta(hours=1))
    (one,) = shown(at).occurrences
    assert (one.instant, one.zone, one.offset) == (at.instant, "UTC", "+00:00")
    assert one.occurrence_id.endswith("Z")
    assert shown(at, after=at.instant).occurrences == ()
    assert len(shown(at, after=at.instant - timedelta(milliseconds=1)).occurrences) == 1
    dated = LocalTime(date="2026-12-24", time="09:00", zone=PARIS)
    assert locals_of(shown(dated)) == ["2026-12-24T09:00"]
    assert shown(dated, after=datetime(2026, 12, 24, 8, tzinfo=UTC)).occurrences == ()


@pytest.mark.parametrize(
    "schedule",
    [
        After(delay=timedelta(minutes=5)),
        At(instant=NOW + timedelta(minutes=5)),
        LocalTime(date=None, time="02:30", zone=PARIS),
        LocalTime(date="2026-10-25", time="02:30", zone=PARIS),
        rule("FREQ=DAILY", "2026-03-28T02:30"),
        rule("FREQ=DAILY;INTERVAL=3", "2011-01-31T02:30", max_occurrences=7),
        rule("FREQ=MONTHLY;BYMONTHDAY=29,31", "2024-01-31T02:30"),
        rule("FREQ=HOURLY;INTERVAL=5", "2026-01-01T00:00"),
        rule("30 2 * * *"),
        rule("*/5 * * * *"),
    ],
)
@pytest.mark.parametrize("overlap", [Overlap.EARLIER, Overlap.BOTH])
def test_it_shows_what_a_create_would_plan(schedule: Schedule, overlap: Overlap) -> None:
    """Ids, times and machine notes of the first occurrences, with `after` at the create."""
    policies = Policies(overlap=overlap, missing_day=MissingDay.CLAMP)
    definition = Definition(user_id="u", schedule=schedule, policies=policies, channels=())
    record = Record(
        namespace="n",
        reminder_id="r",
        version=1,
        status=Status.SCHEDULED,
        definition=definition,
        created_at=NOW,
        updated_at=NOW,
        stamp=0,
    )
    planned = [entry.occurrence for entry in Planner(shards=4).first(record)]
    found = preview(
        PreviewRequest(schedule=schedule, policies=policies, after=NOW, count=len(planned)), NOW
    )
    assert [
        (
            *(one.occurrence_id, one.nominal, one.local, one.fold, one.zone, one.instant),
            one.policy,
        )
        for one in found.occurrences
    ] == [
        (
            *(one.occurrence_id, one.nominal_local, one.planned_local, one.fold, one.zone),
            one.planned_at,
            (one.note or "").replace(":", "_"),
        )
        for one in planned
        if one is not None
    ]


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30",
        "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "FREQ=SECONDLY;INTERVAL=7",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29",
    ],
)
def test_going_on_in_rounds_changes_nothing(text: str) -> None:
    """As one call of the series has them, also where a round finds only some or none of its own."""
    series = Series(
        rule=Rule.parse(text), start_local=datetime(2026, 3, 28, 2, 30), zone="Europe/Paris"
    )
    plan = BoundedPlan(series, Cursor(), steps=PREVIEW_STEPS, work=Work())
    assert plan.take(40) == series.next(Cursor(), 40)


def test_what_is_rare_stops_at_a_bound_of_work_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the first ones shown, and from the last of them one can go on."""
    monkeypatch.setattr("reminders.lifecycle.previewing.PREVIEW_STEPS", 2_000)
    schedule = rule("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29", "2026-01-01T09:00")
    found = shown(schedule, count=1_000)
    assert locals_of(found)[:2] == ["2028-02-29T09:00", "2032-02-29T09:00"]
    assert len(found.occurrences) < 1_000
    assert "stopped after 2000 steps" in found.stopped
    going_on = shown(schedule, count=1, after=found.occurrences[-1].instant)
    assert going_on.occurrences[0].instant > found.occurrences[-1].instant


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=SECONDLY;INTERVAL=7;BYMONTH=2;BYMONTHDAY=29;BYHOUR=3;BYMINUTE=3;BYSECOND=1",
        "FREQ=YEARLY;BYHOUR=0,1,2,3,4,5,6,7,8,9;BYYEARDAY=-1,1,2,3,100;BYSETPOS=-1",
    ],
)
def test_the_bound_of_work_holds_whatever_the_rule(text: str) -> None:
    """No further than one round, or one dear occurrence, beyond it."""
    series = Series(rule=Rule.parse(text), start_local=datetime(2026, 1, 1, 9), zone="UTC")
    work = Work()
    plan = BoundedPlan(series, Cursor(), steps=5_000, work=work)
    assert plan.take(1_000)
    assert 5_000 <= work.steps <= 5_000 + 2 * MAX_STEPS
    assert plan.stopped


def test_a_barren_stretch_behind_what_was_found_is_told() -> None:
    """An RDATE is found, and then the rule itself nothing within its bound."""
    series = Series(
        rule=Rule.parse("FREQ=DAILY;INTERVAL=7;BYDAY=TU"),
        start_local=datetime(2026, 6, 1, 9),
        zone="UTC",
        rdates=(datetime(2026, 5, 1, 9),),
    )
    plan = BoundedPlan(series, Cursor(), steps=PREVIEW_STEPS, work=Work())
    assert len(plan.take(3)) == 1
    assert plan.stopped.startswith("RRULE found no occurrence within")
    bare = BoundedPlan(replace(series, rdates=()), Cursor(), steps=PREVIEW_STEPS, work=Work())
    with pytest.raises(RuleExhausted):
        bare.take(3)


@pytest.mark.parametrize(
    ("schedule", "field", "said"),
    [
        (
            rule("FREQ=DAILY;INTERVAL=7;BYDAY=TU", "2026-06-01T09:00"),
            *("rrule", "RRULE found no occurrence within"),
        ),
        # Both days must match, as the first field begins with a star.
        (rule("0 0 */31 * 1#2"), "cron", "cron found no occurrence within"),
        (
            rule(f"FREQ=DAILY;BYHOUR={HOURS};BYMINUTE={MINUTES};BYSECOND=0,30", "2026-06-01T09:00"),
            *("rrule", "BYSECOND more than 1440 times a day"),
        ),
    ],
)
def test_a_rule_that_comes_to_nothing_is_refused_by_its_part(
    schedule: Recurring, field: str, said: str
) -> None:
    """The request's field, the rule's part, and what to do about it."""
    with pytest.raises(InvalidRequest) as caught:
        shown(schedule)
    (violation,) = caught.value.violations
    assert violation.field == f"schedule.recurrence.{field}"
    assert violation.reason == "RULE_INVALID"
    assert violation.description.startswith(said)


def test_a_skipped_gap_is_told_in_words() -> None:
    """It rings neither at that time nor instead of it, and somebody will ask why."""
    found = shown(rule("FREQ=DAILY", "2026-03-28T02:30"), gap=Gap.SKIP)
    assert locals_of(found) == ["2026-03-28T02:30", "2026-03-30T02:30", "2026-03-31T02:30"]
    (skipped,) = found.left_out
    assert skipped.occurrence_id == "20260329T023000"
    assert (skipped.policy, skipped.zone) == ("gap_skip", PARIS)
    assert skipped.note == (
        "02:30 does not exist on 2026-03-29 in Europe/Paris (clocks go from 02:00 to 03:00); "
        "this one is left out."
    )


def test_a_skipped_day_is_told_in_words() -> None:
    """Each missing day by its own name, those that a policy would put on one date as well."""
    found = shown(rule("FREQ=MONTHLY;BYMONTHDAY=28,30,31", "2026-01-31T09:00"))
    assert locals_of(found) == ["2026-01-31T09:00", "2026-02-28T09:00", "2026-03-28T09:00"]
    assert [one.note for one in found.left_out] == [
        "February 2026 has no 30th; this one is left out.",
        "February 2026 has no 31st; this one is left out.",
    ]
    assert {one.policy for one in found.left_out} == {"missing_day_skip"}


def test_times_that_a_policy_would_put_on_one_instant_are_told_apart() -> None:
    """02:00 and 02:30 are both left out, beside a 03:00 that rings."""
    found = shown(
        rule("FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30", "2026-03-29T02:00"), gap=Gap.SKIP, count=2
    )
    assert locals_of(found) == ["2026-03-29T03:00", "2026-03-29T03:30"]
    assert ids_left_out(found) == ["20260329T0200", "20260329T0230"]


@pytest.mark.parametrize(
    ("schedule", "policies", "ids"),
    [
        # The start's own day, which the rule takes over.
        (
            rule("FREQ=YEARLY", "2024-02-29T09:00"),
            *({}, [f"{year}0229T0900" for year in (2025, 2026, 2027, 2029, 2030, 2031)]),
        ),
        # A phase of INTERVAL.
        (rule("FREQ=MONTHLY;INTERVAL=3", "2026-01-31T09:00"), {}, ["20260431T0900"]),
        # The rule has ended when April comes.
        (
            rule("FREQ=MONTHLY", "2026-01-31T09:00", max_occurrences=2),
            *({}, ["20260231T0900"]),
        ),
        (
            rule("FREQ=MONTHLY", "2026-01-31T09:00", until=datetime(2026, 4, 30, tzinfo=UTC)),
            *({}, ["20260231T0900"]),
        ),
        # The chosen day is the last of those that there are.
        (rule("FREQ=MONTHLY;BYMONTHDAY=28,29,30;BYSETPOS=-1", "2026-01-31T09:00"), {}, []),
        # Not a monthly rule: there is no day missing.
        (rule("FREQ=DAILY;BYMONTHDAY=31", "2026-01-31T09:00"), {}, []),
        # Moved onto the day of the gap first.
        (
            rule("FREQ=MONTHLY;BYMONTHDAY=31", "2028-04-01T00:30", zone="Africa/Cairo"),
            {"gap": Gap.SKIP, "missing_day": MissingDay.PREVIOUS_BUSINESS_DAY},
            ["20280431T0030"],
        ),
        # An RDATE.
        (
            rule("0 9 * * *", rdates_local=(datetime(2026, 3, 29, 2, 15),)),
            *({"gap": Gap.SKIP}, ["20260329T0215"]),
        ),
        # Elapsed time knows no gap.
        (rule("30 * * * *"), {"gap": Gap.SKIP}, []),
        # Nothing is left out where another policy acts.
        (rule("30 2 * * *"), {"gap": Gap.NEXT_VALID}, []),
    ],
)
def test_exactly_what_a_policy_leaves_out_is_told(
    schedule: Recurring, policies: dict[str, Any], ids: list[str]
) -> None:
    """Up to the last occurrence shown, or the rule's end."""
    assert ids_left_out(shown(schedule, **policies)) == ids


def test_a_wall_clock_time_in_a_gap_is_left_out_as_well() -> None:
    """With a date there is nothing; without one it is the next day's."""
    dated = shown(LocalTime(date="2026-03-29", time="02:30", zone=PARIS), gap=Gap.SKIP)
    assert dated.occurrences == ()
    assert ids_left_out(dated) == ["20260329T0230"]
    eve = datetime(2026, 3, 28, 12, tzinfo=UTC)
    free = shown(LocalTime(date=None, time="02:30", zone=PARIS), gap=Gap.SKIP, after=eve)
    assert locals_of(free) == ["2026-03-30T02:30"]
    assert ids_left_out(free) == ["20260329T0230"]


def test_both_passes_of_a_repeated_time_are_told_apart() -> None:
    """By id, fold, offset and words."""
    found = shown(
        LocalTime(date="2026-10-25", time="02:30", zone=PARIS), overlap=Overlap.BOTH
    ).occurrences
    assert [(one.occurrence_id, one.fold, one.offset) for one in found] == [
        ("20261025T023000", 0, "+02:00"),
        ("20261025T023000~1", 1, "+01:00"),
    ]
    assert "the first" in found[0].note
    assert "the second" in found[1].note


def test_the_editions_of_the_data_are_named() -> None:
    """Holidays only where they decide."""
    plain = shown(rule("FREQ=DAILY", "2026-03-28T02:30"))
    assert plain.zone_data
    assert plain.holiday_data == ""
    moved = shown(
        rule("FREQ=MONTHLY", "2026-01-31T09:00"),
        missing_day=MissingDay.NEXT_BUSINESS_DAY,
        holiday_calendar="FR",
    )
    assert moved.holiday_data

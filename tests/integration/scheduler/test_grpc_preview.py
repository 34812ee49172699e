"""PreviewOccurrences over real gRPC, with and without a store that answers."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.clock import ManualClock
from reminders.lifecycle import Reminders
from reminders.recurrence import holiday_data_version, zone_data_version
from scheduler.server import Scheduler
from scheduler.settings import SchedulerSettings

if TYPE_CHECKING:
    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub as Stub

Failing = Callable[[Awaitable[object]], Awaitable[Any]]


def month_ends(**policies: Any) -> pb.PreviewOccurrencesRequest:
    """The 31st, from January on."""
    rule = reminder_pb2.Recurrence(
        rrule="FREQ=MONTHLY;BYMONTHDAY=31", start="2026-01-31T09:00", time_zone="Europe/Paris"
    )
    return pb.PreviewOccurrencesRequest(
        schedule=reminder_pb2.Schedule(recurrence=rule),
        policies=reminder_pb2.Policies(**policies),
        count=2,
    )


async def test_every_field_of_the_answer(stub: "Stub") -> None:
    """One that no policy touched, and one that was moved."""
    request = month_ends(
        missing_day=reminder_pb2.MISSING_DAY_POLICY_NEXT_BUSINESS_DAY, holiday_calendar="FR"
    )
    answer = await stub.PreviewOccurrences(request)
    plain, moved = answer.occurrences
    assert (plain.occurrence_id, plain.planned_local) == ("20260131T090000", "2026-01-31T09:00:00")
    assert (plain.policy, plain.note) == ("", "")
    assert moved.occurrence_id == "20260231T090000"
    assert moved.nominal_local == "2026-02-28T09:00:00"
    assert moved.planned_local == "2026-03-02T09:00:00"
    assert (moved.time_zone, moved.fold, moved.utc_offset) == ("Europe/Paris", 0, "+01:00")
    assert moved.planned_time.ToJsonString() == "2026-03-02T08:00:00Z"
    assert moved.policy == "missing_day_next_business_day"
    assert moved.note == (
        "February 2026 has no 31st; it moves to Monday 2026-03-02, "
        "the first business day after the month (holidays: FR)."
    )
    assert answer.zone_data_version == zone_data_version()
    assert answer.holiday_data_version == holiday_data_version()
    assert (list(answer.left_out), answer.stopped) == ([], "")


async def test_what_is_left_out_is_in_the_answer(stub: "Stub") -> None:
    """With the words for it."""
    (skipped,) = (await stub.PreviewOccurrences(month_ends())).left_out
    assert skipped.occurrence_id == "20260231T090000"
    assert (skipped.nominal_local, skipped.time_zone) == ("2026-02-28T09:00:00", "Europe/Paris")
    assert skipped.policy == "missing_day_skip"
    assert skipped.note == "February 2026 has no 31st; this one is left out."


@pytest.mark.parametrize(
    ("schedule", "instants"),
    [
        ({"after": {"seconds": 60}}, ["2026-11-20T12:01:00Z"]),
        ({"at": {"seconds": 1_800_000_000}}, ["2027-01-15T08:00:00Z"]),
        ({"local": {"time": "09:00", "time_zone": "Europe/Paris"}}, ["2026-11-21T08:00:00Z"]),
        (
            {"recurrence": {"cron": "0 9 * * 1", "time_zone": "Europe/Paris"}},
            ["2026-11-23T08:00:00Z", "2026-11-30T08:00:00Z"],
        ),
    ],
)
async def test_every_kind_of_schedule(
    stub: "Stub", schedule: dict[str, Any], instants: list[str]
) -> None:
    """From now on where nothing else is said: the clock stands at noon."""
    request = pb.PreviewOccurrencesRequest(schedule=schedule, count=2)  # type: ignore[arg-type]
    answer = await stub.PreviewOccurrences(request)
    assert [one.planned_time.ToJsonString() for one in answer.occurrences] == instants


async def test_a_rule_that_finds_nothing_is_refused_by_its_part(
    stub: "Stub", failing: Failing
) -> None:
    """After a bounded search; with the field, and what to do."""
    request = month_ends()
    request.schedule.recurrence.rrule = "FREQ=DAILY;INTERVAL=7;BYDAY=TU"
    failure = await failing(stub.PreviewOccurrences(request))
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    (violation,) = failure.bad_request.field_violations
    assert violation.field == "schedule.recurrence.rrule"
    assert "found no occurrence within 50000 steps" in violation.description
    assert "drop or widen" in violation.description


class Unplugged(Reminders):
    """No store: whatever touches it fails."""

    def __init__(self) -> None:
        pass


async def test_it_answers_while_the_stores_are_down(
    clock: ManualClock, settings: SchedulerSettings
) -> None:
    """Not ready is a matter of the calls that need a store."""
    scheduler = Scheduler(Unplugged(), clock, settings, stores=lambda: ["Cassandra is away"])
    port = await scheduler.start()
    assert scheduler.problems() == ["Cassandra is away"]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        answer = await ReminderServiceStub(channel).PreviewOccurrences(month_ends())
    await scheduler.stop(timedelta(0))
    assert len(answer.occurrences) == 2

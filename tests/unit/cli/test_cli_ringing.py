"""`tocsin trigger` and `tocsin backfill`: what they ask for and what they print."""

from collections.abc import Callable
from typing import Any

from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls


def test_trigger_shows_the_occurrence_that_rings(
    scheduler: Any, answers: Any, tocsin: Callable[..., Any]
) -> None:
    """With its id, which a repeat shows again."""
    ringing = answers.occurrence(
        occurrence_id="20261201T090000Z", origin=pb.OCCURRENCE_ORIGIN_TRIGGER
    )
    scheduler.answers["TriggerReminder"] = [calls.TriggerReminderResponse(occurrence=ringing)]
    out = tocsin("trigger", "r1", "--request-id", "q", "--namespace", "n").out
    assert "20261201T090000Z" in out
    assert "trigger" in out
    [request] = scheduler.requests
    assert (request.namespace, request.reminder_id, request.request_id) == ("n", "r1", "q")


def test_backfill_says_how_many_and_shows_the_first(
    scheduler: Any, answers: Any, tocsin: Callable[..., Any]
) -> None:
    """A count that is cut says so."""
    found = calls.BackfillReminderResponse(
        occurrence_count=10_000,
        occurrence_count_capped=True,
        occurrences=[answers.occurrence(origin=pb.OCCURRENCE_ORIGIN_BACKFILL)],
    )
    scheduler.answers["BackfillReminder"] = [found]
    out = tocsin("backfill", "r1", "--from", "2026-12-01T10:00:00+01:00").out
    assert "20261224T090000" in out
    assert "10000+ in the range, the first 1 shown: those that have not rung will" in out
    [request] = scheduler.requests
    assert request.start_time.ToJsonString() == "2026-12-01T09:00:00Z"
    assert not request.HasField("end_time")
    assert not request.validate_only


def test_a_dry_run_changes_nothing_and_says_so(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """Also of an empty range."""
    scheduler.answers["BackfillReminder"] = [calls.BackfillReminderResponse()]
    given = ("--from", "2026-12-01T09:00:00Z", "--to", "2026-12-02T09:00:00Z", "--dry-run")
    assert tocsin("backfill", "r1", *given).out == "0 in the range: nothing was changed\n"
    [request] = scheduler.requests
    assert request.validate_only
    assert request.end_time.ToJsonString() == "2026-12-02T09:00:00Z"


def test_a_time_without_an_offset_is_refused(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """Nobody knows which instant that is; nothing is sent."""
    result = tocsin("backfill", "r1", "--from", "2026-12-01T09:00")
    assert result.code == 2
    assert "--from" in result.err
    assert scheduler.requests == []


def test_a_run_of_skipped_ones_is_one_line(
    scheduler: Any, answers: Any, tocsin: Callable[..., Any]
) -> None:
    """How many, why, and through when; one that rang later keeps its status."""
    row = answers.occurrence(
        status=pb.OCCURRENCE_STATUS_SKIPPED,
        reason="superseded",
        skipped_count=28,
        skipped_through_local="2026-12-24T12:30:00",
    )
    uncounted = answers.occurrence(reason="paused", skipped_through_local="2026-12-25T09:00:00")
    rows = [row, uncounted]
    scheduler.answers["ListOccurrences"] = [calls.ListOccurrencesResponse(occurrences=rows)]
    out = tocsin("occurrences", "r1").out
    assert "superseded: 28 skipped through 2026-12-24 12:30:00" in out
    assert "paused: all skipped through 2026-12-25 09:00:00" in out

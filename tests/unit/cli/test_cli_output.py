"""What client commands print, and how they fail."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status
from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls


def test_a_reminder_shows_its_time_in_its_zone_and_in_utc(
    scheduler: Any, tocsin: Callable[..., Any]
) -> None:
    """Both, since people live in one and logs in the other."""
    out = tocsin("get", "r1").out
    assert "2026-12-24 09:00:00 Europe/Paris" in out
    assert "2026-12-24 08:00:00Z" in out
    assert "1 (etag e1)" in out


def test_a_list_has_a_row_for_each_and_the_total(
    scheduler: Any, answers: Any, tocsin: Callable[..., Any]
) -> None:
    """A capped total says so, and a further page says how to get it."""
    page = calls.ListRemindersResponse(
        reminders=[answers.stored(), answers.stored(reminder_id="r2")],
        total_size=10_000,
        total_size_capped=True,
        next_page_token="t1",
    )
    scheduler.answers["ListReminders"] = [page]
    lines = tocsin("list", "--user", "u1").out.splitlines()
    assert lines[0].split()[:2] == ["REMINDER", "STATUS"]
    assert [line.split()[0] for line in lines[1:3]] == ["r1", "r2"]
    assert lines[3:] == ["2 of 10000+ pending", "there is more: --page-token t1"]
    [request] = scheduler.requests
    assert (request.user_id, request.page_size, request.page_token) == ("u1", 50, "")


def test_occurrences_show_how_late_they_were_claimed(
    scheduler: Any, answers: Any, tocsin: Callable[..., Any]
) -> None:
    """And why one did not ring."""
    rows = [
        answers.claimed(pb.OCCURRENCE_STATUS_COMPLETED),
        answers.occurrence(status=pb.OCCURRENCE_STATUS_SKIPPED, reason="superseded"),
    ]
    scheduler.answers["ListOccurrences"] = [calls.ListOccurrencesResponse(occurrences=rows)]
    out = tocsin("occurrences", "r1").out
    assert "12 ms" in out
    assert "superseded" in out


def test_deliveries_show_the_last_answer(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """Attempts, status code, key."""
    delivery = pb.Delivery(
        occurrence_id="o1",
        channel_id="webhook",
        status=pb.DELIVERY_STATUS_RETRYING,
        attempt_count=2,
        error_class="http_429",
        delivery_key="k1",
        attempts=[pb.Attempt(number=2, status_code=429)],
    )
    scheduler.answers["ListDeliveries"] = [calls.ListDeliveriesResponse(deliveries=[delivery])]
    fields = tocsin("deliveries", "r1", "--occurrence", "o1").out.splitlines()[1].split()
    assert fields[:4] == ["o1", "webhook", "retrying", "2"]
    assert fields[-3:] == ["http_429", "-", "k1"]
    assert scheduler.requests[0].occurrence_id == "o1"


def test_a_lost_answer_is_shown_as_one(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """The receiver may have it."""
    delivery = pb.Delivery(
        channel_id="webhook",
        status=pb.DELIVERY_STATUS_RETRYING,
        error_class="timeout",
        attempts=[pb.Attempt(number=1, error_class="timeout", outcome_unknown=True)],
    )
    scheduler.answers["ListDeliveries"] = [calls.ListDeliveriesResponse(deliveries=[delivery])]
    assert "timeout (may have arrived)" in tocsin("deliveries", "r1").out


@pytest.mark.parametrize(
    ("was_fired", "stopped", "said"),
    [
        (False, 0, "cancelled: nothing will be sent"),
        (True, 0, "it had fired, and nothing more will be sent; deliveries stopped"),
        (True, 2, "deliveries stopped while they waited: 2"),
    ],
)
def test_cancel_says_whether_it_had_fired(
    scheduler: Any,
    answers: Any,
    tocsin: Callable[..., Any],
    was_fired: bool,
    stopped: int,
    said: str,
) -> None:
    """The one thing that somebody who cancels must know; and what it stopped all the same."""
    scheduler.answers["CancelReminder"] = [
        calls.CancelReminderResponse(
            reminder=answers.stored(), was_fired=was_fired, deliveries_stopped=stopped
        )
    ]
    assert said in tocsin("cancel", "r1").out


def test_cancel_group_says_up_to_when(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """By the reference clock: what is created later is not meant."""
    answer = calls.CancelGroupResponse()
    answer.cancel_time.FromJsonString("2026-12-01T09:00:00.400Z")
    scheduler.answers["CancelGroup"] = [answer]
    said = tocsin("cancel-group", "campaign", "--namespace", "shop").out
    assert "created up to 2026-12-01T09:00:00.400Z will not be sent" in said
    [request] = scheduler.requests
    assert (request.namespace, request.group_id) == ("shop", "campaign")
    told = json.loads(tocsin("cancel-group", "campaign", "--json").out)
    assert told == {"cancelTime": "2026-12-01T09:00:00.400Z"}


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        (["create", "--user", "u1", "--in", "5s", "--log"], "CreateReminder"),
        (["get", "r1"], "GetReminder"),
        (["list", "--user", "u1"], "ListReminders"),
        (["cancel", "r1"], "CancelReminder"),
        (["reschedule", "r1", "--in", "5s"], "RescheduleReminder"),
        (["occurrences", "r1"], "ListOccurrences"),
        (["deliveries", "r1"], "ListDeliveries"),
    ],
)
def test_json_is_the_answer_itself(
    scheduler: Any, tocsin: Callable[..., Any], arguments: list[str], call: str
) -> None:
    """Nothing added, nothing lost: it parses back to the message."""
    from google.protobuf import json_format  # noqa: PLC0415

    [answer] = scheduler.answers[call]
    parsed = json_format.ParseDict(json.loads(tocsin(*arguments, "--json").out), type(answer)())
    assert parsed == answer


def reject(code: grpc.StatusCode, *details: Message) -> Callable[[grpc.ServicerContext], None]:
    """A failure with rich details."""

    def abort(context: grpc.ServicerContext) -> None:
        packed = []
        for detail in details:
            each = Packed()
            each.Pack(detail)
            packed.append(each)
        status = Status(code=code.value[0], message="in words", details=packed)
        context.abort_with_status(rpc_status.to_status(status))

    return abort


def test_every_violation_is_a_line(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """Field and description, under the code and its reason; exit code 1."""
    violation = error_details_pb2.BadRequest.FieldViolation
    scheduler.failure = reject(
        grpc.StatusCode.INVALID_ARGUMENT,
        error_details_pb2.ErrorInfo(reason="ZONE_UNKNOWN", domain="tocsin"),
        error_details_pb2.BadRequest(
            field_violations=[
                violation(field="reminder.schedule.local.time_zone", description="no such zone"),
                violation(field="reminder.user_id", description="too long"),
            ]
        ),
    )
    result = tocsin("create", "--user", "u1", "--in", "5s", "--log")
    assert result.code == 1
    assert result.out == ""
    assert result.err.splitlines() == [
        "error: INVALID_ARGUMENT (ZONE_UNKNOWN)",
        "  reminder.schedule.local.time_zone: no such zone",
        "  reminder.user_id: too long",
    ]


def test_a_store_that_is_down_says_when_to_repeat(
    scheduler: Any, tocsin: Callable[..., Any]
) -> None:
    """UNAVAILABLE with details is the server's, not a missing server."""
    scheduler.failure = reject(
        grpc.StatusCode.UNAVAILABLE,
        error_details_pb2.ErrorInfo(reason="STORE_UNAVAILABLE"),
        error_details_pb2.RetryInfo(retry_delay=Duration(seconds=2)),
    )
    assert tocsin("get", "r1").err.splitlines() == [
        "error: UNAVAILABLE (STORE_UNAVAILABLE): in words",
        "  the same call may be repeated, best after 2s",
    ]


def test_an_absent_scheduler_says_what_starts_one(
    scheduler: Any, tocsin: Callable[..., Any]
) -> None:
    """A newcomer's first error."""
    result = tocsin("get", "r1", "--address", "127.0.0.1:1")
    assert result.code == 1
    assert result.err.startswith("error: no scheduler answers on 127.0.0.1:1\n")
    assert "`tocsin up`" in result.err


def test_the_address_comes_from_the_file_without_flag_and_variable(
    scheduler: Any, tocsin: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Client and scheduler read one file."""
    monkeypatch.delenv("TOCSIN_GRPC_ADDRESS")
    Path("tocsin.toml").write_text(f'grpc_address = "{scheduler.address}"\n')
    assert tocsin("get", "r1").code == 0


def test_a_bug_is_no_traceback(
    scheduler: Any, tocsin: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, and how to see more."""

    def broken(_reminder: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr("reminders.cli.render.reminder_details", broken)
    result = tocsin("get", "r1")
    assert result.code == 1
    assert result.err.splitlines() == [
        "error: RuntimeError: oops",
        "  a bug, it seems: TOCSIN_TRACEBACK=1 shows where",
    ]


def test_a_claim_ahead_of_its_time_is_not_a_negative_lateness(
    scheduler: Any, answers: Any, tocsin: Callable[..., Any]
) -> None:
    """Nothing rings early: it is claimed before and rings at its time."""
    claimed = answers.claimed(pb.OCCURRENCE_STATUS_COMPLETED)
    claimed.claim_time.FromDatetime(claimed.fire_time.ToDatetime() - timedelta(milliseconds=16))
    scheduler.answers["ListOccurrences"] = [calls.ListOccurrencesResponse(occurrences=[claimed])]
    assert "16 ms before" in tocsin("occurrences", "r1").out

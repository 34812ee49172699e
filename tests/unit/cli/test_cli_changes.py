"""`tocsin update`, `pause` and `resume`: what they send, and what a person reads."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import json_format
from tocsin.v1 import reminder_service_pb2 as calls


@pytest.mark.parametrize(
    ("flags", "path", "value"),
    [
        (["--user", "u2"], "user_id", "u2"),
        (["--template", "t"], "template_id", "t"),
        (["--label", "a=b"], "labels", {"a": "b"}),
        (["--param", "a=b"], "params", {"a": "b"}),
        (["--params", '{"a": 1}'], "params", {"a": 1.0}),
        (["--log"], "channels", [{"log": {}}]),
        (["--in", "1h"], "schedule", {"after": "3600s"}),
        (["--gap", "skip"], "policies.gap", {"gap": "GAP_POLICY_SKIP"}),
        (["--jitter", "3s"], "policies.jitter", {"jitter": "3s"}),
        (
            ["--max-attempts", "3"],
            "policies.retry.max_attempts",
            {"retry": {"max_attempts": 3}},
        ),
    ],
)
def test_what_is_given_is_sent_and_named(
    scheduler: Any, tocsin: Callable[..., Any], flags: list[str], path: str, value: Any
) -> None:
    """And nothing else."""
    assert tocsin("update", "r1", *flags).code == 0
    (request,) = scheduler.requests
    assert list(request.update_mask.paths) == [path]
    sent = json_format.MessageToDict(request.reminder, preserving_proto_field_name=True)
    assert sent == {
        "namespace": "default",
        "reminder_id": "r1",
        path.partition(".")[0]: value,
    }


def test_a_field_is_cleared_by_its_name(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """Named and not set, beside what is set."""
    tocsin("update", "r1", "--clear", "template_id", "--user", "u2", "--etag", "e", *ID)
    (request,) = scheduler.requests
    assert list(request.update_mask.paths) == ["template_id", "user_id"]
    assert (request.etag, request.request_id) == ("e", "q")


def test_an_update_of_nothing_is_a_mistake(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """Nobody is called."""
    result = tocsin("update", "r1")
    assert result.code == 2
    assert "say what to change" in result.err
    assert not scheduler.requests


ID = ("--request-id", "q")


def test_pause_sends_its_reason_and_shows_it(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """And says that nothing will be sent."""
    result = tocsin("pause", "r1", "--reason", "why", *ID)
    (request,) = scheduler.requests
    assert (request.reminder_id, request.reason, request.request_id) == ("r1", "why", "q")
    assert "why" in result.out
    assert "nothing will be sent until it is resumed" in result.out


def test_pause_says_that_one_had_fired(
    scheduler: Any, tocsin: Callable[..., Any], answers: Any
) -> None:
    """Its delivery goes on."""
    scheduler.answers["PauseReminder"] = [
        calls.PauseReminderResponse(reminder=answers.fired(), was_fired=True)
    ]
    assert "that delivery goes on" in tocsin("pause", "r1").out


def test_update_says_that_one_had_fired(
    scheduler: Any, tocsin: Callable[..., Any], answers: Any
) -> None:
    """It rings as it was."""
    scheduler.answers["UpdateReminder"] = [
        calls.UpdateReminderResponse(reminder=answers.stored(), was_fired=True)
    ]
    assert "it rings as it was" in tocsin("update", "r1", "--user", "u2").out


def test_resume_shows_what_rings_next(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """In local time and in UTC."""
    result = tocsin("resume", "r1", "--etag", "e")
    (request,) = scheduler.requests
    assert (request.reminder_id, request.etag) == ("r1", "e")
    assert "2026-12-24 09:00:00 Europe/Paris  =  2026-12-24 08:00:00Z" in result.out


@pytest.mark.parametrize(
    "command", [("update", "r1", "--user", "u2"), ("pause", "r1"), ("resume", "r1")]
)
def test_answers_as_json(
    scheduler: Any, tocsin: Callable[..., Any], command: tuple[str, ...]
) -> None:
    """The whole answer."""
    del scheduler
    assert json.loads(tocsin(*command, "--json").out)["reminder"]["reminderId"] == "r1"


def test_get_shows_why_it_is_paused(
    scheduler: Any, tocsin: Callable[..., Any], answers: Any
) -> None:
    """In a line of its own."""
    scheduler.answers["GetReminder"] = [answers.stored(pause_reason="on holiday")]
    assert "on holiday" in tocsin("get", "r1").out

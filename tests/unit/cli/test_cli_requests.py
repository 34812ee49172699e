"""What the flags of `create` and `reschedule` become on the wire."""

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import json_format

WHERE = ("--log",)


def body(message: Any) -> dict[str, Any]:
    """A message as JSON."""
    return json_format.MessageToDict(message)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--in", "5s"], {"after": "5s"}),
        (["--in", "PT2H30M"], {"after": "9000s"}),
        (["--at", "2026-12-01T09:00:00Z"], {"at": "2026-12-01T09:00:00Z"}),
        (["--at", "2026-12-01T09:00:00+02:00"], {"at": "2026-12-01T07:00:00Z"}),
        (
            ["--local", "09:00", "--date", "2026-12-24", "--zone", "Europe/Paris"],
            {"local": {"date": "2026-12-24", "time": "09:00", "timeZone": "Europe/Paris"}},
        ),
        (
            ["--local", "09:00"],
            {"local": {"time": "09:00"}},
        ),
        (
            ["--local", "09:00", "--zone", "Europe/Paris"],
            {"local": {"time": "09:00", "timeZone": "Europe/Paris"}},
        ),
        (
            [
                *("--rrule", "FREQ=WEEKLY;BYDAY=MO", "--start", "2026-12-07T09:00"),
                *("--zone", "Asia/Tokyo", "--exdate", "2026-12-14T09:00"),
                *("--rdate", "2026-12-15T09:00", "--count", "9"),
                *("--until", "2027-12-01T00:00:00Z"),
            ],
            {
                "recurrence": {
                    "rrule": "FREQ=WEEKLY;BYDAY=MO",
                    "start": "2026-12-07T09:00",
                    "timeZone": "Asia/Tokyo",
                    "exdates": ["2026-12-14T09:00"],
                    "rdates": ["2026-12-15T09:00"],
                    "maxOccurrences": "9",
                    "until": "2027-12-01T00:00:00Z",
                }
            },
        ),
        (
            ["--cron", "*/5 9-17 * * 1-5", "--zone", "America/New_York"],
            {"recurrence": {"cron": "*/5 9-17 * * 1-5", "timeZone": "America/New_York"}},
        ),
    ],
)
def test_each_way_to_say_when(
    scheduler: Any, tocsin: Callable[..., Any], flags: list[str], expected: dict[str, Any]
) -> None:
    """Create and reschedule take the same flags."""
    assert tocsin("create", "--user", "u1", *flags, *WHERE).code == 0
    assert tocsin("reschedule", "r1", *flags).code == 0
    created, moved = scheduler.requests
    assert body(created.reminder.schedule) == expected
    assert body(moved.schedule) == expected


def test_everything_else_of_a_create(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """Audience, channels, payload, keys: each flag reaches its field."""
    result = tocsin(
        *("create", "--user", "u1", "--in", "5s", "--namespace", "acme"),
        *("--webhook", "https://a.example/1", "--webhook", "https://a.example/2"),
        *("--header", "x-team=blue", "--log", "--template", "tea"),
        *("--params", '{"amount": 12, "title": "old"}', "--param", "title=a=b"),
        *("--label", "team=blue", "--group", "g1", "--dedup-key", "d1"),
        *("--request-id", "q1", "--validate-only"),
    )
    assert result.code == 0
    [request] = scheduler.requests
    headers = {"x-team": "blue"}
    assert body(request) == {
        "requestId": "q1",
        "validateOnly": True,
        "reminder": {
            "namespace": "acme",
            "userId": "u1",
            "schedule": {"after": "5s"},
            "channels": [
                {"webhook": {"url": "https://a.example/1", "headers": headers}},
                {
                    "channelId": "webhook-2",
                    "webhook": {"url": "https://a.example/2", "headers": headers},
                },
                {"log": {}},
            ],
            "templateId": "tea",
            "params": {"amount": 12, "title": "a=b"},
            "labels": {"team": "blue"},
            "groupId": "g1",
            "dedupKey": "d1",
        },
    }


def test_each_kind_of_channel_has_its_flags(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """Several of a kind are told apart by their ids; a qualifier goes to each of its kind."""
    result = tocsin(
        *("create", "--user", "u1", "--in", "5s"),
        *("--webhook", "https://a.example/1", "--secret", "main"),
        *("--email", "ada@example.com", "--email", "bob@example.com", "--subject", "Tea"),
        *("--sms", "+33123456789", "--push", "a1b2", "--provider", "apns"),
    )
    assert result.code == 0
    [request] = scheduler.requests
    assert body(request)["reminder"]["channels"] == [
        {"webhook": {"url": "https://a.example/1", "secretId": "main"}},
        {"email": {"to": "ada@example.com", "subject": "Tea"}},
        {"channelId": "email-2", "email": {"to": "bob@example.com", "subject": "Tea"}},
        {"sms": {"to": "+33123456789"}},
        {"push": {"to": "a1b2", "provider": "PUSH_PROVIDER_APNS"}},
    ]


def test_addresses_of_the_record_are_asked_for_by_kind(
    scheduler: Any, tocsin: Callable[..., Any]
) -> None:
    """Beside one that is given, under an id of its own."""
    result = tocsin(
        *("create", "--user", "u1", "--in", "5s", "--sms", "+33123456789", "--subject", "Tea"),
        *("--by", "email", "--by", "sms", "--by", "push", "--by", "push"),
    )
    assert result.code == 0, result.err
    [request] = scheduler.requests
    assert body(request)["reminder"]["channels"] == [
        {"sms": {"to": "+33123456789"}},
        {"email": {"subject": "Tea"}},
        {"channelId": "sms-by-record", "sms": {}},
        {"push": {}},
    ]


def test_policies_are_named_by_their_words(scheduler: Any, tocsin: Callable[..., Any]) -> None:
    """Only what was given is sent, so that the server's defaults hold."""
    tocsin(
        *("create", "--user", "u1", "--in", "5s", "--log"),
        *("--gap", "shift-forward", "--overlap", "both", "--missing-day", "next-business-day"),
        *("--holidays", "FR", "--catch-up", "all", "--catch-up-max-age", "2h"),
        *("--expire-after", "1d", "--jitter", "500ms", "--max-attempts", "3"),
        *("--retry-max-age", "10m"),
    )
    tocsin("create", "--user", "u1", "--in", "5s", "--log")
    full, plain = scheduler.requests
    assert body(full.reminder.policies) == {
        "gap": "GAP_POLICY_SHIFT_FORWARD",
        "overlap": "OVERLAP_POLICY_BOTH",
        "missingDay": "MISSING_DAY_POLICY_NEXT_BUSINESS_DAY",
        "holidayCalendar": "FR",
        "catchUp": "CATCH_UP_POLICY_ALL",
        "catchUpMaxAge": "7200s",
        "expireAfter": "86400s",
        "jitter": "0.500s",
        "retry": {"maxAttempts": 3, "maxAge": "600s"},
    }
    assert not plain.reminder.HasField("policies")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--log"], "say when"),
        (["--in", "5s", "--at", "2026-12-01T09:00:00Z", "--log"], "exclude each other"),
        (["--in", "5", "--log"], "the unit is missing"),
        (["--at", "2026-12-01T09:00:00", "--log"], "names no offset"),
        (["--at", "tomorrow", "--log"], "is no instant"),
        (["--in", "5s", "--by", "fax"], "choose one of email, sms, push"),
        (["--in", "5s", "--by", "sms", "--subject", "Tea"], "--subject goes with --email"),
        (["--rrule", "FREQ=DAILY", "--zone", "Asia/Tokyo", "--log"], "needs --start"),
        (["--in", "5s", "--zone", "Asia/Tokyo", "--log"], "--zone does not go with --in"),
        (["--in", "5s"], "say where to"),
        (["--in", "5s", "--log", "--header", "a=b"], "goes with --webhook"),
        (["--in", "5s", "--log", "--subject", "Tea"], "goes with --email"),
        (["--in", "5s", "--log", "--provider", "fcm"], "goes with --push"),
        (["--in", "5s", "--push", "t"], "--push needs --provider"),
        (["--in", "5s", "--push", "t", "--provider", "sms"], "--push needs --provider"),
        (["--in", "5s", "--log", "--params", "{"], "is no JSON"),
        (["--in", "5s", "--log", "--params", "[]"], "JSON object"),
        (["--in", "5s", "--log", "--label", "x"], "write key=value"),
        (["--in", "5s", "--log", "--gap", "never"], "choose one of next-valid"),
        (["--in", "5s", "--log", "--gap", "unspecified"], "choose one of next-valid"),
        (["--in", "5s", "--log", "--max-attempts", "x"], "--max-attempts"),
    ],
)
def test_wrong_usage_ends_with_2_and_calls_nobody(
    scheduler: Any, tocsin: Callable[..., Any], flags: list[str], said: str
) -> None:
    """What can't be said is told apart from what the server refuses."""
    result = tocsin("create", "--user", "u1", *flags)
    assert result.code == 2
    assert said in " ".join(result.err.replace("│", " ").split())
    assert scheduler.requests == []


def test_etag_and_request_id_travel_with_changes(
    scheduler: Any, tocsin: Callable[..., Any]
) -> None:
    """For optimistic changes, and for retries."""
    guard = ("--etag", "e1", "--request-id", "q1", "--namespace", "acme")
    assert tocsin("cancel", "r1", *guard).code == 0
    assert tocsin("reschedule", "r1", "--in", "1h", *guard).code == 0
    for request in scheduler.requests:
        assert (request.reminder_id, request.namespace) == ("r1", "acme")
        assert (request.etag, request.request_id) == ("e1", "q1")

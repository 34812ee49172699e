"""Recipient records: what is taken, in its normal form, and everything that is wrong at once."""

from collections.abc import Callable
from datetime import datetime, time
from typing import Any

import pytest
from tocsin.v1 import recipient_service_pb2 as pb
from tocsin.v1 import reminder_pb2

from reminders.errors import InvalidRequest, RecipientNotFound, Violation
from reminders.lifecycle.problems import Problems, Reason
from reminders.model.definition import PushProvider
from reminders.model.recipient import OptOut, PushAddress, QuietHours, QuietRule, Recipient
from scheduler.errors import answer_of, status_of
from scheduler.mapping.recipients import recipient_message
from scheduler.tokens import etag_of
from scheduler.validation.recipients import read_put, read_user, user_scope

FCM, APNS = reminder_pb2.PUSH_PROVIDER_FCM, reminder_pb2.PUSH_PROVIDER_APNS
TOKEN = "ab" * 32


@pytest.fixture
def full() -> pb.PutRecipientRequest:
    """With something in every field."""
    recipient = pb.Recipient(
        namespace="acme",
        user_id="u1",
        email="ada@example.com",
        sms="+33123456789",
        push=[
            pb.PushAddress(token="f:1", provider=FCM),
            pb.PushAddress(token=TOKEN, provider=APNS),
        ],
        time_zone="Europe/Paris",
        locale="FR-ca",
        opt_outs=[pb.OPT_OUT_SMS, pb.OPT_OUT_EMAIL, pb.OPT_OUT_SMS],
        quiet_hours=pb.QuietHours(start="22:00", end="07:30"),
    )
    return pb.PutRecipientRequest(recipient=recipient)


def test_the_normal_form(full: pb.PutRecipientRequest, now: datetime) -> None:
    """Sets sorted, tags in their spelling, the rule filled in; it is answered as it is stored."""
    problems = Problems()
    user, found = read_put(full, now, problems)
    assert problems.found == []
    assert (user.namespace, user.user_id, user.expected_version) == ("acme", "u1", None)
    assert found == Recipient(
        namespace="acme",
        user_id="u1",
        version=0,
        email="ada@example.com",
        sms="+33123456789",
        push=(
            PushAddress(token="f:1", provider=PushProvider.FCM),
            PushAddress(token=TOKEN, provider=PushProvider.APNS),
        ),
        time_zone="Europe/Paris",
        locale="fr-CA",
        opt_outs=(OptOut.EMAIL, OptOut.SMS),
        quiet_hours=QuietHours(start=time(22), end=time(7, 30), rule=QuietRule.WAIT),
        created_at=now,
        updated_at=now,
    )
    answer = recipient_message(found)
    again, stands = read_put(pb.PutRecipientRequest(recipient=answer), now, problems)
    assert (again, stands) == (user, found)
    assert answer.quiet_hours.rule == pb.QUIET_RULE_WAIT
    assert answer.create_time.ToDatetime() == now.replace(tzinfo=None)


def test_an_empty_record_is_one(now: datetime) -> None:
    """Of the default namespace; whoever is in it can't be reached."""
    problems = Problems()
    asked = pb.PutRecipientRequest(recipient=pb.Recipient(user_id="u1"))
    user, found = read_put(asked, now, problems)
    assert problems.found == []
    assert user.namespace == "default"
    assert (found.email, found.sms, found.push, found.quiet_hours) == ("", "", (), None)


@pytest.mark.parametrize(
    ("tag", "spelled"),
    [
        ("FR", "fr"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("de-ch-1996", "de-CH-1996"),
        ("EN-ca-X-CA", "en-CA-x-ca"),
        ("sr-LATN-rs", "sr-Latn-RS"),
    ],
)
def test_locales_have_one_spelling(tag: str, spelled: str, now: datetime) -> None:
    """RFC 5646 2.1.1, since templates are found by it."""
    problems = Problems()
    asked = pb.PutRecipientRequest(recipient=pb.Recipient(user_id="u1", locale=tag))
    assert read_put(asked, now, problems)[1].locale == spelled
    assert problems.found == []


def changed(**fields: Any) -> Callable[[pb.Recipient], None]:
    """Sets fields."""

    def change(recipient: pb.Recipient) -> None:
        for name, value in fields.items():
            if isinstance(value, list):
                recipient.ClearField(name)  # type: ignore[arg-type]
                getattr(recipient, name).extend(value)
            elif isinstance(value, str):
                setattr(recipient, name, value)
            else:
                getattr(recipient, name).CopyFrom(value)

    return change


def device(token: str, provider: Any = FCM) -> pb.PushAddress:
    """One."""
    return pb.PushAddress(token=token, provider=provider)


WRONG = [
    (changed(namespace="a b"), "recipient.namespace", Reason.NAMESPACE_INVALID),
    (changed(user_id=""), "recipient.user_id", Reason.FIELD_REQUIRED),
    (changed(user_id="u" * 129), "recipient.user_id", Reason.FIELD_TOO_LONG),
    (changed(email="ada"), "recipient.email", Reason.ADDRESS_INVALID),
    (changed(email="a@b.example\nBcc: x@y.example"), "recipient.email", Reason.ADDRESS_INVALID),
    (changed(sms="0123456789"), "recipient.sms", Reason.ADDRESS_INVALID),
    (changed(push=[device("t")] * 2), "recipient.push[1].token", Reason.VALUE_INVALID),
    (changed(push=[device("")]), "recipient.push[0].token", Reason.FIELD_REQUIRED),
    (changed(push=[device("t", 0)]), "recipient.push[0].provider", Reason.FIELD_REQUIRED),
    (changed(push=[device("t", APNS)]), "recipient.push[0].token", Reason.ADDRESS_INVALID),
    (changed(push=[device(f"t{n}") for n in range(17)]), "recipient.push", Reason.FIELD_TOO_LONG),
    (changed(time_zone="Paris"), "recipient.time_zone", Reason.ZONE_UNKNOWN),
    (changed(time_zone="+01:00"), "recipient.time_zone", Reason.ZONE_IS_OFFSET),
    (changed(time_zone=""), "recipient.time_zone", Reason.FIELD_REQUIRED),
    (changed(locale="français"), "recipient.locale", Reason.VALUE_INVALID),
    (changed(locale="../etc"), "recipient.locale", Reason.VALUE_INVALID),
    (changed(locale="a" + "-abcdefgh" * 4), "recipient.locale", Reason.VALUE_INVALID),
    (changed(opt_outs=[0]), "recipient.opt_outs[0]", Reason.VALUE_INVALID),
    (changed(opt_outs=[1, 9]), "recipient.opt_outs[1]", Reason.VALUE_INVALID),
    (
        changed(quiet_hours=pb.QuietHours(start="22:00", end="22:00")),
        "recipient.quiet_hours.end",
        Reason.RANGE_INVALID,
    ),
    (
        changed(quiet_hours=pb.QuietHours(start="22:00:30", end="07:00")),
        "recipient.quiet_hours.start",
        Reason.VALUE_INVALID,
    ),
    (
        changed(quiet_hours=pb.QuietHours(start="22:00", end="24:00")),
        "recipient.quiet_hours.end",
        Reason.VALUE_INVALID,
    ),
    (
        changed(quiet_hours=pb.QuietHours(start="22:00")),
        "recipient.quiet_hours.end",
        Reason.FIELD_REQUIRED,
    ),
    (
        changed(quiet_hours=pb.QuietHours(start="22:00", end="07:00", rule=9)),  # type: ignore[arg-type]
        "recipient.quiet_hours.rule",
        Reason.VALUE_INVALID,
    ),
]


def violations(request: pb.PutRecipientRequest, now: datetime) -> list[Violation]:
    """All of them."""
    problems = Problems()
    read_put(request, now, problems)
    return problems.found


@pytest.mark.parametrize(("change", "field", "reason"), WRONG)
def test_what_is_wrong_is_named(
    full: pb.PutRecipientRequest,
    now: datetime,
    change: Callable[[pb.Recipient], None],
    field: str,
    reason: Reason,
) -> None:
    """By field and reason, and nothing else is."""
    change(full.recipient)
    (found,) = violations(full, now)
    assert (found.field, found.reason) == (field, reason.value)
    assert found.description


def test_everything_that_is_wrong_is_named_at_once(
    full: pb.PutRecipientRequest, now: datetime
) -> None:
    """In the order of the fields."""
    quiet = pb.QuietHours(start="25:00", end="")
    wrong = {"email": "x", "sms": "x", "time_zone": "x", "locale": "x", "user_id": ""}
    changed(**wrong, quiet_hours=quiet, push=[device("")], opt_outs=[7])(full.recipient)
    full.etag = "v1-0"
    fields = [one.field.removeprefix("recipient.") for one in violations(full, now)]
    assert fields == [
        *("user_id", "etag", "email", "sms", "push[0].token", "time_zone", "locale"),
        *("opt_outs[0]", "quiet_hours.start", "quiet_hours.end"),
    ]


def test_a_put_without_a_record(now: datetime) -> None:
    """Nothing else is said about it."""
    with pytest.raises(InvalidRequest) as caught:
        read_put(pb.PutRecipientRequest(etag="x"), now, Problems())
    assert [one.field for one in caught.value.violations] == ["recipient"]


def test_an_etag_is_of_one_user_of_one_namespace() -> None:
    """That of another one's record is no version of this one."""
    etag = etag_of(user_scope("default", "u1"), 1_780_000_000_000_000)
    problems = Problems()
    user = read_user(pb.DeleteRecipientRequest(user_id="u1"), problems, etag=etag)
    assert user.expected_version == 1_780_000_000_000_000
    assert problems.found == []
    for other in (
        pb.DeleteRecipientRequest(user_id="u2"),
        pb.DeleteRecipientRequest(namespace="acme", user_id="u1"),
    ):
        problems = Problems()
        read_user(other, problems, etag=etag)
        assert [one.field for one in problems.found] == ["etag"]


def test_a_record_that_is_not_there_is_not_found() -> None:
    """With the user in the details."""
    error = RecipientNotFound(user_id="u1")
    assert answer_of(error).http == 404
    assert "no recipient record of user 'u1'" in status_of(error).message

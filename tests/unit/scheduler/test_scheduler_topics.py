"""What TopicService takes: normal forms, and every violation with its field."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from tocsin.v1 import reminder_pb2
from tocsin.v1 import topic_service_pb2 as pb

from reminders.errors import InvalidRequest, Violation
from reminders.lifecycle.problems import Problems, Reason
from reminders.lifecycle.subscriber_secrets import OVERLAP
from reminders.model.definition import Channel, Email, Webhook
from reminders.signing_secrets import new_secret
from scheduler.validation.batches import MAX_BATCH, check_batch
from scheduler.validation.deployment import Deployment
from scheduler.validation.topics import (
    read_list,
    read_named,
    read_overlap,
    read_subscriber,
    read_trial,
)

DEPLOYMENT = Deployment(allow_loopback_http=False)
URL = "https://hooks.example.com/x"

Change = Callable[[pb.PutSubscriberRequest], object]


def put(*changes: Change) -> pb.PutSubscriberRequest:
    """One that is fine, with the changes given."""
    request = pb.PutSubscriberRequest()
    request.subscriber.topic_id = "t"
    request.subscriber.subscriber_id = "s1"
    request.subscriber.endpoint.webhook.url = URL
    for change in changes:
        change(request)
    return request


def refused(*changes: Change) -> list[Violation]:
    """What is wrong with it."""
    with pytest.raises(InvalidRequest) as caught:
        read_subscriber(put(*changes), DEPLOYMENT)
    return caught.value.violations


def sets(**fields: Any) -> Change:
    """Fields of the subscriber."""
    return lambda request: request.subscriber.MergeFrom(pb.Subscriber(**fields))


def goes_to(**kind: Any) -> Change:
    """Replaces the endpoint."""
    return lambda request: request.subscriber.endpoint.CopyFrom(reminder_pb2.Channel(**kind))


def test_a_subscriber_in_its_normal_form() -> None:
    """Labels sorted, the endpoint named by its kind, headers in lower case; outputs are ignored."""
    secret = new_secret()
    read = read_subscriber(
        put(
            sets(
                namespace="acme",
                labels={"b": "2", "a": "1"},
                filter={"kind": "news"},
                time_zone="Asia/Tokyo",
                paused=True,
            ),
            lambda r: r.subscriber.endpoint.webhook.headers.update({"X-Key": "v"}),
            lambda r: setattr(r.subscriber.endpoint, "template_id", "hello"),
            lambda r: setattr(r, "secret", secret),
            lambda r: setattr(r, "request_id", "q"),
        ),
        DEPLOYMENT,
    )
    assert (read.namespace, read.topic_id, read.subscriber_id) == ("acme", "t", "s1")
    target = Webhook(url=URL, headers={"x-key": "v"})
    assert read.channel == Channel(channel_id="webhook", target=target, template_id="hello")
    assert list(read.labels.items()) == [("a", "1"), ("b", "2")]
    assert (read.filter, read.time_zone) == ({"kind": "news"}, "Asia/Tokyo")
    assert (read.secret, read.request_id) == (secret, "q")


def test_the_least_that_is_taken() -> None:
    """All else has its default."""
    read = read_subscriber(put(goes_to(email={"to": "ada@example.com"})), DEPLOYMENT)
    assert read.namespace == "default"
    assert read.channel == Channel(channel_id="email", target=Email(to="ada@example.com"))
    assert (read.labels, read.filter, read.time_zone) == ({}, {}, "")
    assert (read.secret, read.request_id) == (None, None)


VIOLATIONS: list[tuple[Change, str, Reason]] = [
    (sets(namespace="a/b"), "subscriber.namespace", Reason.NAMESPACE_INVALID),
    (
        lambda r: r.subscriber.ClearField("topic_id"),
        "subscriber.topic_id",
        Reason.FIELD_REQUIRED,
    ),
    (sets(topic_id="t" * 129), "subscriber.topic_id", Reason.FIELD_TOO_LONG),
    (
        lambda r: r.subscriber.ClearField("subscriber_id"),
        "subscriber.subscriber_id",
        Reason.FIELD_REQUIRED,
    ),
    (sets(subscriber_id="s" * 129), "subscriber.subscriber_id", Reason.VALUE_INVALID),
    (sets(subscriber_id="a/b"), "subscriber.subscriber_id", Reason.VALUE_INVALID),
    (sets(subscriber_id="a\nb"), "subscriber.subscriber_id", Reason.VALUE_INVALID),
    (sets(subscriber_id="é"), "subscriber.subscriber_id", Reason.VALUE_INVALID),
    (
        lambda r: r.subscriber.ClearField("endpoint"),
        "subscriber.endpoint",
        Reason.FIELD_REQUIRED,
    ),
    (
        lambda r: r.subscriber.endpoint.webhook.ClearField("url"),
        "subscriber.endpoint.webhook.url",
        Reason.FIELD_REQUIRED,
    ),
    (
        goes_to(email={"to": "ada@example.com\r\nBcc: eve@example.com"}),
        "subscriber.endpoint.email.to",
        Reason.ADDRESS_INVALID,
    ),
    (goes_to(email={}), "subscriber.endpoint.email.to", Reason.NO_ADDRESS),
    (goes_to(sms={}), "subscriber.endpoint.sms.to", Reason.NO_ADDRESS),
    (goes_to(push={"provider": 1}), "subscriber.endpoint.push.to", Reason.NO_ADDRESS),
    (
        goes_to(channel_id="mine", webhook={"url": URL}),
        "subscriber.endpoint.channel_id",
        Reason.VALUE_INVALID,
    ),
    (
        goes_to(webhook={"url": URL, "secret_id": "main"}),
        "subscriber.endpoint.webhook.secret_id",
        Reason.SECRET_INVALID,
    ),
    (
        goes_to(template_id="t" * 129, webhook={"url": URL}),
        "subscriber.endpoint.template_id",
        Reason.FIELD_TOO_LONG,
    ),
    (sets(labels={"": "v"}), "subscriber.labels['']", Reason.VALUE_INVALID),
    (
        sets(filter={f"k{n}": "v" for n in range(33)}),
        "subscriber.filter",
        Reason.FIELD_TOO_LONG,
    ),
    (sets(time_zone="Mars/Base"), "subscriber.time_zone", Reason.ZONE_UNKNOWN),
    (sets(time_zone="+02:00"), "subscriber.time_zone", Reason.ZONE_IS_OFFSET),
    (lambda r: setattr(r, "secret", "whsec_short"), "secret", Reason.SECRET_INVALID),
    (lambda r: setattr(r, "secret", "plain"), "secret", Reason.SECRET_INVALID),
    (lambda r: setattr(r, "request_id", "x" * 129), "request_id", Reason.FIELD_TOO_LONG),
]


@pytest.mark.parametrize(("change", "field", "reason"), VIOLATIONS)
def test_each_violation_is_found_alone(change: Change, field: str, reason: Reason) -> None:
    """With its path."""
    (found,) = refused(change)
    assert (found.field, found.reason) == (field, reason)
    assert found.description


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/x",
        "https://127.0.0.1/x",
        "https://10.0.0.1/x",
        "https://[::ffff:169.254.169.254]/x",
        "https://2130706433/x",
        "https://localhost/x",
        "https://user:secret@hooks.example.com/x",
        "https://hooks.example.com:22/x",
        "https://hooks.example.com/x\r\nHost: evil",
        "ftp://hooks.example.com/x",
    ],
)
def test_an_endpoint_is_as_safe_as_a_reminders_channel(url: str) -> None:
    """The rules of R-DEL-8 hold when a subscriber is put."""
    (found,) = refused(goes_to(webhook={"url": url}))
    assert (found.field, found.reason) == ("subscriber.endpoint.webhook.url", Reason.URL_FORBIDDEN)


def test_a_secret_that_is_wrong_is_not_repeated() -> None:
    """Nor where there is no webhook to sign."""
    (found,) = refused(lambda r: setattr(r, "secret", "whsec_hunter2hunter2"))
    assert "hunter2" not in found.description
    secret = new_secret()
    no_webhook = goes_to(log={})
    (found,) = refused(no_webhook, lambda r: setattr(r, "secret", secret))
    assert (found.field, found.reason) == ("secret", Reason.SECRET_INVALID)
    assert secret not in found.description


def test_all_that_is_wrong_is_found_at_once() -> None:
    """In the order of the fields."""
    found = refused(
        sets(subscriber_id="a b", time_zone="x"), lambda r: setattr(r, "secret", "plain")
    )
    assert [one.field for one in found] == [
        "subscriber.subscriber_id",
        "subscriber.time_zone",
        "secret",
    ]
    (empty,) = _violations(lambda: read_subscriber(pb.PutSubscriberRequest(), DEPLOYMENT))
    assert empty.field == "subscriber"


def _violations(call: Callable[[], object]) -> list[Violation]:
    with pytest.raises(InvalidRequest) as caught:
        call()
    return caught.value.violations


@pytest.mark.parametrize("count", [0, MAX_BATCH + 1])
def test_a_batch_is_neither_empty_nor_too_large(count: int) -> None:
    """As that of creates."""
    (found,) = _violations(lambda: check_batch([put()] * count))
    assert found.field == "requests"
    check_batch([put()] * MAX_BATCH)


def test_a_list_is_bound_to_its_filters() -> None:
    """A token of one list is no token of another; unset and false are two things."""
    plain = read_list(pb.ListSubscribersRequest(topic_id="t"))
    active = read_list(pb.ListSubscribersRequest(topic_id="t", paused=False))
    gold = read_list(pb.ListSubscribersRequest(topic_id="t", labels={"plan": "gold"}))
    assert (plain.paused, active.paused, plain.window.limit) == (None, False, 50)
    assert len({one.window.scope for one in (plain, active, gold)}) == 3
    (found,) = _violations(lambda: read_list(pb.ListSubscribersRequest()))
    assert (found.field, found.reason) == ("topic_id", Reason.FIELD_REQUIRED)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, OVERLAP), (timedelta(0), timedelta(0)), (timedelta(days=30), timedelta(days=30))],
)
def test_an_overlap_of_zero_is_no_default(given: timedelta | None, expected: timedelta) -> None:
    """It ends the others at once; unset is a day."""
    request = pb.RotateSecretRequest()
    if given is not None:
        request.overlap.FromTimedelta(given)
    problems = Problems()
    assert read_overlap(request, problems) == expected
    assert problems.found == []


@pytest.mark.parametrize("overlap", [Duration(seconds=-1), Duration(seconds=30 * 86_400 + 1)])
def test_an_overlap_has_bounds(overlap: Duration) -> None:
    """Not negative, and at most 30 days."""
    problems = Problems()
    read_overlap(pb.RotateSecretRequest(overlap=overlap), problems)
    assert [one.field for one in problems.found] == ["overlap"]


def test_a_test_send_says_what_and_how_long() -> None:
    """Defaults, and the bound of the wait."""
    request = pb.SendTestRequest(topic_id="t", subscriber_id="s1")
    plain = read_trial(request)
    assert (plain.params_json, plain.template_id) == ("{}", None)
    assert (plain.wait, plain.request_id) == (timedelta(seconds=10), None)
    request.params.update({"b": 1, "a": "é"})
    request.wait.seconds = 0
    read = read_trial(request)
    assert (read.params_json, read.wait) == ('{"a":"é","b":1}', timedelta(0))
    request.wait.seconds = 31
    request.params.update({"a": "x" * 65_536})
    assert [one.field for one in _violations(lambda: read_trial(request))] == ["params", "wait"]


def test_a_name_has_paths_of_its_own() -> None:
    """Where no message is around it."""
    problems = Problems()
    read_named(pb.GetSubscriberRequest(), problems)
    assert [one.field for one in problems.found] == ["topic_id", "subscriber_id"]

"""Requests that mean the same become equal values, and answers read back as equal ones."""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.lifecycle.problems import Problems
from reminders.model.codec import content_hash
from reminders.model.definition import At, Definition, LocalTime, Policies, Recurring, Webhook
from scheduler.mapping.definitions import put_definition
from scheduler.validation import Validator
from scheduler.validation.params import from_json, to_json

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
VALIDATOR = Validator(allow_loopback_http=False)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


def defined(request: pb.CreateReminderRequest) -> Definition:
    """The normal form."""
    return VALIDATOR.create(request, NOW).definition


def instants() -> st.SearchStrategy[reminder_pb2.Schedule]:
    """`at`, with any nanoseconds."""

    def build(seconds: int, nanos: int) -> reminder_pb2.Schedule:
        schedule = reminder_pb2.Schedule()
        schedule.at.seconds = int(NOW.timestamp()) + seconds
        schedule.at.nanos = nanos
        return schedule

    return st.builds(build, st.integers(0, 10**8), st.integers(0, 10**9 - 1))


def delays() -> st.SearchStrategy[reminder_pb2.Schedule]:
    """`after`."""

    def build(seconds: int, nanos: int) -> reminder_pb2.Schedule:
        schedule = reminder_pb2.Schedule()
        schedule.after.seconds, schedule.after.nanos = seconds, nanos
        return schedule

    return st.builds(build, st.integers(0, 10**8), st.integers(0, 10**9 - 1))


def locals_() -> st.SearchStrategy[reminder_pb2.Schedule]:
    """`local`, with and without a date."""

    def build(day: int | None, wall: str) -> reminder_pb2.Schedule:
        schedule = reminder_pb2.Schedule()
        local = schedule.local
        local.time, local.time_zone = wall, "America/New_York"
        if day is not None:
            local.date = (NOW + timedelta(days=day)).date().isoformat()
        return schedule

    walls = st.sampled_from(["09:00", "09:00:00", "23:59:59", "02:30"])
    return st.builds(build, st.none() | st.integers(1, 1000), walls)


def rules() -> st.SearchStrategy[reminder_pb2.Schedule]:
    """`recurrence`, by rule or cron, with any ends."""
    texts = ["FREQ=WEEKLY;BYDAY=FR,MO", "rrule:freq=daily;interval=1", "FREQ=DAILY;COUNT=4"]

    def build(rule: str, cron: bool, dates: list[int], count: int) -> reminder_pb2.Schedule:
        schedule = reminder_pb2.Schedule()
        recurrence = schedule.recurrence
        recurrence.time_zone = "Europe/Paris"
        if cron:
            recurrence.cron = "@daily"
        else:
            recurrence.rrule, recurrence.start = rule, "2026-12-07T09:00"
        recurrence.exdates.extend(f"2026-12-{day:02}T09:00" for day in dates)
        if cron or "COUNT" not in rule:
            recurrence.max_occurrences = count
        return schedule

    days = st.lists(st.integers(8, 30), max_size=4)
    return st.builds(build, st.sampled_from(texts), st.booleans(), days, st.integers(0, 9))


@st.composite
def requests(draw: st.DrawFn) -> pb.CreateReminderRequest:
    """Any valid request."""
    request = pb.CreateReminderRequest()
    reminder = request.reminder
    reminder.namespace = draw(st.sampled_from(["", "default", "acme"]))
    reminder.user_id = draw(TEXTS.filter(bool))
    reminder.schedule.CopyFrom(draw(instants() | delays() | locals_() | rules()))
    reminder.params.update(draw(st.dictionaries(TEXTS, JSON, max_size=4)))
    reminder.labels.update(draw(st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=4)))
    if draw(st.booleans()):
        policies = reminder.policies
        policies.gap = draw(st.sampled_from(reminder_pb2.GapPolicy.values()))
        policies.overlap = draw(st.sampled_from(reminder_pb2.OverlapPolicy.values()))
        policies.missing_day = draw(st.sampled_from(reminder_pb2.MissingDayPolicy.values()))
        policies.catch_up = draw(st.sampled_from(reminder_pb2.CatchUpPolicy.values()))
        policies.jitter.nanos = draw(st.integers(0, 10**9 - 1))
        policies.retry.max_attempts = draw(st.integers(0, 100))
        for wait in draw(st.lists(st.integers(0, 259_200), max_size=3)):
            policies.retry.schedule.add(seconds=wait if policies.retry.schedule else 0)
    webhook = reminder.channels.add().webhook
    webhook.url = "https://hooks.example.com/x"
    webhook.headers.update({"X-One": "1", "X-Two": "2"})
    if draw(st.booleans()):
        reminder.channels.add().log.SetInParent()
    if draw(st.booleans()):
        email = reminder.channels.add().email
        email.to, email.subject = "ada@example.com", draw(st.sampled_from(["", "Rappel: thé"]))
    if draw(st.booleans()):
        reminder.channels.add().sms.to = "+33123456789"
    if draw(st.booleans()):
        push = reminder.channels.add().push
        push.to = "a1" * 32
        push.provider = draw(
            st.sampled_from([reminder_pb2.PUSH_PROVIDER_FCM, reminder_pb2.PUSH_PROVIDER_APNS])
        )
    reminder.dedup_key = draw(TEXTS)
    reminder.group_id = draw(TEXTS)
    reminder.template_id = draw(TEXTS)
    return request


@given(requests())
def test_answer_reads_back_equal(request: pb.CreateReminderRequest) -> None:
    """What an answer shows, sent again, is the same reminder; through the wire as well."""
    definition = defined(request)
    shown = pb.CreateReminderRequest()
    put_definition(shown.reminder, definition)
    wire = pb.CreateReminderRequest.FromString(shown.SerializeToString())
    assert defined(wire) == definition
    assert content_hash(defined(wire)) == content_hash(definition)


@given(requests(), st.randoms(use_true_random=False))
def test_order_and_spelling_do_not_matter(
    request: pb.CreateReminderRequest, chance: random.Random
) -> None:
    """Maps, sets, defaults and spellings: equal content, equal hash."""
    other = pb.CreateReminderRequest.FromString(request.SerializeToString())
    respell(other.reminder, chance)
    assert content_hash(defined(other)) == content_hash(defined(request))


def respell(reminder: reminder_pb2.Reminder, chance: random.Random) -> None:
    """The same reminder in other words."""
    labels = list(reminder.labels.items())
    chance.shuffle(labels)
    reminder.labels.clear()
    reminder.labels.update(labels)
    params = list(json_format.MessageToDict(reminder.params).items())
    chance.shuffle(params)
    reminder.params.Clear()
    reminder.params.update(dict(params))
    for channel in reminder.channels:
        channel.channel_id = channel.channel_id or channel.WhichOneof("kind") or ""
        headers = {name.upper(): value for name, value in channel.webhook.headers.items()}
        if headers:
            channel.webhook.headers.clear()
            channel.webhook.headers.update(headers)
    policies = reminder.policies
    policies.gap = policies.gap or reminder_pb2.GAP_POLICY_NEXT_VALID
    policies.catch_up_max_age.seconds = 3_600
    policies.retry.max_attempts = policies.retry.max_attempts or len(policies.retry.schedule) or 8
    if reminder.schedule.WhichOneof("kind") == "local":
        local = reminder.schedule.local
        local.time = f"{local.time}:00" if len(local.time) == 5 else local.time
    if reminder.schedule.WhichOneof("kind") == "recurrence":
        respell_rule(reminder.schedule.recurrence, chance)


def respell_rule(recurrence: reminder_pb2.Recurrence, chance: random.Random) -> None:
    """The same rule in other words."""
    dates = [*recurrence.exdates, *(f"{date}:00" for date in recurrence.exdates)]
    chance.shuffle(dates)
    recurrence.exdates[:] = dates
    if recurrence.WhichOneof("rule") == "cron":
        recurrence.cron = " 0 0  * * * "
        return
    rule = recurrence.rrule.upper().removeprefix("RRULE:")
    if rule == "FREQ=DAILY;COUNT=4":
        rule, recurrence.max_occurrences = "FREQ=DAILY", 4
    parts = rule.replace("FR,MO", "MO,FR,MO").split(";")
    chance.shuffle(parts)
    recurrence.rrule = ";".join(parts).lower()


RequestOf = Callable[..., pb.CreateReminderRequest]


def test_defaults_are_filled_in(request_of: RequestOf) -> None:
    """A bare request has a namespace, policies, channel ids and params."""
    asked = VALIDATOR.create(request_of(), NOW)
    assert asked.namespace == "default"
    assert asked.request_id is None
    definition = asked.definition
    assert definition.policies == Policies()
    assert definition.channels[0].channel_id == "webhook"
    assert definition.params_json == "{}"
    assert definition.dedup_key is None


def test_another_word_is_another_reminder(request_of: RequestOf) -> None:
    """The hash tells every field of a caller apart, and not the version or times of the server."""

    def hash_after(change: Callable[[reminder_pb2.Reminder], object]) -> bytes:
        request = request_of()
        change(request.reminder)
        return content_hash(defined(request))

    changes: list[Callable[[reminder_pb2.Reminder], object]] = [
        lambda r: setattr(r, "user_id", "u2"),
        lambda r: setattr(r.schedule.at, "seconds", r.schedule.at.seconds + 1),
        lambda r: setattr(r.schedule.after, "seconds", 7_200),
        lambda r: setattr(r.policies, "gap", reminder_pb2.GAP_POLICY_SKIP),
        lambda r: setattr(r.channels[0], "channel_id", "other"),
        lambda r: r.channels[0].webhook.headers.update({"a": "b"}),
        lambda r: setattr(r, "template_id", "t"),
        lambda r: r.params.update({"a": 1}),
        lambda r: r.labels.update({"a": "b"}),
        lambda r: setattr(r, "group_id", "g"),
    ]
    hashes = {hash_after(change) for change in changes}
    assert len(hashes) == len(changes)
    plain = hash_after(lambda _: None)
    assert plain not in hashes
    assert hash_after(lambda r: setattr(r, "version", 9)) == plain


def test_instants_round_up_and_ends_round_down(request_of: RequestOf) -> None:
    """Nothing rings early by less than a millisecond, and nothing after its end."""
    request = request_of()
    request.reminder.schedule.at.seconds, request.reminder.schedule.at.nanos = 1_800_000_000, 1
    schedule = defined(request).schedule
    assert isinstance(schedule, At)
    assert schedule.instant == datetime.fromtimestamp(1_800_000_000.001, UTC)
    recurrence = request.reminder.schedule.recurrence
    recurrence.rrule, recurrence.start = "FREQ=DAILY", "2026-12-07T09:00"
    recurrence.time_zone = "Europe/Paris"
    recurrence.until.seconds, recurrence.until.nanos = 1_800_000_000, 999_999
    rule = defined(request).schedule
    assert isinstance(rule, Recurring)
    assert rule.until == datetime.fromtimestamp(1_800_000_000, UTC)


def test_ends_in_a_rule_move_beside_it(request_of: RequestOf) -> None:
    """COUNT and UNTIL are fields of the schedule."""
    request = request_of()
    recurrence = request.reminder.schedule.recurrence
    recurrence.time_zone, recurrence.start = "Europe/Paris", "2026-12-07T09:00:00"
    recurrence.rrule = "RRULE:FREQ=WEEKLY;UNTIL=20270601T000000Z;BYDAY=TU,MO,MO"
    rule = defined(request).schedule
    assert isinstance(rule, Recurring)
    assert rule.rrule == "FREQ=WEEKLY;BYDAY=MO,TU"
    assert rule.until == datetime(2027, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(("given_time", "kept"), [("09:00:00", "09:00"), ("09:00:30", "09:00:30")])
def test_local_time_is_kept_as_a_wall_clock(
    request_of: RequestOf, given_time: str, kept: str
) -> None:
    """The promise is local, so it stays text in a zone; without a date, any day is still open."""
    request = request_of()
    local = request.reminder.schedule.local
    local.time, local.time_zone = given_time, "Asia/Kolkata"
    assert defined(request).schedule == LocalTime(date=None, time=kept, zone="Asia/Kolkata")


def test_header_names_are_lower_case_and_sorted(request_of: RequestOf) -> None:
    """Case does not tell HTTP header names apart."""
    request = request_of()
    request.reminder.channels[0].webhook.headers.update({"X-B": "2", "x-a": "1"})
    target = defined(request).channels[0].target
    assert isinstance(target, Webhook)
    assert list(target.headers.items()) == [("x-a", "1"), ("x-b", "2")]


@given(st.dictionaries(TEXTS, JSON, max_size=4))
def test_params_agree_with_json(params: dict[str, Any]) -> None:
    """The direct conversion says what json_format says, whole numbers whole, and reads back."""
    message = Struct()
    message.update(params)
    problems = Problems()
    text = to_json(message, "params", problems)
    assert not problems.found
    assert json.loads(text) == json.loads(json_format.MessageToJson(message))
    assert ".0" not in json.dumps([n for n in json.loads(text).values() if isinstance(n, int)])
    again = Struct()
    from_json(text, again)
    assert to_json(again, "params", problems) == text
    assert json_format.MessageToDict(again) == json_format.MessageToDict(message)


def test_params_have_one_spelling() -> None:
    """Sorted keys at every level, no blanks, integers as integers."""
    message = Struct()
    message.update({"b": [1.0, 2.5, -0.0, 1e300], "a": {"z": None, "y": True}, "é": "ü"})
    text = to_json(message, "params", Problems())
    assert text == '{"a":{"y":true,"z":null},"b":[1,2.5,0,1e300],"é":"ü"}'

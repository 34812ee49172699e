"""Every violation: its path, its stable word, and that none hides another."""

# ruff: noqa: E501  a row of the table is a line

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.errors import InvalidRequest, Violation
from reminders.lifecycle.problems import Reason
from scheduler.validation import Validator
from scheduler.validation.deployment import ChannelRules

Change = Callable[[pb.CreateReminderRequest], None]
ViolationsOf = Callable[..., list[Violation]]


def sets(path: str, *values: object) -> Change:
    """Assigns a scalar (or several items of a list) at a path such as `schedule.local.date`."""

    def change(request: pb.CreateReminderRequest) -> None:
        *parents, last = path.split(".")
        message: object = request.reminder
        for name in parents:
            message = message[int(name)] if name.isdigit() else getattr(message, name)  # type: ignore[index]
        field = getattr(message, last)
        if hasattr(field, "append"):
            del field[:]
            field.extend(values)
        else:
            setattr(message, last, *values)

    return change


def local(**fields: str) -> Change:
    """Replaces the schedule by a local time."""

    def change(request: pb.CreateReminderRequest) -> None:
        where = {"date": "2026-12-24", "time": "09:00", "time_zone": "Europe/Paris"} | fields
        for name, value in where.items():
            setattr(request.reminder.schedule.local, name, value)

    return change


def rule(**fields: object) -> Change:
    """Replaces the schedule by a recurrence."""

    def change(request: pb.CreateReminderRequest) -> None:
        recurrence = request.reminder.schedule.recurrence
        given = {"rrule": "FREQ=DAILY", "start": "2026-12-07T09:00", "time_zone": "Europe/Paris"}
        for name, value in (given | fields).items():
            if isinstance(value, list):
                getattr(recurrence, name).extend(value)
            elif value is not None:
                setattr(recurrence, name, value)

    return change


def at(offset_s: float) -> Change:
    """Puts the time so far from now."""

    def change(request: pb.CreateReminderRequest) -> None:
        from_now = datetime.fromisoformat("2026-11-20T12:00:00+00:00") + timedelta(seconds=offset_s)
        request.reminder.schedule.at.FromDatetime(from_now)

    return change


def does(action: Callable[[pb.CreateReminderRequest], object]) -> Change:
    """Anything else."""
    return lambda request: void(action(request))


def void(_: object) -> None:
    """Drops a value."""


def channels(count: int) -> Change:
    """Replaces the channels."""

    def change(request: pb.CreateReminderRequest) -> None:
        del request.reminder.channels[:]
        for index in range(count):
            request.reminder.channels.add(channel_id=f"c{index}").log.SetInParent()

    return change


def header(name: str, value: str = "x") -> Change:
    """Adds a header to the webhook."""
    return does(lambda r: r.reminder.channels[0].webhook.headers.update({name: value}))


def push(to: str, provider: int) -> Change:
    """Replaces the webhook by a push message."""

    def change(request: pb.CreateReminderRequest) -> None:
        message = request.reminder.channels[0].push
        message.to, message.provider = to, provider  # type: ignore[assignment]

    return change


def seconds(path: str, count: int) -> Change:
    """Sets a duration."""
    return sets(f"{path}.seconds", count)


def count_rule(**fields: object) -> Change:
    """A rule that has its end in itself, and again beside it."""
    return rule(rrule=f"FREQ=DAILY;{fields.pop('end')}", **fields)


def until(seconds: int) -> Change:
    """An end of the rule."""
    return sets("schedule.recurrence.until.seconds", seconds)


LOCAL, RULE = "reminder.schedule.local", "reminder.schedule.recurrence"
CHANNEL = "reminder.channels[0]"
WEBHOOK = "reminder.channels[0].webhook"
NAN, INFINITE = float("nan"), float("inf")

WRONG: list[tuple[str, list[Change], str, Reason]] = [
    ("no reminder", [does(lambda r: r.Clear())], "reminder", Reason.FIELD_REQUIRED),
    ("namespace", [sets("namespace", "a b")], "reminder.namespace", Reason.NAMESPACE_INVALID),
    ("namespace long", [sets("namespace", "a" * 65)], "reminder.namespace", Reason.NAMESPACE_INVALID),
    ("no user", [sets("user_id", "")], "reminder.user_id", Reason.FIELD_REQUIRED),
    ("user long", [sets("user_id", "é" * 65)], "reminder.user_id", Reason.FIELD_TOO_LONG),
    ("topic", [sets("topic_id", "t")], "reminder.channels", Reason.CHANNELS_FORBIDDEN),
    ("topic", [sets("topic_id", "t" * 129), channels(0)], "reminder.topic_id", Reason.FIELD_TOO_LONG),
    ("topic zone", [sets("topic_id", "t"), channels(0), local(time_zone="")], "reminder.schedule.local.time_zone", Reason.FIELD_REQUIRED),
    ("user", [sets("user_id", "\0topic:t")], "reminder.user_id", Reason.VALUE_INVALID),
    ("template", [sets("template_id", "t" * 129)], "reminder.template_id", Reason.FIELD_TOO_LONG),
    ("dedup key", [sets("dedup_key", "t" * 257)], "reminder.dedup_key", Reason.FIELD_TOO_LONG),
    ("group", [sets("group_id", "t" * 129)], "reminder.group_id", Reason.FIELD_TOO_LONG),
    ("request id", [does(lambda r: setattr(r, "request_id", "x" * 129))], "request_id", Reason.FIELD_TOO_LONG),
    ("labels", [does(lambda r: r.reminder.labels.update({f"k{i}": "v" for i in range(33)}))], "reminder.labels", Reason.FIELD_TOO_LONG),
    ("label key", [does(lambda r: r.reminder.labels.update({"": "v"}))], "reminder.labels['']", Reason.VALUE_INVALID),
    ("label value", [does(lambda r: r.reminder.labels.update({"k": "v" * 64}))], "reminder.labels['k']", Reason.FIELD_TOO_LONG),
    ("size", [does(lambda r: r.reminder.params.update({"text": "x" * 65_536}))], "reminder", Reason.PAYLOAD_TOO_LARGE),
    # params
    ("nan", [does(lambda r: r.reminder.params.update({"a": {"b": [1, NAN]}}))], "reminder.params.a.b[1]", Reason.VALUE_INVALID),
    ("infinite", [does(lambda r: r.reminder.params.update({"a": -INFINITE}))], "reminder.params.a", Reason.VALUE_INVALID),
    ("no value", [does(lambda r: r.reminder.params.fields["a"].SetInParent())], "reminder.params.a", Reason.VALUE_INVALID),
    # when
    ("no schedule", [does(lambda r: r.reminder.ClearField("schedule"))], "reminder.schedule", Reason.FIELD_REQUIRED),
    ("past", [at(-61)], "reminder.schedule.at", Reason.TIME_IN_PAST),
    ("far", [at(3654 * 86_400)], "reminder.schedule.at", Reason.TIME_TOO_FAR),
    ("no instant", [sets("schedule.at.nanos", 2_000_000_000)], "reminder.schedule.at", Reason.VALUE_INVALID),
    ("year", [sets("schedule.at.seconds", 253_402_300_800)], "reminder.schedule.at", Reason.VALUE_INVALID),
    ("delay", [seconds("schedule.after", -1)], "reminder.schedule.after", Reason.VALUE_INVALID),
    ("delay far", [seconds("schedule.after", 3654 * 86_400)], "reminder.schedule.after", Reason.TIME_TOO_FAR),
    ("no zone", [local(time_zone="")], f"{LOCAL}.time_zone", Reason.FIELD_REQUIRED),
    ("zone", [local(time_zone="Europe/Pariss")], f"{LOCAL}.time_zone", Reason.ZONE_UNKNOWN),
    ("zone long", [local(time_zone="z" * 9_999)], f"{LOCAL}.time_zone", Reason.ZONE_UNKNOWN),
    ("offset", [local(time_zone="+01:00")], f"{LOCAL}.time_zone", Reason.ZONE_IS_OFFSET),
    ("abbreviation", [local(time_zone="CET")], f"{LOCAL}.time_zone", Reason.ZONE_IS_OFFSET),
    ("no time", [local(time="")], f"{LOCAL}.time", Reason.FIELD_REQUIRED),
    ("time", [local(time="24:30")], f"{LOCAL}.time", Reason.VALUE_INVALID),
    ("time form", [local(time="T0900")], f"{LOCAL}.time", Reason.VALUE_INVALID),
    ("date", [local(date="2026-02-30")], f"{LOCAL}.date", Reason.VALUE_INVALID),
    ("date form", [local(date="20261224")], f"{LOCAL}.date", Reason.VALUE_INVALID),
    ("date past", [local(date="2026-11-19")], f"{LOCAL}.date", Reason.TIME_IN_PAST),
    ("time past", [local(date="2026-11-20", time="12:58")], f"{LOCAL}.date", Reason.TIME_IN_PAST),
    ("date far", [local(date="2037-01-01")], f"{LOCAL}.date", Reason.TIME_TOO_FAR),
    # rules
    ("no rule", [rule(rrule=None)], RULE, Reason.FIELD_REQUIRED),
    ("rule", [rule(rrule="FREQ=DAILY;BYMONTH=13")], f"{RULE}.rrule", Reason.RULE_INVALID),
    ("cron", [rule(rrule=None, cron="0 0 12 * * *")], f"{RULE}.cron", Reason.RULE_INVALID),
    ("no start", [rule(start="")], f"{RULE}.start", Reason.FIELD_REQUIRED),
    ("start", [rule(start="2026-12-07T09:00Z")], f"{RULE}.start", Reason.VALUE_INVALID),
    ("start far", [rule(start="2037-01-01T09:00")], f"{RULE}.start", Reason.TIME_TOO_FAR),
    ("rule zone", [rule(time_zone="GMT+1")], f"{RULE}.time_zone", Reason.ZONE_IS_OFFSET),
    ("count twice", [count_rule(end="COUNT=3", max_occurrences=3)], f"{RULE}.max_occurrences", Reason.RULE_INVALID),
    ("count", [rule(max_occurrences=-1)], f"{RULE}.max_occurrences", Reason.VALUE_INVALID),
    ("until twice", [count_rule(end="UNTIL=20270101T000000Z"), until(2_000_000_000)], f"{RULE}.until", Reason.RULE_INVALID),
    ("until early", [rule(), until(1_600_000_000)], f"{RULE}.until", Reason.RULE_INVALID),
    ("until in rule", [rule(rrule="FREQ=DAILY;UNTIL=20200101T000000Z")], f"{RULE}.rrule", Reason.RULE_INVALID),
    ("exdate", [rule(exdates=["2026-12-08T09:00", "soon"])], f"{RULE}.exdates[1]", Reason.VALUE_INVALID),
    ("rdate", [rule(rdates=["1026-12-08T09:00"])], f"{RULE}.rdates[0]", Reason.VALUE_INVALID),
    ("exdates", [rule(exdates=["2026-12-08T09:00"] * 501)], f"{RULE}.exdates", Reason.FIELD_TOO_LONG),
    # policies
    ("gap", [sets("policies.gap", 9)], "reminder.policies.gap", Reason.VALUE_INVALID),
    ("overlap", [sets("policies.overlap", -1)], "reminder.policies.overlap", Reason.VALUE_INVALID),
    ("missing day", [sets("policies.missing_day", 5)], "reminder.policies.missing_day", Reason.VALUE_INVALID),
    ("calendar", [sets("policies.holiday_calendar", "XX")], "reminder.policies.holiday_calendar", Reason.HOLIDAY_CALENDAR_UNKNOWN),
    ("calendar long", [sets("policies.holiday_calendar", "X" * 17)], "reminder.policies.holiday_calendar", Reason.FIELD_TOO_LONG),
    ("catch up", [sets("policies.catch_up", 4)], "reminder.policies.catch_up", Reason.VALUE_INVALID),
    ("catch up age", [seconds("policies.catch_up_max_age", 604_801)], "reminder.policies.catch_up_max_age", Reason.VALUE_INVALID),
    ("expiry", [seconds("policies.expire_after", 0)], "reminder.policies.expire_after", Reason.VALUE_INVALID),
    ("jitter", [seconds("policies.jitter", 31)], "reminder.policies.jitter", Reason.VALUE_INVALID),
    ("jitter sign", [seconds("policies.jitter", -1)], "reminder.policies.jitter", Reason.VALUE_INVALID),
    ("attempts", [sets("policies.retry.max_attempts", 101)], "reminder.policies.retry.max_attempts", Reason.VALUE_INVALID),
    ("retry age", [seconds("policies.retry.max_age", 259_201)], "reminder.policies.retry.max_age", Reason.VALUE_INVALID),
    ("retry schedule", [does(lambda r: r.reminder.policies.retry.schedule.add(seconds=1))], "reminder.policies.retry.schedule[0]", Reason.VALUE_INVALID),
    ("retry waits", [does(lambda r: [r.reminder.policies.retry.schedule.add(seconds=n * 259_201) for n in (0, 1)])], "reminder.policies.retry.schedule[1]", Reason.VALUE_INVALID),
    ("retry length", [does(lambda r: [r.reminder.policies.retry.schedule.add() for _ in range(33)])], "reminder.policies.retry.schedule", Reason.VALUE_INVALID),
    # where
    ("no channel", [channels(0)], "reminder.channels", Reason.FIELD_REQUIRED),
    ("channels", [channels(17)], "reminder.channels", Reason.FIELD_TOO_LONG),
    ("channel kind", [does(lambda r: r.reminder.channels[0].ClearField("webhook"))], "reminder.channels[0]", Reason.FIELD_REQUIRED),
    ("channel id", [sets("channels.0.channel_id", "a b")], "reminder.channels[0].channel_id", Reason.VALUE_INVALID),
    ("channel ids", [channels(2), sets("channels.1.channel_id", "c0")], "reminder.channels[1].channel_id", Reason.VALUE_INVALID),
    ("channel template", [sets("channels.0.template_id", "t" * 129)], "reminder.channels[0].template_id", Reason.FIELD_TOO_LONG),
    ("email", [sets("channels.0.email.to", "a@b.example, c@d.example")], f"{CHANNEL}.email.to", Reason.ADDRESS_INVALID),
    ("email lines", [sets("channels.0.email.to", "a@b.example\r\nBcc: c@d.example")], f"{CHANNEL}.email.to", Reason.ADDRESS_INVALID),
    ("email idn", [sets("channels.0.email.to", "a@bücher.example")], f"{CHANNEL}.email.to", Reason.ADDRESS_INVALID),
    ("no email", [sets("channels.0.email.to", "")], f"{CHANNEL}.email.to", Reason.NO_ADDRESS),
    ("subject", [sets("channels.0.email.to", "a@b.example"), sets("channels.0.email.subject", "Hi\nBcc: x")], f"{CHANNEL}.email.subject", Reason.VALUE_INVALID),
    ("sms", [sets("channels.0.sms.to", "0123456789")], f"{CHANNEL}.sms.to", Reason.ADDRESS_INVALID),
    ("no sms", [sets("channels.0.sms.to", "")], f"{CHANNEL}.sms.to", Reason.NO_ADDRESS),
    ("push", [push("not hex", reminder_pb2.PUSH_PROVIDER_APNS)], f"{CHANNEL}.push.to", Reason.ADDRESS_INVALID),
    ("no push", [push("", reminder_pb2.PUSH_PROVIDER_FCM)], f"{CHANNEL}.push.to", Reason.NO_ADDRESS),
    ("push whose", [push("t", reminder_pb2.PUSH_PROVIDER_UNSPECIFIED)], f"{CHANNEL}.push.provider", Reason.FIELD_REQUIRED),
    ("port", [sets("channels.0.webhook.url", "https://hooks.example.com:6379/")], f"{WEBHOOK}.url", Reason.URL_FORBIDDEN),
    ("no url", [sets("channels.0.webhook.url", "")], f"{WEBHOOK}.url", Reason.FIELD_REQUIRED),
    ("http", [sets("channels.0.webhook.url", "http://hooks.example.com")], f"{WEBHOOK}.url", Reason.URL_FORBIDDEN),
    ("private", [sets("channels.0.webhook.url", "https://10.0.0.1/")], f"{WEBHOOK}.url", Reason.URL_FORBIDDEN),
    ("url long", [sets("channels.0.webhook.url", f"https://a.example/{'x' * 2_048}")], f"{WEBHOOK}.url", Reason.FIELD_TOO_LONG),
    ("secret", [sets("channels.0.webhook.secret_id", "s")], f"{WEBHOOK}.secret_id", Reason.SECRET_UNKNOWN),
    ("header", [header("a b")], f"{WEBHOOK}.headers['a b']", Reason.VALUE_INVALID),
    ("header ours", [header("Webhook-Id")], f"{WEBHOOK}.headers['Webhook-Id']", Reason.VALUE_INVALID),
    ("header split", [header("x-a", "1\r\nhost: b")], f"{WEBHOOK}.headers['x-a']", Reason.VALUE_INVALID),
    ("header blank", [header("x-a", " 1")], f"{WEBHOOK}.headers['x-a']", Reason.VALUE_INVALID),
    ("header twice", [header("x-a"), header("X-A")], f"{WEBHOOK}.headers['x-a']", Reason.VALUE_INVALID),
    ("headers", [header(f"x-{i}") for i in range(17)], f"{WEBHOOK}.headers", Reason.FIELD_TOO_LONG),
    ("headers long", [header("x-a", "v" * 4_097)], f"{WEBHOOK}.headers", Reason.FIELD_TOO_LONG),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [pytest.param(*row[1:], id=row[0].replace(" ", "-")) for row in WRONG],
)
def test_each_violation_is_found_alone(
    violations_of: ViolationsOf, changes: list[Change], field: str, reason: Reason
) -> None:
    """One mistake gives one violation, at its path, with a remedy or a limit in the description."""
    (found,) = violations_of(*changes)
    assert (found.field, found.reason) == (field, reason.value)
    assert len(found.description) > 10


def test_nesting_is_limited(violations_of: ViolationsOf) -> None:
    """Sixteen levels of params are taken, one more is refused at the level that is too deep."""
    params: dict[str, Any] = {}
    for _ in range(15):
        params = {"a": params}
    deeper: dict[str, Any] = {"a": params}

    def fill(value: dict[str, Any]) -> Change:
        return does(lambda request: request.reminder.params.update(value))

    (found,) = violations_of(fill(deeper))
    assert found.field == "reminder.params" + ".a" * 16
    (other,) = violations_of(fill(params), sets("user_id", ""))
    assert other.field == "reminder.user_id"


def test_all_violations_come_at_once(violations_of: ViolationsOf) -> None:
    """A request with many mistakes is told all of them, in the order of the fields."""
    found = violations_of(
        sets("namespace", "!"),
        sets("user_id", ""),
        sets("policies.jitter.seconds", 31),
        rule(rrule="FREQ=DAILY;INTERVAL=0", start="x", time_zone="Paris"),
        sets("channels.0.webhook.url", "http://localhost"),
        sets("channels.0.channel_id", "?"),
        does(lambda r: r.reminder.params.update({"n": NAN, "m": {"i": INFINITE}})),
        sets("dedup_key", "k" * 300),
    )
    assert [one.field for one in found if not one.field.startswith("reminder.params")] == [
        "reminder.namespace",
        "reminder.user_id",
        "reminder.policies.jitter",
        "reminder.schedule.recurrence.rrule",
        "reminder.schedule.recurrence.start",
        "reminder.schedule.recurrence.time_zone",
        "reminder.channels[0].webhook.url",
        "reminder.channels[0].channel_id",
        "reminder.dedup_key",
    ]
    params = {one.field for one in found if one.field.startswith("reminder.params")}
    assert params == {"reminder.params.n", "reminder.params.m.i"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (local(time_zone="Europe/Pariss"), "did you mean Europe/Paris?"),
        (local(time_zone="CET"), "did you mean Europe/Paris?"),
        (local(time_zone="+01:00"), "use an IANA name such as Europe/Paris"),
        (rule(rrule="FREQ=DAILY;BYMONTH=13"), "BYMONTH"),
        (rule(rrule=None, cron="61 * * * *"), "minute"),
        (at(-90), "0:01:30 ago"),
    ],
)
def test_descriptions_name_the_part_and_the_remedy(
    violations_of: ViolationsOf, change: Change, said: str
) -> None:
    """What is wrong, and what would be right."""
    (found,) = violations_of(change)
    assert said in found.description


@pytest.mark.parametrize("offset_s", [-60, 0, 3600, 3650 * 86_400])
def test_times_within_bounds_are_taken(
    validator: Validator,
    request_of: Callable[..., pb.CreateReminderRequest],
    now: datetime,
    offset_s: float,
) -> None:
    """Up to a minute late, up to ten years ahead."""
    assert validator.create(request_of(at(offset_s)), now).namespace == "default"


@pytest.mark.parametrize("key", ["dedup_key", "request_id"])
def test_a_key_lets_a_past_time_through_to_be_looked_up(
    validator: Validator,
    request_of: Callable[..., pb.CreateReminderRequest],
    now: datetime,
    key: str,
) -> None:
    """It may repeat what was in time; whatever else is wrong is refused all the same."""
    keyed = does(lambda r: setattr(r if key == "request_id" else r.reminder, key, "k"))
    taken = validator.create(request_of(at(-3600), keyed), now)
    assert [violation.reason for violation in taken.too_late] == [Reason.TIME_IN_PAST.value]
    assert validator.create(request_of(at(60), keyed), now).too_late == ()
    with pytest.raises(InvalidRequest) as refused:
        validator.create(request_of(at(-3600), keyed, sets("user_id", "")), now)
    assert len(refused.value.violations) == 2


def test_loopback_http_needs_the_setting(
    request_of: Callable[..., pb.CreateReminderRequest], now: datetime
) -> None:
    """Development may post to this machine, production may not."""
    request = request_of(sets("channels.0.webhook.url", "http://127.0.0.1:8080/"))
    assert Validator(allow_loopback_http=True).create(request, now).request_id is None
    with pytest.raises(InvalidRequest):
        Validator(allow_loopback_http=False).create(request, now)


def test_huge_requests_are_looked_at_briefly(violations_of: ViolationsOf) -> None:
    """Lists far beyond their limits give one violation each, not one for each item."""
    found = violations_of(
        channels(2_000),
        does(lambda r: r.reminder.params.update({f"n{i}": NAN for i in range(5_000)})),
        does(lambda r: r.reminder.labels.update({f"{i}": "v" * 100 for i in range(1_000)})),
    )
    assert {one.reason for one in found} == {"PAYLOAD_TOO_LARGE", "FIELD_TOO_LONG"}
    assert len(found) < 50


def test_a_payload_is_measured_as_the_json_that_is_sent(violations_of: ViolationsOf) -> None:
    """A control character takes one byte of the request, and six of what a receiver gets."""
    (found,) = violations_of(does(lambda r: r.reminder.params.update({"a": "\x01" * 20_000})))
    assert (found.field, found.reason) == ("reminder.params", Reason.PAYLOAD_TOO_LARGE.value)


def test_what_a_deployment_lacks_is_refused(
    request_of: Callable[..., pb.CreateReminderRequest], now: datetime
) -> None:
    """A kind without a provider; a secret that is another namespace's; a port."""
    rules = ChannelRules(
        served=frozenset({"webhook", "log"}),
        secret_ids=frozenset({("default", "main"), ("acme", "theirs")}),
        ports=(range(8443, 8444),),
    )
    validator = Validator(allow_loopback_http=False, channels=rules)

    def refusal(*changes: Change) -> tuple[str, str]:
        with pytest.raises(InvalidRequest) as refused:
            validator.create(request_of(*changes), now)
        (found,) = refused.value.violations
        return found.reason, found.description

    to_8443 = sets("channels.0.webhook.url", "https://hooks.example.com:8443/")
    reason, said = refusal(sets("channels.0.email.to", "a@b.example"))
    assert (reason, "webhook, log" in said) == ("CHANNEL_UNAVAILABLE", True)
    reason, said = refusal(to_8443, sets("channels.0.webhook.secret_id", "theirs"))
    assert (reason, "use main" in said) == ("SECRET_UNKNOWN", True)
    assert "theirs" in said
    assert refusal()[0] == "URL_FORBIDDEN"
    signed = (to_8443, sets("channels.0.webhook.secret_id", "main"))
    assert validator.create(request_of(*signed), now).definition.channels[0].target.secret_id  # type: ignore[union-attr]

"""Domain values as messages: nothing lost, output-only fields, etags and page tokens."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as pb

from reminders.errors import InvalidRequest
from reminders.lifecycle import OccurrenceView, Planner, View
from reminders.model.entry import Occurrence, Origin
from reminders.model.fanout import Fanout, TargetCounts
from reminders.model.ledger import Attempt, DeliveryStatus, LedgerRow, OccurrenceStatus
from reminders.model.record import OccurrenceAnswer, Record, Status
from scheduler.mapping.ledger import put_delivery, put_fanout, put_fate, put_occurrence_view
from scheduler.mapping.reminders import put_decisions, put_reminder
from scheduler.tokens import etag_of, seal, unseal, version_of
from scheduler.validation import Validator

AT = datetime(2026, 3, 29, 1, 0, 0, 250_000, tzinfo=UTC)
OCCURRENCE = Occurrence(
    occurrence_id="20260329T023000",
    nominal_local=datetime(2026, 3, 29, 2, 30),  # noqa: DTZ001
    planned_local=datetime(2026, 3, 29, 3, 0, 0, 250_000),  # noqa: DTZ001
    fold=1,
    zone="Europe/Paris",
    planned_at=AT,
    fire_at=AT + timedelta(seconds=3),
    zone_data="2026a",
)


def view_of(request: pb.CreateReminderRequest, validator: Validator, now: datetime) -> View:
    """The request as if it had been stored."""
    record = Record(
        namespace="acme",
        reminder_id="r1",
        version=3,
        status=Status.SCHEDULED,
        definition=validator.create(request, now).definition,
        created_at=now,
        updated_at=now + timedelta(seconds=1),
        stamp=0,
    )
    return View(record=record, status=record.status, ahead=Planner(shards=4).first(record))


def test_reminder_shows_what_was_asked_and_what_was_decided(
    request_of: Callable[..., pb.CreateReminderRequest], validator: Validator, now: datetime
) -> None:
    """A complete reminder; its params from the record or from the caller's message alike."""
    request = request_of()
    request.reminder.params.update({"a": [1, {"b": None}]})
    request.reminder.dedup_key = "k"
    view = view_of(request, validator, now)
    message, direct = reminder_pb2.Reminder(), reminder_pb2.Reminder()
    put_reminder(message, view)
    put_reminder(direct, view, request.reminder.params)
    assert message == direct
    assert (message.namespace, message.reminder_id, message.version) == ("acme", "r1", 3)
    assert version_of(message.etag, "r1") == 3
    assert message.status == reminder_pb2.REMINDER_STATUS_SCHEDULED
    assert message.create_time.ToDatetime(UTC) == now
    assert message.update_time.ToDatetime(UTC) == now + timedelta(seconds=1)
    assert message.params == request.reminder.params
    assert message.policies.expire_after.seconds == 3 * 86_400
    assert message.policies.HasField("jitter")
    (planned,) = message.next_occurrences
    assert planned.status == reminder_pb2.OCCURRENCE_STATUS_PLANNED
    assert planned.target_count == 1
    assert planned.planned_time == request.reminder.schedule.at
    assert planned.time_zone == "UTC"


def test_batches_answer_only_what_was_decided(
    request_of: Callable[..., pb.CreateReminderRequest], validator: Validator, now: datetime
) -> None:
    """Not what the caller sent."""
    message = reminder_pb2.Reminder()
    put_decisions(message, view_of(request_of(), validator, now))
    assert message.reminder_id == "r1"
    assert len(message.next_occurrences) == 1
    assert not message.HasField("schedule")
    assert not message.channels


def test_validate_only_has_no_id(
    request_of: Callable[..., pb.CreateReminderRequest], validator: Validator, now: datetime
) -> None:
    """And so no etag that anything could be done with."""
    view = view_of(request_of(), validator, now)
    record = Record(
        namespace="acme",
        reminder_id="",
        version=1,
        status=Status.SCHEDULED,
        definition=view.record.definition,
        created_at=now,
        updated_at=now,
        stamp=0,
    )
    message = reminder_pb2.Reminder()
    put_reminder(message, View(record=record, status=record.status))
    assert (message.reminder_id, message.etag, message.version) == ("", "", 1)


def test_every_status_has_a_number() -> None:
    """By name, so that a status that is added to the model alone is noticed."""
    names = set(reminder_pb2.ReminderStatus.keys())
    assert {f"REMINDER_STATUS_{one.name}" for one in Status} == names - {
        "REMINDER_STATUS_UNSPECIFIED"
    }
    for occurrence_status in OccurrenceStatus:
        view = OccurrenceView(
            namespace="n",
            reminder_id="r",
            version=1,
            occurrence=OCCURRENCE,
            status=occurrence_status,
        )
        message = reminder_pb2.Occurrence()
        put_occurrence_view(message, view)
        name = reminder_pb2.OccurrenceStatus.Name(message.status)
        assert name == f"OCCURRENCE_STATUS_{occurrence_status.name}"
    for delivery_status in DeliveryStatus:
        delivery = reminder_pb2.Delivery()
        put_delivery(delivery, row(delivery=delivery_status))
        name = reminder_pb2.DeliveryStatus.Name(delivery.status)
        assert name == f"DELIVERY_STATUS_{delivery_status.name}"


def test_occurrence_shows_promise_and_outcome() -> None:
    """Local promise, instants, what became of it."""
    message = reminder_pb2.Occurrence()
    view = OccurrenceView(
        namespace="n",
        reminder_id="r",
        version=2,
        occurrence=OCCURRENCE,
        status=OccurrenceStatus.SKIPPED,
        reason="superseded",
        claimed_at=AT + timedelta(seconds=4),
        target_count=2,
    )
    put_occurrence_view(message, view)
    assert message.nominal_local == "2026-03-29T02:30:00"
    assert message.planned_local == "2026-03-29T03:00:00.250"
    assert (message.fold, message.time_zone, message.zone_data_version) == (
        1,
        "Europe/Paris",
        "2026a",
    )
    assert message.planned_time.ToDatetime(UTC) == AT
    assert message.fire_time.ToDatetime(UTC) == AT + timedelta(seconds=3)
    assert message.claim_time.ToDatetime(UTC) == AT + timedelta(seconds=4)
    assert (message.reason, message.target_count) == ("superseded", 2)


def test_an_occurrence_shows_where_it_comes_from() -> None:
    """Nothing of a run where there is none; every origin has a number."""
    for origin in Origin:
        message = reminder_pb2.Occurrence()
        view = OccurrenceView(
            namespace="n",
            reminder_id="r",
            version=2,
            occurrence=replace(OCCURRENCE, origin=origin),
            status=OccurrenceStatus.SKIPPED,
        )
        put_occurrence_view(message, view)
        name = reminder_pb2.OccurrenceOrigin.Name(message.origin)
        assert name == f"OCCURRENCE_ORIGIN_{origin.name}"
        assert not message.HasField("skipped_through_time")
        assert (message.skipped_count, message.skipped_through_local) == (0, "")


def test_a_run_shows_how_far_it_goes() -> None:
    """Its last one, and how many there are."""
    message = reminder_pb2.Occurrence()
    view = OccurrenceView(
        namespace="n",
        reminder_id="r",
        version=2,
        occurrence=OCCURRENCE,
        status=OccurrenceStatus.SKIPPED,
        skipped_through=OCCURRENCE,
        skipped_count=28,
    )
    put_occurrence_view(message, view)
    assert (message.skipped_count, message.skipped_through_local) == (
        28,
        "2026-03-29T03:00:00.250",
    )
    assert message.skipped_through_time.ToDatetime(UTC) == AT


def row(**fields: object) -> LedgerRow:
    """A delivery."""
    given_fields = {
        "namespace": "n",
        "reminder_id": "r",
        "reminder_version": 1,
        "occurrence": OCCURRENCE,
        "channel_id": "webhook",
        "delivery_key": "k",
    }
    return LedgerRow(**(given_fields | fields))  # type: ignore[arg-type]


def test_delivery_shows_its_attempts() -> None:
    """The last attempt's error class is the delivery's."""
    attempts = (
        Attempt(number=1, started_at=AT, error_class="timeout", outcome_unknown=True),
        Attempt(
            number=2,
            started_at=AT + timedelta(seconds=5),
            duration=timedelta(milliseconds=1_500),
            status_code=429,
            error_class="http_429",
            excerpt="slow down",
        ),
    )
    message = reminder_pb2.Delivery()
    put_delivery(
        message,
        row(
            delivery=DeliveryStatus.RETRYING,
            attempts=attempts,
            attempt_count=2,
            next_attempt_at=AT + timedelta(minutes=1),
            target="s1",
            acknowledged=True,
        ),
    )
    assert message.error_class == "http_429"
    assert message.subscriber_id == "s1"
    assert message.acknowledged
    assert message.next_attempt_time.ToDatetime(UTC) == AT + timedelta(minutes=1)
    assert [one.number for one in message.attempts] == [1, 2]
    assert message.attempts[1].duration.ToTimedelta() == timedelta(milliseconds=1_500)
    assert message.attempts[1].status_code == 429
    assert [one.outcome_unknown for one in message.attempts] == [True, False]
    fresh = reminder_pb2.Delivery()
    put_delivery(fresh, row(delivery=DeliveryStatus.PENDING))
    assert not fresh.HasField("next_attempt_time")


def test_fate_of_an_occurrence() -> None:
    """What a cancel found out."""
    message = pb.OccurrenceFate()
    put_fate(message, OccurrenceAnswer(occurrence_id="o", planned_at=AT, was_fired=True, stopped=2))
    assert (message.occurrence_id, message.was_fired) == ("o", True)
    assert message.deliveries_stopped == 2
    assert message.planned_time.ToDatetime(UTC) == AT


@given(st.text(max_size=40), st.integers(0, 10**17))
def test_etags_read_back(reminder_id: str, version: int) -> None:
    """For their own reminder only."""
    etag = etag_of(reminder_id, version)
    assert version_of(etag, reminder_id) == version
    assert version_of(etag, f"{reminder_id}x") is None
    assert version_of(f"{etag}0", reminder_id) is None


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(), st.text())
def test_page_tokens_read_back(position: str, scope: str, other: str) -> None:
    """For their own list only, and unchanged."""
    token = seal(position, "reminders", scope)
    assert token.isascii()
    assert unseal(token, "reminders", scope) == position
    if other != scope:
        assert unseal(token, "reminders", other) is None
    for changed in (token[:-1], token[1:], f"{token}=", f"!{token}", token.swapcase()):
        assert changed == token or unseal(changed, "reminders", scope) is None


def test_end_of_a_list_has_no_token() -> None:
    """Empty in, empty out; and an empty token is no token."""
    assert seal("", "reminders") == ""
    assert unseal("", "reminders") is None


def test_a_fan_out_shows_its_counts_and_when_it_will_end() -> None:
    """At its rate, from the last count on; not once it has ended, nor where nobody knows."""
    fanout = Fanout(
        topic_id="deploys",
        started_at=AT,
        subscribers=1_000,
        paused=3,
        filtered=7,
        counts=TargetCounts(open=10, taken=370, stopped=8, failed=2),
        counted_at=AT + timedelta(seconds=4),
        next_at=AT + timedelta(seconds=5),
        per_second=100.0,
    )
    message = reminder_pb2.FanOut()
    put_fanout(message, fanout)
    assert (message.subscriber_count, message.target_count) == (1_000, 390)
    assert (message.paused_count, message.filtered_count) == (3, 7)
    assert (message.delivered_count, message.failed_count) == (370, 2)
    assert (message.stopped_count, message.open_count) == (8, 10)
    assert not message.finished
    end = message.estimated_end_time.ToDatetime(tzinfo=UTC)
    assert end == AT + timedelta(seconds=4 + 6)  # 600 are left
    for other in (replace(fanout, next_at=None), replace(fanout, per_second=0.0)):
        shown = reminder_pb2.FanOut()
        put_fanout(shown, other)
        assert not shown.HasField("estimated_end_time")
        assert shown.finished == (other.next_at is None)


def test_what_a_list_of_deliveries_is_to_have(validator: Validator) -> None:
    """A status that is none is named, with those that are."""
    request = pb.ListDeliveriesRequest(reminder_id="r1", subscriber_id="s1")
    request.statuses.append(reminder_pb2.DELIVERY_STATUS_FAILED)
    _, wanted, window = validator.list_deliveries(request)
    assert (wanted.subscriber_id, wanted.statuses) == ("s1", frozenset({DeliveryStatus.FAILED}))
    token = seal("x", *window.scope)
    request.page_token = token
    assert validator.list_deliveries(request)[2].position == "x"
    request.subscriber_id = "s2"
    with pytest.raises(InvalidRequest):
        validator.list_deliveries(request)
    wrong = pb.ListDeliveriesRequest(reminder_id="r1")
    wrong.statuses.extend(
        [reminder_pb2.DeliveryStatus.ValueType(0), reminder_pb2.DeliveryStatus.ValueType(77)]
    )
    with pytest.raises(InvalidRequest) as caught:
        validator.list_deliveries(wrong)
    assert [each.field for each in caught.value.violations] == ["statuses[0]", "statuses[1]"]
    assert "DELIVERY_STATUS_FAILED" in caught.value.violations[0].description


def test_a_replay_is_read_with_its_subscribers(validator: Validator) -> None:
    """Each once, sorted; too many are refused."""
    request = pb.ReplayOccurrenceRequest(reminder_id="r1", occurrence_id="20261201T090000")
    request.subscriber_ids.extend(["b", "a", "b"])
    assert validator.replay(request)[1].subscribers == ("a", "b")
    request.subscriber_ids.extend(f"s{n}" for n in range(99))
    request.subscriber_ids.append("")
    with pytest.raises(InvalidRequest) as caught:
        validator.replay(request)
    assert {each.field for each in caught.value.violations} == {"subscriber_ids"}

"""When a delivery is tried again."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.retry import backoff, next_attempt_at, refusal
from reminders.config.durations import parse_duration
from reminders.delivery_key import delivery_key
from reminders.model.definition import RETRY_SCHEDULE, Policies, Retry
from reminders.model.entry import Body, Occurrence

AT = datetime(2026, 12, 1, 9, tzinfo=UTC)
KEYS = st.text(min_size=1, max_size=20).map(lambda name: delivery_key(name, "o", "c"))
INSTANTS = st.datetimes(
    min_value=datetime(2026, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(2040, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)


@given(KEYS, st.integers(1, 100), INSTANTS)
def test_the_time_is_a_pure_function_of_key_attempt_and_base(
    key: str, attempt: int, base: datetime
) -> None:
    """Whoever repeats a settlement finds the same row; later than the base, at whole ms."""
    at = next_attempt_at(key, attempt, base, None)
    assert at == next_attempt_at(key, attempt, base, None)
    assert (
        base + timedelta(seconds=1) <= at <= base + max(RETRY_SCHEDULE) + timedelta(milliseconds=1)
    )
    assert at.microsecond % 1000 == 0


WAITS = st.lists(st.timedeltas(timedelta(0), timedelta(days=3)), min_size=1, max_size=9)


@given(KEYS, st.integers(1, 99), WAITS)
def test_no_wait_is_longer_than_the_schedule_says(
    key: str, attempt: int, schedule: list[timedelta]
) -> None:
    """The last one holds for all further attempts."""
    longest = schedule[attempt] if attempt < len(schedule) else schedule[-1]
    assert timedelta(0) <= backoff(key, attempt, schedule) <= longest


@pytest.mark.parametrize(
    ("attempt", "longest"), list(enumerate(("5s", "5m", "30m", "2h", "5h", "10h", "10h"), 1))
)
def test_by_default_retries_spread_from_nothing_up_to_these(attempt: int, longest: str) -> None:
    """Full jitter: what failed together does not return together."""
    bound = parse_duration(longest)
    waits = {backoff(delivery_key(str(n), "o", "c"), attempt) for n in range(300)}
    assert len(waits) > 290
    assert min(waits) < bound * 0.05
    assert bound * 0.95 < max(waits) <= bound


def test_the_defaults_fit_each_other() -> None:
    """Every attempt of the schedule can be made before the age ends it, and that before a one-shot
    expires; both also where each attempt takes its 8 s.
    """
    retry, policies = Retry(), Policies()
    assert retry.max_attempts == len(RETRY_SCHEDULE)
    assert sum(RETRY_SCHEDULE, 8 * timedelta(seconds=8)) < retry.max_age < policies.expire_after


@given(KEYS, st.integers(1, 9), st.timedeltas(timedelta(0), timedelta(days=9)))
def test_what_has_used_up_its_attempts_says_so_whenever_it_would_have_been_next(
    key: str, most: int, wait: timedelta
) -> None:
    """The reason must not hang on the wait that the key happened to draw."""
    body = Body(
        user_id="u", channels=(), retry=Retry(max_attempts=most), expire_after=timedelta(minutes=5)
    )
    assert refusal(body, occurrence(), most, AT + wait) == "attempts_exhausted"


def test_a_longer_wish_of_the_receiver_is_honoured_exactly() -> None:
    """Drill of document 002: 429 at :02 with Retry-After 15 is tried again at :17."""
    ended_at = AT + timedelta(seconds=2)
    at = next_attempt_at("k", 1, ended_at, timedelta(seconds=15))
    assert at == AT + timedelta(seconds=17)


def test_a_shorter_wish_does_not_shorten_the_backoff() -> None:
    """A receiver that says 0 is not hammered."""
    assert next_attempt_at("k", 3, AT, timedelta(0)) == next_attempt_at("k", 3, AT, None)


@pytest.mark.parametrize(
    ("spent", "after", "reason"),
    [
        (1, timedelta(minutes=1), None),
        (3, timedelta(minutes=1), "attempts_exhausted"),
        (2, timedelta(minutes=10), None),
        (2, timedelta(minutes=10, microseconds=1), "max_age"),
        (0, timedelta(minutes=30), None),
        (2, timedelta(hours=2), "expired"),
        (0, timedelta(hours=2), "expired"),
    ],
)
def test_attempts_age_and_expiry_end_it(spent: int, after: timedelta, reason: str | None) -> None:
    """The age bounds retries, not the first attempt of a late reminder."""
    body = Body(
        user_id="u",
        channels=(),
        retry=Retry(max_attempts=3, max_age=timedelta(minutes=10)),
        expire_after=timedelta(hours=1),
    )
    assert refusal(body, occurrence(), spent, AT + after) == reason


def test_a_rule_does_not_expire_here() -> None:
    """Its catch-up policy has decided already."""
    body = Body(user_id="u", channels=())
    assert refusal(body, occurrence(), 0, AT + timedelta(days=30)) is None


def occurrence() -> Occurrence:
    """Promised at AT."""
    local = AT.replace(tzinfo=None)
    return Occurrence(
        occurrence_id="20261201T090000",
        nominal_local=local,
        planned_local=local,
        zone="UTC",
        planned_at=AT,
        fire_at=AT,
        zone_data="2026a",
    )


def test_a_delivery_key_names_one_intended_delivery() -> None:
    """Opaque ASCII of at most 64, different for whatever differs, stable for ever."""
    key = delivery_key("r1", "20261201T090000", "webhook")
    assert key == delivery_key("r1", "20261201T090000", "webhook", "")
    assert key == "dlv_df75de502265422f4b787aa954376b1173a4b51b"
    assert key.isascii()
    assert len(key) <= 64
    others = {
        delivery_key("r2", "20261201T090000", "webhook"),
        delivery_key("r1", "20261202T090000", "webhook"),
        delivery_key("r1", "20261201T090000", "log"),
        delivery_key("r1", "20261201T090000", "webhook", "s1"),
        key,
    }
    assert len(others) == 5

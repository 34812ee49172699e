"""The rule by which endpoints are disabled, against any sequence of outcomes in any processes."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reminders.lifecycle import health
from reminders.lifecycle.health import (
    COUNTED_EVERY,
    DISABLE_AFTER,
    LEAST,
    LISTED_AFTER,
    SILENCE,
    Failure,
)
from reminders.model.definition import Channel, Email, Log, Push, PushProvider, Webhook
from reminders.model.endpoint import Address, Endpoint, Why, address_of
from tests.unit.lifecycle.world import DAY, HOUR, MINUTE, NOON, SECOND

ADDRESS = Address(namespace="ns", kind="webhook", address="https://example.com/hook")


UNSEEN = timedelta(seconds=90) + LISTED_AFTER
"""How late a report may come, and how far back its reporter's word is taken."""


@dataclass
class History:
    """What one endpoint answered, and what was made of it."""

    state: Endpoint | None = None
    successes: list[datetime] = field(default_factory=list)
    failures: list[datetime] = field(default_factory=list)

    def fail(self, at: datetime, *, since: datetime | None = None, gone: bool = False) -> None:
        """Reported by a process that remembers failures since then."""
        self.failures.append(at)
        failure = Failure(at=at, error_class="http_5xx", since=since or at, gone=gone)
        self.take(health.failed(self.state, ADDRESS, failure))

    def succeed(self, at: datetime) -> None:
        """The same of a success."""
        self.successes.append(at)
        self.take(health.succeeded(self.state, at))

    def take(self, changed: Endpoint | None) -> None:
        """The next version, if there is one."""
        if changed is None:
            return
        before = self.state
        assert changed.version == (before.version if before else 0) + 1
        assert before is None or changed.stamp > before.stamp
        self.state = changed

    @property
    def disabled(self) -> bool:
        """Now."""
        return self.state is not None and self.state.disabled

    def streak(self, until: datetime, unseen: timedelta) -> list[datetime]:
        """The failures up to then with no success since."""
        last = max(self.successes, default=NOON - DAY) - unseen
        return sorted(at for at in self.failures if last < at <= until)

    def may_be_disabled(
        self, at: datetime, *, forgotten: int = 0, unseen: timedelta = timedelta(0)
    ) -> bool:
        """The rule, read slowly from all that happened, without the first few failures. `unseen`:
        so much sooner, as far as a success may have come when nobody had reason to write it.
        """
        streak = self.streak(at, unseen)[forgotten:]
        if len(streak) < LEAST:
            return False
        counted = streak
        for earlier, later in pairwise(streak):
            if later - earlier > max(DISABLE_AFTER, SILENCE) + COUNTED_EVERY:
                counted = [each for each in streak if each >= later]
        run = counted
        for earlier, later in pairwise(counted):
            if later - earlier > SILENCE + COUNTED_EVERY:
                run = [each for each in counted if each >= later]
        long = at - counted[0] >= DISABLE_AFTER - unseen
        running = at - run[0] >= DISABLE_AFTER / 10 - unseen
        return long and running and len(counted) >= LEAST


steps = st.tuples(
    st.sampled_from([1, 20, 61, 600, 3600, 6 * 3600, 20 * 3600, 30 * 3600, 4 * 86400, 6 * 86400]),
    st.sampled_from("ffffffffffffs"),
    st.integers(0, 2),
    st.integers(0, 90),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(steps, max_size=60))
def test_it_is_disabled_only_when_the_rule_says(
    sequence: list[tuple[int, str, int, int]],
) -> None:
    """Three processes, each of which remembers since when it saw nothing but failures, and whose
    reports come up to a minute and a half late.
    """
    history, now = History(), NOON
    marks: dict[int, datetime] = {}
    for wait, outcome, process, late in sequence:
        now += wait * SECOND
        at = now - late * SECOND
        if outcome == "s":
            marks.pop(process, None)
            history.succeed(at)
            state = history.state
            if state is not None and state.disabled:
                assert state.failing_since is not None
                assert at < state.failing_since
        else:
            since = marks.setdefault(process, at)
            before = history.disabled
            history.fail(at, since=min(since, at))
            if history.disabled and not before:
                assert history.may_be_disabled(at, unseen=UNSEEN)
        state = history.state
        if state is not None and state.failing_since is not None:
            # Of a healthy one no success is written, so an older failure that is reported after it
            # may begin a count; whatever succeeds later ends it.
            last = max(history.successes, default=NOON)
            assert last <= state.failing_since + UNSEEN
            assert state.run_since is not None
            assert state.failing_since <= state.run_since


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(61, 30 * 3600), min_size=150, max_size=150))
def test_what_only_fails_is_disabled_as_soon_as_the_rule_allows(waits: list[int]) -> None:
    """And never without five days of it."""
    history, now = History(), NOON
    for wait in waits:
        now += wait * SECOND
        history.fail(now)
        if history.disabled:
            assert history.may_be_disabled(now)
            assert history.state is not None
            assert history.state.why is Why.FAILING
            return
        # What failed within ten minutes before the list had it is not counted.
        assert not history.may_be_disabled(now, forgotten=12)
    assert now - history.failures[0] < DISABLE_AFTER + 60 * HOUR


def five_days() -> History:
    """Fails every three hours until it is disabled."""
    history, now = History(), NOON
    while not history.disabled:
        history.fail(now)
        now += 3 * HOUR
    assert history.failures[-1] - NOON == DISABLE_AFTER + 3 * HOUR
    return history


def test_a_success_in_between_starts_the_clock_again() -> None:
    """Nobody waits less than five days."""
    history, now = History(), NOON
    while now < NOON + 20 * DAY:
        history.fail(now)
        if now.hour == 12:
            history.succeed(now + MINUTE)
        now += 3 * HOUR
    assert not history.disabled


def test_the_first_failure_after_a_quiet_time_ends_nothing() -> None:
    """It may be a hiccup; half a day of it is none."""
    history, now = History(), NOON
    for _ in range(10):
        history.fail(now)
        now += 3 * HOUR
    now = NOON + 5 * DAY + 4 * HOUR
    history.fail(now)
    assert not history.disabled
    history.fail(now + 11 * HOUR)
    assert not history.disabled
    history.fail(now + 12 * HOUR)
    assert history.disabled


def test_a_longer_silence_starts_the_clock_again() -> None:
    """What rings weekly and fails is tried weekly."""
    history = History()
    for week in range(6):
        for hour in range(28):
            history.fail(NOON + week * 7 * DAY + hour * HOUR)
    assert not history.disabled


def test_what_failed_before_all_were_told_counts_for_little() -> None:
    """Of the successes meanwhile nobody may have known that they are to be written."""
    history = History()
    history.fail(NOON)
    history.fail(NOON + MINUTE)
    for minutes in range(0, 24 * 60, 20):
        history.fail(NOON + 4 * DAY + 20 * HOUR + minutes * MINUTE)
    assert not history.disabled
    assert history.state is not None
    assert history.state.failing_since == NOON + 4 * DAY + 20 * HOUR - 10 * MINUTE


def test_gone_disables_at_once_and_no_success_undoes_it() -> None:
    """The endpoint said it itself."""
    history = History()
    history.fail(NOON, gone=True)
    assert history.state is not None
    assert history.state.why is Why.GONE
    history.succeed(NOON + MINUTE)
    assert history.disabled


def test_a_success_that_is_reported_late_undoes_a_disabling_for_failures() -> None:
    """It had not failed all the while."""
    history = five_days()
    history.succeed(NOON - MINUTE)
    assert history.disabled
    history.succeed(NOON + DAY)
    state = history.state
    assert state is not None
    assert not state.troubled


def test_by_hand_it_stays_disabled_until_it_is_enabled() -> None:
    """And then begins without a past."""
    state = health.disabled_by_hand(None, ADDRESS, NOON)
    assert state is not None
    assert state.why is Why.MANUAL
    assert health.disabled_by_hand(state, ADDRESS, NOON) is None
    assert health.succeeded(state, NOON + MINUTE) is None
    failure = Failure(at=NOON + MINUTE, error_class="http_5xx", since=NOON)
    assert health.failed(state, ADDRESS, failure) is None
    history = History()
    history.fail(NOON)
    history.take(health.disabled_by_hand(history.state, ADDRESS, NOON + MINUTE))
    assert history.disabled
    healthy = health.enabled(state, NOON + HOUR)
    assert healthy is not None
    assert not healthy.troubled
    assert health.enabled(healthy, NOON + HOUR) is None
    assert health.enabled(None, NOON) is None


def test_enabled_it_takes_five_days_again() -> None:
    """Nothing of the old count is left."""
    history = five_days()
    at = NOON + 6 * DAY
    history.state = health.enabled(history.state, at)
    for hour in range(1, 5 * 24):
        history.fail(at + hour * HOUR)
    assert not history.disabled
    history.fail(at + 5 * DAY + 2 * HOUR)
    assert history.disabled


def test_it_is_announced_once() -> None:
    """Of two who tell the operator one notes it."""
    history = five_days()
    state = history.state
    assert state is not None
    assert state.disabled_at is not None
    noted = health.announced(state, state.disabled_at, NOON + 6 * DAY)
    assert noted is not None
    assert noted.announced
    assert health.announced(noted, state.disabled_at, NOON + 6 * DAY) is None
    assert health.announced(replace(noted, disabled_at=NOON), state.disabled_at, NOON) is None


def test_it_is_listed_when_it_has_failed_for_some_minutes() -> None:
    """A hiccup leaves no trace there."""
    history = History()
    history.fail(NOON)
    assert history.state is not None
    assert not health.is_listed(history.state)
    history.fail(NOON + 10 * MINUTE)
    assert health.is_listed(history.state)
    history.succeed(NOON + 11 * MINUTE)
    assert not health.is_listed(history.state)


@pytest.mark.parametrize(
    ("url", "address", "exact"),
    [
        ("https://Example.COM/Hook", "https://example.com/Hook", True),
        ("https://example.com", "https://example.com/", True),
        ("https://example.com:8443/a/b?token=x#y", "https://example.com:8443/a/b", False),
        ("https://example.com?x", "https://example.com/", False),
        ("https://example.com/a#b?c", "https://example.com/a", True),
    ],
)
def test_a_webhook_is_known_by_its_url_without_the_query(
    url: str, address: str, exact: bool
) -> None:
    """That may be a token, or many names of one receiver."""
    found = address_of("ns", Channel(channel_id="c", target=Webhook(url=url)))
    assert found is not None
    assert (found.address, found.exact) == (address, exact)


def test_endpoints_are_told_apart_by_kind_and_address() -> None:
    """One namespace's are not another's, by the key they are stored under."""
    token = "t" * 4000
    target = Push(to=token, provider=PushProvider.FCM)
    push = address_of("ns", Channel(channel_id="c", target=target))
    mail = address_of("ns", Channel(channel_id="c", target=Email(to="a@example.com")))
    assert push is not None
    assert mail is not None
    assert push.endpoint_id != mail.endpoint_id
    assert len(push.shown) == 512
    assert address_of("ns", Channel(channel_id="c", target=Log())) is None
    assert address_of("ns", Channel(channel_id="c", target=Email(to=""))) is None

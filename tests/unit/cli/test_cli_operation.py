"""Commands that work on the servers themselves: how they fail, and what a local run allows."""

import pytest

from reminders.cli.operation import failure
from reminders.config.problems import ConfigError
from reminders.config.settings import Settings, load_settings
from reminders.errors import CoordinationUnavailable, StoreUnavailable, TocsinError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            StoreUnavailable(operation="connect"),
            ("Cassandra does not answer", "c1:9042, c2:9042", "TOCSIN_CASSANDRA_HOSTS"),
        ),
        (
            CoordinationUnavailable(operation="connect"),
            ("Redis does not answer", "redis://:***@r:6379/0", "TOCSIN_REDIS_URL"),
        ),
    ],
)
def test_a_server_that_does_not_answer_is_named_with_its_variable(
    error: TocsinError, said: tuple[str, ...]
) -> None:
    """Where it was looked for, without the password; and what to do then."""
    hosts = ("c1:9042", "c2:9042")
    settings = Settings(cassandra_hosts=hosts, redis_url="redis://:s3cret@r:6379/0")
    failed = failure(error, settings, "run it again")
    text = "\n".join(failed.lines)
    assert all(each in text for each in said)
    assert "s3cret" not in text
    assert failed.lines[-1] == "run it again"


def test_other_failures_say_it_themselves() -> None:
    """Nothing is added to them."""
    assert failure(TocsinError(), Settings()).lines == (str(TocsinError()),)


def test_what_a_local_run_allows_is_allowed_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own check of the settings is no stricter than that of the services it starts."""
    monkeypatch.setenv("TOCSIN_EVENTS_URL", "http://127.0.0.1:8080/ops")
    monkeypatch.setenv("TOCSIN_EVENTS_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    monkeypatch.setenv("TOCSIN_ALLOW_LOOPBACK_HTTP", "false")
    with pytest.raises(ConfigError):
        load_settings()
    assert load_settings(allow_loopback_http=True).events_url == "http://127.0.0.1:8080/ops"

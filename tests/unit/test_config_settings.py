"""Where settings come from, and what is said about wrong ones."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from reminders.config.display import shown
from reminders.config.problems import ConfigError
from reminders.config.report import report
from reminders.config.settings import Service, Settings, load_settings
from reminders.recurrence import holiday_data_version, zone_data_version


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty current directory, and no variable of ours."""
    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def problems() -> list[str]:
    """What `load_settings` complains about."""
    with pytest.raises(ConfigError) as caught:
        load_settings()
    return caught.value.problems


WRONG = {
    "TOCSIN_CASSANDRA_HOSTS": "a:b",
    "TOCSIN_CASSANDRA_KEYSPACE": "Tocsin-1",
    "TOCSIN_CASSANDRA_REPLICATION": "dc1:0",
    "TOCSIN_CASSANDRA_USERNAME": "only-a-name",
    "TOCSIN_REDIS_URL": "http://localhost",
    "TOCSIN_SHARDS": "abc",
    "TOCSIN_GRPC_ADDRESS": "50051",
    "TOCSIN_SCANNER_HTTP_PORT": "65536",
    "TOCSIN_LOOKAHEAD": "30",
    "TOCSIN_VOID_MARGIN": "0s",
    "TOCSIN_LEASE_TTL": "soon",
    "TOCSIN_LEASE_RENEW_EVERY": "2s",
    "TOCSIN_SETTLE_GRACE": "-2m",
    "TOCSIN_RETENTION": "P1Y",
    "TOCSIN_ALLOW_LOOPBACK_HTTP": "maybe",
    "TOCSIN_DISPATCHER_CONCURRENCY": "0",
    "TOCSIN_LOG_LEVEL": "loud",
    "TOCSIN_LOG_FORMAT": "xml",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_names_the_variable_the_value_and_what_is_right(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, enough to mend it without the manual."""
    monkeypatch.setenv(name, WRONG[name])
    [line] = problems()
    if name == "TOCSIN_CASSANDRA_USERNAME":  # the one that is missing is the wrong one
        assert line.startswith("TOCSIN_CASSANDRA_PASSWORD is not set")
    else:
        assert line.startswith(f"{name}=")
        assert WRONG[name] in line
    assert "Right: " in line


def test_every_wrong_value_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to start a process once for each mistake."""
    names = ["TOCSIN_SHARDS", "TOCSIN_LOG_LEVEL", "TOCSIN_LOOKAHEAD"]
    for name in names:
        monkeypatch.setenv(name, WRONG[name])
    assert sorted(line.partition("=")[0] for line in problems()) == sorted(names)


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For each setting separately; `tocsin config` says which it was."""
    Path("tocsin.toml").write_text('shards = 8\nlookahead = "1m"\n')
    monkeypatch.setenv("TOCSIN_SHARDS", "16")
    settings = load_settings()
    assert (settings.shards, settings.lookahead) == (16, timedelta(minutes=1))
    assert settings.retention == timedelta(days=90)
    found = {row.variable: (row.value, row.source) for row in report().settings}
    assert found["TOCSIN_SHARDS"] == ("16", "environment")
    assert found["TOCSIN_LOOKAHEAD"] == ("1m", "tocsin.toml")
    assert found["TOCSIN_RETENTION"] == ("90d", "default")


def test_a_wrong_value_in_the_file_names_the_file_and_the_variable() -> None:
    """The variable is the setting's name everywhere."""
    Path("tocsin.toml").write_text('shards = "many"\n')
    [line] = problems()
    assert line.startswith("TOCSIN_SHARDS='many' (from tocsin.toml)")


def test_an_unknown_key_in_the_file_is_refused_with_the_nearest_one() -> None:
    """A misspelt setting would otherwise be silently the default."""
    Path("tocsin.toml").write_text("shard = 8\n")
    assert problems() == ["'shard' in tocsin.toml is no setting; did you mean 'shards'?"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), ("shards = = 8", "not TOML"), ("\x00", "not TOML")],
)
def test_a_named_file_that_cannot_be_read_is_an_error(
    content: str | None, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only the default file may be absent."""
    path = tmp_path / "other.toml"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("TOCSIN_CONFIG_FILE", str(path))
    [line] = problems()
    assert said in line
    assert str(path) in line


def test_hosts_replication_and_addresses_take_their_short_forms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A port may be left out, spaces may stand, a number is a simple replication."""
    monkeypatch.setenv("TOCSIN_CASSANDRA_HOSTS", "c1, c2:9043 ,[::1]:9044")
    monkeypatch.setenv("TOCSIN_CASSANDRA_REPLICATION", "dc1:3, dc2:2")
    settings = load_settings()
    assert settings.cassandra_hosts == ("c1:9042", "c2:9043", "[::1]:9044")
    assert settings.cassandra_replication == {"dc1": 3, "dc2": 2}
    assert Settings(cassandra_replication=3).cassandra_replication == {"": 3}  # type: ignore[arg-type]


def test_secrets_are_masked_wherever_they_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the report, in errors, and in the text of the settings themselves."""
    monkeypatch.setenv("TOCSIN_CASSANDRA_USERNAME", "tocsin")
    monkeypatch.setenv("TOCSIN_CASSANDRA_PASSWORD", "s3cret")
    monkeypatch.setenv("TOCSIN_REDIS_URL", "redis://user:s3cret@redis:6379/0")
    found = {row.variable: row.value for row in report().settings}
    assert found["TOCSIN_CASSANDRA_PASSWORD"] == "***"
    assert found["TOCSIN_REDIS_URL"] == "redis://user:***@redis:6379/0"
    assert "s3cret" not in str(load_settings().cassandra_password)
    monkeypatch.setenv("TOCSIN_REDIS_URL", "http://user:s3cret@redis")
    monkeypatch.setenv("TOCSIN_SHARDS", "x")
    assert "s3cret" not in "\n".join(problems())


@pytest.mark.parametrize(
    ("url", "as_shown"),
    [
        ("redis://redis:6379/0", "redis://redis:6379/0"),
        ("redis://:s3cret@redis:6379/0", "redis://:***@redis:6379/0"),
        ("redis://:s3/cr3t@redis:6379/0", "redis://:***@redis:6379/0"),
        ("redis://:12/s3cret@redis/0", "redis://:***@redis/0"),
        ("rediss://u:s3#cr?3t@redis", "rediss://u:***@redis"),
        ("redis://u:s3@cr3t@redis", "redis://u:***@redis"),
        ("redis://redis:6379/0?password=s3cret", "redis://redis:6379/0?***"),
        (
            "redis+sentinel://:s3cret@s1:26379,s2:26379/x",
            "redis+sentinel://:***@s1:26379,s2:26379/x",
        ),
        ("user:s3cret@redis", "user:***@redis"),
        ("https://s3cret@ops.example.com/x", "https://***@ops.example.com/x"),
        ("https://u:s3/cr3t@ops.example.com/x", "https://u:***@ops.example.com/x"),
        ("https://ops.example.com/hooks/@me?key=s3cret", "https://ops.example.com/hooks/@me?***"),
        ("https://ops.example.com:8443/x", "https://ops.example.com:8443/x"),
        ("", ""),
    ],
)
def test_a_url_is_shown_without_what_it_may_hide(url: str, as_shown: str) -> None:
    """However it was written: it is also shown for being wrong."""
    assert shown("redis_url", url) == as_shown


@pytest.mark.parametrize(
    "url",
    [
        "redis://:s3cret/part@redis:6379/0",
        "redis://:s3cret#part@redis:6379/0",
        "rediss://u:12/s3cret@redis/0",
        "redis:///0",
        "redis+sentinel://:s3cret/part@s1:26379/service",
        "redis+sentinel://:s3cret/part@s1:26379/0",
        "redis+sentinel://:s3cret@s1:x/service",
        "redis+sentinel://:s3cret#@s1/service",
    ],
)
def test_a_password_that_hides_the_host_is_refused_unseen(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No part of it is quoted, however it was cut up; and the right spelling is told."""
    monkeypatch.setenv("TOCSIN_REDIS_URL", url)
    [said] = problems()
    assert "s3cret" not in said.partition("Right:")[0]


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose files write `TOCSIN_X=` for "nothing"."""
    monkeypatch.setenv("TOCSIN_SHARDS", "")
    assert load_settings().shards == 64


def test_settings_are_frozen() -> None:
    """Nobody changes what is in force while it is in force."""
    settings = load_settings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.shards = 8


def test_the_report_names_the_calendar_data_and_misspelt_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What two operators compare when two processes disagree."""
    monkeypatch.setenv("TOCSIN_REDIS_URI", "redis://localhost")
    monkeypatch.setenv("TOCSIN_SOMETHING_ELSE_ENTIRELY", "1")
    found = report()
    assert found.versions["zone data"] == zone_data_version()
    assert found.versions["holidays"] == holiday_data_version()
    assert found.warnings == ["TOCSIN_REDIS_URI is no setting; did you mean TOCSIN_REDIS_URL?"]


def test_each_service_has_a_health_port_of_its_own() -> None:
    """Four services on one machine do not meet by default."""
    settings = load_settings()
    services: tuple[Service, ...] = ("scheduler", "scanner", "expander", "dispatcher")
    ports = {settings.http_port(service) for service in services}
    assert ports == {9101, 9102, 9103, 9104}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RULE_MIN_INTERVAL", "500ms"),
        ("RULE_MIN_INTERVAL", "2d"),
        ("SCHEDULE_HORIZON", "12h"),
        ("SCHEDULE_HORIZON", "7300d"),
    ],
)
def test_a_limit_on_schedules_stays_within_what_can_be_stored(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """The error says what is right."""
    monkeypatch.setenv(f"TOCSIN_{name}", value)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert f"TOCSIN_{name}" in str(caught.value)
    monkeypatch.setenv(f"TOCSIN_{name}", "1d")
    assert getattr(load_settings(), name.lower()) == timedelta(days=1)


def test_a_retry_schedule_is_read_and_shown_in_the_same_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first attempt waits for nothing."""
    monkeypatch.setenv("TOCSIN_RETRY_SCHEDULE", "0s, 5s,1h30m")
    settings = load_settings()
    assert [wait.total_seconds() for wait in settings.retry_schedule] == [0, 5, 5_400]
    assert shown("retry_schedule", settings.retry_schedule) == "0s,5s,1h30m"
    for wrong in ("5s,10s", "0s,4d", "0s,5"):
        monkeypatch.setenv("TOCSIN_RETRY_SCHEDULE", wrong)
        with pytest.raises(ConfigError, match="TOCSIN_RETRY_SCHEDULE"):
            load_settings()

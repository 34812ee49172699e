"""Configuration and choices of the local servers: the parts without I/O."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from reminders.localstack.cassandra import (
    LOGGING,
    CassandraSettings,
    command_line,
    render,
    tuning_from_environment,
)
from reminders.localstack.failure import StepFailedError, tail
from reminders.localstack.probe import split_host_port
from reminders.localstack.provide import given_hosts, given_url
from reminders.localstack.redis import (
    RedisSettings,
    SentinelSettings,
    render_sentinel,
    version_of,
)
from reminders.localstack.redis import render as render_redis
from reminders.localstack.runtime import LIST, cache_dir, java_major, pinned_jars


def node(**changes: object) -> CassandraSettings:
    """A node's settings, with changes."""
    defaults = {
        "directory": Path("/d"),
        "address": "127.0.0.2",
        "cql_port": 9043,
        "storage_port": 7001,
    }
    return CassandraSettings(**{**defaults, **changes})  # type: ignore[arg-type]


def test_a_node_alone_is_its_own_seed_and_waits_for_no_ring() -> None:
    """Addresses and ports reach the configuration, and the start skips the ring delay."""
    rendered = render(node())
    assert "- class_name: org.apache.cassandra.locator.SimpleSeedProvider" in rendered
    assert 'seeds: "127.0.0.2:7001"' in rendered
    assert (
        "listen_address: 127.0.0.2\nrpc_address: 127.0.0.2\nnative_transport_port: 9043\n"
        in rendered
    )
    assert "-Dcassandra.ring_delay_ms=0" in command_line(Path("/java"), [], node())


def test_a_node_of_a_ring_names_its_seeds_and_keeps_the_ring_delay() -> None:
    """Skipping the delay is only right for a node that is alone."""
    ring = node(seeds=("127.0.0.1", "127.0.0.2"))
    assert 'seeds: "127.0.0.1:7001,127.0.0.2:7001"' in render(ring)
    assert "-Dcassandra.ring_delay_ms=0" not in command_line(Path("/java"), [], ring)


def test_a_local_node_syncs_before_it_answers_unless_told_otherwise() -> None:
    """The default must not lose acknowledged writes at a kill -9."""
    assert "\ncommitlog_sync: batch\n" in render(node())
    assert "\ncommitlog_sync: periodic\n" in render(node(commitlog_sync="periodic"))


def test_the_class_path_holds_every_jar_and_the_heap_is_fixed() -> None:
    """The command line is complete."""
    command = command_line(Path("/java"), [Path("/a.jar"), Path("/b.jar")], node(heap="512M"))
    assert command[:3] == ["/java", "-Xms512M", "-Xmx512M"]
    assert command[command.index("-cp") + 1] == "/a.jar:/b.jar"


def test_logging_is_well_formed() -> None:
    """A typo in the XML would silence the log that failures are explained with."""
    assert ET.fromstring(LOGGING.format(directory="/d")).tag == "configuration"


@pytest.mark.parametrize(
    ("name", "value"),
    [("TOCSIN_CASSANDRA_HEAP", "lots"), ("TOCSIN_CASSANDRA_COMMITLOG_SYNC", "never")],
)
def test_a_tuning_that_means_nothing_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """The message says which variable is wrong."""
    monkeypatch.setenv(name, value)
    with pytest.raises(StepFailedError, match=name):
        tuning_from_environment()


def test_redis_keeps_what_it_acknowledged_and_evicts_nothing() -> None:
    """The settings that durability rests on."""
    rendered = render_redis(RedisSettings(directory=Path("/d e"), host="127.0.0.1", port=6380))
    for line in ("port 6380", 'dir "/d e"', "appendonly yes", "maxmemory-policy noeviction"):
        assert line in rendered.splitlines()


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", (7, 0, 15)),
        ("Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64", (6, 2, 14)),
        ("something else", ()),
    ],
)
def test_redis_version(output: str, version: tuple[int, ...]) -> None:
    """What cannot be read is older than everything."""
    assert version_of(output) == version


def test_a_replicated_redis_stops_before_it_is_replaced() -> None:
    """An isolated master takes no writes after 2 to 3 s; sentinels replace it after 3 s."""
    alone = RedisSettings(directory=Path("/d"), host="127.0.0.1", port=6380)
    assert "min-replicas" not in render_redis(alone)
    replica = RedisSettings(
        directory=Path("/d"),
        host="127.0.0.1",
        port=6381,
        replicated=True,
        replica_of=("127.0.0.1", 6380),
    )
    rendered = render_redis(replica)
    assert "min-replicas-to-write 1\nmin-replicas-max-lag 2\n" in rendered
    assert "replicaof 127.0.0.1 6380\n" in rendered
    sentinel = SentinelSettings(
        directory=Path("/d"),
        host="127.0.0.1",
        port=26380,
        service="tocsin",
        master=("127.0.0.1", 6380),
        quorum=2,
    )
    rendered = render_sentinel(sentinel)
    assert "sentinel monitor tocsin 127.0.0.1 6380 2\n" in rendered
    assert "sentinel down-after-milliseconds tocsin 3000\n" in rendered


def test_hints_can_be_left_out() -> None:
    """A node that was down then comes back with old data."""
    assert "hinted_handoff_enabled: true\n" in render(node())
    assert "hinted_handoff_enabled: false\n" in render(node(hints=False))


@pytest.mark.parametrize(
    ("output", "major"),
    [('openjdk version "17.0.9" 2023-10-17', 17), ('java version "1.8.0_292"', 8), ("", None)],
)
def test_java_major(output: str, major: int | None) -> None:
    """Old and new ways of counting."""
    assert java_major(output) == major


@pytest.mark.parametrize("unset", [None, "", "  "])
def test_no_address_means_a_local_server(unset: str | None) -> None:
    """An empty variable is an unset one."""
    assert given_hosts(unset) is None
    assert given_url(unset) is None


def test_given_addresses_are_normalized() -> None:
    """Spaces around the parts do not matter."""
    assert given_hosts(" a:1, [::1]:9042") == "a:1,[::1]:9042"
    assert split_host_port("[::1]:9042") == ("::1", 9042)
    assert given_url(" redis://h:1/0 ") == "redis://h:1/0"


@pytest.mark.parametrize("wrong", ["h", "h:", ":1", "h:x", "h:0", "h:70000", "a:1,,b:1"])
def test_a_wrong_cassandra_address_names_the_variable(wrong: str) -> None:
    """Every malformed part is refused."""
    with pytest.raises(StepFailedError, match="TOCSIN_CASSANDRA_HOSTS"):
        given_hosts(wrong)


@pytest.mark.parametrize("wrong", ["h:6379", "http://:secret@h", "redis://"])
def test_a_wrong_redis_url_names_the_variable_and_not_its_value(wrong: str) -> None:
    """A URL may hold a password: it is not repeated."""
    with pytest.raises(StepFailedError, match="TOCSIN_REDIS_URL") as caught:
        given_url(wrong)
    assert "secret" not in str(caught.value)


def test_every_jar_is_pinned_once() -> None:
    """The list is well formed, and no two jars share a file name."""
    jars = pinned_jars(LIST.read_text())
    assert len({jar.file_name for jar in jars}) == len(jars)
    assert all(len(jar.sha256) == 64 for jar in jars)
    assert "cassandra-all-5.0.6.jar" in {jar.file_name for jar in jars}


def test_a_classifier_is_part_of_the_file_name() -> None:
    """As Maven names it."""
    (jar,) = pinned_jars("00  g:a:1.0:linux\n")
    assert (jar.file_name, jar.coordinate) == ("a-1.0-linux.jar", "g:a:1.0:linux")


def test_the_cache_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TOCSIN_CACHE_DIR wins over the XDG folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.delenv("TOCSIN_CACHE_DIR", raising=False)
    assert cache_dir() == Path("/xdg/tocsin")
    monkeypatch.setenv("TOCSIN_CACHE_DIR", str(tmp_path))
    assert cache_dir() == tmp_path


def test_a_failure_shows_the_end_of_the_log(tmp_path: Path) -> None:
    """The last lines, under the path; missing logs are left out."""
    log = tmp_path / "x.log"
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    shown = tail(tmp_path / "missing", log)
    assert str(log) in shown
    assert "line 99" in shown
    assert "line 80" not in shown

"""`tocsin shards` as a person and a check run it: real commands, real servers, a real scanner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from reminders.localstack import Endpoints
from reminders.localstack.ports import free_port
from reminders.storage.session import connect
from reminders.storage.settings import StorageSettings
from tests.contract.coordination.support import RedisServer, find_servers, no_server, start_server

if TYPE_CHECKING:
    from pathlib import Path

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Empty: nobody leads anything on it."""
    servers = find_servers()
    if not servers:
        no_server()
    server = start_server(servers[0], tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def environment(stack: Endpoints, redis_server: RedisServer, tmp_path_factory: Any) -> Any:
    """Of every command: a keyspace of its own."""
    folder: Path = tmp_path_factory.mktemp("cli")
    keyspace = f"shards_{uuid4().hex[:12]}"
    yield os.environ | {
        "TOCSIN_CASSANDRA_HOSTS": stack.cassandra_hosts,
        "TOCSIN_CASSANDRA_KEYSPACE": keyspace,
        "TOCSIN_REDIS_URL": redis_server.url,
        "TOCSIN_SHARDS": "4",
        "TOCSIN_CONFIG_FILE": str(folder / "none.toml"),
        "TOCSIN_SCANNER_HTTP_PORT": str(free_port()),
    }
    settings = StorageSettings(hosts=tuple(stack.cassandra_hosts.split(",")))
    cluster, session = connect(settings, None)
    session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)
    cluster.shutdown()


@pytest.fixture(scope="module")
def run(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs `tocsin …` after the schema is there."""
    folder = tmp_path_factory.mktemp("cwd")
    environment["TOCSIN_CONFIG_FILE"] = str(folder / "tocsin.toml")
    (folder / "tocsin.toml").write_text("")

    def tocsin(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "reminders.cli", *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    migrated = tocsin("migrate")
    assert migrated.returncode == 0, migrated.stderr
    return tocsin


def test_shards_tells_who_leads_and_fails_where_nobody_does(
    run: Run, environment: dict[str, str]
) -> None:
    """Without a scanner the exit code is 1 and the shards are named; with one it is 0."""
    shown = run("shards")
    assert shown.returncode == 1
    assert "nobody leads shards 0, 1, 2, 3" in shown.stderr
    assert shown.stdout.count("nobody") == 4
    command = [sys.executable, "-m", "scanner"]
    scanner = subprocess.Popen(command, env=environment | {"PYTHONTZPATH": ""})
    try:
        until = time.monotonic() + 60
        told = run("shards", "--json")
        while told.returncode and time.monotonic() < until:
            told = run("shards", "--json")
        assert told.returncode == 0, told.stderr
        shards = json.loads(told.stdout)
        assert [one["shard"] for one in shards] == [0, 1, 2, 3]
        assert len({one["holder"] for one in shards}) == 1
        assert all(one["unsettled"] == 0 and not one["refused"] for one in shards)
    finally:
        scanner.terminate()
        scanner.wait(timeout=30)


def test_rebuild_runs_on_a_keyspace_that_needs_none(run: Run) -> None:
    """It says what it did."""
    rebuilt = run("rebuild")
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert "0 reminders looked at, 0 entries written again" in rebuilt.stdout

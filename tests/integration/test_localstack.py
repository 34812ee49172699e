"""The local servers are real: they answer queries, keep their data, and end with their parent."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reminders.localstack import Endpoints, StepFailedError, provide
from reminders.localstack.probe import cassandra_answers, redis_answers, split_host_port

STOP_S = 30.0


def redis_command(url: str, *words: str) -> bytes:
    """One inline command over a socket, and the first bytes of its answer."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 5) as connection:
        connection.sendall((" ".join(words) + "\r\n").encode())
        return connection.recv(4096)


def wait_until_gone(url: str) -> bool:
    """Whether the server stopped answering in time."""
    deadline = time.monotonic() + STOP_S
    while redis_answers(url):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def only_redis(stack: Endpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second Cassandra would take seconds: `provide` gets the running one, and starts a Redis."""
    monkeypatch.setenv("TOCSIN_CASSANDRA_HOSTS", stack.cassandra_hosts)
    monkeypatch.delenv("TOCSIN_REDIS_URL", raising=False)


def test_both_servers_answer_a_query(stack: Endpoints) -> None:
    """The addresses handed out are of servers that execute commands."""
    assert all(cassandra_answers(*split_host_port(x)) for x in stack.cassandra_hosts.split(","))
    assert redis_answers(stack.redis_url)


def test_redis_is_recent_and_never_evicts(stack: Endpoints) -> None:
    """Leases must not be evicted, and the scripts need 6.2."""
    assert b"noeviction" in redis_command(stack.redis_url, "CONFIG", "GET", "maxmemory-policy")
    version = redis_command(stack.redis_url, "INFO", "server").split(b"redis_version:")[1]
    assert tuple(map(int, version.split(b"\r\n")[0].split(b".")[:2])) >= (6, 2)


@pytest.mark.usefixtures("only_redis")
def test_data_and_port_survive_a_second_run_and_fresh_empties_it(tmp_path: Path) -> None:
    """Without `fresh` the next run finds the data at the same address; with it, nothing."""
    with provide(tmp_path, progress=print) as first:
        assert redis_command(first.redis_url, "SET", "kept", "yes") == b"+OK\r\n"
    assert not redis_answers(first.redis_url)
    with provide(tmp_path, progress=print) as second:
        assert second == first
        assert redis_command(second.redis_url, "GET", "kept") == b"$3\r\nyes\r\n"
    with provide(tmp_path, progress=print, fresh=True) as third:
        assert redis_command(third.redis_url, "GET", "kept") == b"$-1\r\n"


@pytest.mark.usefixtures("only_redis")
def test_a_second_run_on_the_same_folder_is_told_who_holds_it(tmp_path: Path) -> None:
    """The error names the process that uses the data, and a way out."""
    with (
        provide(tmp_path, progress=print),
        pytest.raises(StepFailedError) as caught,
        provide(tmp_path, progress=print),
    ):
        pass
    assert f"process {os.getpid()}" in caught.value.why
    assert "another data folder" in caught.value.remedy


@pytest.mark.usefixtures("only_redis")
def test_a_taken_port_is_reported(tmp_path: Path) -> None:
    """A port asked for and taken is an error that names it, and the folder is free afterwards."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(StepFailedError, match=f"port {port}"),
            provide(tmp_path, progress=print, redis_port=port),
        ):
            pass
    with provide(tmp_path, progress=print, redis_port=port) as endpoints:
        assert endpoints.redis_url == f"redis://127.0.0.1:{port}/0"


@pytest.mark.usefixtures("only_redis")
@pytest.mark.parametrize("killed_by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_servers_end_with_their_parent(tmp_path: Path, killed_by: signal.Signals) -> None:
    """However the parent ends, its servers end too, and the folder is free for the next run."""
    command = [sys.executable, "-m", "reminders.localstack", "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            lines = [parent.stdout.readline() for _ in range(2)]
            url = lines[1].removeprefix("export TOCSIN_REDIS_URL=").strip()
            assert redis_answers(url)
            parent.send_signal(killed_by)
            code = parent.wait(STOP_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                parent.kill()
    if killed_by is not signal.SIGKILL:
        assert (code, redis_answers(url)) == (0, False), "it must wait for its servers"
    assert wait_until_gone(url)
    with provide(tmp_path, progress=print) as endpoints:
        assert endpoints.redis_url == url
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


def test_an_address_that_does_not_answer_is_an_error_that_names_the_variable(
    tmp_path: Path, stack: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong address is not replaced silently by a local server."""
    monkeypatch.setenv("TOCSIN_CASSANDRA_HOSTS", stack.cassandra_hosts)
    monkeypatch.setenv("TOCSIN_REDIS_URL", "redis://127.0.0.1:1/0")
    module = importlib.import_module("reminders.localstack.provide")  # the function hides it
    monkeypatch.setattr(module, "GIVEN_TIMEOUT_S", 0.0)
    with (
        pytest.raises(StepFailedError, match="TOCSIN_REDIS_URL"),
        provide(tmp_path, progress=print),
    ):
        pass

"""How a service process starts, drains and dies: real processes, since signals are the matter."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SERVICE = """
import asyncio, contextlib, sys
from reminders.process import run_service

mode = sys.argv[1]

class Service:
    async def run(self, stop):
        if mode == "dies":
            async with asyncio.TaskGroup() as group:
                group.create_task(self.fail())
                group.create_task(stop.wait())
        if mode == "ends":
            return
        await stop.wait()
        if mode == "hangs":
            await asyncio.Event().wait()

    async def fail(self):
        raise ValueError("the cause")

    def problems(self):
        return ["no lease"] if mode == "unready" else []

@contextlib.asynccontextmanager
async def build(settings, stop):
    if mode == "slow":
        await asyncio.Event().wait()
    yield Service()

run_service("scanner", build)
"""


class Process:
    """The service above, in one of its modes, with its log."""

    def __init__(self, script: Path, mode: str, environment: dict[str, str]) -> None:
        self.child = subprocess.Popen(
            [sys.executable, str(script), mode],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.events: list[dict[str, Any]] = []

    def until(self, event: str) -> dict[str, Any]:
        """Reads the log up to this event."""
        assert self.child.stderr is not None
        for line in self.child.stderr:
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == event:
                return self.events[-1]
        pytest.fail(f"{event} never came: {self.events}")

    def ready(self) -> tuple[int, list[str]]:
        """What /ready says."""
        port = next(each for each in self.events if "http_port" in each)["http_port"]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready") as answer:
                return answer.status, json.load(answer)["problems"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)["problems"]

    def end(self) -> int:
        """Waits for its exit code."""
        assert self.child.stderr is not None
        self.events += [json.loads(line) for line in self.child.stderr]
        return self.child.wait(timeout=20)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Starts the service; whatever is left is killed."""
    script = tmp_path / "service.py"
    script.write_text(SERVICE)
    started: list[Process] = []

    def call(mode: str, **changes: str) -> Process:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TOCSIN_")}
        environment |= {"TOCSIN_SCANNER_HTTP_PORT": "0", **changes}
        started.append(Process(script, mode, environment))
        return started[-1]

    yield call
    for process in started:
        process.child.kill()
        process.child.wait()
        assert process.child.stderr is not None
        process.child.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_ends_with_0(start: Any, number: signal.Signals) -> None:
    """Ready while it runs, 503 from the signal on."""
    process = start("runs")
    process.until("service.running")
    assert process.ready() == (200, [])
    process.child.send_signal(number)
    assert process.end() == 0
    assert [each["event"] for each in process.events][-3:] == [
        "service.stopping",
        "service.drained",
        "service.stopped",
    ]


def test_a_second_signal_ends_it_at_once(start: Any) -> None:
    """A drain that hangs can be cut short."""
    process = start("hangs")
    process.until("service.running")
    process.child.send_signal(signal.SIGTERM)
    process.until("service.stopping")
    assert process.ready() == (503, ["stopping"])
    process.child.send_signal(signal.SIGTERM)
    assert process.end() == 128 + signal.SIGTERM


def test_a_signal_while_starting_ends_it_with_0(start: Any) -> None:
    """A store that does not answer must not hold up a shutdown."""
    process = start("slow")
    process.until("service.starting")
    assert process.ready() == (503, ["starting"])
    process.child.send_signal(signal.SIGTERM)
    assert process.end() == 0


def test_a_services_own_problems_are_its_readiness(start: Any) -> None:
    """Running is not ready."""
    process = start("unready")
    process.until("service.running")
    assert process.ready() == (503, ["no lease"])


def test_a_task_that_dies_ends_the_process_with_the_cause(start: Any) -> None:
    """Exit code 1, the cause in the log, with its traceback."""
    process = start("dies")
    assert process.end() == 1
    failed = process.events[-1]
    assert failed["event"] == "service.failed"
    assert failed["cause"] == "ValueError: the cause"
    assert "in fail" in failed["exception"]


def test_a_service_that_ends_by_itself_is_a_failure(start: Any) -> None:
    """Silence would look like health."""
    process = start("ends")
    assert process.end() == 1
    assert process.events[-1]["cause"] == "RuntimeError: scanner ended by itself"


def test_a_port_that_is_taken_names_its_variable(start: Any) -> None:
    """With what to do about it."""
    first = start("runs")
    first.until("service.running")
    port = first.events[0]["http_port"]
    second = start("runs", TOCSIN_SCANNER_HTTP_PORT=str(port))
    assert second.end() == 1
    assert f"TOCSIN_SCANNER_HTTP_PORT={port}: " in second.events[-1]["cause"]
    assert "exception" not in second.events[-1]


def test_a_wrong_setting_ends_it_before_anything_starts(start: Any) -> None:
    """For people, so no JSON."""
    process = start("runs", TOCSIN_SHARDS="many")
    _, err = process.child.communicate(timeout=20)
    assert process.child.returncode == 1
    assert err.startswith("scanner: wrong configuration\nTOCSIN_SHARDS='many' (from environment)")

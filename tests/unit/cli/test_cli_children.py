"""Services as child processes: all ready or all stopped. Small stand-ins, real processes."""

import os
import sys
from pathlib import Path

import pytest

from reminders.cli import children
from reminders.cli.children import SERVICES, running
from reminders.cli.failure import CommandError
from reminders.localstack.ports import free_port
from reminders.localstack.process import start

STAND_IN = """
import http.server, json, os, sys
name = sys.argv[1]
if name == os.environ.get("DIES"):
    sys.exit("the cause")

class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"problems": json.loads(os.environ["PROBLEMS"])}).encode())

http.server.HTTPServer(("127.0.0.1", int(os.environ[name.upper()])), Ready).serve_forever()
"""


@pytest.fixture
def ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Free ones, for stand-ins that take the place of the services."""
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    monkeypatch.setattr(
        children, "module_command", lambda name: [sys.executable, "-S", str(script), name]
    )
    return {service: free_port() for service in SERVICES}


def environment(ports: dict[str, int], **more: str) -> dict[str, str]:
    """What the stand-ins are told."""
    return {service.upper(): str(port) for service, port in ports.items()} | {
        "PROBLEMS": "[]",
        **more,
    }


def gone(pid: int) -> bool:
    """Whether there is no such process any more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_all_services_are_ready_inside_and_gone_after(
    ports: dict[str, int], tmp_path: Path
) -> None:
    """Stopped by whatever ends the block, and each with a log of its own."""
    pids: list[int] = []

    def interrupted() -> None:
        quiet = running(environment(ports), ports, tmp_path / "logs", lambda _: None)
        with quiet as services:
            assert [child.service for child in services] == list(SERVICES)
            assert all(child.problems() == [] for child in services)
            pids.extend(child.process.process.pid for child in services)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(pids) == len(SERVICES)
    assert all(gone(pid) for pid in pids)
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == sorted(
        f"{service}.log" for service in SERVICES
    )


def test_one_that_dies_is_reported_with_its_log_and_ends_the_others(
    ports: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a stack would look alive."""
    started: list[int] = []

    def recording(*arguments: object, **more: object) -> object:
        process = start(*arguments, **more)  # type: ignore[arg-type]
        started.append(process.process.pid)
        return process

    monkeypatch.setattr(children, "start", recording)
    block = running(environment(ports, DIES="expander"), ports, tmp_path / "logs", lambda _: None)
    with pytest.raises(CommandError) as caught, block:
        pytest.fail("it said that all were ready")
    assert caught.value.lines[0] == "expander ended with exit code 1"
    assert "the cause" in caught.value.lines[1]
    assert len(started) == len(SERVICES)
    assert all(gone(pid) for pid in started)


def test_one_that_never_gets_ready_is_named_with_its_reasons(
    ports: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait has an end, and says what it waited for."""
    monkeypatch.setattr(children, "READY_TIMEOUT_S", 1.0)
    monkeypatch.setattr(children, "REPORT_EVERY_S", 0.2)
    said: list[str] = []
    unready = environment(ports, PROBLEMS='["no lease"]')
    block = running(unready, ports, tmp_path / "logs", said.append)
    with pytest.raises(CommandError, match="not ready after 1 s") as caught, block:
        pytest.fail("it said that all were ready")
    assert "scanner: no lease" in caught.value.lines
    assert any("waiting for" in line for line in said)

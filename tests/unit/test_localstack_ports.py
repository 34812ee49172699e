"""Free ports: of several processes that look at once, and beside outgoing connections."""

import socket
from pathlib import Path

import pytest

from reminders.localstack import ports


def test_no_outgoing_connection_is_given_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are below those that the kernel gives to connections."""
    told = tmp_path / "range"
    told.write_text("20000\t60999\n")
    monkeypatch.setattr(ports, "_EPHEMERAL", told)
    assert all(ports.FIRST <= ports.free_port() < 20_000 for _ in range(50))


@pytest.mark.parametrize("said", ["15500 60999", "", "nonsense", None])
def test_where_too_few_are_left_the_kernel_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None
) -> None:
    """Or where it does not say which it gives."""
    told = tmp_path / "range"
    if said is not None:
        told.write_text(said)
    monkeypatch.setattr(ports, "_EPHEMERAL", told)
    assert ports.is_free(ports.HOST, ports.free_port())


def test_one_that_is_listened_on_is_not_free() -> None:
    """Whoever listens keeps it."""
    with socket.create_server((ports.HOST, 0)) as server:
        assert not ports.is_free(ports.HOST, server.getsockname()[1])

"""What all unit tests share: nothing in them is drawn anew in each run."""

from random import Random

import pytest

from reminders import reminder_id


@pytest.fixture(autouse=True)
def _drawn_alike(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reminder ids decide jitter and the waits of retries: the same test draws the same ones."""
    monkeypatch.setattr(reminder_id, "token_bytes", Random(request.node.nodeid).randbytes)

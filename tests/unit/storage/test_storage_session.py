"""The policies of requests, as the driver is told them."""

from typing import Any
from unittest.mock import create_autospec

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session

from reminders.storage.session import ASK_ANOTHER_AFTER_S, make_cluster
from reminders.storage.settings import StorageSettings
from reminders.storage.wire import CONDITIONAL_TIMEOUT_S, Mutation, batch


@pytest.mark.parametrize(
    ("conditional", "first_timer_s"), [(False, ASK_ANOTHER_AFTER_S), (True, CONDITIONAL_TIMEOUT_S)]
)
def test_only_stamped_writes_are_asked_of_another_node(
    monkeypatch: pytest.MonkeyPatch, conditional: bool, first_timer_s: float
) -> None:
    """A coordinator that hangs costs a second; a conditional batch may have applied, so it is asked
    once.
    """
    cluster = make_cluster(StorageSettings())
    profile = cluster.profile_manager.profiles[EXEC_PROFILE_DEFAULT]
    session: Any = create_autospec(Session, instance=True)
    session.cluster = cluster
    timers: list[float] = []
    monkeypatch.setattr(cluster.connection_class, "create_timer", lambda s, _: timers.append(s))
    batch(session, profile, [Mutation(b"", 1)], conditional=conditional)
    assert timers == pytest.approx([first_timer_s], abs=0.2)

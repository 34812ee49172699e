"""A few of the scenarios, on one Cassandra and one Redis: what every change must pass.

The whole is `make chaos`, on several of each.
"""

from collections.abc import Iterator

import pytest

from reminders.localstack import Endpoints
from tests.chaos import scenes_processes, scenes_redis
from tests.chaos.playing import SCENARIOS, Scenario, play, world
from tests.chaos.report import details
from tests.chaos.stage import World

SHORT = (
    scenes_processes.scanner_killed,
    scenes_processes.dispatcher_killed,
    scenes_redis.flushed,
)
NAMES = ("scheduler", "scanner", "scanner-2", "expander", "dispatcher", "dispatcher-2")
PATIENCE = 3.0
"""Machines that check changes do other things, too."""
DATABASE = 1
"""The other suites' services, which may still run, use 0."""


@pytest.fixture(scope="module")
def the_world(
    stack: Endpoints, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[World]:
    """Two of what is killed, one of the rest."""
    url = f"{stack.redis_url.rpartition('/')[0]}/{DATABASE}"
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    capture = request.config.pluginmanager.get_plugin("capturemanager")

    def progress(text: str) -> None:
        if reporter is not None and capture is not None:
            with capture.global_and_fixture_disabled():
                reporter.write_line(f"[chaos] {text}")

    with world(
        Endpoints(cassandra_hosts=stack.cassandra_hosts, redis_url=url),
        tmp_path_factory.mktemp("chaos"),
        NAMES,
        progress,
        redis_url=lambda: url,
        settle_grace="20s",
    ) as made:
        yield made


@pytest.mark.parametrize(
    "scenario",
    [one for one in SCENARIOS if one.play in SHORT],
    ids=lambda one: one.play.__name__,
)
def test_every_promise_is_kept(the_world: World, scenario: Scenario) -> None:
    """Nothing lost, no repeat without a cause, nothing early, everything settled."""
    row = play(the_world, scenario, patience=PATIENCE)
    assert row.verdict.held, "\n".join(details(row))

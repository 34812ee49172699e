"""What all suites share: real servers, started once for a run, and the marker of each folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reminders.localstack import Endpoints, StepFailedError, provide

SUITES = ("unit", "contract", "integration", "acceptance", "simulation", "chaos")
SERVED = ("contract", "integration", "acceptance", "chaos")
DATA_VARIABLE = "TOCSIN_TEST_DATA"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its suite: `pytest -m "not acceptance"`.

    Those that need servers begin first: they wait most of the time, and another worker
    (`pytest -n 2`) computes meanwhile.
    """
    tests = Path(__file__).parent
    suites = {
        item: item.path.relative_to(tests).parts[0] if item.path.is_relative_to(tests) else ""
        for item in items
    }
    for item, suite in suites.items():
        if suite in SUITES:
            item.add_marker(suite)
    items.sort(key=lambda item: suites[item] not in SERVED)


@pytest.fixture(scope="session")
def stack(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Endpoints]:
    """Addresses of a real Cassandra and Redis, empty if they are local processes.

    TOCSIN_CASSANDRA_HOSTS and TOCSIN_REDIS_URL are used where set; TOCSIN_TEST_DATA names the data
    folder of local servers, to look at afterwards. Where servers cannot be had the tests that need
    them are skipped, except in CI: there they fail.
    """
    given = os.environ.get(DATA_VARIABLE)
    data_dir = Path(given) if given else tmp_path_factory.mktemp("stack")
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    capture = request.config.pluginmanager.get_plugin("capturemanager")

    def progress(line: str) -> None:
        if reporter is not None and capture is not None:
            with capture.global_and_fixture_disabled():
                reporter.write_line(f"[stack] {line}")

    servers = provide(data_dir, progress=progress, fresh=True)
    try:
        endpoints = servers.__enter__()
    except StepFailedError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    try:
        yield endpoints
    finally:
        servers.__exit__(None, None, None)

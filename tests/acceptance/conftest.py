"""One running system for the whole suite; tests that stop a part of it start it again."""

from collections.abc import Iterator

import pytest

from reminders.localstack import Endpoints
from tests.acceptance.system import SERVICES, Receiver, System, system


@pytest.fixture(scope="session")
def tocsin(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Everything runs, two scanners among it."""
    with system(stack, tmp_path_factory.mktemp("system")) as made:
        made.start(*SERVICES)
        yield made


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint of the test's own."""
    made = Receiver()
    yield made
    made.close()

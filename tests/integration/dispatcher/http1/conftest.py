"""The tests here run on both event loops: the services on uvloop, most tests on asyncio's own."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """By the name in the test's id."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}

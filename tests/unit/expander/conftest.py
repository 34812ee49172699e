"""A fresh world for each test."""

import pytest

from tests.unit.lifecycle.world import World


@pytest.fixture
async def world() -> World:
    """At noon, with one shard, which the test leads."""
    return await World.led()

"""A fresh world for each test."""

import pytest

from tests.unit.lifecycle.world import World


@pytest.fixture
async def world() -> World:
    """At noon, with one shard, which has had a scanner."""
    return await World.led()

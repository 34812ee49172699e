"""A fresh world for each test; its scanners take the leases themselves."""

import pytest

from tests.unit.lifecycle.world import World


@pytest.fixture
def world() -> World:
    """At noon, with one shard."""
    return World()

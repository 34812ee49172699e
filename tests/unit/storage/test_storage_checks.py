"""Whether a keyspace has enough copies: the verdicts. On a real server: see the integration."""

import pytest

from reminders.findings import Severity
from reminders.storage.checks import judge

REFUSE, WARNING = Severity.REFUSE, Severity.WARNING
SIMPLE = "org.apache.cassandra.locator.SimpleStrategy"
BY_CENTRE = "org.apache.cassandra.locator.NetworkTopologyStrategy"


def simple(copies: int) -> dict[str, str]:
    """As the schema has it."""
    return {"class": SIMPLE, "replication_factor": str(copies)}


def by_centre(**copies: str) -> dict[str, str]:
    """As the schema has it."""
    return {"class": BY_CENTRE, **copies}


@pytest.mark.parametrize(
    ("replication", "nodes", "expected"),
    [
        (by_centre(dc1="3"), {"dc1": 3}, {}),
        (by_centre(dc1="3", dc2="3"), {"dc1": 3, "dc2": 6}, {}),
        (by_centre(dc1="5"), {"dc1": 3}, {}),
        (by_centre(dc1="3/1"), {"dc1": 4}, {}),
        (simple(3), {"dc1": 3}, {}),
        (simple(1), {"dc1": 1}, {"replication_single": WARNING}),
        (by_centre(dc1="1"), {"dc1": 1, "dc2": 1}, {"replication_single": WARNING}),
        (simple(1), {"dc1": 3}, {"replication_low": REFUSE}),
        (by_centre(dc1="1"), {"dc1": 2}, {"replication_low": REFUSE}),
        (by_centre(dc1="2"), {"dc1": 3}, {"replication_low": WARNING}),
        (simple(3), {"dc1": 1}, {"replication_too_high": REFUSE}),
        (by_centre(dc1="2"), {"dc1": 1}, {"replication_too_high": REFUSE}),
        (by_centre(dc2="3"), {"dc1": 3, "dc2": 3}, {"replication_elsewhere": REFUSE}),
        (simple(3), {"dc1": 3, "dc2": 3}, {"replication_simple": REFUSE}),
    ],
)
def test_verdicts(
    replication: dict[str, str], nodes: dict[str, int], expected: dict[str, Severity]
) -> None:
    """By the copies in the local data centre; the remedy names the statement that helps."""
    found = judge("tocsin", replication, nodes, "dc1")
    assert {one.name: one.severity for one in found} == expected
    for one in found:
        assert "tocsin" in one.remedy
        if one.severity is REFUSE:
            assert "ALTER KEYSPACE tocsin" in one.remedy

"""The statements themselves: rules that every one of them must keep."""

import re

import pytest

from reminders.storage.migrate import known
from reminders.storage.statements import Statement, load, parse, split

STATEMENTS = load()
PLAIN_WRITES = [
    one for one in STATEMENTS.values() if not one.text.startswith("SELECT") and one.idempotent
]


def test_parse() -> None:
    """Name, description, consistency, text."""
    source = "-- a file\n\n-- name: one\n-- Does\n-- this.\nSELECT 1\nFROM a;\n\n-- name: two\n"
    source += "-- consistency: LOCAL_SERIAL\n-- That.\nSELECT 2;\n"
    assert parse(source) == [
        Statement(name="one", description="Does this.", text="SELECT 1\nFROM a;"),
        Statement(name="two", description="That.", text="SELECT 2;", consistency="LOCAL_SERIAL"),
    ]


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=list(STATEMENTS))
def test_every_statement_is_described(statement: Statement) -> None:
    """In words."""
    assert statement.description.endswith(".")
    assert statement.text.endswith(";")


@pytest.mark.parametrize("statement", PLAIN_WRITES, ids=lambda one: one.name)
def test_every_plain_write_has_its_stamp(statement: Statement) -> None:
    """Else it would get the server's, and sending it again would not be the same write."""
    assert re.search(r"USING TIMESTAMP \?", statement.text)


def test_inserts_never_bind_fate_or_outcomes() -> None:
    """A bound null erases."""
    for statement in STATEMENTS.values():
        if statement.text.startswith("INSERT INTO due"):
            assert not re.search(r"fate|handled|expanded", statement.text)


def test_lwts_have_no_stamp() -> None:
    """Cassandra refuses one."""
    lwts = {name: one for name, one in STATEMENTS.items() if not one.idempotent}
    assert {"dedup_claim", "change_begin", "recipient_put", "recipient_delete"} <= lwts.keys()
    assert not any("TIMESTAMP" in one.text for one in lwts.values())


def test_reads_are_limited_or_of_single_rows() -> None:
    """Nothing scans a table: each names its partition."""
    for statement in STATEMENTS.values():
        if statement.text.startswith("SELECT"):
            assert "WHERE" in statement.text
            assert "ALLOW FILTERING" not in statement.text


def test_migrations_are_numbered_without_gaps() -> None:
    """From 1; each statement can be repeated."""
    assert [one.number for one in known()] == list(range(1, len(known()) + 1))
    for migration in known():
        for statement in split(migration.source):
            assert " IF NOT EXISTS " in statement

"""The error for a keyspace that must not be used as it is."""

from dataclasses import dataclass

from reminders.errors import TocsinError


@dataclass(eq=False)
class KeyspaceRefused(TocsinError):
    """Not migrated, migrated to something else, or made for another number of shards. Waiting won't
    help.
    """

    reason = "KEYSPACE_REFUSED"
    keyspace: str = ""
    problem: str = ""

    def __str__(self) -> str:
        return f"keyspace {self.keyspace!r} {self.problem}"

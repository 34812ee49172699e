"""Callers' keys."""

from collections.abc import Sequence
from typing import Protocol

from reminders.model.record import DedupClaim


class DedupKeys(Protocol):
    """Who owns a caller's key."""

    async def claim(self, claims: Sequence[DedupClaim]) -> list[DedupClaim]:
        """For each, the claim that stands: its own if it was the first, else the earlier one.

        Linearizable for a key. Two claims of one key within a call: the first wins.
        """

    async def find(self, namespace: str, key: str) -> DedupClaim | None:
        """The claim that stands, if any did when this began."""

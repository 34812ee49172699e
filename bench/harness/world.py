"""What a benchmark is given."""

from dataclasses import dataclass

from bench.harness.stack import Progress, Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The stack, and how thorough to be."""

    stack: Stack
    runs: int
    quick: bool
    progress: Progress
    members: int = 100_000
    """Of the group that is cancelled."""
    subscribers: int = 100_000
    """Of the topic that is told."""
    creates: int = 1_000_000
    """Streamed in while Cassandra stops."""

    def pick(self, quick: int, full: int) -> int:
        """A size or a number of seconds."""
        return quick if self.quick else full

    def rounds(self, name: str) -> range:
        """The runs, announced."""
        self.progress(f"{name}: {self.runs} run{'s' if self.runs > 1 else ''}")
        return range(self.runs)

"""The one error of this package: a step that failed, told so that a newcomer can act on it."""

from pathlib import Path

TAIL_LINES = 15


class StepFailedError(Exception):
    """A step of providing the servers failed.

    Attributes:
        step: what was being done, as a verb phrase ("start Cassandra").
        why: the cause as far as it is known, with the end of the log where there is one.
        remedy: what the reader can do.
    """

    def __init__(self, *, step: str, why: str, remedy: str) -> None:
        self.step = step
        self.why = why
        self.remedy = remedy
        super().__init__(f"could not {step}\n  why: {why}\n  what to do: {remedy}")


def tail(*logs: Path) -> str:
    """The last lines of each log that has any, indented, under its path."""
    parts = []
    for log in logs:
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        if lines:
            parts.append(
                "\n".join([f"    the end of {log}:", *(f"      {x}" for x in lines[-TAIL_LINES:])])
            )
    return "\n".join(parts) or "    (nothing was logged)"

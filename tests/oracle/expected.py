"""What each policy must make of a local minute, read off a window of clock showings."""

from collections.abc import Iterable

from tests.oracle.clocks import Window

GAPS = ("next_valid", "shift_forward", "skip")
OVERLAPS = ("earlier", "later", "both")


def instants(window: Window, local: int, gap: str, overlap: str) -> list[int]:
    """The UTC minutes of one local minute."""
    seen = window.seen.get(local)
    if seen is not None:
        return {"earlier": seen[:1], "later": seen[-1:], "both": seen}[overlap]
    if gap == "skip":
        return []
    jump = window.jump_over(local)
    if gap == "next_valid":
        return [jump]
    # As if the clocks had gone on: by the last minute before the jump.
    before = jump - 1
    return [before + (local - window.reading(before)[0])]


def daily(window: Window, locals_: Iterable[int], gap: str, overlap: str) -> list[int]:
    """The same for several local minutes; those on one instant are one occurrence."""
    return sorted({at for local in locals_ for at in instants(window, local, gap, overlap)})


def hourly(window: Window, minute: int, begins: int, ends: int) -> list[int]:
    """The UTC minutes in [begins, ends) at which clocks show this minute of any hour."""
    return [at for at in range(begins, ends) if window.reading(at)[0] % 60 == minute]

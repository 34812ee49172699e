"""What a plan is made of: one thing that happens, at its time."""

from typing import ClassVar

from msgspec import Struct


class Item(Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """One thing that happens."""

    at: int
    fault: ClassVar[bool] = True
    """Whether it may explain that something is delivered twice."""

"""Pages of a list."""

from typing import Protocol

from msgspec import Struct

from reminders.lifecycle.problems import Problems, Reason
from scheduler.tokens import unseal

DEFAULT_PAGE = 50
MAX_PAGE = 1_000


class Window(Struct, frozen=True, kw_only=True):
    """Which part of a list."""

    scope: tuple[str, ...]
    """What the list's page tokens are bound to."""
    limit: int
    position: str
    """Empty: from the start."""


class Paged(Protocol):
    """A request for a page of a list."""

    @property
    def page_size(self) -> int:
        """0: `DEFAULT_PAGE`."""

    @property
    def page_token(self) -> str:
        """Empty: the first page."""


def read_window(request: Paged, scope: tuple[str, ...], problems: Problems) -> Window:
    """The part that is asked for of the list named `scope`: its kind, then what it is of."""
    limit = request.page_size or DEFAULT_PAGE
    if not 1 <= limit <= MAX_PAGE:
        problems.add(
            "page_size",
            Reason.VALUE_INVALID,
            f"must be from 1 to {MAX_PAGE}, or 0 for {DEFAULT_PAGE}",
        )
    position: str | None = ""
    if request.page_token:
        position = unseal(request.page_token, *scope)
        if position is None:
            problems.add(
                "page_token",
                Reason.VALUE_INVALID,
                "is not of this list; leave it empty for the first page",
            )
    return Window(scope=scope, limit=limit, position=position or "")

"""A terminal that callers' texts can't command."""

from typing import Any

from rich.console import Console
from rich.text import Text


class SafeConsole(Console):
    """Shows what callers wrote as it is: `:a:` in a token is no emoji; and an id or a reason may
    hold a terminal's escape sequences, or marks that turn the order of letters around.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **how)

    def render_str(self, text: str, **how: Any) -> Text:
        """Of every cell and line, before any style is added."""
        return super().render_str(harmless(text), **how)


def harmless(text: str) -> str:
    r"""What is neither printable nor a line's end as Python escapes it, such as `\x1b`."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text
    )

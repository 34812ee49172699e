"""What one call inside a template may make: nothing much larger than what it is given.

CPU time is watched while Python runs. One call of `replace`, `join` or `center` is a single step in
C, which can take gigabytes and hold up the whole process before anybody looks; and how much it
makes may depend on a caller's params. So these are looked at before; `~`, `+` and the like, which
can double what they are given, after each step.
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2.exceptions import SecurityError

MAX_MADE = 1024 * 1024
"""Characters; far more than a part of a message may have."""
MAX_JSON_INDENT = 16

Size = Callable[..., int]
"""Of a call's result, in characters, given what it is called on and with; no less than it has."""

_PERCENT_WIDTH = re.compile(r"%[^a-zA-Z%]*(?:\*|[0-9]{5})")
_BRACE_WIDTH = re.compile(r"\{[^{}]*(?:\{|:[^{}]*[0-9]{5})")
_FOUR_DIGITS = re.compile(r"[0-9]{4}")


def bounded_filters(
    filters: Mapping[str, Callable[..., Any]],
) -> dict[str, Callable[..., Any]]:
    """The same, which refuse by SecurityError what would become too large."""
    return {name: _bounded(name, each) for name, each in filters.items()}


def check_method(call: Callable[..., Any], *args: Any, **named: Any) -> None:
    """Of a text's own methods; others pass. Raises SecurityError."""
    text = getattr(getattr(call, "__wrapped__", call), "__self__", None)
    name = getattr(call, "__name__", "")
    if isinstance(text, str) and name in _METHODS:
        _check(name, _METHODS[name], text, *args, **named)


def check_repeat(one: Any, times: Any) -> None:
    """Of `*`, either way around. Raises SecurityError."""
    if isinstance(one, str | bytes | list | tuple):
        parts = (len(each) if isinstance(each, str | list) else 1 for each in one)
        size = sum(parts) if isinstance(one, list | tuple) else len(one)
        if size * int(times) > MAX_MADE:
            raise SecurityError(f"* would make more than {MAX_MADE} characters")


def kept(made: Any) -> Any:
    """A text or list that was put together in a template, if it may stay. Raises SecurityError."""
    if isinstance(made, str | list | tuple) and len(made) > MAX_MADE:
        raise SecurityError(f"more than {MAX_MADE} characters were put together")
    return made


def _bounded(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    size = _FILTERS.get(name)
    if size is None:
        return original
    skipped = 1 if hasattr(original, "jinja_pass_arg") else 0  # the environment, or its like

    @functools.wraps(original)
    def checked(*args: Any, **named: Any) -> Any:
        _check(name, size, *args[skipped:], **named)
        return original(*args, **named)

    return checked


def _check(name: str, size: Size, *args: Any, **named: Any) -> None:
    try:
        made = size(*args, **named)
    except SecurityError:
        raise
    except Exception:  # noqa: BLE001 - wrong arguments: the call itself says so
        return
    if made > MAX_MADE:
        raise SecurityError(f"{name} would make more than {MAX_MADE} characters")


def _padded(text: Any, width: int = 80, *_rest: Any) -> int:
    return max(len(str(text)), width)


def _replaced(text: Any, old: str, new: str, count: int | None = None) -> int:
    found = str(text).count(old) if count is None or count < 0 else count
    return len(str(text)) + found * len(new)


def _joined(separator: str, parts: Iterable[Any]) -> int:
    texts = parts if isinstance(parts, list | tuple) else ()  # what is made one by one is watched
    return sum(len(str(each)) + len(separator) for each in texts)


def _join(parts: Any, d: str = "", attribute: Any = None) -> int:
    return len(parts) * len(d) if attribute else _joined(d, parts)


def _indented(text: Any, width: Any = 4, *_rest: Any, **_named: Any) -> int:
    wide = width if isinstance(width, int) else len(width)
    return len(str(text)) + wide * (str(text).count("\n") + 1)


def _tabs_expanded(text: str, tabsize: int = 8) -> int:
    return len(text) + text.count("\t") * tabsize


def _percent_format(pattern: Any, *args: Any, **named: Any) -> int:
    text = str(pattern)
    return _formatted(text, text.count("%"), _PERCENT_WIDTH, (*args, *named.values()))


def _brace_format(text: str, *args: Any, **named: Any) -> int:
    return _formatted(text, text.count("{"), _BRACE_WIDTH, (*args, *named.values()))


def _brace_format_map(text: str, values: Mapping[str, Any]) -> int:
    return _brace_format(text, *values.values())


def _formatted(text: str, fields: int, width: re.Pattern[str], values: tuple[Any, ...]) -> int:
    """A width that an argument gives, or one of more than four digits, is refused."""
    if width.search(text):
        raise SecurityError("a format with so large a width, or one from an argument")
    widest = max((len(str(each)) for each in values), default=0)
    return len(text) + fields * (widest + 9_999 * bool(_FOUR_DIGITS.search(text)))


def _counted(_items: Any, count: int, *_rest: Any, **_named: Any) -> int:
    return count


def _as_json(_value: Any, indent: int | None = None) -> int:
    return MAX_MADE + 1 if indent is not None and indent > MAX_JSON_INDENT else 0


_METHODS: Mapping[str, Size] = {
    "center": _padded,
    "ljust": _padded,
    "rjust": _padded,
    "zfill": _padded,
    "expandtabs": _tabs_expanded,
    "replace": _replaced,
    "join": _joined,
    "format": _brace_format,
    "format_map": _brace_format_map,
}
_FILTERS: Mapping[str, Size] = {
    "center": _padded,
    "replace": _replaced,
    "join": _join,
    "indent": _indented,
    "format": _percent_format,
    "batch": _counted,
    "slice": _counted,
    "tojson": _as_json,
}

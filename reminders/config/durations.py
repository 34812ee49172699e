"""Durations as people write them: `500ms`, `30s`, `2m`, `1h30m`, `90d`, or ISO 8601 (`PT30S`)."""

import re
from datetime import timedelta

EXAMPLES = "a duration such as 500ms, 30s, 2m, 1h30m, 90d or PT30S"

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_SHORT = re.compile(rf"(?:{_PART.pattern})+")
# Years and months have no fixed length, so they are left out on purpose.
_ISO = re.compile(
    r"P(?=.)(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?=.)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)
_RESOLUTION = timedelta(milliseconds=1)


def parse_duration(text: str) -> timedelta:
    """The duration that a person wrote, to the millisecond.

    Raises:
        ValueError: It is none, it has no unit, or it is longer than a timedelta can be.
    """
    text = text.strip()
    short = text.lower()
    if _SHORT.fullmatch(short):
        parts = [(unit, float(number)) for number, unit in _PART.findall(short)]
    elif iso := _ISO.fullmatch(text.upper()):
        parts = [(unit, float(number)) for unit, number in iso.groupdict().items() if number]
    else:
        hint = ": the unit is missing" if re.fullmatch(r"[\d.]+", text) else ""
        raise ValueError(f"{text!r} is not {EXAMPLES}{hint}")
    try:
        return timedelta(milliseconds=round(sum(n * _UNITS_MS[unit] for unit, n in parts)))
    except OverflowError as error:
        raise ValueError(f"{text!r} is too long") from error


def format_duration(duration: timedelta) -> str:
    """The shortest spelling that `parse_duration` reads back; below a millisecond it rounds."""
    left = round(duration / _RESOLUTION)
    if left <= 0:
        return "0s" if left == 0 else f"-{format_duration(-duration)}"
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, left = divmod(left, _UNITS_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)

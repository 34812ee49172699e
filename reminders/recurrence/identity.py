"""The identity of an occurrence: its local intent, never its instant.

`20261224T090000`, with `.250` where there are milliseconds and `~1` for the second of two
occurrences of one repeated local time. ASCII, fixed-width up to the seconds: sorts by local time.

An instant that was asked for as such ends in `Z`: it is another intent than the same reading of
some place's clocks, which may have rung already.

A day that the month lacks keeps the name that the rule gave it: 30 February 2026 is
`20260230T090000`, wherever the missing-day policy put it. So a new edition of holidays moves an
occurrence and never doubles it. In data such a day is the month's last day and `missing`, how many
days further the rule went: 28 February and 2.
"""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime

from reminders.recurrence.errors import KeyInvalid

_KEY = re.compile(r"(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(?:\.(\d{3}))?(~1|Z)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalIntent:
    """What an occurrence key says."""

    local: datetime
    """Naive. For a missing day: the month's last day."""
    second_pass: bool = False
    missing: int = 0
    """Days past the month's end that the rule asked for."""
    absolute: bool = False
    """An instant; `local` is UTC then."""


def instant_key(at: datetime) -> str:
    """The key of an instant, aware and in whole milliseconds.

    Raises:
        KeyInvalid: It is not.
    """
    if at.tzinfo is None:
        raise KeyInvalid("occurrence", "an instant is aware")
    return occurrence_key(at.astimezone(UTC).replace(tzinfo=None)) + "Z"


def occurrence_key(local: datetime, fold: int = 0, missing: int = 0) -> str:
    """The key of a nominal local time; `fold` 1 for the second of two occurrences of it.

    Raises:
        KeyInvalid: `local` is aware, or is not in whole milliseconds.
    """
    if local.tzinfo is not None or local.microsecond % 1000 or fold not in (0, 1):
        raise KeyInvalid("occurrence", "a key is made of a naive time in whole ms and fold 0 or 1")
    key = local.isoformat(timespec="seconds").replace("-", "").replace(":", "")
    if missing:
        key = f"{key[:6]}{local.day + missing:02}{key[8:]}"
    if local.microsecond:
        key += f".{local.microsecond // 1000:03}"
    return f"{key}~1" if fold else key


def parse_occurrence_key(key: str) -> LocalIntent:
    """The inverse of `occurrence_key` and `instant_key`.

    Raises:
        KeyInvalid: Not a key that these make.
    """
    match = _KEY.fullmatch(key)
    if match is None:
        raise KeyInvalid("occurrence", f"{key[:40]!r} is no occurrence id such as 20261224T090000")
    year, month, day, hour, minute, second = (int(digits) for digits in match.groups()[:6])
    try:
        missing = max(0, day - monthrange(year, month)[1])
        local = datetime(year, month, day - missing, hour, minute, second)
    except ValueError as error:
        raise KeyInvalid("occurrence", f"{key!r} names no date and time") from error
    intent = LocalIntent(
        local=local.replace(microsecond=int(match[7] or 0) * 1000),
        second_pass=match[8] == "~1",
        missing=missing,
        absolute=match[8] == "Z",
    )
    normal = occurrence_key(intent.local, intent.second_pass, missing) + "Z" * intent.absolute
    if day > 31 or normal != key or (missing and intent.absolute):
        raise KeyInvalid("occurrence", f"{key!r} is not in its normal form")
    return intent

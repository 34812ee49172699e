"""The settings of destinations: how much each is sent, when it is left alone. Part of `Settings`.

    TOCSIN_DESTINATION_RATES="smtp=10/s,*.example.com=300/m:50,*=100/s:200"

The first pattern that fits counts. It is compared with the host, the host and port, and with a
provider's name (smtp, twilio, http, fcm, apns); `*` stands for any characters.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from reminders.config.durations import parse_duration

_RATE = re.compile(r"(\d+(?:\.\d+)?)/([smh])(?::(\d+))?")
_UNITS_S = {"s": 1, "m": 60, "h": 3600}
MOST_A_SECOND = 100_000
MOST_BURST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationRate:
    """For destinations that fit the pattern."""

    pattern: str
    per_s: float
    burst: int
    """How many at once after a pause."""

    def fits(self, names: tuple[str, ...]) -> bool:
        """Whether one of them does."""
        return any(fnmatchcase(name, self.pattern) for name in names)


def _rates(value: Any) -> Any:
    """`pattern=50/s:100,…`, a list of such, or a table of rates by pattern."""
    if isinstance(value, Mapping):
        value = [f"{pattern}={rate}" for pattern, rate in value.items()]
    items = value.split(",") if isinstance(value, str) else value
    texts = tuple(str(item).strip() for item in items if str(item).strip())
    for text in texts:
        parse_rate(text)
    return texts


def parse_rate(text: str) -> DestinationRate:
    """`pattern=50/s`, `pattern=300/m:50`; without a burst it is what fits into a second.

    Raises:
        ValueError: It is none.
    """
    pattern, equals, rate = text.partition("=")
    found = _RATE.fullmatch(rate.strip())
    if not (pattern.strip() and equals and found):
        raise ValueError(
            f"{text!r} is not pattern=number/s, with m or h for minute or hour, :burst"
        )
    per_s = float(found[1]) / _UNITS_S[found[2]]
    burst = int(found[3]) if found[3] else max(1, int(per_s))
    if not 0 < per_s <= MOST_A_SECOND:
        raise ValueError(f"{text!r}: a rate is more than 0 and at most {MOST_A_SECOND}/s")
    if not 1 <= burst <= MOST_BURST:
        raise ValueError(f"{text!r}: a burst is 1 to {MOST_BURST}")
    return DestinationRate(pattern=pattern.strip().lower(), per_s=per_s, burst=burst)


Rates = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_rates)]
Span = Annotated[
    timedelta,
    BeforeValidator(lambda value: parse_duration(value) if isinstance(value, str) else value),
]


class DestinationSettings(BaseSettings):
    """What is in force."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    destination_rates: Rates = ()
    """How much one dispatcher sends, by host or provider: pattern=number/s (or /m, /h) and :burst,
    such as smtp=10/s,*.example.com=300/m:50. The first that fits counts; none: no limit."""
    destination_slow_after: Annotated[
        Span, Field(ge=timedelta(milliseconds=100), le=timedelta(seconds=8))
    ] = timedelta(seconds=1)
    """From when on an attempt without an answer keeps no other out, 100ms to 8s, such as 1s."""
    destination_failures: int = Field(default=5, ge=1, le=1000)
    """Time-outs, failures to connect and 5xx in a row after which an endpoint or host is left alone
    for a while, 1 to 1000."""
    destination_open_for: Annotated[
        Span, Field(ge=timedelta(seconds=1), le=timedelta(minutes=10))
    ] = timedelta(seconds=5)
    """For how long the first time, 1s to 10m; then one is tried, and it doubles if that fails."""
    destination_open_at_most: Annotated[
        Span, Field(ge=timedelta(seconds=1), le=timedelta(hours=1))
    ] = timedelta(minutes=5)
    """For how long at most, 1s to 1h, and not less than TOCSIN_DESTINATION_OPEN_FOR."""

    @model_validator(mode="after")
    def _opens_longer(self) -> Self:
        if self.destination_open_at_most < self.destination_open_for:
            raise PydanticCustomError(
                "conflict",
                "less than TOCSIN_DESTINATION_OPEN_FOR",
                {"field": "destination_open_at_most"},
            )
        return self

    def rate_of(self, destination: str) -> DestinationRate | None:
        """By its name: scheme, host and port, or a provider."""
        parts = urlsplit(destination)
        names = (parts.hostname or "", parts.netloc, destination)
        return next((rate for rate in self._rates if rate.fits(names)), None)

    @property
    def _rates(self) -> tuple[DestinationRate, ...]:
        return tuple(parse_rate(text) for text in self.destination_rates)

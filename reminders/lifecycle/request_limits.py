"""What an operator may tighten or widen of what callers can ask for."""

from datetime import timedelta

from msgspec import Struct

TEN_YEARS = timedelta(days=3653)


class RequestLimits(Struct, frozen=True, kw_only=True):
    """Of one deployment; the defaults are those that the proto states."""

    min_interval: timedelta = timedelta(seconds=1)
    """Between two occurrences of a rule. A second is the finest that a rule can name."""
    horizon: timedelta = TEN_YEARS
    """How far ahead a time, a delay or the start of a rule may lie."""

    @property
    def horizon_text(self) -> str:
        """For a description."""
        return "ten years" if self.horizon == TEN_YEARS else _span(self.horizon)

    @property
    def min_interval_text(self) -> str:
        """For a description."""
        return _span(self.min_interval)


DEFAULT_REQUEST_LIMITS = RequestLimits()


def _span(span: timedelta) -> str:
    if span and not span % timedelta(days=1):
        return f"{span.days} days"
    return f"{span.total_seconds():g} s"

"""Settings of destinations: rates by pattern, breakers."""

from typing import Any

import pytest

from reminders.config.destinations import DestinationRate, parse_rate
from reminders.config.problems import ConfigError
from reminders.config.settings import Settings, load_settings


def test_a_rate_is_a_number_for_a_second_a_minute_or_an_hour() -> None:
    """Without a burst it is what fits into a second, and at least one."""
    assert parse_rate("*=50/s") == DestinationRate(pattern="*", per_s=50, burst=50)
    assert parse_rate("A.example=90/m:10") == DestinationRate(
        pattern="a.example", per_s=1.5, burst=10
    )
    assert parse_rate("smtp=36/h") == DestinationRate(pattern="smtp", per_s=0.01, burst=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("example.com", "is not pattern=number/s"),
        ("=5/s", "is not pattern=number/s"),
        ("a=5", "is not pattern=number/s"),
        ("a=0/s", "more than 0"),
        ("a=5/s:0", "a burst is 1"),
        ("a=9999999/s", "at most 100000/s"),
    ],
)
def test_a_wrong_rate_says_what_is_right(
    monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    """And names the variable."""
    monkeypatch.setenv("TOCSIN_DESTINATION_RATES", text)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert "TOCSIN_DESTINATION_RATES" in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("destination", "per_s"),
    [
        ("https://api.example.com", 1.0),
        ("https://api.example.com:8443", 2.0),
        ("https://other.example.com:443", 3.0),
        ("smtp", 4.0),
        ("https://elsewhere.org", None),
    ],
)
def test_the_first_pattern_that_fits_counts(destination: str, per_s: float | None) -> None:
    """By host, by host and port, by a provider's name."""
    rates = "api.example.com:8443=2/s,api.example.com=1/s,*.example.com=3/s,smtp=4/s"
    given: dict[str, Any] = {"destination_rates": rates}
    found = Settings(**given).rate_of(destination)
    assert (found.per_s if found is not None else None) == per_s


def test_a_table_of_the_file_means_the_same() -> None:
    """By pattern."""
    given: dict[str, Any] = {"destination_rates": {"smtp": "4/s", "*": "9/s:3"}}
    assert Settings(**given).destination_rates == ("smtp=4/s", "*=9/s:3")


def test_a_breaker_opens_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the one that is too small, and the other one."""
    monkeypatch.setenv("TOCSIN_DESTINATION_OPEN_FOR", "2m")
    monkeypatch.setenv("TOCSIN_DESTINATION_OPEN_AT_MOST", "1m")
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert "TOCSIN_DESTINATION_OPEN_AT_MOST='1m'" in str(caught.value)
    assert "TOCSIN_DESTINATION_OPEN_FOR" in str(caught.value)

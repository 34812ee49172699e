"""RRULE texts for property tests."""

from hypothesis import strategies as st

WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
FREQS = ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"]
ELAPSING = FREQS[4:]


def numbers(low: int, high: int, *, signed: bool = False, most: int = 4) -> st.SearchStrategy[str]:
    """A list of values for a BY part."""
    value = st.integers(low, high)
    if signed:
        value |= st.integers(-high, -low)
    return st.lists(value, min_size=1, max_size=most).map(lambda xs: ",".join(map(str, xs)))


@st.composite
def rules(draw: st.DrawFn, freqs: list[str] = FREQS, *, for_dateutil: bool = False) -> str:
    """A valid RRULE, of all that RFC 5545 allows; or only what dateutil evaluates rightly.

    It does not on WEEKLY with BYSETPOS (the partial first week), on BYWEEKNO without BYDAY (it
    takes all seven days, not the start's weekday), on plain and numbered weekdays in one BYDAY (it
    wants both at once), and on weeks 52 and 53 (it counts one week too many in a year before, and
    then misses the days of that week in January, such as 1 January 9594).
    """
    freq = draw(st.sampled_from(freqs))
    parts = {"FREQ": freq, "INTERVAL": str(draw(st.sampled_from([1, 1, 1, 2, 3, 7, 13])))}

    def maybe(name: str, values: st.SearchStrategy[str], chance: int = 4) -> None:
        if draw(st.integers(1, chance)) == 1:
            parts[name] = draw(values)

    maybe("BYMONTH", numbers(1, 12))
    if freq == "YEARLY":
        maybe("BYWEEKNO", numbers(1, 51 if for_dateutil else 53, signed=True))
    if freq == "YEARLY" or freq in ELAPSING:
        maybe("BYYEARDAY", numbers(1, 366, signed=True, most=8))
    if freq != "WEEKLY":
        maybe("BYMONTHDAY", numbers(1, 31, signed=True, most=8))
    weekdays = st.lists(_weekdays(parts, for_dateutil=for_dateutil), min_size=1, max_size=3)
    if "BYWEEKNO" in parts and for_dateutil:
        parts["BYDAY"] = draw(weekdays.map(",".join))
    else:
        maybe("BYDAY", _one_kind(weekdays) if for_dateutil else weekdays.map(",".join), 3)
    maybe("BYHOUR", numbers(0, 23))
    maybe("BYMINUTE", numbers(0, 59))
    maybe("BYSECOND", numbers(0, 59))
    if not (freq == "WEEKLY" and for_dateutil) and any(name.startswith("BY") for name in parts):
        maybe("BYSETPOS", numbers(1, 12, signed=True), 3)
    maybe("WKST", st.sampled_from(WEEKDAYS))
    return ";".join(f"{name}={value}" for name, value in parts.items())


def _weekdays(parts: dict[str, str], *, for_dateutil: bool) -> st.SearchStrategy[str]:
    plain = st.sampled_from(WEEKDAYS)
    if parts["FREQ"] not in ("MONTHLY", "YEARLY") or "BYWEEKNO" in parts:
        return plain
    most = 5 if parts["FREQ"] == "MONTHLY" or "BYMONTH" in parts else 53
    number = st.integers(1, most) | st.integers(-most, -1)
    return plain | st.builds("{}{}".format, number, plain)


def _one_kind(weekdays: st.SearchStrategy[list[str]]) -> st.SearchStrategy[str]:
    """All numbered, or none."""
    return weekdays.map(
        lambda days: ",".join(day for day in days if (len(day) > 2) is (len(days[0]) > 2))
    )

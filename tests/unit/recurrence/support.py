"""Series from texts, for the tests of this folder."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from reminders.recurrence import (
    CalendarPolicies,
    Cron,
    Gap,
    MissingDay,
    Overlap,
    Planned,
    Rule,
    Series,
    zone,
)

PARIS = "Europe/Paris"


def series(text: str, start: str, name: str = PARIS, **given: object) -> Series:
    """A series from texts; policies and the other fields by name."""
    policies = {
        key: given.pop(key)
        for key in ("gap", "overlap", "missing_day", "holiday_calendar")
        if key in given
    }
    return Series(
        rule=Rule.parse(text) if "FREQ" in text else Cron.parse(text),
        start_local=datetime.fromisoformat(start),
        zone=name,
        policies=CalendarPolicies(**policies),  # type: ignore[arg-type]
        **given,  # type: ignore[arg-type]
    )


def shown(planned: list[Planned]) -> list[str]:
    """Local time, UTC time and note of each, for comparing at a glance."""
    return [
        f"{one.local:%m-%d %H:%M} {one.instant:%H:%MZ}" + (f" {one.note}" if one.note else "")
        for one in planned
    ]


TEXTS = [
    "FREQ=DAILY;BYHOUR=0,1,2,3,23;BYMINUTE=0,30",
    "FREQ=DAILY;INTERVAL=3;COUNT=40",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,TU;WKST=SU;BYHOUR=1,2",
    "FREQ=MONTHLY;BYMONTHDAY=1,2,28,29,30,31;COUNT=70",
    "FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=30,31",
    "FREQ=MONTHLY;BYDAY=MO,TU,SU;BYSETPOS=1,-1;BYHOUR=0,23",
    "FREQ=YEARLY;BYMONTHDAY=29,31;BYHOUR=2",
    "FREQ=YEARLY;BYWEEKNO=1,-1;BYDAY=MO,SU",
    "FREQ=HOURLY;INTERVAL=5;BYMINUTE=0,40",
    "FREQ=MINUTELY;INTERVAL=50",
    "FREQ=SECONDLY;INTERVAL=1799",
    "*/30 * * * *",
    "15,45 1-3 * * *",
    "0 2 L * SUN",
]
ZONES = [PARIS, "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia", "Africa/Cairo", "UTC"]
many_series = st.builds(
    lambda text, day, name, gap, overlap, missing, exdate, rdate: series(
        text,
        f"{day}T02:00",
        name,
        gap=gap,
        overlap=overlap,
        missing_day=missing,
        holiday_calendar="FR",
        exdates=(exdate,),
        rdates=(rdate,),
    ),
    st.sampled_from(TEXTS),
    st.sampled_from(
        ["2005-04-02", "2005-10-29", "2011-12-28", "2026-03-27", "2026-10-23", "2026-02-26"]
    ),
    st.sampled_from(ZONES),
    st.sampled_from(list(Gap)),
    st.sampled_from(list(Overlap)),
    st.sampled_from(list(MissingDay)),
    st.datetimes(datetime(2026, 3, 27), datetime(2026, 4, 2)).map(
        lambda at: at.replace(minute=0, second=0, microsecond=0)
    ),
    st.datetimes(datetime(2026, 3, 27), datetime(2026, 4, 2)).map(
        lambda at: at.replace(minute=0, second=0, microsecond=0)
    ),
)


def moved(text: str, start: datetime, periods: int, name: str) -> datetime:
    """A start that many periods of the rule earlier, in its phase: whole intervals.

    Of an elapsing rule in real time. Cron has no phase: days.
    """
    if "FREQ" not in text:
        return start - timedelta(days=periods)
    rule = Rule.parse(text)
    count = periods * rule.interval
    if rule.freq.elapses:
        unit = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}[rule.freq]
        at = start.replace(tzinfo=zone(name)).astimezone(UTC) - timedelta(seconds=unit * count)
        return at.astimezone(zone(name)).replace(tzinfo=None, fold=0)
    if rule.freq in ("DAILY", "WEEKLY"):
        return start - timedelta(days=count * (7 if rule.freq == "WEEKLY" else 1))
    months = start.year * 12 + start.month - 1 - count * (12 if rule.freq == "YEARLY" else 1)
    return start.replace(year=months // 12, month=months % 12 + 1)

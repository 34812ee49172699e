"""When a person's quiet hours are. Pure.

Where a transition skips the start or the end, it is the first time that exists. Where it repeats
one, they begin with the first start and end with the second end: in doubt nobody is woken.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from reminders.model.recipient import QuietHours
from reminders.recurrence import Gap, Overlap, localize, wall_clock

DAY = timedelta(days=1)
_AROUND = range(-2, 3)
"""Days: quiet hours last less than one, and no transition is longer than 25 hours."""


def quiet_until(quiet: QuietHours, zone: ZoneInfo, at: datetime) -> datetime | None:
    """When the quiet hours end that an aware instant falls into; None: it falls into none."""
    today = wall_clock(at, zone)[0].date()
    until = None
    for start, end in sorted(_spans(quiet, zone, today)):
        if start <= (until or at) < end:  # the next ones begin where a skipped day ends these
            until = end
    return until


def _spans(quiet: QuietHours, zone: ZoneInfo, today: date) -> Iterator[tuple[datetime, datetime]]:
    over_midnight = DAY if quiet.end <= quiet.start else timedelta(0)
    for days in _AROUND:
        day = today + days * DAY
        first = datetime.combine(day, quiet.start)
        last = datetime.combine(day + over_midnight, quiet.end)
        yield (
            localize(first, zone, gap=Gap.NEXT_VALID, overlap=Overlap.EARLIER)[0].instant,
            localize(last, zone, gap=Gap.NEXT_VALID, overlap=Overlap.LATER)[0].instant,
        )

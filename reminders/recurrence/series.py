"""The one entry point: a rule with its start, zone, exceptions, end and policies.

A `Series` is a value and computes from it alone; `next` asks "what comes after this cursor?", and
the cursor (last local intent, how many so far) is all that is kept. Nothing is replayed from the
start, so an old rule costs what a new one does. All order is by instant: local intents can change
places around a transition (SHIFT_FORWARD, BOTH) or a month's end (business days).

Newer zone or holiday data move what is ahead and double nothing: a time that no policy moves comes
in the order of local intents, so one at or before the cursor's has had its turn. Only where intents
change places as above, and the new data change that very night or month's end while the cursor
stands in it, can an intent come again or be left out; its key tells.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from reminders.recurrence.business import check_holiday_calendar
from reminders.recurrence.cron import Cron
from reminders.recurrence.cursor import Cursor, Planned
from reminders.recurrence.dated import Dated, rule_times
from reminders.recurrence.dates import place_missing
from reminders.recurrence.elapsed import Elapsed, elapsed
from reminders.recurrence.errors import RuleExhausted, RuleInvalid, SeriesInvalid
from reminders.recurrence.identity import occurrence_key
from reminders.recurrence.policies import CalendarPolicies, Gap, MissingDay, Overlap
from reminders.recurrence.rules import Rule, check_days
from reminders.recurrence.slots import Candidate
from reminders.recurrence.walk import Walk, Work
from reminders.recurrence.zones import (
    LONGEST_TRANSITION,
    earliest,
    localize,
    wall_clock,
    zone,
)

MAX_STEPS = 50_000
"""Steps of work (dates, periods, local times looked at) for one occurrence; 0.1 to 0.3 s."""
MAX_DATES = 1000
"""EXDATEs, and RDATEs, of one series."""
_YEARS = range(2, 9999)
"""Outside of them an offset or a margin leaves the range of `datetime`."""
_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEFAULTS = CalendarPolicies()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A recurrence set (RFC 5545 3.8.5) in a zone, under policies.

    The start itself is an occurrence only if the rule matches it. COUNT, UNTIL, `max_occurrences`
    and `until` end the rule, not the RDATEs; of a count and an until the tighter one ends it.

    Raises:
        RecurrenceError: One of its subclasses, for the first part that is wrong.
    """

    rule: Rule | Cron
    start_local: datetime
    """Naive. Whole seconds for a rule: the phase of INTERVAL and what the rule leaves open. An
    elapsing rule begins at the first instant at which clocks show it, or more."""
    zone: str
    """IANA name."""
    exdates: tuple[datetime, ...] = ()
    """Left out, and still counted (RFC 5545: COUNT bounds the rule, EXDATE thins its result).
    Naive: by nominal or planned local time, both passes of a repeated one. Aware: that instant."""
    rdates: tuple[datetime, ...] = ()
    """Added, and not counted. Naive: local times, under the policies."""
    max_occurrences: int | None = None
    until: datetime | None = None
    """Aware, inclusive; compared with planned instants."""
    policies: CalendarPolicies = _DEFAULTS
    max_steps: int = MAX_STEPS
    """Bound of work for one occurrence, in steps."""

    _zone: ZoneInfo = field(init=False, repr=False, compare=False)
    _start: datetime = field(init=False, repr=False, compare=False)
    _source: Dated | Elapsed = field(init=False, repr=False, compare=False)
    _added: tuple[Candidate, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check(self)
        tz = zone(self.zone)
        start = earliest(self.start_local, tz)
        derived = {
            "_zone": tz,
            "_start": start,
            "_source": _source(self, tz, start),
            "_added": tuple(one for rdate in self.rdates for one in _added(self, rdate, tz)),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def next(self, cursor: Cursor, limit: int, work: Work | None = None) -> list[Planned]:
        """The next `limit` occurrences strictly after the cursor; fewer where the series ends.

        Instants strictly increase. Local times that the policies put on one instant are one
        occurrence, with the earliest intent. `work`, if given, is told the steps taken.

        Raises:
            RuleExhausted: `max_steps` were taken without finding even one more.
        """
        passed = self.position(cursor)
        walk = self._walk(passed)
        planned: list[Planned] = []
        emitted = cursor.emitted
        try:
            while len(planned) < limit and (one := walk.take()) is not None:
                instant = one.at.instant
                if (passed is not None and instant <= passed) or not self._begun(one, cursor):
                    continue
                if one.from_rule:
                    if self._ended(emitted, instant):
                        walk.end_rule()
                        continue
                    emitted += 1
                passed = instant
                if not self._excluded(one):
                    planned.append(self._planned(one, emitted))
                    walk.found()
        except RuleExhausted:
            if not planned:
                raise
        finally:
            if work is not None:
                work.steps += walk.total
        return planned

    def first_after(self, instant: datetime) -> Cursor:
        """The cursor for a creation now: `next` goes on at or after the aware `instant`.

        What the rule names before is neither emitted nor counted: COUNT counts from here.
        """
        before = -(-(_aware("instant", instant) - _EPOCH) // _MS) * _MS + _EPOCH - _MS
        local, fold = wall_clock(before, self._zone)
        return Cursor(last_local=local, last_fold=fold, is_instant=True)

    def position(self, cursor: Cursor) -> datetime | None:
        """The instant behind which `next` goes on, by today's zone data; None: from the start."""
        local = cursor.last_local
        if local is None:
            return None
        if cursor.last_missing:
            day = place_missing(local.date(), self.policies) or local.date()
            local = datetime.combine(day, local.time())
        gap = Gap.NEXT_VALID if self.policies.gap is Gap.SKIP else self.policies.gap
        overlap = Overlap.LATER if cursor.last_fold else Overlap.EARLIER
        return localize(local, self._zone, gap=gap, overlap=overlap)[0].instant

    def furthest(self, cursors: Iterable[Cursor]) -> Cursor:
        """Of several cursors the one that is furthest on; the start's if there is none."""

        def reached(cursor: Cursor) -> tuple[datetime, int]:
            return self.position(cursor) or datetime.min.replace(tzinfo=UTC), cursor.emitted

        return max(cursors, key=reached, default=Cursor())

    def _walk(self, passed: datetime | None) -> Walk:
        if isinstance(self._source, Elapsed):
            batches = self._source.batches(passed or self._start)
        else:
            batches = self._source.batches(self._since(passed or self._start))
        return Walk(
            batches,
            (one for one in self._added if passed is None or one.at.instant > passed),
            self._zone,
            part="cron" if isinstance(self.rule, Cron) else "RRULE",
            max_steps=self.max_steps,
        )

    def _since(self, passed: datetime) -> datetime:
        """A local time before which nothing can have an instant after `passed`."""
        local, _ = wall_clock(passed, self._zone)
        edges = (passed - LONGEST_TRANSITION, passed + LONGEST_TRANSITION)
        before, after = (edge.astimezone(self._zone).utcoffset() for edge in edges)
        return local if before == after else local - LONGEST_TRANSITION

    def _begun(self, one: Candidate, cursor: Cursor) -> bool:
        """Not before the start, nor what came up to the cursor, moved by newer zone data."""
        at = one.at
        if not cursor.is_instant and self._had_its_turn(one, cursor):
            return False
        if not one.from_rule:
            return True
        if at.instant < self._start:
            return False
        if one.missing:  # 31 April comes after all of the 30th, and before 1 May
            return at.nominal.date() >= self.start_local.date()
        return self.rule.elapses or at.nominal >= self.start_local

    def _had_its_turn(self, one: Candidate, cursor: Cursor) -> bool:
        """Whether it came before the cursor, and only newer data put it behind.

        A time that no policy puts elsewhere comes in the order of what clocks show: at or before
        the cursor's nominal or promised time it has been emitted, whatever instant it has now.
        """
        at, last = one.at, cursor.last_local
        if at.nominal == last and one.missing == cursor.last_missing:
            return not at.second_pass or bool(cursor.last_fold)
        if last is None or self.rule.elapses or not one.from_rule:
            return False
        if one.missing or at.second_pass or at.local != at.nominal:
            return False
        by_name = at.nominal <= last and not cursor.last_missing
        planned = None if cursor.last_fold else cursor.last_planned
        return by_name or (planned is not None and at.nominal <= planned)

    def _ended(self, emitted: int, instant: datetime) -> bool:
        count, until = self.max_occurrences, self.until
        if isinstance(self.rule, Rule):
            count, until = count or self.rule.count, until or self.rule.until
        return (count is not None and emitted >= count) or (until is not None and instant > until)

    def _excluded(self, one: Candidate) -> bool:
        at, exdates = one.at, self.exdates
        return bool(exdates) and (
            at.local in exdates
            or at.instant in exdates
            or (at.nominal in exdates and not one.missing)
        )

    def _planned(self, one: Candidate, emitted: int) -> Planned:
        at = one.at
        return Planned(
            key=occurrence_key(at.nominal, int(at.second_pass), one.missing),
            nominal=at.nominal,
            local=at.local,
            fold=at.fold,
            zone=self.zone,
            instant=at.instant,
            note=at.note,
            cursor=Cursor(
                last_local=at.nominal,
                emitted=emitted,
                last_fold=at.fold,
                last_missing=one.missing,
                last_planned=at.local,
            ),
        )


def _source(series: Series, tz: ZoneInfo, start: datetime) -> Dated | Elapsed:
    rule = series.rule
    if isinstance(rule, Rule):
        if rule.elapses:
            return elapsed(rule, start, tz)
        rule = rule.completed(series.start_local)
        rule_times(rule)
        if series.policies.missing_day is MissingDay.SKIP:
            check_days(rule)
    return Dated(rule=rule, start=series.start_local, zone=tz, policies=series.policies)


def _added(series: Series, rdate: datetime, tz: ZoneInfo) -> Iterator[Candidate]:
    """An elapsing rule names each pass of a repeated time: beside it LATER names the second."""
    policies = series.policies
    for one in localize(rdate, tz, gap=policies.gap, overlap=policies.overlap):
        second_pass = bool(one.fold) if series.rule.elapses else one.second_pass
        yield Candidate(at=replace(one, second_pass=second_pass), from_rule=False)


def _check(series: Series) -> None:
    """The parts that are wrong whatever the zone."""
    start = series.start_local
    if start.tzinfo is not None or start.year not in _YEARS:
        raise SeriesInvalid("start", "must be a local time without a zone, from year 2 to 9998")
    if isinstance(series.rule, Rule):
        if start.microsecond:
            raise SeriesInvalid("start", "must be in whole seconds")
        if series.rule.count is not None and series.max_occurrences is not None:
            raise RuleInvalid("COUNT", "is given in the rule and as max_occurrences")
        if series.rule.until is not None and series.until is not None:
            raise RuleInvalid("UNTIL", "is given in the rule and beside it")
    if series.max_occurrences is not None and series.max_occurrences < 1:
        raise SeriesInvalid("max_occurrences", "must be at least 1")
    if series.until is not None:
        _aware("until", series.until)
    for part, dates in (("exdates", series.exdates), ("rdates", series.rdates)):
        if len(dates) > MAX_DATES:
            raise SeriesInvalid(part, f"has more than {MAX_DATES} dates")
        if any(one.microsecond % 1000 or one.year not in _YEARS for one in dates):
            raise SeriesInvalid(part, "must be in whole milliseconds, from year 2 to 9998")
    if any(one.tzinfo is not None for one in series.rdates):
        raise SeriesInvalid("rdates", "must be local times, without an offset")
    check_holiday_calendar(series.policies.holiday_calendar)


def _aware(part: str, instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise SeriesInvalid(part, "must be an instant, with its offset")
    return instant

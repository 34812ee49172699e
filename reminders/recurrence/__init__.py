"""When a reminder rings: local intents, rules and policies on one side, instants on the other.

Pure: no I/O but reading the installed zone and holiday data, no clock, no asyncio. Any part of
Tocsin may import it; it imports nothing of Tocsin. Start at `series`.

    Rule.parse / Cron.parse ──▶ Series(rule, start_local, zone, policies, …)
                                  │ source near the cursor, found by arithmetic
                  dated.Dated ◀───┴───▶ elapsed.Elapsed       batches of candidates
          (dates and local times,        (real seconds since
           policies, localize)          the start)
                                  │ walk.Walk: order of instants, bounded work
                                  ▼ COUNT, UNTIL, EXDATE, RDATE
                              Planned(key, nominal, local, instant, note, cursor), …

`series`    the entry point: what comes after a cursor.
`cursor`    the two values that go in and come out.
`rules`     RRULE (RFC 5545), strictly parsed.    `rule_text` its parts, each by itself.
`cron`      five-field cron.                      `slots`     what sources hand to `walk`.
`dates`     which dates a rule names.             `business`  business days.
`dated`     local times on those dates.           `elapsed`   HOURLY, MINUTELY, SECONDLY.
`walk`      order and the bound of work.          `policies`  what to do with awkward dates.
`zones`     zones by name; local time → instant.  `identity`  occurrence keys.
`wording`   what policies did, in words.          `jitter`    spreading.
`spacing`   how close occurrences come.           `errors`    everything that can be wrong.

The arithmetic is our own. dateutil, the obvious library, can't be stopped inside a barren stretch
(30 February burns 13 s in one call), evaluates WEEKLY+BYSETPOS wrongly in the first week, and knows
no missing-day policy; here it is an oracle of the tests, where it is right. All is also held
against slow readings that share no code: of RFC 5545, of cron, and of every zone's clock
(`tests/oracle`, `make oracle`).
"""

from reminders.recurrence.business import holiday_data_version
from reminders.recurrence.cron import Cron
from reminders.recurrence.cursor import Cursor, Planned
from reminders.recurrence.errors import (
    CronInvalid,
    HolidayCalendarUnknown,
    KeyInvalid,
    RecurrenceError,
    RuleExhausted,
    RuleInvalid,
    SeriesInvalid,
    ZoneError,
    ZoneIsOffset,
    ZoneUnknown,
)
from reminders.recurrence.identity import (
    LocalIntent,
    instant_key,
    occurrence_key,
    parse_occurrence_key,
)
from reminders.recurrence.jitter import jitter
from reminders.recurrence.policies import CalendarPolicies, Gap, MissingDay, Overlap
from reminders.recurrence.rule_text import Freq
from reminders.recurrence.rules import Rule
from reminders.recurrence.series import MAX_STEPS, Series
from reminders.recurrence.spacing import closer_than
from reminders.recurrence.walk import Work
from reminders.recurrence.zones import (
    Localized,
    localize,
    wall_clock,
    zone,
    zone_data_version,
    zone_names,
)

__all__ = [
    "MAX_STEPS",
    "CalendarPolicies",
    "Cron",
    "CronInvalid",
    "Cursor",
    "Freq",
    "Gap",
    "HolidayCalendarUnknown",
    "KeyInvalid",
    "LocalIntent",
    "Localized",
    "MissingDay",
    "Overlap",
    "Planned",
    "RecurrenceError",
    "Rule",
    "RuleExhausted",
    "RuleInvalid",
    "Series",
    "SeriesInvalid",
    "Work",
    "ZoneError",
    "ZoneIsOffset",
    "ZoneUnknown",
    "closer_than",
    "holiday_data_version",
    "instant_key",
    "jitter",
    "localize",
    "occurrence_key",
    "parse_occurrence_key",
    "wall_clock",
    "zone",
    "zone_data_version",
    "zone_names",
]

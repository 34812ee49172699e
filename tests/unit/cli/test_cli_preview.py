"""`tocsin preview`: what it prints, that it reads as the server does, and what it does not need."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tocsin.v1.reminder_service_pb2 import PreviewOccurrencesRequest

from reminders.cli import requests, values
from reminders.cli.options import CalendarFlags, PolicyFlags, When
from reminders.cli.preview import RuleFlags
from reminders.cli.previewing import read_request
from reminders.errors import InvalidRequest, Violation
from reminders.lifecycle.previewing import PreviewRequest
from reminders.recurrence import holiday_data_version, zone_data_version
from scheduler.validation import Validator

Tocsin = Callable[..., Any]
README = Path(__file__).parents[3] / "README.md"
COMMAND = ".venv/bin/tocsin preview"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ISSUE = (
    *("preview", "FREQ=MONTHLY;BYMONTHDAY=31", "--start", "2026-01-31T09:00"),
    *("--zone", "Europe/Paris", "--gap", "next_valid", "--overlap", "earlier"),
    *("--missing-day", "clamp"),
)


def test_json_is_an_array_of_four_fields(tocsin: Tocsin) -> None:
    """Local, instant, offset, note; the note is null where no policy acted."""
    result = tocsin(*ISSUE, "--count", "12", "--json")
    assert (result.code, result.err) == (0, "")
    found = json.loads(result.out)
    assert len(found) == 12
    assert found[:2] == [
        {
            "local": "2026-01-31T09:00:00",
            "instant": "2026-01-31T08:00:00Z",
            "offset": "+01:00",
            "note": None,
        },
        {
            "local": "2026-02-28T09:00:00",
            "instant": "2026-02-28T08:00:00Z",
            "offset": "+01:00",
            "note": "February 2026 has no 31st; it moves to 2026-02-28, the last day of the month.",
        },
    ]


def test_a_person_gets_a_table(tocsin: Tocsin) -> None:
    """Weekday and local time, UTC, offset, note; and what it was computed with."""
    lines = tocsin(*ISSUE, "--count", "2").out.splitlines()
    assert [line.rstrip() for line in lines] == [
        "LOCAL (Europe/Paris)     UTC                   OFFSET  NOTE",
        "Sat 2026-01-31 09:00:00  2026-01-31 08:00:00Z  +01:00",
        (
            "Sat 2026-02-28 09:00:00  2026-02-28 08:00:00Z  +01:00  February 2026 has no 31st; "
            "it moves to 2026-02-28, the last day of the month."
        ),
        f"2 shown, computed with zone data {zone_data_version()}",
    ]


def test_the_example_of_the_readme_is_what_it_prints(tocsin: Tocsin) -> None:
    """Word for word but for the edition of the zone data; a terminal folds the note."""
    lines = README.read_text(encoding="utf-8").splitlines()
    (first,) = (at for at, line in enumerate(lines) if line.startswith(f"    {COMMAND}"))
    after = next(at for at in range(first + 2, len(lines)) if not lines[at].strip())
    *printed, edition = lines[first + 2 : after]
    shown = tocsin(*shlex.split(lines[first])[1:]).out.splitlines()
    assert " ".join(printed).split() == " ".join(shown[:-1]).split()
    assert edition.split()[:-1] == shown[-1].split()[:-1]


def test_what_is_left_out_stands_where_it_would_have_been(tocsin: Tocsin) -> None:
    """With its reason, and in JSON not among the occurrences."""
    asked = ("preview", "FREQ=DAILY", "--start", "2026-03-28T02:30", "--zone", "Europe/Paris")
    lines = tocsin(*asked, "--gap", "skip", "--count", "2").out.splitlines()
    assert lines[2].split()[:4] == ["(left", "out)", "-", "-"]
    assert "02:30 does not exist on 2026-03-29" in lines[2]
    assert lines[3].startswith("Mon 2026-03-30 02:30:00")
    found = json.loads(tocsin(*asked, "--gap", "skip", "--count", "2", "--json").out)
    assert [one["local"][:10] for one in found] == ["2026-03-28", "2026-03-30"]


def test_what_rings_at_the_instant_of_a_skipped_one_stands_behind_it(tocsin: Tocsin) -> None:
    """The morning after Samoa's missing day is when that day's morning would have been."""
    asked = ("preview", "FREQ=DAILY", "--start", "2011-12-29T09:00", "--zone", "Pacific/Apia")
    lines = tocsin(*asked, "--gap", "skip", "--count", "2").out.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["Thu", "2011-12-29"],
        ["(left", "out)"],
        ["Sat", "2011-12-31"],
    ]


def test_a_rule_that_never_rings_is_said_to_be_refused_by_a_create(tocsin: Tocsin) -> None:
    """Each year from January on, in March: that is a mistake, not an end."""
    asked = ("preview", "FREQ=MONTHLY;INTERVAL=12;BYMONTH=3", "--start", "2026-01-31T09:00")
    out = tocsin(*asked, "--zone", "Europe/Paris").out
    assert out.splitlines()[-1] == "nothing of it lies ahead: a create would be refused"


def test_all_flags_of_the_rule(tocsin: Tocsin) -> None:
    """Cron, exceptions, additions, both ends, and where to look from."""
    weekly = ("preview", "--cron", "0 9 * * 1", "--zone", "Europe/Paris", "--json")
    more = ("--after", "2026-11-20T12:00:00Z", "--start", "2026-01-01T00:00")
    dates = (
        *("--exdate", "2026-11-30T09:00", "--exdate", "2026-12-07T09:00"),
        *("--rdate", "2026-12-01T10:00", "--rdate", "2026-12-02T10:00"),
    )

    def days(*flags: str) -> list[str]:
        return [one["local"][5:10] for one in json.loads(tocsin(*weekly, *more, *flags).out)]

    assert days("--count", "4", *dates) == ["11-23", "12-01", "12-02", "12-14"]
    assert days("--max-occurrences", "2") == ["11-23", "11-30"]
    assert days("--until", "2026-12-07T08:00:00Z") == ["11-23", "11-30", "12-07"]


def test_the_end_of_a_rule_and_the_holidays_edition_are_told(tocsin: Tocsin) -> None:
    """So that nobody waits for more."""
    out = tocsin(
        *("preview", "FREQ=MONTHLY;BYMONTHDAY=31;COUNT=2", "--start", "2026-01-31T09:00"),
        *("--zone", "Europe/Paris", "--missing-day", "next-business-day", "--holidays", "FR"),
    ).out
    assert f"2 shown, computed with zone data {zone_data_version()}" in out
    assert f"and holidays {holiday_data_version()}\nthere are no more: the rule ends\n" in out


def test_a_search_that_was_given_up_is_told(
    tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In words under the table; beside JSON on stderr."""
    monkeypatch.setattr("reminders.lifecycle.previewing.PREVIEW_STEPS", 2_000)
    rare = (
        *("preview", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29", "--start", "2026-01-01T09:00"),
        *("--zone", "Europe/Paris", "--count", "1000"),
    )
    assert "there may be more: what is so rare takes long to find" in tocsin(*rare).out
    result = tocsin(*rare, "--json")
    assert 0 < len(json.loads(result.out)) < 1_000
    assert result.err.startswith("warning: what is so rare")


def test_every_wrong_option_is_named_with_its_remedy(tocsin: Tocsin) -> None:
    """All of them at once; exit code 2, as for other wrong usage."""
    result = tocsin(
        *("preview", "FREQ=DAILY;BYMONTH=13", "--start", "tomorrow", "--zone", "Europe/Pari"),
        *("--exdate", "never", "--rdate", "2026-12-01", "--until", "2026-12-01T09:00:00"),
        *("--after", "now", "--count", "1001", "--max-occurrences", "-1", "--holidays", "XX"),
    )
    assert (result.code, result.out) == (2, "")
    first, *lines = result.err.splitlines()
    assert first == "error: this can't be previewed"
    assert [line.split(":")[0].strip() for line in lines] == [
        *("RULE", "--start", "--zone", "--exdate", "--rdate", "--max-occurrences"),
        *("--holidays", "--until", "--after", "--count"),
    ]
    assert "did you mean Europe/Paris?" in result.err
    assert "--until: '2026-12-01T09:00:00' names no offset: end it with Z" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--zone", "Europe/Paris"], "or --cron, one of them"),
        (["FREQ=DAILY", "--cron", "@daily", "--zone", "Europe/Paris"], "or --cron, one of them"),
        (["--cron", "@daily", "--zone", "UTC", "--gap", "jump"], "choose one of next-valid"),
        (["--cron", "0 0 */31 * 1#2", "--zone", "UTC"], "--cron: cron found no occurrence"),
        (["--cron", "0 0 * * *"], "--zone: is required: an IANA name such as Europe/Paris"),
        (["FREQ=DAILY", "--zone", "UTC"], "--start: is required: the first local time"),
    ],
)
def test_wrong_usage_says_what_is_right(tocsin: Tocsin, arguments: list[str], said: str) -> None:
    """Exit code 2."""
    result = tocsin("preview", *arguments)
    assert result.code == 2
    assert said in " ".join(result.err.replace("│", " ").split())


def by_the_server(rule: RuleFlags, calendar: CalendarFlags) -> PreviewRequest:
    """The same flags as `tocsin create` would send them, read by the scheduler."""
    when = When(
        rrule=rule.rule,
        cron=rule.cron,
        start=rule.start or None,
        zone=rule.zone,
        exdate=rule.exdate,
        rdate=rule.rdate,
        count=rule.max_occurrences,
        until=rule.until,
    )
    flags = PolicyFlags(
        gap=calendar.gap,
        overlap=calendar.overlap,
        missing_day=calendar.missing_day,
        holidays=calendar.holidays,
    )
    request = PreviewOccurrencesRequest(
        schedule=requests.schedule(when), policies=requests.policies(flags), count=rule.count
    )
    if rule.after:
        request.after.CopyFrom(values.instant("--after", rule.after))
    return Validator(allow_loopback_http=False).preview(request, NOW)


@pytest.mark.parametrize(
    ("rule", "calendar"),
    [
        ({"rule": "rrule:freq=weekly;byday=tu,mo", "start": "2026-11-20T09:00:30"}, {}),
        ({"cron": "0 9 * * MON"}, {"gap": "shift-forward", "overlap": "both"}),
        ({"cron": "@daily", "after": "2027-01-01T00:00:00.0007+02:00"}, {"holidays": "US-CA"}),
        (
            {"rule": "FREQ=DAILY;COUNT=3", "start": "2026-11-20T09:00", "count": 7},
            {"missing_day": "next_business_day"},
        ),
        (
            {
                "rule": "FREQ=DAILY",
                "start": "2026-11-20T09:00",
                "exdate": ["2026-11-22T09:00", "2026-11-21T09:00"],
                "rdate": ["2026-11-21T10:00", "2026-11-21T10:00"],
                "until": "2026-12-01T00:00:00.9999Z",
                "max_occurrences": 5,
            },
            {"missing_day": "CLAMP"},
        ),
    ],
)
def test_it_reads_as_the_server_does(rule: dict[str, Any], calendar: dict[str, Any]) -> None:
    """One normal form, down to the millisecond."""
    flags, policies = RuleFlags(**({"zone": "Europe/Paris"} | rule)), CalendarFlags(**calendar)
    assert read_request(flags, policies, NOW) == by_the_server(flags, policies)


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": "FREQ=DAILY;BYMONTH=13", "start": "2026-11-20T09:00", "zone": "CET"},
        {"rule": "FREQ=DAILY;COUNT=2", "start": "2026-02-30T09:00", "max_occurrences": 3},
        {"rule": "FREQ=DAILY", "start": "2040-01-01T09:00", "rdate": ["x"] * 501},
        {"rule": "FREQ=DAILY", "start": "2026-11-20T09:00", "until": "2026-11-19T00:00:00Z"},
        {"rule": "FREQ=DAILY", "start": "2026-11-20T09:00", "until": "1850-11-19T00:00:00Z"},
        {"cron": "0 0 30 2 *", "count": 1_001, "after": "2500-01-01T00:00:00Z"},
        {"cron": "* * * * * *", "exdate": ["2026-11-20 09:00"]},
    ],
)
def test_it_refuses_as_the_server_does(rule: dict[str, Any]) -> None:
    """The same violations: field, reason, words."""

    def violations(read: Callable[..., object], *more: object) -> list[Violation]:
        flags = RuleFlags(**({"zone": "Europe/Paris"} | rule))
        with pytest.raises(InvalidRequest) as caught:
            read(flags, CalendarFlags(), *more)
        return caught.value.violations

    assert violations(read_request, NOW) == violations(by_the_server)


def test_it_loads_neither_drivers_nor_services() -> None:
    """What makes it answer at once: it runs on the calendars alone."""
    servers = ("cassandra", "redis", "grpc", "google", "aiohttp")
    foreign = (*servers, "scheduler", "tocsin", "structlog", "asyncio")
    script = (
        "import sys\n"
        "from reminders.cli.app import run\n"
        "try:\n"
        "    run(['preview', '--cron', '@daily', '--zone', 'Europe/Paris', '--count', '1'])\n"
        "finally:\n"
        f"    print(*sorted({{name.split('.')[0] for name in sys.modules}} & set({foreign})))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == ""
    assert "1 shown" in done.stdout


def test_the_configured_limits_hold(
    tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of the environment and of the file: what the server would refuse is refused here."""
    asked = ("preview", "FREQ=SECONDLY", "--start", "2027-01-01T09:00", "--zone", "UTC")
    assert tocsin(*asked, "--count", "2").code == 0
    monkeypatch.setenv("TOCSIN_RULE_MIN_INTERVAL", "1m")
    ran = tocsin(*asked)
    assert ran.code == 2
    assert "at least 60 s must lie between" in ran.err
    monkeypatch.delenv("TOCSIN_RULE_MIN_INTERVAL")
    file = tmp_path / "tocsin.toml"
    monkeypatch.setenv("TOCSIN_CONFIG_FILE", str(file))
    file.write_text('schedule_horizon = "1d"\n')
    far = ("preview", "FREQ=DAILY", "--start", "2099-01-01T09:00", "--zone", "UTC")
    ran = tocsin(*far)
    assert ran.code == 2
    assert "more than 1 days ahead" in ran.err


@pytest.mark.parametrize(
    ("value", "said"), [('rule_min_interval = "1y"', "is not a duration"), ("= 1", "not TOML")]
)
def test_a_wrong_configuration_of_them_is_told(
    tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, said: str
) -> None:
    """Rather than previewing by others."""
    file = tmp_path / "tocsin.toml"
    file.write_text(value)
    monkeypatch.setenv("TOCSIN_CONFIG_FILE", str(file))
    ran = tocsin("preview", "FREQ=DAILY", "--start", "2027-01-01T09:00", "--zone", "UTC")
    assert ran.code == 1
    assert "wrong configuration" in ran.err
    assert said in ran.err

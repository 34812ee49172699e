"""`tocsin zones recompute`: one walk over all reminders, told as it goes."""

import asyncio
import json as jsonlib
import time
from datetime import datetime, timedelta
from typing import Any, Self

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from reminders.cli import render
from reminders.cli.failure import CommandError
from reminders.cli.operation import begin, failure
from reminders.config.settings import Settings
from reminders.errors import TocsinError, Unavailable
from reminders.lifecycle import Reminders
from reminders.lifecycle.editions import EditionUnknown
from reminders.lifecycle.moves import Left, Passed, Totals
from reminders.lifecycle.recomputing import Moved
from reminders.lifecycle.sweeping import Sweep
from reminders.wiring import SHORT_PATIENCE, DangerousServerError, connected

TOLD_EVERY_S = 10.0
"""Progress as lines, where there is no terminal."""
_NOTED = "warning"
"""Below it, logs would only disturb the table."""


def recompute(*, apply: bool, rate: int, json: bool) -> None:
    """The whole walk.

    Raises:
        CommandError: It could not be made, or had to leave some reminders as they were.
    """
    settings = begin("zones", level=_NOTED)
    report = _Lines() if json else _Text(apply=apply)
    with _Progress(report.console) as progress:
        try:
            passed = asyncio.run(_walk(settings, report, progress, apply=apply, rate=rate))
        except (TocsinError, EditionUnknown, DangerousServerError) as error:
            raise _failure(error, settings, apply=apply) from error
    report.end(passed)
    totals = passed.totals
    if totals.newer or totals.failed:
        raise CommandError(
            f"{totals.newer + totals.failed} reminders had to be left as they were",
            *([f"{totals.newer} were computed with newer data: use that"] if totals.newer else []),
            *(["the others: see why in the report"] if totals.failed else []),
        )


async def _walk(
    settings: Settings, report: "_Lines | _Text", progress: "_Progress", *, apply: bool, rate: int
) -> Passed:
    passed = Passed(totals=Totals(), share=0.0)
    async with connected(settings, patience=SHORT_PATIENCE) as platform:
        changes = Reminders(platform).changes
        async for event in Sweep(platform, changes, apply=apply, rate=rate).run():
            if isinstance(event, Passed):
                progress.update(event)
                passed = event
            else:
                report.show(event)
    return passed


def _failure(error: Exception, settings: Settings, *, apply: bool) -> CommandError:
    if not isinstance(error, Unavailable):
        return failure(error, settings)
    goes_on = "the same command goes on from here" if apply else "nothing was changed; try again"
    return failure(error, settings, f"{goes_on}, once the servers answer")


class _Lines:
    """JSON, an object a line."""

    console = Console(quiet=True)

    def show(self, event: Moved | Left) -> None:
        """As it is."""
        self._print("moved" if isinstance(event, Moved) else "left", event)

    def end(self, passed: Passed) -> None:
        """The last line."""
        self._print("totals", passed.totals, resumed_at=passed.resumed_at)

    def _print(self, name: str, content: msgspec.Struct, **more: float) -> None:
        fields = {field: getattr(content, field) for field in content.__struct_fields__}
        values = {key: _plain(value) for key, value in fields.items()} | more
        print(jsonlib.dumps({"event": name, **values}, ensure_ascii=False), flush=True)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value


class _Text:
    """A table that grows row by row: nothing is kept, however much moves, and what was moved before
    a kill has been told.
    """

    def __init__(self, *, apply: bool) -> None:
        self.console = render.console()
        self._apply = apply
        self._begun = False

    def show(self, event: Moved | Left) -> None:
        """A row."""
        table = Table(box=None, pad_edge=False, header_style="bold", show_header=not self._begun)
        for name, width in (
            ("REMINDER", 26),
            ("PROMISED (local)", 19),
            ("ZONE", 30),
            ("WAS (UTC)", 20),
            ("IS (UTC)" if self._apply else "WOULD BE (UTC)", 20),
        ):
            table.add_column(name, min_width=width, overflow="fold")
        table.add_column("WHY", overflow="fold")
        table.add_row(*_row(event))
        self._begun = True
        self.console.print(table)

    def end(self, passed: Passed) -> None:
        """In words."""
        totals = passed.totals
        if passed.resumed_at:
            self.console.print(f"an earlier run came to {passed.resumed_at:.1%}; with it:")
        done = "moved" if self._apply else "would move"
        self.console.print(
            f"{totals.records:,} reminders looked at, {totals.older:,} of them ahead under older "
            f"data: {totals.moved:,} occurrences {done}, {totals.dropped:,} fall away, "
            f"{totals.failed + totals.newer:,} reminders left as they are"
        )
        if not self._apply and (totals.moved or totals.dropped):
            self.console.print("nothing was changed: --apply does it")


def _row(event: Moved | Left) -> tuple[str, ...]:
    if isinstance(event, Left):
        return (event.reminder_id, render.NONE, render.NONE, render.NONE, render.NONE, event.why)
    new = render.utc_text(event.new_instant) if event.new_instant is not None else render.NONE
    return (
        event.reminder_id,
        event.planned_local.isoformat(timespec="seconds"),
        event.zone,
        render.utc_text(event.old_instant),
        new,
        event.note,
    )


class _Progress:
    """On a terminal a bar; else a line on stderr every ten seconds."""

    def __init__(self, rows: Console) -> None:
        console = rows if rows.is_terminal else Console(stderr=True)
        self._bar = Progress(
            BarColumn(),
            TextColumn("{task.percentage:>5.1f} %  {task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._lines = not console.is_terminal
        self._task = TaskID(0)
        self._began = self._told = time.monotonic()
        self._records = 0
        self._first = True

    def __enter__(self) -> Self:
        self._bar.start()
        self._task = self._bar.add_task("connecting …", total=1.0)
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, passed: Passed) -> None:
        """After a page."""
        now = time.monotonic()
        if self._first:  # the time to connect, and what earlier runs did, say nothing of the rate
            self._first, self._began, self._records = False, now, passed.totals.records
        text = self._words(passed, now - self._began)
        self._bar.update(self._task, completed=passed.share, description=text)
        if self._lines and now - self._told >= TOLD_EVERY_S:
            self._told = now
            self._bar.console.print(f"{passed.share:.1%}  {text}", soft_wrap=True)

    def _words(self, passed: Passed, elapsed_s: float) -> str:
        totals = passed.totals
        text = f"{totals.records:,} reminders, {totals.moved + totals.dropped:,} move"
        walked = passed.share - passed.resumed_at
        if elapsed_s < 1.0 or walked <= 0.0:
            return text
        left = timedelta(seconds=round((1.0 - passed.share) / walked * elapsed_s))
        rate = (totals.records - self._records) / elapsed_s
        return f"{text}, {rate:,.0f}/s, about {left} left"

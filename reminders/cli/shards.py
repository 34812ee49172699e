"""`tocsin shards`: who leads each shard, and how far behind it is. For people and for checks."""

import asyncio
import json as jsonlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.table import Table

from reminders.cli import render
from reminders.cli.failure import CommandError
from reminders.cli.operation import begin, failure
from reminders.config.settings import Settings
from reminders.errors import TocsinError
from reminders.overview import Overview, Shard
from reminders.wiring import SHORT_PATIENCE, DangerousServerError, connected

_NOTED = "error"
"""Below it, logs would only disturb the table."""


def show(*, json: bool) -> None:
    """The table.

    Raises:
        CommandError: It can't be had; or some shard has no holder, or a watermark that may not go
            on: then the table was printed first.
    """
    settings = begin("shards", level=_NOTED)
    try:
        found, now = asyncio.run(_look(settings))
    except (TocsinError, DangerousServerError) as error:
        raise failure(error, settings) from error
    if json:
        print(jsonlib.dumps([as_json(one, now) for one in found], indent=2))
    else:
        render.console().print(table_of(found, now))
    problems = problems_of(found)
    if problems:
        raise CommandError(*problems)


async def _look(settings: Settings) -> tuple[Sequence[Shard], datetime]:
    async with connected(settings, patience=SHORT_PATIENCE) as platform:
        return await Overview(platform).shards(), platform.clock.now()


def problems_of(shards: Sequence[Shard]) -> list[str]:
    """What an operator has to do something about."""
    headless = [str(one.shard) for one in shards if one.holder is None]
    refused = [str(one.shard) for one in shards if one.refused]
    found = []
    if headless:
        found.append(f"nobody leads shards {', '.join(headless)}: is a scanner running?")
    if refused:
        found.append(
            f"the watermarks of shards {', '.join(refused)} stand before minutes that may have "
            "lost entries: run `tocsin rebuild`"
        )
    return found


def as_json(shard: Shard, now: datetime) -> dict[str, Any]:
    """Instants in ISO 8601, ages in seconds."""
    return {
        "shard": shard.shard,
        "holder": shard.holder,
        "settled_through": shard.settled_through.isoformat(),
        "settled_age_s": _seconds(shard.settled_age),
        "unsettled": shard.unsettled,
        "unsettled_is_more": shard.unsettled_is_more,
        "oldest_due": shard.oldest_due.isoformat() if shard.oldest_due else None,
        "oldest_due_age_s": _seconds(shard.oldest_age(now)),
        "jobs": shard.jobs,
        "fires": shard.fires,
        "refused": shard.refused,
    }


def table_of(shards: Sequence[Shard], now: datetime) -> Table:
    """One row a shard."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = ("SHARD", "HOLDER", "SETTLED THROUGH", "BEHIND", "UNSETTLED", "OLDEST DUE", "JOBS")
    for name in (*columns, "FIRES"):
        right = name not in ("HOLDER", "SETTLED THROUGH")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for one in shards:
        table.add_row(
            str(one.shard),
            one.holder or "nobody",
            f"{one.settled_through:%Y-%m-%d %H:%M}Z" + (" (refused)" if one.refused else ""),
            _age(one.settled_age),
            f"{one.unsettled}{'+' if one.unsettled_is_more else ''}",
            _age(one.oldest_age(now)) if one.oldest_due else render.NONE,
            str(one.jobs),
            str(one.fires),
            style="red" if one.holder is None or one.refused else None,
        )
    return table


def _seconds(age: timedelta) -> float:
    return round(age.total_seconds(), 3)


def _age(age: timedelta) -> str:
    seconds = age.total_seconds()
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} d"

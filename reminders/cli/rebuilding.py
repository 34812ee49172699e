"""`tocsin rebuild`: due entries written again from the records."""

import asyncio

from reminders.cli import render
from reminders.cli.operation import begin, failure
from reminders.config.settings import Settings
from reminders.errors import TocsinError
from reminders.lifecycle import Reminders
from reminders.lifecycle.rebuilding import Rebuild, Rebuilt
from reminders.wiring import SHORT_PATIENCE, DangerousServerError, connected

TOLD_EVERY = 50
"""Pages."""


def rebuild() -> None:
    """The whole walk.

    Raises:
        CommandError: It stopped; the next one begins anew.
    """
    settings = begin("rebuild")
    try:
        done = asyncio.run(_walk(settings))
    except (TocsinError, DangerousServerError) as error:
        raise failure(error, settings, "run it again: what it has done stays done") from error
    render.console().print(
        f"{done.records} reminders looked at, {done.written} entries written again; "
        "the watermarks go on"
    )


async def _walk(settings: Settings) -> Rebuilt:
    last = Rebuilt(records=0, written=0, share=0.0)
    async with connected(settings, patience=SHORT_PATIENCE) as platform:
        reminders = Reminders(platform)
        walk = Rebuild(platform, reminders.writer, reminders.planner, reminders.changes.finish)
        pages = 0
        async for last in walk.run():
            pages += 1
            if pages % TOLD_EVERY == 0:
                render.console().print(f"{last.share:.0%}: {last.records} reminders")
    return last

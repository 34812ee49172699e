"""`tocsin migrate`."""

import asyncio
import uuid

from reminders.cli.failure import CommandError
from reminders.cli.stack import checked_settings
from reminders.errors import TocsinError
from reminders.storage.migrate import migrate as apply_missing
from reminders.telemetry.logs import configure_logging
from reminders.wiring import storage_settings


def migrate() -> str:
    """Applies what is missing; says what that was.

    Raises:
        CommandError: Cassandra does not answer, or refuses.
    """
    settings = checked_settings()
    configure_logging(
        service="migrate",
        instance=str(uuid.uuid4()),
        level=settings.log_level,
        style=settings.log_format,
    )
    try:
        applied = asyncio.run(apply_missing(storage_settings(settings)))
    except TocsinError as error:
        hosts = ", ".join(settings.cassandra_hosts)
        raise CommandError(str(error), f"Cassandra: {hosts}") from error
    where = f"keyspace {settings.cassandra_keyspace}"
    return f"{where}: applied {', '.join(map(str, applied))}" if applied else f"{where}: up to date"

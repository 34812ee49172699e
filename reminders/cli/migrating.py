"""`tocsin migrate`."""

import asyncio

from reminders.cli.operation import begin, failure
from reminders.errors import TocsinError
from reminders.storage.migrate import migrate as apply_missing
from reminders.wiring import storage_settings


def migrate() -> str:
    """Applies what is missing; says what that was.

    Raises:
        CommandError: Cassandra does not answer, or refuses.
    """
    settings = begin("migrate")
    try:
        applied = asyncio.run(apply_missing(storage_settings(settings)))
    except TocsinError as error:
        raise failure(error, settings) from error
    where = f"keyspace {settings.cassandra_keyspace}"
    return f"{where}: applied {', '.join(map(str, applied))}" if applied else f"{where}: up to date"

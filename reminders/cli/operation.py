"""How an operator's one-off command begins: migrate, rebuild, shards, zones."""

import uuid

from reminders.cli.failure import CommandError
from reminders.cli.stack import checked_settings
from reminders.config.display import shown
from reminders.config.settings import Settings
from reminders.config.sources import variable
from reminders.errors import CoordinationUnavailable, StoreUnavailable
from reminders.telemetry.logs import configure_logging


def begin(name: str, *, level: str | None = None) -> Settings:
    """The configuration, and logs under that name; `level`: where the configured one would disturb
    what is printed.

    Raises:
        CommandError: The configuration is wrong.
    """
    settings = checked_settings()
    configure_logging(
        service=name,
        instance=str(uuid.uuid4()),
        level=level or settings.log_level,
        style=settings.log_format,
    )
    return settings


def failure(error: Exception, settings: Settings, *more: str) -> CommandError:
    """What it says; of a server that does not answer also where it was looked for, and which
    variable says so. `more`: what to do then.
    """
    match error:
        case StoreUnavailable():
            server, name, at = "Cassandra", "cassandra_hosts", ", ".join(settings.cassandra_hosts)
        case CoordinationUnavailable():
            server, name, at = "Redis", "redis_url", shown("redis_url", settings.redis_url)
        case _:
            return CommandError(str(error), *more)
    return CommandError(
        f"{server} does not answer",
        f"looked for at {at}: {variable(name)} names another; "
        "`make run` and `tocsin up` print what names theirs",
        *more,
    )

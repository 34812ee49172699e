"""How an operator's one-off command begins: migrate, rebuild, shards, zones."""

import uuid

from reminders.cli.stack import checked_settings
from reminders.config.settings import Settings
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

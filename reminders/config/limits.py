"""What the configuration lets callers ask for."""

import os
from typing import TYPE_CHECKING, Final

from reminders.config.sources import config_file, read_config_file, variable
from reminders.lifecycle.request_limits import RequestLimits

if TYPE_CHECKING:
    from reminders.config.settings import Settings

_FIELDS: Final = ("rule_min_interval", "schedule_horizon")


def request_limits(settings: "Settings") -> RequestLimits:
    """Of the deployment that it configures."""
    return RequestLimits(min_interval=settings.rule_min_interval, horizon=settings.schedule_horizon)


def limits_configured() -> bool:
    """Whether the environment or the file says anything about them: who wants nothing else of the
    configuration can do without reading, and checking, all of it.

    Raises:
        ConfigFileError: The file can't be read.
    """
    named = {name.upper() for name in os.environ}
    in_file = read_config_file(config_file())
    return any(variable(field) in named or field in in_file for field in _FIELDS)

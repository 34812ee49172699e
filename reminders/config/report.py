"""What is in force, for `tocsin config`: each setting, its value, and where it came from."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import version

import tzdata
from pydantic.fields import FieldInfo

from reminders.config.channels import ChannelSettings
from reminders.config.display import shown
from reminders.config.problems import unknown_variables
from reminders.config.settings import Settings, given_values, load_settings
from reminders.config.sources import config_file, variable


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """One setting."""

    variable: str
    value: str
    """As the environment would spell it; secrets masked; empty if not set."""
    source: str
    """`environment`, `default`, or the file's name."""
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that tells two processes apart."""

    settings: list[InForce]
    versions: dict[str, str]
    """Of Tocsin, Python, the time-zone data and the holidays: what instants are computed with."""
    config_file: str
    """The file that was read; empty if there is none."""
    warnings: list[str]
    """Variables that look misspelt."""


def report() -> Report:
    """What `load_settings` gives here and now.

    Raises:
        ConfigError: Something is wrong.
    """
    settings = load_settings()
    given = given_values()
    rows = [
        InForce(
            variable=variable(name),
            value=shown(name, getattr(settings, name)),
            source=given[name].source if name in given else "default",
            meaning=(field.description or "").replace("\n", " "),
        )
        for name, field in sorted(Settings.model_fields.items(), key=_channels_last)
    ]
    return Report(
        settings=rows,
        versions={
            "tocsin": version("tocsin-server"),
            "python": platform.python_version(),
            "zone data": tzdata.IANA_VERSION,
            "holidays": version("holidays"),
        },
        config_file=str(config_file() or ""),
        warnings=unknown_variables(os.environ, Settings.model_fields),
    )


def _channels_last(setting: tuple[str, FieldInfo]) -> bool:
    """Most deployments leave most of them out."""
    return setting[0] in ChannelSettings.model_fields

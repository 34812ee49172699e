"""The optional TOML file, found in one place for services and for client commands."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PREFIX = "TOCSIN_"
FILE_VARIABLE = "TOCSIN_CONFIG_FILE"
DEFAULT_FILE = Path("tocsin.toml")


class ConfigFileError(Exception):
    """The file can't be read; the message says which and why."""


def variable(field: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + field.upper()


def config_file(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file in force: the one that is named, else `tocsin.toml` if it is there."""
    named = environ.get(FILE_VARIABLE)
    if named:
        return Path(named)
    return DEFAULT_FILE if DEFAULT_FILE.is_file() else None


def read_config_file(path: Path | None) -> dict[str, Any]:
    """What the file says, unchecked; nothing without a file.

    Raises:
        ConfigFileError: It is missing or no TOML.
    """
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigFileError(
            f"{FILE_VARIABLE}={path}: {error.strerror}; name a TOML file or unset it"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigFileError(f"{path}: not TOML: {error}") from error

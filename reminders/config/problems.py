"""What is said about a wrong setting: the variable, the value, its source, what is right."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from reminders.config.display import MASK, is_secret, shown
from reminders.config.sources import FILE_VARIABLE, PREFIX, variable


class ConfigError(Exception):
    """The process can't start as configured; `problems` has a line for each thing that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Given:
    """A value as it was given, unchecked."""

    source: str
    """`environment`, or the file's name."""
    raw: Any


def problem_of(
    details: ErrorDetails, given: Mapping[str, Given], fields: Mapping[str, FieldInfo]
) -> str:
    """One line about one error of pydantic's."""
    name = str(details.get("ctx", {}).get("field") or details["loc"][0])
    field = fields.get(name)
    if field is None:
        where = given[name].source if name in given else "the configuration"
        return f"{name!r} in {where} is no setting{_did_you_mean(name, fields)}"
    said = details["msg"].removeprefix("Value error, ")
    value = given.get(name)
    if value is None:
        return f"{variable(name)} is not set: {said}. Right: {field.description}"
    text = MASK if is_secret(field) else shown(name, value.raw)
    usual = shown(name, field.default)
    default = f" Default: {usual}." if usual else ""
    return (
        f"{variable(name)}={text!r} (from {value.source}): {said}. "
        f"Right: {field.description}{default}"
    )


def unknown_variables(environ: Iterable[str], fields: Mapping[str, FieldInfo]) -> list[str]:
    """A line for each variable that looks like a misspelt setting; others are nobody's concern."""
    known = {variable(name) for name in fields} | {FILE_VARIABLE}
    lines = []
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
            lines += [f"{name} is no setting; did you mean {near[0]}?"] if near else []
    return lines


def _did_you_mean(name: str, fields: Mapping[str, FieldInfo]) -> str:
    near = difflib.get_close_matches(name, fields, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""

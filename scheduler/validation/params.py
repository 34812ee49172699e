"""google.protobuf.Struct ↔ JSON text, without the detours and the cost of `json_format`.

Normal form: keys sorted, no spaces, whole numbers without a fraction (1, not 1.0; -0 is 0).
"""

from math import isfinite
from typing import Any, Final, TypeVar

import msgspec
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from msgspec.structs import fields

from reminders.lifecycle.problems import Problems, Reason
from reminders.model.definition import Definition

DEEPEST = 16
"""Objects and lists within each other. (Protobuf itself reads 32.)"""
_EXACT = 2.0**63
"""Whole numbers below this are printed as integers."""

NO_PARAMS: Final[str] = next(f.default for f in fields(Definition) if f.name == "params_json")
"""`{}`, the very object that the model has as its default: those are left out when stored."""

T = TypeVar("T")

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def to_json(params: Struct, field: str, problems: Problems) -> str:
    """The normal form; meaningless where a problem was noted."""
    if not params.fields:
        return NO_PARAMS
    before = len(problems.found)
    found = _object(params, field, 1, problems)
    return NO_PARAMS if len(problems.found) > before else _encode(found).decode()


def from_json(text: str, params: Struct) -> None:
    """Fills an empty message from what `to_json` made."""
    if text != NO_PARAMS:
        for key, item in _decode(text).items():
            _fill(params.fields[key], item)


def _object(params: Struct, field: str, depth: int, problems: Problems) -> dict[str, Any]:
    if depth > DEEPEST:
        return _too_deep({}, field, problems)
    found: dict[str, Any] = {}
    for key, value in params.fields.items():
        kind = value.WhichOneof("kind")
        if kind == "string_value":
            found[key] = value.string_value
        elif kind == "number_value":
            found[key] = _number(value.number_value, field, key, problems)
        else:
            found[key] = _other(value, kind, f"{field}.{key}", depth, problems)
    return found


def _list(values: ListValue, field: str, depth: int, problems: Problems) -> list[Any]:
    if depth > DEEPEST:
        return _too_deep([], field, problems)
    found: list[Any] = []
    for index, value in enumerate(values.values):
        kind = value.WhichOneof("kind")
        if kind == "string_value":
            found.append(value.string_value)
        elif kind == "number_value":
            found.append(_number(value.number_value, field, index, problems))
        else:
            found.append(_other(value, kind, f"{field}[{index}]", depth, problems))
    return found


def _other(value: Value, kind: str | None, field: str, depth: int, problems: Problems) -> Any:
    match kind:
        case "bool_value":
            return value.bool_value
        case "null_value":
            return None
        case "struct_value":
            return _object(value.struct_value, field, depth + 1, problems)
        case "list_value":
            return _list(value.list_value, field, depth + 1, problems)
    problems.add(field, Reason.VALUE_INVALID, "has no value; set one, or null_value")
    return None


def _number(number: float, field: str, key: str | int, problems: Problems) -> float:
    if number.is_integer():
        return int(number) if -_EXACT <= number < _EXACT else number
    if not isfinite(number):
        where = f"{field}[{key}]" if isinstance(key, int) else f"{field}.{key}"
        problems.add(
            where, Reason.VALUE_INVALID, f"is {number}, which JSON can't say; send a string or null"
        )
    return number


def _too_deep(empty: T, field: str, problems: Problems) -> T:
    problems.add(field, Reason.VALUE_INVALID, f"is nested deeper than {DEEPEST} levels")
    return empty


def _fill(value: Value, item: Any) -> None:
    if isinstance(item, str):
        value.string_value = item
    elif isinstance(item, bool):
        value.bool_value = item
    elif isinstance(item, int | float):
        value.number_value = item
    elif item is None:
        value.null_value = 0  # type: ignore[assignment]  # the enum's only member
    elif isinstance(item, dict):
        value.struct_value.SetInParent()
        for key, inner in item.items():
            _fill(value.struct_value.fields[key], inner)
    else:
        value.list_value.SetInParent()
        for inner in item:
            _fill(value.list_value.values.add(), inner)

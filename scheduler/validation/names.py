"""Which namespace, which reminder."""

import re

from msgspec import Struct

from reminders.lifecycle.problems import Problems, Reason, check_length, shown
from scheduler.validation.reminders import DEFAULT_NAMESPACE

REMINDER_ID_BYTES = 40

_NAMESPACE = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII).fullmatch


class Name(Struct, frozen=True, kw_only=True, gc=False):
    """Which reminder."""

    namespace: str
    reminder_id: str


def read_namespace(namespace: str, field: str, problems: Problems) -> str:
    """Empty: the default one."""
    if not namespace:
        return DEFAULT_NAMESPACE
    if not _NAMESPACE(namespace):
        problems.add(
            field,
            Reason.NAMESPACE_INVALID,
            f"{shown(namespace)} is not 1-64 characters of A-Z, a-z, 0-9, '.', '_' and '-'",
        )
    return namespace


def read_name(namespace: str, reminder_id: str, problems: Problems, *, under: str = "") -> Name:
    """`under`: the path of the message that holds both, with its dot."""
    field = f"{under}reminder_id"
    if not reminder_id:
        problems.required(field, "the id that the create answered")
    check_length(reminder_id, REMINDER_ID_BYTES, field, problems)
    namespace = read_namespace(namespace, f"{under}namespace", problems)
    return Name(namespace=namespace, reminder_id=reminder_id)

"""Which deliveries a list is to have."""

from collections.abc import Iterable
from typing import Final

from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as service_pb

from reminders.lifecycle.problems import Problems, Reason, check_length
from reminders.lifecycle.targets import Wanted
from reminders.model.ledger import DeliveryStatus
from reminders.recurrence.errors import KeyInvalid
from reminders.recurrence.identity import parse_occurrence_key
from scheduler.validation.reminders import ID_BYTES

_PREFIX: Final = "DELIVERY_STATUS_"


def read_wanted(request: service_pb.ListDeliveriesRequest, problems: Problems) -> Wanted:
    """Empty fields want everything."""
    if request.occurrence_id:
        try:
            parse_occurrence_key(request.occurrence_id)
        except KeyInvalid as error:
            problems.add("occurrence_id", Reason.VALUE_INVALID, error.reason)
    check_length(request.subscriber_id, ID_BYTES, "subscriber_id", problems)
    return Wanted(
        occurrence_id=request.occurrence_id or None,
        subscriber_id=request.subscriber_id,
        statuses=frozenset(_statuses(request.statuses, problems)),
    )


def _statuses(given: Iterable[int], problems: Problems) -> Iterable[DeliveryStatus]:
    names: dict[int, str] = {value: name for name, value in pb.DeliveryStatus.items()}
    for number, value in enumerate(given):
        word = names.get(value, "").removeprefix(_PREFIX).lower()
        if word in list(DeliveryStatus):
            yield DeliveryStatus(word)
        else:
            known = ", ".join(f"{_PREFIX}{each.name}" for each in DeliveryStatus)
            problems.add(f"statuses[{number}]", Reason.VALUE_INVALID, f"must be one of {known}")

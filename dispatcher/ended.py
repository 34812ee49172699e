"""What ends failed or expired is listed, beside its ledger row (`model.ended`). Pure.

The list is written first: a process that dies in between leaves a row too many there, which readers
compare with the ledger, and never one too few. A delivery that ends well costs nothing here.
"""

from datetime import datetime

from msgspec.structs import replace

from dispatcher.channels import kind_of
from dispatcher.work import LegWork
from reminders.model.ended import Ended, ended_of, ended_status
from reminders.model.endpoint import address_of
from reminders.model.ledger import LedgerRow

DISABLED = "endpoint_disabled"
"""The reason of a delivery that was not attempted because its endpoint is disabled."""


def listed(leg: LegWork, row: LedgerRow, at: datetime) -> tuple[LedgerRow, Ended | None]:
    """The row as it is to be written, and what goes into the list; None: nothing."""
    if ended_status(row) is None:
        return row, None
    row = replace(row, ended_at=at)
    address = address_of(leg.work.entry.namespace, leg.channel)
    ended = ended_of(
        row,
        ended_at=at,
        kind=kind_of(leg.channel),
        endpoint_id=address.endpoint_id if address is not None else "",
    )
    return row, ended

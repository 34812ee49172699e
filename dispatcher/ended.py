"""What of a leg is listed when it ends failed or expired, beside its ledger row. Pure; the list is
`model.ended`.

The list is written first: a process that dies in between leaves a row too many there, which readers
compare with the ledger, and never one too few. A delivery that ends well costs nothing here.
"""

from datetime import datetime

from dispatcher.channels import kind_of
from dispatcher.work import LegWork
from reminders.model import ended
from reminders.model.endpoint import address_of
from reminders.model.ledger import LedgerRow

DISABLED = "endpoint_disabled"
"""The reason of a delivery that was not attempted because its endpoint is disabled."""


def listed(leg: LegWork, row: LedgerRow, at: datetime) -> tuple[LedgerRow, ended.Ended | None]:
    """The row as it is to be written, and what goes into the list; None: nothing."""
    if ended.ended_status(row) is None:
        return row, None
    address = address_of(leg.work.entry.namespace, leg.channel)
    return ended.listed(
        row,
        at=at,
        kind=kind_of(leg.channel),
        endpoint_id=address.endpoint_id if address is not None else "",
    )

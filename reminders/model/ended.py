"""What ended without having arrived: what an operator lists and sends again."""

from datetime import datetime
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from reminders.model.ledger import DeliveryStatus, LedgerRow, OccurrenceStatus


class EndedPlace(NamedTuple):
    """Where one stands in the list: it is in this order, from the oldest on."""

    ended_at: datetime
    reminder_id: str = ""
    occurrence_id: str = ""
    channel_id: str = ""
    target: str = ""


class Ended(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A delivery that ended `failed` or `expired`, or an occurrence that did without any delivery.

    Only a finding aid: the ledger decides (`stands`). One whose delivery was sent again meanwhile
    stays in the list, and so does what a process wrote that died before it wrote the ledger.
    """

    namespace: str
    ended_at: datetime
    """As the ledger row has it."""
    status: str
    """`failed` or `expired`."""
    reason: str
    """A stable word, as the ledger has it."""
    kind: str = ""
    """Of the channel; empty for an occurrence without deliveries."""
    endpoint_id: str = ""
    """Where it went; empty where there is no endpoint, such as a log."""
    reminder_id: str
    occurrence_id: str
    channel_id: str = ""
    target: str = ""
    """The subscriber, of a fan-out."""

    @property
    def place(self) -> EndedPlace:
        """Its place in the list."""
        return EndedPlace(
            self.ended_at, self.reminder_id, self.occurrence_id, self.channel_id, self.target
        )


_DELIVERIES = (DeliveryStatus.FAILED, DeliveryStatus.EXPIRED)
_OCCURRENCES = (OccurrenceStatus.FAILED, OccurrenceStatus.EXPIRED)


def ended_status(row: LedgerRow) -> str | None:
    """`failed` or `expired` if that is how it ended."""
    if row.delivery is not None:
        return row.delivery.value if row.delivery in _DELIVERIES else None
    return row.ended.value if row.ended in _OCCURRENCES else None


def listed(
    row: LedgerRow, *, at: datetime, kind: str = "", endpoint_id: str = ""
) -> tuple[LedgerRow, Ended | None]:
    """The row of what ended at `at` as it is to be written, and what goes into the list beside it;
    None: nothing, and the row is as it was.
    """
    status = ended_status(row)
    if status is None:
        return row, None
    ended = Ended(
        namespace=row.namespace,
        ended_at=at,
        status=status,
        reason=row.reason,
        kind=kind,
        endpoint_id=endpoint_id,
        reminder_id=row.reminder_id,
        occurrence_id=row.occurrence.occurrence_id,
        channel_id=row.channel_id,
        target=row.target,
    )
    return replace(row, ended_at=at), ended


def stands(ended: Ended, row: LedgerRow | None) -> bool:
    """Whether the ledger says the same: it ended so, then, and nothing became of it since."""
    if row is None or row.ended_at != ended.ended_at:
        return False
    return ended_status(row) == ended.status

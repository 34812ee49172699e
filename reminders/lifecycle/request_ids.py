"""What a caller's request id stands for: the first call that names it, for all its repeats."""

import hashlib
from datetime import datetime, timedelta

from reminders.errors import KeyConflict
from reminders.lifecycle.writing import stamp_of
from reminders.model.record import DedupClaim
from reminders.ports import DedupKeys

REMEMBERED = timedelta(days=7)
"""How long a request id stands for its call."""


def claim_of(
    namespace: str,
    reminder_id: str,
    key: str,
    *,
    content: bytes,
    at: datetime,
    life: timedelta = REMEMBERED,
) -> DedupClaim:
    """A claim to a key about one reminder, made at `at`; who brings other content lost it."""
    return DedupClaim(
        namespace=namespace,
        key=key,
        reminder_id=reminder_id,
        content_hash=hashlib.sha256(content).digest()[:16],
        created_at=at,
        stamp=stamp_of(at),
        expires_at=at + life,
    )


async def first_of(
    dedup: DedupKeys, namespace: str, reminder_id: str, key: str, *, content: bytes, at: datetime
) -> DedupClaim:
    """The claim of the first call with that key: what it asks for, the reminder, its request id.

    Raises `KeyConflict` if that call asked for something else.
    """
    claim = claim_of(namespace, reminder_id, key, content=content, at=at)
    (stands,) = await dedup.claim([claim])
    if stands.content_hash != claim.content_hash:
        raise KeyConflict(key="request_id", reminder_id=reminder_id)
    return stands


def id_of(claim: DedupClaim) -> str:
    """An id for what the call makes, the same for all its repeats."""
    return hashlib.sha256(claim.key.encode()).hexdigest()[:25]

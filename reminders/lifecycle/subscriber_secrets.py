"""The signing secrets of a subscriber: made, found again, compared. Pure, but for chance.

A secret's value is answered once, and to repeats of the same call for `REPEATED`: whoever knows the
request id made the call.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from hmac import compare_digest
from secrets import token_hex

from reminders.errors import InvalidRequest, Violation
from reminders.lifecycle.problems import Reason
from reminders.lifecycle.writing import stamp_of
from reminders.model.subscriber import Secret, Subscriber
from reminders.signing_secrets import SecretText, key_of, new_secret

OVERLAP = timedelta(hours=24)
"""How long the secrets before a new one stay valid, unless the caller says otherwise."""
REPEATED = timedelta(hours=1)
"""How long the repeat of a call is answered the secret that the call made."""


def made(
    subscriber: Subscriber,
    now: datetime,
    *,
    secret: SecretText | None,
    call: str | None,
    overlap: timedelta,
) -> Secret:
    """One that is newer than all others of the subscriber, whatever the clock says. `secret`: the
    caller's; None: drawn. `call`: what repeats of the same call have in common. `overlap`: how long
    others stay valid, also such as somebody else makes at the same time.
    """
    newest = max((one.made_at for one in subscriber.secrets), default=None)
    later = now if newest is None else max(now, newest + timedelta(microseconds=1))
    return Secret(
        secret_id=token_hex(8) if call is None else _secret_id(call),
        value=str(new_secret() if secret is None else secret),  # msgspec wants no subclass
        made_at=later,
        overlap=overlap,
        stamp=next_stamp(subscriber, now),
    )


def of_call(subscriber: Subscriber, call: str | None) -> Secret | None:
    """The secret that an earlier try of the same call made."""
    if call is None:
        return None
    name = _secret_id(call)
    return next((one for one in subscriber.secrets if one.secret_id == name), None)


def call_of(kind: str, request_id: str | None) -> str | None:
    """Calls of different kinds have request ids of their own."""
    return None if request_id is None else f"{kind}:{request_id}"


def answerable(secret: Secret | None, now: datetime) -> Secret | None:
    """None where the call that made it was too long ago to be repeated."""
    return secret if secret is not None and now - secret.made_at < REPEATED else None


def check_same(secret: SecretText, valid: Sequence[Secret]) -> None:
    """Raises `InvalidRequest` unless it is one of those that are valid."""
    if not any(compare_digest(key_of(secret), key_of(one.value)) for one in valid):
        said = "is not the one that the subscriber has: leave it empty, or call RotateSecret"
        raise refused("secret", Reason.SECRET_DIFFERS, said)


def next_stamp(subscriber: Subscriber, now: datetime) -> int:
    """Behind all that was written of it, as far as can be seen, and of the clock's time."""
    return max(stamp_of(now), subscriber.last_stamp + 1)


def refused(field: str, reason: Reason, description: str) -> InvalidRequest:
    """One violation."""
    violation = Violation(field=field, reason=reason, description=description)
    return InvalidRequest(violations=[violation])


def _secret_id(call: str) -> str:
    return hashlib.sha256(call.encode()).hexdigest()[:24]

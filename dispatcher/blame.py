"""Whose fault a failed attempt is: the endpoint's, our provider's or network's, or our own. Pure.

Only what is the endpoint's own fault may disable it. A mail relay that refuses everything says
nothing about a thousand mailboxes, and a cut line nothing about the webhooks behind it.

| channel          | the endpoint's               | the way's, or the endpoint's   | ours     |
|------------------|------------------------------|--------------------------------|----------|
| webhook          | HTTP, other than 2xx and 429 | no answer: DNS, TLS, time-outs | all else |
| email, sms, push |                              | the address is refused         | all else |

What may be the way's is the endpoint's if the way works: something came through for others within
`LATELY`, or too few have failed since to tell (a deployment may have one receiver only).
"""

from datetime import datetime, timedelta
from enum import Enum

from dispatcher.channels.port import Outcome

LATELY = timedelta(minutes=10)
SEVERAL = 3
"""So many different endpoints without a success of any: then it is the way."""

_NO_ANSWER = frozenset(
    ("dns", "connect", "connect_timeout", "timeout", "tls", "disconnected", "protocol")
)
_REFUSED = frozenset(
    (
        *("address_invalid", "unregistered", "opted_out", "unreachable"),
        # RFC 5321, 3463 and 7504: no such mailbox, it moved, it is not allowed, takes no mail
        *("smtp_550", "smtp_551", "smtp_553", "smtp_521", "smtp_556"),
    )
)


class Fault(Enum):
    """Whose."""

    ENDPOINT = "endpoint"
    WAY = "way"
    """The endpoint's only if others can be reached."""
    OURS = "ours"


def fault(kind: str, outcome: str, error_class: str) -> Fault:
    """Of an attempt that did not end well. Too many requests (429) are no fault of the endpoint,
    which works and asks for patience.
    """
    if outcome == Outcome.RATE_LIMITED:
        return Fault.OURS
    if kind != "webhook":
        return Fault.WAY if error_class in _REFUSED else Fault.OURS
    if error_class in _NO_ANSWER:
        return Fault.WAY
    return Fault.ENDPOINT if error_class.startswith("http_") else Fault.OURS


def is_gone(kind: str, error_class: str, *, exact: bool) -> bool:
    """Whether it wants nothing more. A webhook says so by 410 (Standard Webhooks: "disable the
    endpoint"), a push service of a device whose app is gone. `exact`: a URL with a query shares its
    endpoint with others, for which it does not speak.
    """
    if kind == "webhook":
        return exact and error_class == "http_410"
    return kind == "push" and error_class == "unregistered"


class Ways:
    """Whether the ways out work, by kind of channel."""

    def __init__(self) -> None:
        self._worked_at: dict[str, datetime] = {}
        self._failing: dict[str, set[str]] = {}

    def worked(self, kind: str, at: datetime) -> None:
        """Something came through."""
        self._worked_at[kind] = at
        if self._failing.get(kind):
            self._failing[kind].clear()

    def blocked(self, kind: str, endpoint_id: str, at: datetime) -> bool:
        """Whether this failure is the way's, as far as one can tell."""
        worked_at = self._worked_at.get(kind)
        if worked_at is not None and at - worked_at <= LATELY:
            return False
        failing = self._failing.setdefault(kind, set())
        if len(failing) < SEVERAL:
            failing.add(endpoint_id)
        return len(failing) >= SEVERAL

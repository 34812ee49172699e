"""How long a call may take: its limit, or what is left of the caller's own deadline.

A call that takes longer is cancelled. Every use case bears that as it bears a crash in the same
place: what was written is found and completed by whoever repeats the call, or comes by. What the
stores still have under way for it is bounded there.
"""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

import grpc

from reminders.errors import Unavailable

Response = TypeVar("Response")
Context = grpc.aio.ServicerContext[Any, Any]

CALL_TIMEOUT: Final = timedelta(seconds=5)
UNLIMITED: Final = frozenset({"BatchCreateReminders", "SendTest"})
"""Unary calls that do more than wait for stores: planning many rules takes its time, and a test's
outcome is waited for as long as the caller asks. Their use case itself loses patience."""


class TimedOut(Unavailable):
    """It took longer than any call may; it may have taken effect."""

    reason = "TIMED_OUT"


class DeadlineExceeded(Unavailable):
    """The caller's own deadline passed; it may have taken effect."""

    reason = "DEADLINE_EXCEEDED"


def remaining_s(context: Context) -> float | None:
    """Until the caller's deadline; None if there is none."""
    return cast("float | None", context.time_remaining())


async def in_time(
    method: str, work: Awaitable[Response], context: Context, limit_s: float | None
) -> Response:
    """What the call answers. `limit_s` None: only the caller's deadline counts.

    Raises:
        TimedOut: It reached its limit and was cancelled.
        DeadlineExceeded: It reached the caller's deadline and was cancelled.
    """
    left_s = remaining_s(context)
    callers = left_s is not None and (limit_s is None or left_s < limit_s)
    timer = asyncio.timeout(left_s if callers else limit_s)
    try:
        async with timer:
            return await work
    except TimeoutError as error:
        if not timer.expired():
            raise  # somebody's own: a bug
        raise (DeadlineExceeded if callers else TimedOut)(operation=method) from error

"""What nobody expected: logged under an id, which is all that a caller is told."""

import uuid

import structlog

from reminders.errors import Unexpected

log = structlog.get_logger()


def unexpected(operation: str, error: Exception) -> Unexpected:
    """The caller's error for a bug, which is logged here."""
    incident = uuid.uuid4().hex[:12]
    log.error("call.failed", method=operation, incident=incident, exc_info=error)
    return Unexpected(incident=incident)

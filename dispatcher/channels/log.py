"""The log channel: for trying things out."""

import structlog

from dispatcher.channels.port import NOBODY, Destination, Outcome, Outgoing, Result
from reminders.model.definition import Channel

SHOWN_BYTES = 1024

log = structlog.get_logger()

_DELIVERED = Result(outcome=Outcome.OK)


class LogSender:
    """Writes one structured line."""

    def destination(self, channel: Channel) -> Destination:  # noqa: ARG002 - the port's signature
        """Nobody is burdened."""
        return NOBODY

    async def send(self, outgoing: Outgoing) -> Result:
        """Always succeeds."""
        occurrence = outgoing.occurrence
        log.info(
            "reminder.rang",
            reminder_id=outgoing.reminder_id,
            occurrence_id=occurrence.occurrence_id,
            delivery_key=outgoing.delivery_key,
            channel_id=outgoing.channel.channel_id,
            user_id=outgoing.user_id,
            planned_local=occurrence.planned_local.isoformat(),
            time_zone=occurrence.zone,
            template_id=outgoing.template_id,
            payload=outgoing.params_json[:SHOWN_BYTES],
        )
        return _DELIVERED

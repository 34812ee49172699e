"""Where a leg goes, and whether the person wants it now: what the user's recipient record says.

Asked at every attempt for what reaches a person (e-mail, SMS, push), also where the channel has an
address of its own; never for webhooks and the log, whose way costs no read.

    the channel's own `to`, else the record's ─▶ the leg as it is to be sent; none: `no_address`
    opted out ─────────────────────────────────▶ Hold: it ends, cancelled
    quiet hours, DROP ─────────────────────────▶ Hold: it ends, cancelled
    quiet hours, WAIT ─────────────────────────▶ Hold: it waits until they end, as a due entry

It decides about the attempt to come. What the ledger knows of earlier ones goes first, so a job
that comes again after a crash meets the same end, whatever the record says by then. The delivery
key names the channel and never the address: a retry to a new address has the key of the first try.

A push goes to one device, the first that fits: a delivery is one receiver with one outcome, one
schedule of retries and one acknowledgement. For all devices at once each would need these for
itself, or a failure at one would ring the others again; who wants several gives each a channel.
"""

from datetime import datetime

import structlog
from msgspec import Struct
from msgspec.structs import replace

from dispatcher.channels import kind_of
from dispatcher.quiet_hours import quiet_until
from dispatcher.work import LegWork
from reminders.model.definition import Email, Log, Push, Sms, Target, Webhook
from reminders.model.recipient import OptOut, QuietRule, Recipient
from reminders.platform import Platform
from reminders.recurrence import ZoneError, zone

NO_ADDRESS = "no_address"
OPTED_OUT = "opted_out"
QUIET_HOURS = "quiet_hours"

log = structlog.get_logger()


class Hold(Struct, frozen=True, kw_only=True, gc=False):
    """The person does not want it, or not now."""

    reason: str
    """A stable word, for the ledger."""
    until: datetime | None = None
    """It waits until then; None: it ends."""


class Addressing:
    """Reads the record before an attempt."""

    def __init__(self, platform: Platform) -> None:
        self._recipients = platform.store.recipients
        self._clock = platform.clock

    async def look(self, leg: LegWork) -> tuple[LegWork, Hold | None]:
        """The leg as it is to be sent, and what speaks against it."""
        user_id = leg.work.body.user_id
        if not user_id:  # of a topic: its subscribers have their addresses themselves
            return leg, None
        recipient = await self._recipients.read(leg.work.entry.namespace, user_id)
        if recipient is None:
            return leg, None
        # A claim is never early by the reference clock, which this process may be a little behind.
        at = max(self._clock.now(), leg.work.entry.key.ring_at)
        target = addressed(leg.channel.target, recipient)
        channel = replace(leg.channel, target=target)
        return replace(leg, channel=channel, locale=recipient.locale), hold(leg, recipient, at)


def personal(leg: LegWork) -> bool:
    """Whether it reaches a person by an address that can stand in a record."""
    return not isinstance(leg.channel.target, (Webhook, Log))


def reachable(leg: LegWork) -> bool:
    """Whether it has an address, or needs none."""
    target = leg.channel.target
    return isinstance(target, (Webhook, Log)) or bool(target.to)


def addressed(target: Target, recipient: Recipient) -> Target:
    """With the record's address where it has none of its own; unchanged where there is neither."""
    match target:
        case Email(to="") if recipient.email:
            return replace(target, to=recipient.email)
        case Sms(to="") if recipient.sms:
            return replace(target, to=recipient.sms)
        case Push(to=""):
            device = recipient.token_of(target.provider)
            if device is not None:
                return Push(to=device.token, provider=device.provider)
    return target


def hold(leg: LegWork, recipient: Recipient, at: datetime) -> Hold | None:
    """What the person has said about being reached that way, and at that time. Pure."""
    if OptOut(kind_of(leg.channel)) in recipient.opt_outs:
        return Hold(reason=OPTED_OUT)
    quiet = recipient.quiet_hours
    if quiet is None:
        return None
    try:
        where = zone(recipient.time_zone)
    except ZoneError as error:  # newer zone data than ours, or older
        log.warning("quiet_hours.no_zone", time_zone=recipient.time_zone, error=str(error))
        return None
    until = quiet_until(quiet, where, at)
    if until is None:
        return None
    return Hold(reason=QUIET_HOURS, until=until if quiet.rule is QuietRule.WAIT else None)

"""A recipient record as callers see it."""

from typing import Final

from tocsin.v1 import recipient_service_pb2 as pb

from reminders.model.recipient import QuietRule, Recipient
from scheduler.mapping.definitions import PROVIDER_NUMBERS, put_instant
from scheduler.tokens import etag_of
from scheduler.validation.recipients import OPT_OUTS, user_scope

_OPT_OUTS: Final = {kind: number for number, kind in OPT_OUTS.items()}
_RULES: Final = {QuietRule.WAIT: pb.QUIET_RULE_WAIT, QuietRule.DROP: pb.QUIET_RULE_DROP}


def recipient_message(recipient: Recipient) -> pb.Recipient:
    """Everything."""
    message = pb.Recipient(
        namespace=recipient.namespace,
        user_id=recipient.user_id,
        etag=etag_of(user_scope(recipient.namespace, recipient.user_id), recipient.version),
        email=recipient.email,
        sms=recipient.sms,
        time_zone=recipient.time_zone,
        locale=recipient.locale,
        opt_outs=[_OPT_OUTS[kind] for kind in recipient.opt_outs],
    )
    for one in recipient.push:
        message.push.add(token=one.token, provider=PROVIDER_NUMBERS[one.provider])
    quiet = recipient.quiet_hours
    if quiet is not None:
        message.quiet_hours.start = quiet.start.isoformat("minutes")
        message.quiet_hours.end = quiet.end.isoformat("minutes")
        message.quiet_hours.rule = _RULES[quiet.rule]
    put_instant(message.create_time, recipient.created_at)
    put_instant(message.update_time, recipient.updated_at)
    return message

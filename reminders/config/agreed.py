"""What all processes of a deployment must agree about."""

from reminders.config.settings import Settings
from reminders.platform import Limits


def limits_of(settings: Settings) -> Limits:
    """As it is configured."""
    return Limits(
        shards=settings.shards,
        lookahead=settings.lookahead,
        claim_ahead=settings.claim_ahead,
        margin=settings.void_margin,
        grace=settings.settle_grace,
        lease_life=settings.lease_ttl,
        renew_every=settings.lease_renew_every,
        retention=settings.retention,
        patience=settings.call_timeout,
    )

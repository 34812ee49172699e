"""What differs between deployments in what a request may say."""

from msgspec import Struct

from reminders.lifecycle.request_limits import DEFAULT_REQUEST_LIMITS, RequestLimits
from reminders.urls import HTTPS_ONLY, Ports

KINDS = ("webhook", "log", "email", "sms", "push")
"""Of channels."""


class ChannelRules(Struct, frozen=True, kw_only=True):
    """What channels may say, beyond `allow_loopback_http`."""

    ports: Ports = HTTPS_ONLY
    """Of webhooks."""
    served: frozenset[str] = frozenset(KINDS)
    """Kinds that can be delivered."""
    secret_ids: frozenset[tuple[str, str]] = frozenset()
    """Namespace and name of each signing secret."""


DEFAULT_CHANNEL_RULES = ChannelRules()


class Deployment(Struct, frozen=True, kw_only=True):
    """The rules of one."""

    allow_loopback_http: bool
    """Whether webhooks may go to http://127.0.0.1."""
    limits: RequestLimits = DEFAULT_REQUEST_LIMITS
    channels: ChannelRules = DEFAULT_CHANNEL_RULES

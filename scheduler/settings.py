"""What the service can be told. The process's own configuration (`reminders.config`) fills it."""

from dataclasses import dataclass
from datetime import timedelta

from reminders.config.channels import ChannelSettings
from reminders.lifecycle.request_limits import DEFAULT_REQUEST_LIMITS, RequestLimits
from scheduler.deadlines import CALL_TIMEOUT
from scheduler.validation.deployment import DEFAULT_CHANNEL_RULES, ChannelRules


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """Defaults are for production, but for the address."""

    address: str = "127.0.0.1:50051"
    """host:port; port 0 takes a free one."""
    reuse_port: bool = False
    """Several processes on one port (SO_REUSEPORT), connections spread over them by the kernel.
    Without it a second process fails at start."""
    allow_loopback_http: bool = False
    """Whether webhooks may go to http://127.0.0.1; for development."""
    channels: ChannelRules = DEFAULT_CHANNEL_RULES
    """Which kinds are served, which ports webhooks may go to, and what can sign them."""
    limits: RequestLimits = DEFAULT_REQUEST_LIMITS
    """How often a rule may ring, and how far ahead anything may lie."""
    max_creates: int = 2_000
    """Creates under way at once: one half for unary and batch calls, which are refused beyond it,
    the other for streams, which wait. A batch larger than a half passes when it is alone."""
    max_create_bytes: int = 256 * 1024 * 1024
    """Of their requests, halved in the same way. The memory that a stalled store may cost."""
    stream_window: int = 4
    """Batches of one stream between read and answered: enough to keep grouped writes busy while the
    next one travels."""
    call_timeout: timedelta = CALL_TIMEOUT
    """How long a unary call may take; a batch of creates may plan for longer."""
    max_calls: int = 10_000
    """Calls of all kinds at once; more are refused by gRPC with RESOURCE_EXHAUSTED."""
    readiness_interval: timedelta = timedelta(seconds=1)
    """How often health follows readiness."""
    drain_grace: timedelta = timedelta(seconds=10)
    """How long calls may go on when the service stops."""
    drain_lead: timedelta = timedelta(milliseconds=250)
    """How long new calls are refused, at least, before the port closes."""

    def __post_init__(self) -> None:
        if self.max_creates < 1 or self.stream_window < 1:
            raise ValueError("bounds are at least 1")


def channel_rules(settings: ChannelSettings) -> ChannelRules:
    """From the process's own configuration. Of the signing secrets only the names are read."""
    names = (name.partition("/") for name in settings.signing_secrets)
    return ChannelRules(
        ports=settings.ports,
        served=frozenset(settings.served),
        secret_ids=frozenset((namespace, secret_id) for namespace, _, secret_id in names),
    )

"""How the dispatcher works, as the configuration has it."""

from functools import partial

from dispatcher.breaker import BreakerPolicy
from dispatcher.bucket import Rate
from dispatcher.channels.email import MAIL_SERVER
from dispatcher.events import Events, EventsTarget
from dispatcher.settings import DispatcherSettings
from dispatcher.standing import Terms
from reminders.config.settings import Settings
from reminders.lifecycle import Reminders
from reminders.platform import Platform


def settings_of(settings: Settings) -> DispatcherSettings:
    """Of one process."""
    return DispatcherSettings(
        max_in_flight=settings.dispatcher_concurrency,
        terms=terms_of(settings),
        retry_schedule=settings.retry_schedule,
        disable_after=settings.disable_endpoint_after,
    )


def events_of(settings: Settings, platform: Platform, reminders: Reminders) -> Events | None:
    """What tells the operator, if he wants to be told."""
    if settings.events_url is None:
        return None
    return Events(platform.clock, reminders.create, EventsTarget(url=settings.events_url))


def terms_of(settings: Settings) -> Terms:
    """Of each destination. To the mail server go as many as there are connections to it."""
    return Terms(
        places=settings.dispatcher_destination_concurrency,
        own_places={MAIL_SERVER.name: settings.smtp_connections},
        slow_after=settings.destination_slow_after,
        breaker=BreakerPolicy(
            failures=settings.destination_failures,
            open_s=settings.destination_open_for.total_seconds(),
            longest_s=settings.destination_open_at_most.total_seconds(),
        ),
        rate_of=partial(_rate_of, settings),
    )


def _rate_of(settings: Settings, destination: str) -> Rate | None:
    found = settings.rate_of(destination)
    return Rate(per_s=found.per_s, burst=found.burst) if found is not None else None

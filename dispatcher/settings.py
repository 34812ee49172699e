"""How the dispatcher works; every process may have its own."""

import uuid
from datetime import timedelta

from msgspec import Struct, field

from dispatcher.standing import Terms
from reminders.lifecycle.health import DISABLE_AFTER
from reminders.model.definition import RETRY_SCHEDULE


class DispatcherSettings(Struct, frozen=True, kw_only=True):
    """Defaults are for one process of several on a small machine."""

    consumer: str = field(default_factory=lambda: str(uuid.uuid4()))
    """This process's name in the consumer group; never reused."""

    max_in_flight: int = 512
    """Attempts under way at destinations that answer soon. Above it nothing is read: entries wait
    in the stream. Twice as many may be under way beside at those that do not (`capacity`)."""
    max_unsettled: int = 8192
    """Jobs taken and not settled yet, which a crash now would repeat. Above it nothing is read."""
    settle_linger: timedelta = timedelta(milliseconds=100)
    """How long an outcome waits for others to be written with: one alone costs as much as ten."""
    settle_within: timedelta = timedelta(seconds=1)
    """How long many sends under way may hold outcomes back."""
    terms: Terms = Terms()
    """What each destination is granted."""
    max_wait: timedelta = timedelta(seconds=2)
    """An attempt that would wait longer for its destination is parked at once: it would only keep
    others out. However it looked, none waits longer than half of `claim_idle`."""
    park_for: timedelta = timedelta(seconds=5)
    """How long an attempt is parked at least; doubles with each time, up to 16 times as long."""

    retry_schedule: tuple[timedelta, ...] = RETRY_SCHEDULE
    """The longest wait before each attempt, from the first one on, where a reminder has none."""

    read_wait: timedelta = timedelta(seconds=1)
    """How long one read of the stream may block: also how slowly `stop` is noticed at most."""
    claim_idle: timedelta = timedelta(seconds=12)
    """A job untouched for so long is taken over from whoever had it. The same in every process."""
    reclaim_every: timedelta = timedelta(seconds=2)
    """How often left jobs are looked for."""
    max_crashes: int = 5
    """Attempts of one delivery that began and never ended, in a row, until it is given up."""
    max_failures: int = 3
    """Times that a job's handling raised while it ran alone, until it is given up."""
    drain: timedelta = timedelta(seconds=12)
    """How long `stop` waits for what runs: longer than an attempt. The rest is reclaimed."""

    disable_after: timedelta = DISABLE_AFTER
    """How long an endpoint must fail, without one success, to be disabled (`lifecycle.health`)."""

    @property
    def keep_every(self) -> timedelta:
        """How often running jobs are renewed: several times within half of `claim_idle`."""
        return self.claim_idle / 10

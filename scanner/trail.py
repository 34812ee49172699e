"""Which stretches of a shard's past are still to be looked at, and when. Pure bookkeeping.

```
   watermark                                         now − TRAIL        now
  ─────┼──────────────┼──────────────┼────────┬──┬──┬──┬───┼──────────────┼───▶
       │ whole minutes, older than the grace  │ stretches  │  not yet
```
A young minute is looked at in stretches, each once its time has passed; when the grace is over, the
whole minute is looked at again, for what came late to it. What was found settled is not looked at
again; what was open, after a wait that doubles: a stuck entry costs little, however many there are.
A job that is lost from its stream before anybody took it is therefore handed on again 6 to 22 s
after its time; one that is lost when it had waited for long already, within 28 s of its loss.

A minute so old that entries may have expired from it is looked at like any other, but the watermark
does not pass it: that nothing is open there says nothing any more. It is refused until somebody who
knows better (`tocsin rebuild`) has moved the stored watermark.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reminders.buckets import MINUTE, TRUSTED_LIFE, minute_of

TRAIL = timedelta(seconds=5)
"""How far behind the clock the scan trails: time for an ordinary delivery to be handled."""
STRETCH = timedelta(seconds=10)
FIRST_WAIT = timedelta(seconds=2)
UNDER_WAY_WAIT = timedelta(seconds=4)
LONGEST_WAIT = timedelta(seconds=16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """`start <= ring_at < before`, within a minute."""

    minute: datetime
    start: datetime
    before: datetime
    final: bool = False
    """The whole minute, when nobody writes into it any more."""


@dataclass(slots=True)
class _Look:
    """When an open stretch is looked at again."""

    at: datetime
    wait: timedelta


@dataclass(slots=True)
class _Minute:
    """A minute that is not settled."""

    final: bool = False
    refused: bool = False
    looks: dict[datetime, _Look | None] = field(default_factory=dict)
    """By start of a stretch; None where it was found settled."""


class Trail:
    """The past of one shard from its watermark on."""

    def __init__(self, watermark: datetime, grace: timedelta) -> None:
        self.recorded = watermark
        """What the store was told last."""
        self._grace = grace
        self._following = watermark
        self._minutes: dict[datetime, _Minute] = {}
        """Those not settled, oldest first."""

    @property
    def settled_through(self) -> datetime:
        """Every minute before it is settled."""
        return next(iter(self._minutes), self._following)

    @property
    def refused(self) -> bool:
        """Whether the watermark stands before a minute that may have lost entries."""
        return any(state.refused for state in self._minutes.values())

    def go_on_from(self, watermark: datetime) -> None:
        """Somebody moved the stored watermark: what lies before it needs no look any more."""
        for minute in [minute for minute in self._minutes if minute < watermark]:
            del self._minutes[minute]
        self._following = max(self._following, watermark)
        self.recorded = max(self.recorded, watermark)

    def young(self, before: datetime) -> list[Stretch]:
        """The minutes within their grace at `before`, up to it: what a lead looks at first."""
        minute = max(self._following, minute_of(before - self._grace - MINUTE))
        found = []
        while minute < before:
            until = min(minute + MINUTE, before)
            found.append(Stretch(minute=minute, start=minute, before=until))
            minute += MINUTE
        return found

    def due(self, now: datetime) -> list[Stretch]:
        """What to look at now: what rang lately first, then the backlog from its oldest on."""
        while self._following < now - TRAIL:
            self._minutes[self._following] = _Minute()
            self._following += MINUTE
        young: list[Stretch] = []
        backlog: list[Stretch] = []
        for minute, state in self._minutes.items():
            if now >= minute + MINUTE + self._grace:
                if not state.final:
                    state.final, state.looks = True, {}
                if _is_due(state, minute, now):
                    whole = Stretch(minute=minute, start=minute, before=minute + MINUTE, final=True)
                    backlog.append(whole)
            else:
                young += self._stretches(minute, state, now)
        return young + backlog

    def looked(
        self, stretch: Stretch, *, settled: bool, now: datetime, under_way: bool = False
    ) -> None:
        """What a look found. `under_way`: all that is open was claimed just now. In a young minute
        that is no reason to wait for longer: a job that is gone is missed soon.
        """
        state = self._minutes[stretch.minute]
        if state.final and not stretch.final:
            return  # it grew old meanwhile
        if not settled:
            last = state.looks.get(stretch.start)
            wait = FIRST_WAIT if last is None else min(2 * last.wait, LONGEST_WAIT)
            if last is not None and under_way and not stretch.final:
                wait = max(last.wait, UNDER_WAY_WAIT)
            state.looks[stretch.start] = _Look(now + wait, wait)
        elif stretch.final and now >= stretch.minute + TRUSTED_LIFE:
            state.looks[stretch.start], state.refused = None, True
        elif stretch.final:
            del self._minutes[stretch.minute]
        else:
            state.looks[stretch.start] = None

    def _stretches(self, minute: datetime, state: _Minute, now: datetime) -> list[Stretch]:
        found = []
        start = minute
        while start < minute + MINUTE and start + STRETCH <= now - TRAIL:
            if _is_due(state, start, now):
                found.append(Stretch(minute=minute, start=start, before=start + STRETCH))
            start += STRETCH
        return found


def _is_due(state: _Minute, start: datetime, now: datetime) -> bool:
    if start not in state.looks:
        return True
    look = state.looks[start]
    return look is not None and look.at <= now

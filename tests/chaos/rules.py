"""What must hold of a scenario's history, whatever was done to the servers. Pure.

The rules are those of the simulation (`tests.simulation.checker`), as far as they can be seen from
outside: there every version of a record is known, here what callers heard and receivers got.

    must       acknowledged, and no change answered "not fired" about it: it came, at least once
    may        a create or a change that was never answered: both are right
    never      a change answered "not fired": it never came
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum

from msgspec import Struct, field

from reminders.delivery_key import delivery_key
from tests.chaos.receiver import Request

AFTERMATH_S = 20.0
"""So long after a fault something that it caused may still happen, as in the simulation: longer
than it takes until a dispatcher's jobs are taken over from it (12 s + 2 s)."""
LATE_S = 1.0
"""Later than this counts as disturbed, for the time to recover."""
CHANNEL = "webhook"


class Duty(Enum):
    """What an occurrence has to do."""

    MUST = "must"
    MAY = "may"
    NEVER = "never"


class Trouble(Struct, frozen=True, kw_only=True):
    """A fault, while it lasted; seconds since 1970."""

    what: str
    start_s: float
    end_s: float
    explains: bool
    """Whether it can make somebody send twice: it took a dispatcher in the middle of its work, or
    what Redis knew of it. No fault of a scanner, of an expander or of Cassandra can."""


class Expected(Struct, kw_only=True):
    """One reminder of a scenario."""

    number: int
    reminder_id: str
    occurrences: dict[str, datetime] = field(default_factory=dict)
    """When each may come at the earliest, by occurrence id."""
    duties: dict[str, Duty] = field(default_factory=dict)
    told_s: float = 0.0
    """When its times were acknowledged: before, nobody can have waited for it."""


class Verdict(Struct, kw_only=True):
    """What became of a scenario."""

    created: int
    delivered: int
    """Occurrences that had to come and did."""
    lost: list[str] = field(default_factory=list)
    explained: int = 0
    unexplained: list[str] = field(default_factory=list)
    """Repeats."""
    broken: list[str] = field(default_factory=list)
    """Other rules, in words."""
    worst_gap_s: float = 0.0
    """The longest that an occurrence waited beyond its time for its first delivery."""
    recovery_s: float = 0.0
    """From the first fault's begin until the last late one had come; 0: none was late."""

    @property
    def held(self) -> bool:
        """Whether every promise was kept."""
        return not (self.lost or self.unexplained or self.broken)


def judge(
    expected: Iterable[Expected],
    unanswered: Iterable[int],
    requests: Sequence[Request],
    troubles: Sequence[Trouble],
) -> Verdict:
    """Looks at all of it.

    `unanswered`: numbers of creates that nobody acknowledged; those may ring or not.
    """
    by_id = {each.reminder_id: each for each in expected}
    came: dict[str, list[Request]] = defaultdict(list)
    for request in requests:
        came[request.key].append(request)
    verdict = Verdict(created=len(by_id), delivered=0)
    known = _kept(by_id, came, verdict)
    _strangers(by_id, known, set(unanswered), came, verdict)
    for arrivals in came.values():
        _repeats(arrivals, troubles, verdict)
    _lateness(by_id, came, troubles, verdict)
    return verdict


def _kept(
    by_id: Mapping[str, Expected], came: Mapping[str, list[Request]], verdict: Verdict
) -> set[str]:
    """Duties done, nothing early. The keys that may come."""
    known = set()
    for each in by_id.values():
        for name, due in each.occurrences.items():
            key = delivery_key(each.reminder_id, name, CHANNEL)
            known.add(key)
            arrivals, duty = came.get(key, ()), each.duties[name]
            what = f"#{each.number} {each.reminder_id} {name}"
            if duty is Duty.MUST and not arrivals:
                verdict.lost.append(f"{what}, due {due:%H:%M:%S.%f}")
            elif duty is Duty.MUST:
                verdict.delivered += 1
            elif duty is Duty.NEVER and arrivals:
                verdict.broken.append(f"rang though not fired: {what}")
            if arrivals and arrivals[0].at_s < due.timestamp():
                verdict.broken.append(
                    f"early by {due.timestamp() - arrivals[0].at_s:.4f} s: {what}"
                )
    return known


def _strangers(
    by_id: Mapping[str, Expected],
    known: set[str],
    unanswered: set[int],
    came: Mapping[str, list[Request]],
    verdict: Verdict,
) -> None:
    """One occurrence has one key; of a reminder nobody was told about, too."""
    keys: dict[tuple[str, str], str] = {}
    for key, arrivals in came.items():
        first = arrivals[0]
        what = f"#{first.number} {first.reminder_id} {first.occurrence_id}"
        if key not in known and (first.reminder_id in by_id or first.number not in unanswered):
            verdict.broken.append(f"nobody planned {what}, key {key}")
        other = keys.setdefault((first.reminder_id, first.occurrence_id), key)
        if other != key:
            verdict.broken.append(f"two keys for {what}: {other} and {key}")


def _repeats(arrivals: Sequence[Request], troubles: Sequence[Trouble], verdict: Verdict) -> None:
    first = arrivals[0]
    for again in arrivals[1:]:
        if any(
            trouble.explains
            and trouble.start_s <= again.at_s
            and trouble.end_s + AFTERMATH_S >= first.at_s
            for trouble in troubles
        ):
            verdict.explained += 1
        else:
            verdict.unexplained.append(
                f"#{first.number} {first.reminder_id} {first.occurrence_id} again after "
                f"{again.at_s - first.at_s:.3f} s"
            )


def _lateness(
    by_id: Mapping[str, Expected],
    came: Mapping[str, list[Request]],
    troubles: Sequence[Trouble],
    verdict: Verdict,
) -> None:
    begin = min((trouble.start_s for trouble in troubles), default=None)
    for each in by_id.values():
        for name, due in each.occurrences.items():
            arrivals = came.get(delivery_key(each.reminder_id, name, CHANNEL))
            if not arrivals or each.duties[name] is not Duty.MUST:
                continue
            late_s = arrivals[0].at_s - max(due.timestamp(), each.told_s)
            verdict.worst_gap_s = max(verdict.worst_gap_s, late_s)
            if begin is not None and late_s > LATE_S and arrivals[0].at_s > begin:
                verdict.recovery_s = max(verdict.recovery_s, arrivals[0].at_s - begin)

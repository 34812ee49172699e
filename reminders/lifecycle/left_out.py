"""What the policies `skip` leave out of a schedule. Pure.

It shows up in no plan. So the same schedule is planned under a policy that leaves nothing out: each
occurrence that this policy moved is one that `skip` drops.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from reminders.lifecycle.bounded import BoundedPlan
from reminders.recurrence import (
    Cursor,
    Freq,
    Gap,
    MissingDay,
    Planned,
    Rule,
    RuleExhausted,
    Series,
    Work,
)

_SHORTEST_MONTH = 28
"""Days that every month has."""


def left_out(
    series: Series, cursor: Cursor, *, until: datetime | None, limit: int, steps: int
) -> list[Planned]:
    """What the series leaves out behind the cursor, soonest first, as if planned by `skip`.

    Up to an aware `until`, or to the end of the series; no more than `limit`, and no more than
    `steps` of work. Its count is not looked at.
    """
    found: list[Planned] = []
    work = Work()
    for kind, shadow in _shadows(series):
        plan = BoundedPlan(shadow, cursor, steps=steps, work=work)
        found += _of_kind(kind, plan, until=until, limit=limit)
    return sorted(found, key=lambda one: one.instant)[:limit]


def moved_by(planned: Planned, kind: str) -> bool:
    """Whether a policy of this kind (`gap`, `missing_day`) acted."""
    return f"{kind}:" in (planned.note or "")


def as_skipped(planned: Planned, kind: str) -> Planned:
    """As if left out by this kind of policy; what another one did before it stands."""
    before = (planned.note or "").partition(f"{kind}:")[0]
    return replace(planned, note=f"{before}{kind}:skip")


def _of_kind(kind: str, plan: BoundedPlan, *, until: datetime | None, limit: int) -> list[Planned]:
    found: list[Planned] = []
    try:
        for one in plan:
            if (until is not None and one.instant > until) or len(found) == limit:
                break
            if moved_by(one, kind):
                found.append(as_skipped(one, kind))
    except RuleExhausted:
        pass  # nothing at all within the bound, so nothing to tell
    return found


def _shadows(series: Series) -> Iterator[tuple[str, Series]]:
    """The series as it were if nothing was left out, for each kind of policy, without its count.

    SHIFT_FORWARD, and days one by one, keep apart what other policies would put on one instant.
    """
    policies = series.policies
    if policies.gap is Gap.SKIP:
        moved = replace(policies, gap=Gap.SHIFT_FORWARD)
        yield "gap", replace(series, policies=moved, max_occurrences=None)
    if policies.missing_day is MissingDay.SKIP and isinstance(series.rule, Rule):
        moved = replace(policies, missing_day=MissingDay.CLAMP, gap=Gap.SHIFT_FORWARD)
        for rule in _by_missing_day(series.rule.completed(series.start_local)):
            shadow = replace(series, rule=rule, rdates=(), policies=moved, max_occurrences=None)
            yield "missing_day", shadow


def _by_missing_day(rule: Rule) -> Iterator[Rule]:
    """The rule for each of its days that a month can lack, where the missing-day policy acts.

    BYSETPOS chooses from what there is: a day that is not there was not left out of it.
    """
    acts = rule.freq in (Freq.MONTHLY, Freq.YEARLY)
    limited = rule.by_day or rule.by_week_no or rule.by_year_day or rule.by_set_pos
    if acts and not limited:
        for day in rule.by_month_day:
            if day > _SHORTEST_MONTH:
                yield replace(rule, by_month_day=(day,))

"""The use cases of a reminder: create, read, change. Everything that a caller can ask for.

`requests`   what goes in and out: requests, views, pages.
`occurrences`, `planning`   definition → occurrences → due entries. Pure.
`aside`      a plan that takes long, in a thread.
`writing`    due entries onto disk, found by the scanner in time even if the write was slow;
             `announcing` tells scanners, now or once Redis is back.
`creating`   create; `creation_keys`: `dedup_key` and `request_id`.
`changing`   whatever changes a reminder: the one procedure, safe against a claim in progress.
`beginning`  what it begins with. Pure.
`completing` its second half, by whoever met it half-way; `outcomes` is what it answers;
             `aftermath`, what it leaves lying about.
`evidence`   which occurrences had fired by then; `stopping`, what waits of them and is not sent.
`actions`    what each change makes of a reminder, and plans: `replanning`, `pausing`,
             `recomputing`. Pure.
`recipients` where users are reached: put, get, delete.
`grouping`   cancelling a whole group, and what that means to everybody else.
`triggering`, `beside`  one ring now, beside the schedule.
`request_ids` what a caller's id stands for.
`backfilling`, `past`  what a rule named in a past range, page by page.
`replaying`  deliveries of one occurrence again, under their keys; `replaying_targets`, those to
             a topic's subscribers; `replay_entries` are what comes due of it (pure).
`fanning`, `targets`  the pages of a fan-out (pure); its state, and a walk over its deliveries.
`ended_list`, `redriving`  what ended failed or expired, listed, and sent again; `endings` lists it.
`health`, `endpoints`  when an endpoint is disabled (pure), and that state, changed by LWTs.
`catching_up`  which missed occurrences of a rule are skipped. Pure.
`reading`    get, list, ledger.
`subscribing`, `subscriber_puts`, `subscriber_secrets`  who is told what a topic says, what a put
             makes of one, and what signs it.
`trials`     test sends to one subscriber.
`explaining`, `verdicts`  what became of a reminder, why, and who acts next.
`previewing` what a schedule would do, with what policies `left_out`, in `bounded` work. Pure.
`problems`, `texts`, `recurrences`   what callers write, checked. Pure.
`editions`   which zone or holiday data is the newer one. Pure.
`sweeping`   a walk over all records that moves what older data planned; tells `moves`.
`rebuilding` another that writes due entries again, after nobody settled for four weeks.
`service`    all of them behind one door; `request_limits`, what an operator may bound.

The scheduler offers these over gRPC; expander and dispatcher use `planning`, `writing` and
`Changes.finish`. Nothing here knows Cassandra, Redis or protobuf. Start reading at `changing`.

What it exports is imported when it is first asked for: `tocsin preview` wants the pure half only,
and would spend a fifth of its time on the imports of the other.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reminders.lifecycle.changing import Changes
    from reminders.lifecycle.creating import Creates
    from reminders.lifecycle.planning import Planner
    from reminders.lifecycle.reading import Reads
    from reminders.lifecycle.requests import (
        Backfilled,
        Call,
        Changed,
        Created,
        CreateRequest,
        OccurrenceView,
        Page,
        View,
    )
    from reminders.lifecycle.service import Reminders
    from reminders.lifecycle.writing import EntryWriter

__all__ = [
    "Backfilled",
    "Call",
    "Changed",
    "Changes",
    "CreateRequest",
    "Created",
    "Creates",
    "EntryWriter",
    "OccurrenceView",
    "Page",
    "Planner",
    "Reads",
    "Reminders",
    "View",
]

_HOMES = {
    "Changes": "changing",
    "Creates": "creating",
    "EntryWriter": "writing",
    "Planner": "planning",
    "Reads": "reading",
    "Reminders": "service",
}
"""Where an export is defined; the others in `requests`."""


def __getattr__(name: str) -> object:
    """Imports an export when it is first asked for (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES.get(name, 'requests')}")
    value = globals()[name] = getattr(home, name)
    return value

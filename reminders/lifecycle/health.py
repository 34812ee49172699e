"""When an endpoint counts as failing, and when it is disabled. Pure.

```
 (no row) ──failure──▶ failing ──failures for days, and lately again and again──▶ disabled: failing
    ▲                     │  └──────── it says 410 Gone ────────────────────────▶ disabled: gone
    └──── success ────────┘◀─────────────── success ─────────── disabled: failing
 any ──by hand──▶ disabled: manual            disabled ──by hand (enable)──▶ (no trouble)
```
Disabled for failing is what, without one success in between,

* failed for `disable_after` (5 days), counted from its first failure on, silences longer than that
  left out (the count begins anew);
* and has gone on failing for a tenth of that (12 h), with no silence longer than `SILENCE` in
  between: the first failed attempt after a quiet week-end ends nothing, it may be a hiccup;
* and in at least `LEAST` different minutes.

So an endpoint is tried on at least two occasions half a day apart before anything happens to it.
(Svix, whose 5 days these are, starts its clock at failures that are 12 h apart within 24 h. Retries
span 27 h here, so those of one delivery are that easily.)

A success of a healthy endpoint is written nowhere. So that one counts all the same, an endpoint
that fails is listed for all processes after `LISTED_AFTER`; what failed before that is forgotten.

A success clears a disabling for failing, whoever reports it and however late: it says that the
endpoint was not failing all the while. What somebody decided, or the endpoint itself, only somebody
undoes.

Each function answers the next version of what is stored, or None where nothing is to be written.
Facts may come late and out of order, from any number of processes; one that is older than what is
known counts for what it still says.
"""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from reminders.lifecycle.writing import stamp_of
from reminders.model.endpoint import Address, Endpoint, Why

DISABLE_AFTER = timedelta(days=5)
SILENCE = timedelta(hours=36)
"""Longer than from one day's ring to the next one's, and than any wait between two attempts."""
LEAST = 5
COUNTED_EVERY = timedelta(minutes=1)
"""Failures of one endpoint that come sooner after another are not written."""
LISTED_AFTER = timedelta(minutes=10)
"""What fails for so long is put into the list, where other processes find it."""


class Failure(Struct, frozen=True, kw_only=True):
    """One attempt that failed by the endpoint's fault."""

    at: datetime
    error_class: str
    since: datetime
    """The first failure with no success since that whoever reports it knows of; believed as far
    back as `LISTED_AFTER`."""
    gone: bool = False
    """The endpoint wants nothing more."""


def failed(
    known: Endpoint | None,
    address: Address,
    failure: Failure,
    disable_after: timedelta = DISABLE_AFTER,
) -> Endpoint | None:
    """After a failure."""
    if known is not None and (known.disabled or _outdated(known, failure)):
        return None
    failing = _failing(known, address, failure, disable_after)
    if failure.gone:
        return _disabled(failing, failure.at, Why.GONE)
    if disables(failing, disable_after):
        return _disabled(failing, failure.at, Why.FAILING)
    return failing


def disables(failing: Endpoint, disable_after: timedelta) -> bool:
    """The rule, as of the last failure."""
    since, run, last = failing.failing_since, failing.run_since, failing.last_failure_at
    if since is None or run is None or last is None:
        return False
    long = last - since >= disable_after and last - run >= disable_after / 10
    return long and failing.failures >= LEAST


def succeeded(known: Endpoint | None, at: datetime) -> Endpoint | None:
    """After an attempt that ended well then."""
    if known is None or known.failing_since is None or at < known.failing_since:
        return None
    last = known.last_failure_at
    changed = _next(known, at, last_success_at=at)
    undone = known.why is Why.FAILING
    if last is not None and at < last and not undone:
        # It came between two failures: what is failing now, fails since the later one.
        return replace(changed, failing_since=last, run_since=last, failures=1)
    changed = replace(changed, failing_since=None, run_since=None, failures=0)
    return replace(changed, disabled_at=None, why=None, announced=False) if undone else changed


def disabled_by_hand(known: Endpoint | None, address: Address, at: datetime) -> Endpoint | None:
    """When somebody wants nothing sent there any more."""
    if known is not None and known.disabled:
        return None
    return _disabled(_next(known, at) if known else _first(address, at), at, Why.MANUAL)


def enabled(known: Endpoint | None, at: datetime) -> Endpoint | None:
    """When somebody wants it tried again: it begins without a past."""
    if known is None or not known.disabled:
        return None
    return replace(
        _next(known, at),
        failing_since=None,
        run_since=None,
        failures=0,
        disabled_at=None,
        why=None,
        announced=False,
    )


def announced(known: Endpoint | None, disabled_at: datetime, at: datetime) -> Endpoint | None:
    """When the operator was told of its disabling at that time."""
    if known is None or known.disabled_at != disabled_at or known.announced:
        return None
    return _next(known, at, announced=True)


def is_listed(endpoint: Endpoint) -> bool:
    """Whether other processes must know it."""
    if endpoint.disabled:
        return True
    since, last = endpoint.failing_since, endpoint.last_failure_at
    return since is not None and last is not None and last - since >= LISTED_AFTER


def _outdated(known: Endpoint, failure: Failure) -> bool:
    """Whether it says nothing that is not known."""
    success, last = known.last_success_at, known.last_failure_at
    if success is not None and failure.at <= success:
        return True
    failing = known.failing_since is not None
    soon = last is not None and failure.at - last < COUNTED_EVERY
    return failing and soon and not failure.gone


def _failing(
    known: Endpoint | None, address: Address, failure: Failure, disable_after: timedelta
) -> Endpoint:
    """With this failure; one that comes late moves nothing but the count."""
    at = failure.at
    fields = {"last_failure_at": at, "error_class": failure.error_class}
    made = _first(address, at) if known is None else _next(known, at)
    last = made.last_failure_at
    if made.failing_since is None or made.run_since is None or last is None:
        since = max(failure.since, at - LISTED_AFTER)
        if made.last_success_at is not None and since <= made.last_success_at:
            since = at
        return replace(made, failing_since=since, run_since=since, failures=1, **fields)
    silence = at - last
    if silence > LISTED_AFTER and not is_listed(made):
        # Nobody but who wrote it was told, so there may have been successes: from here on all know.
        since = at - LISTED_AFTER
        return replace(made, failing_since=since, run_since=since, failures=1, **fields)
    if silence > max(disable_after, SILENCE):
        return replace(made, failing_since=at, run_since=at, failures=1, **fields)
    run = at if silence > SILENCE else made.run_since
    return replace(made, run_since=run, failures=made.failures + 1, **fields)


def _first(address: Address, at: datetime) -> Endpoint:
    return Endpoint(
        namespace=address.namespace,
        endpoint_id=address.endpoint_id,
        kind=address.kind,
        address=address.shown,
        version=1,
        stamp=stamp_of(at),
    )


def _next(known: Endpoint, at: datetime, **changes: object) -> Endpoint:
    stamp = max(stamp_of(at), known.stamp + 1)
    return replace(known, version=known.version + 1, stamp=stamp, **changes)


def _disabled(endpoint: Endpoint, at: datetime, why: Why) -> Endpoint:
    """Of a version that is not written yet."""
    return replace(endpoint, disabled_at=at, why=why, announced=False)

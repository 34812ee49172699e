"""Batches as such: how many items they may have."""

from collections.abc import Sized

from reminders.lifecycle.problems import Problems, Reason

MAX_BATCH = 500


def check_batch(requests: Sized) -> None:
    """Not what is in it. Raises `InvalidRequest`."""
    problems = Problems()
    if not len(requests):
        problems.required("requests", f"1 to {MAX_BATCH} of them")
    elif len(requests) > MAX_BATCH:
        said = f"has {len(requests)} items; at most {MAX_BATCH} are taken: send several batches"
        problems.add("requests", Reason.BATCH_TOO_LARGE, said)
    problems.raise_if_any()

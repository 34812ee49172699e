"""Where bodies go."""

import pytest

from reminders.model.entry import Kind
from reminders.storage.layout import INLINE_BODY_LIMIT, bare, body_by_reference, due_form
from tests.contract.store.samples import entry


@pytest.mark.parametrize("kind", list(Kind))
def test_only_large_bodies_of_occurrences_stand_apart(kind: Kind) -> None:
    """Retries, parked and finish entries have no live entry of their own id; a backfilled one, a
    replay and a page are sent after a look at the record, which has what a body is made of.
    """
    small = entry(kind=kind, body=b"b" * INLINE_BODY_LIMIT)
    large = entry(kind=kind, body=b"b" * (INLINE_BODY_LIMIT + 1))
    assert not body_by_reference(small)
    assert due_form(small) is small
    assert body_by_reference(large) == (kind is Kind.OCCURRENCE)
    apart = kind in (Kind.OCCURRENCE, Kind.BACKFILLED, Kind.REPLAY, Kind.FANOUT)
    assert due_form(large).body == (b"" if apart else large.body)


def test_bare() -> None:
    """Nothing but the body goes."""
    one = entry()
    assert bare(one).body == b""
    assert bare(one).key == one.key
    assert bare(bare(one)) == bare(one)

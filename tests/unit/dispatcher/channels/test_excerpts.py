"""What is kept of an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.channels.http import excerpt_of
from dispatcher.channels.masking import NO_SECRETS, Mask
from dispatcher.channels.port import EXCERPT_BYTES, printable


@given(st.text(max_size=30), st.integers(0, 400))
def test_it_is_printable_and_a_kibibyte_at_most(text: str, times: int) -> None:
    """Whole characters: the start of the text, and as much of it as fits."""
    found = printable(text * times)
    assert len(found.encode()) <= EXCERPT_BYTES
    assert found.isprintable()
    shown = "".join(each if each.isprintable() else " " for each in text * times)
    assert shown.startswith(found)
    rest = shown[len(found) :]
    assert not rest or len((found + rest[0]).encode()) > EXCERPT_BYTES


@pytest.mark.parametrize("ahead", range(4))
def test_a_character_is_not_cut_in_two(ahead: int) -> None:
    """Of four bytes each, from anywhere."""
    found = printable("a" * ahead + "🦉" * 300)
    assert found == "a" * ahead + "🦉" * ((EXCERPT_BYTES - ahead) // 4)


def test_a_secret_is_masked_before_the_rest_is_cut() -> None:
    """One that lies across the end would be found no more."""
    secret = "s3cret-of-ours"
    found = excerpt_of(f"{'x' * (EXCERPT_BYTES - 4)}{secret} and more".encode(), Mask([secret]))
    assert found == "x" * (EXCERPT_BYTES - 4) + "*** "
    assert len(excerpt_of(b"x" * 4000, NO_SECRETS)) == EXCERPT_BYTES

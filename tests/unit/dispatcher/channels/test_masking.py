"""No secret passes a mask, however it is spelt, and wherever the text is cut."""

import base64
import json
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.channels.masking import SHORTEST, Mask

SECRETS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="*"),
    min_size=SHORTEST,
    max_size=60,
).filter(lambda secret: not secret.isspace())
AROUND = st.text(st.characters(min_codepoint=0x370, max_codepoint=0x3FF), max_size=20)
SPELLINGS = (
    str,
    lambda secret: quote(secret, safe=""),
    json.dumps,
    lambda secret: base64.b64encode(secret.encode()).decode(),
)


@given(st.lists(SECRETS, min_size=1, max_size=3), AROUND, st.sampled_from(SPELLINGS), st.data())
def test_a_secret_is_found_in_every_spelling(
    secrets: list[str], around: str, spell: object, data: st.DataObject
) -> None:
    """Of each of several, also twice, also as known in one request only."""
    secret = data.draw(st.sampled_from(secrets))
    spelt = spell(secret)  # type: ignore[operator]
    text = f"{around}{spelt}{around}{spelt}"
    for mask in (Mask(secrets), Mask(secrets[:1]).and_also(secrets)):
        assert secret not in mask(text)
        assert spelt not in mask(text)
        assert mask(around) == around


@given(SECRETS, AROUND, st.data())
def test_a_secret_that_was_cut_off_is_found_by_its_start(
    secret: str, around: str, data: st.DataObject
) -> None:
    """What is left of it at the end is shorter than any that is worth anything."""
    cut = data.draw(st.integers(0, len(secret)))
    masked = Mask([secret])(around + secret[:cut])
    assert masked.startswith(around)
    assert len(masked.removeprefix(around).removesuffix("***")) < SHORTEST


def test_each_line_of_a_key_is_secret() -> None:
    """Of a PEM an answer may hold any part."""
    pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----\n"
    masked = Mask([pem])("bad line kqhkiG9w0BAQEF in key")
    assert masked == "bad line *** in key"


def test_a_header_with_a_scheme_is_secret_by_its_parts() -> None:
    """`Bearer token`: an answer may hold the token alone."""
    assert Mask(["Bearer t0ken-of-ours"])("invalid token: t0ken-of-ours") == "invalid token: ***"


def test_without_secrets_nothing_changes() -> None:
    """And what is too short to be one is none."""
    assert Mask()("anything") == "anything"
    assert Mask(["ab", "", "  "])("drab ab") == "drab ab"


def test_blanks_of_any_kind_are_part_of_a_secret() -> None:
    """Its parts are secrets of their own, and do not keep the whole, or its start, from being seen.

    Found by a run of the tests above with other examples.
    """
    assert Mask(["00000\xa0"])("(00000\xa0)") == "(***)"
    assert Mask(["000000000\xa0000111"])("(000000000\xa00001") == "(***"


def test_secrets_that_overlap_leave_nothing_of_either() -> None:
    """The text ends with one of them, and with the start of the next."""
    assert Mask(["one-secret-x", "secret-x-two"])("see one-secret-x") == "see ***"

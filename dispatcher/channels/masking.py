"""Takes secrets out of what is kept: a receiver may answer with what was sent to it.

Credentials never reach a log, a ledger row or an error. Most never get near one; what is left are
answers, which may echo a header, and messages of libraries, which may quote one. Both go through a
`Mask` before they are cut and kept.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

MASK = "***"
SHORTEST = 6
"""Shorter ones would be found in any text, and are no secrets."""


class Mask:
    """Replaces secrets by `***`, however the text spells them: plainly, or as URL, JSON or base64.

    A secret whose end was cut off with the text is found by its start.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        found = {spelt for secret in secrets for spelt in _spellings(secret)}
        self._secrets = tuple(sorted(found, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        """The text without them."""
        spans = sorted(span for secret in self._secrets for span in _found(text, secret))
        if not spans:
            return text
        kept, end = [], 0
        for start, stop in spans:
            if start >= end:  # else part of one secret is another one
                kept += [text[end:start], MASK]
            end = max(end, stop)
        return "".join((*kept, text[end:]))

    def and_also(self, secrets: Iterable[str]) -> "Mask":
        """Knows these as well: for what is secret in one request only."""
        more = Mask(secrets)
        more._secrets = (*more._secrets, *self._secrets)
        return more


NO_SECRETS = Mask()


def _found(text: str, secret: str) -> Iterator[tuple[int, int]]:
    """Where it stands; at last, the longest start of it that the text ends with."""
    at = text.find(secret)
    while at >= 0:
        yield at, at + len(secret)
        at = text.find(secret, at + 1)
    for length in range(min(len(secret) - 1, len(text)), SHORTEST - 1, -1):
        if text.endswith(secret[:length]):
            yield len(text) - length, len(text)
            return


def _spellings(secret: str) -> Iterator[str]:
    parts = {secret, secret.strip(), *secret.splitlines(), *secret.split()}  # of a PEM, each line
    for part in parts:
        if len(part) < SHORTEST or part.isspace():
            continue
        escaped = quote(part, safe="")
        yield from (part, escaped, quote_plus(part), escaped.lower())
        yield json.dumps(part)[1:-1]
        yield json.dumps(part)[1:-1].replace("/", "\\/")
        yield base64.b64encode(part.encode()).decode().rstrip("=")

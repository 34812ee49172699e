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
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        start = max((_overlap(text, secret) for secret in self._secrets), default=0)
        return text[: len(text) - start] + MASK if start else text

    def and_also(self, secrets: Iterable[str]) -> "Mask":
        """Knows these as well: for what is secret in one request only."""
        more = Mask(secrets)
        more._secrets = (*more._secrets, *self._secrets)
        return more


NO_SECRETS = Mask()


def _overlap(text: str, secret: str) -> int:
    """The length of the longest start of the secret that the text ends with."""
    longest = min(len(secret) - 1, len(text))
    return next((n for n in range(longest, SHORTEST - 1, -1) if text.endswith(secret[:n])), 0)


def _spellings(secret: str) -> Iterator[str]:
    for part in {secret, *secret.splitlines(), *secret.split()}:  # of a PEM, each line
        if len(part.strip()) < SHORTEST:
            continue
        escaped = quote(part, safe="")
        yield from (part, part.strip(), escaped, quote_plus(part), escaped.lower())
        yield json.dumps(part)[1:-1]
        yield json.dumps(part)[1:-1].replace("/", "\\/")
        yield base64.b64encode(part.encode()).decode().rstrip("=")

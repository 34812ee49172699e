"""The secrets that sign webhooks, as they are written: `whsec_` and base64 of 24 to 64 bytes.

That is the form of Standard Webhooks 1.0, so receivers can hand one to any of its libraries. Make
one by `echo whsec_$(openssl rand -base64 32)`.
"""

import base64
import binascii
import secrets

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64
"""In bytes."""
MADE_BYTES = 32


class SecretText(str):
    """A secret as it is written. Its `repr` hides it, so logs and errors can't show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"'{PREFIX}…'"


def new_secret() -> SecretText:
    """One that nobody knows yet."""
    return SecretText(PREFIX + base64.b64encode(secrets.token_bytes(MADE_BYTES)).decode())


def key_of(secret: str) -> bytes:
    """The key that it stands for.

    Raises:
        ValueError: It has another form; the message does not repeat it.
    """
    if secret.startswith(PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            key = b""
        if SHORTEST <= len(key) <= LONGEST:
            return key
    raise ValueError(
        f"a signing secret is {PREFIX} and base64 of {SHORTEST} to {LONGEST} bytes: "
        f"echo {PREFIX}$(openssl rand -base64 32)"
    )

"""Signs webhooks, by the rules of Standard Webhooks 1.0 (standardwebhooks.com) and a plain one.

    webhook-id:        the delivery key, the same on every attempt
    webhook-timestamp: seconds since 1970, of this attempt
    webhook-signature: v1,base64(HMAC-SHA256(key, "{id}.{timestamp}.{body}")), by a blank the next
    x-signature:       sha256=hex(HMAC-SHA256(key, body)), by a comma the next

A secret is `whsec_` and base64 of 24 to 64 random bytes; the bytes are the key. While one rotates,
two are valid and both sign, the newer one first: a receiver that knows either can verify.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime

from reminders.signing_secrets import key_of

Keys = Mapping[tuple[str, str], Sequence[bytes]]
"""By namespace and name of the secret; the newest key first."""


def keys_of(secrets: Mapping[str, Sequence[str]]) -> Keys:
    """From the configuration: `namespace/name` and the secrets as written, checked before."""
    found: dict[tuple[str, str], Sequence[bytes]] = {}
    for name, values in secrets.items():
        namespace, _, secret_id = name.partition("/")
        found[namespace, secret_id] = tuple(key_of(each) for each in values)
    return found


def signature_headers(
    keys: Sequence[bytes], delivery_key: str, at: datetime, body: bytes
) -> dict[str, str]:
    """The headers that sign exactly this body now; `webhook-id` is the caller's business."""
    timestamp = str(int(at.timestamp()))
    signed = b".".join((delivery_key.encode(), timestamp.encode(), body))
    standard = (base64.b64encode(_hmac(key, signed)).decode() for key in keys)
    return {
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(f"v1,{each}" for each in standard),
        "x-signature": ",".join(f"sha256={_hmac(key, body).hex()}" for key in keys),
    }


def _hmac(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()

"""Google's token endpoint and FCM's HTTP v1 API, as their documentation has them.

https://developers.google.com/identity/protocols/oauth2/service-account and
https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages/send
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

PROJECT = "tea-time"
EMAIL = f"tocsin@{PROJECT}.iam.gserviceaccount.com"
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"

# Registration tokens that stand for an error: status, google.rpc status, FCM's own code.
MAGIC = {
    "gone": (404, "NOT_FOUND", "UNREGISTERED"),
    "other-sender": (403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"),
    "malformed": (400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
    "apns-broken": (401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"),
    "too-many": (429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
    "down": (503, "UNAVAILABLE", "UNAVAILABLE"),
    "oops": (500, "INTERNAL", "INTERNAL"),
}


@dataclass
class FcmApi:
    """Signs in who has the service account's key, and keeps messages."""

    now: Callable[[], datetime]
    key: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )
    life_s: int = 3599
    url: str = ""
    exchanges: int = 0
    tokens: set[str] = field(default_factory=set)
    """Those that are valid."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    refuse_sign_in: bool = False

    def service_account(self) -> dict[str, str]:
        """The key file."""
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "k1",
            "private_key": pem.decode(),
            "client_email": EMAIL,
            "client_id": "1",
            "token_uri": f"{self.url}/token",
        }

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Either of the two."""
        if request.path == "/token":
            form = await request.post()
            return self._sign_in({name: str(value) for name, value in form.items()})
        if request.path == f"/v1/projects/{PROJECT}/messages:send":
            bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if bearer not in self.tokens:
                return error(401, "UNAUTHENTICATED", None)
            return self._send(json.loads(await request.read()))
        return error(404, "NOT_FOUND", None)

    def _sign_in(self, form: dict[str, str]) -> web.Response:
        try:
            claims = jwt.decode(
                form["assertion"],
                self.key.public_key(),
                algorithms=["RS256"],
                audience="https://oauth2.googleapis.com/token",
                options={"verify_exp": False, "verify_iat": False},  # by the test's clock, below
            )
        except (KeyError, jwt.PyJWTError) as problem:
            return web.json_response({"error": "invalid_grant", "said": str(problem)}, status=400)
        now = self.now().timestamp()
        right = (
            form.get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer"
            and claims["iss"] == EMAIL
            and SCOPE in claims["scope"].split()
            and now - 300 <= claims["iat"] <= now + 300
            and claims["iat"] < claims["exp"] <= claims["iat"] + 3600
        )
        if not right or self.refuse_sign_in:
            said = {"error": "invalid_grant", "error_description": f"no: {form['assertion']}"}
            return web.json_response(said, status=400)
        self.exchanges += 1
        token = f"ya29.token-number-{self.exchanges}"
        self.tokens.add(token)
        return web.json_response(
            {"access_token": token, "expires_in": self.life_s, "token_type": "Bearer"}
        )

    def _send(self, body: dict[str, Any]) -> web.Response:
        message = body["message"]
        if message["token"] in MAGIC:
            return error(*MAGIC[message["token"]])
        data = message.get("data", {})
        known = {"token", "notification", "data", "android", "apns", "webpush", "fcm_options"}
        if not all(isinstance(each, str) for each in data.values()) or set(message) - known:
            return error(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT")
        self.messages.append(message)
        return web.json_response({"name": f"projects/{PROJECT}/messages/{len(self.messages)}"})


def error(status: int, word: str, code: str | None) -> web.Response:
    """In the form of google.rpc, FCM's own code among the details."""
    kind = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
    details = [{"@type": kind, "errorCode": code}] if code else []
    headers = {"Retry-After": "30"} if status in (429, 503) else {}
    said = {"code": status, "message": f"because {word}", "status": word, "details": details}
    return web.json_response({"error": said}, status=status, headers=headers)

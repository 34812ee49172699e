"""Firebase Cloud Messaging, HTTP v1: a service account signs in, its token sends.

    JWT (RS256, one hour) ─▶ POST token_uri ─▶ access token, kept until a minute before its end
    POST {base}/v1/projects/{project}/messages:send   Authorization: Bearer …
    401 ─▶ another token, once, within the same attempt

| answer                                          | outcome      | error class                    |
|-------------------------------------------------|--------------|--------------------------------|
| 200                                             | ok           | (not an acknowledgement)       |
| UNREGISTERED                                    | permanent    | `unregistered`                 |
| SENDER_ID_MISMATCH, INVALID_ARGUMENT            | permanent    | `sender_mismatch`, `http_4xx`  |
| QUOTA_EXCEEDED (429)                            | rate_limited | `http_429`                     |
| UNAVAILABLE (503)                               | transient    | `http_5xx`                     |
| INTERNAL (500), 502, 504                        | unknown      | `http_5xx`                     |
| 401, THIRD_PARTY_AUTH_ERROR, 403, no token      | transient    | `provider_auth`                |
"""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import aiohttp
import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from dispatcher.channels.http import excerpt_of, failure, wait_of
from dispatcher.channels.masking import Mask
from dispatcher.channels.port import ATTEMPT_TIMEOUT, Outcome, Result
from dispatcher.channels.provider import Answer, judge_provider, post, signing_key, text_at
from dispatcher.channels.push import Notification
from reminders.ports import Clock

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
AUDIENCE = "https://oauth2.googleapis.com/token"
"""Of the assertion, whatever `token_uri` says: as Google's own client has it."""
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION_LIFE = timedelta(hours=1)
RENEW_BEFORE = timedelta(minutes=1)
"""Before its end a token is taken for ended: the request takes time, and clocks differ."""

_CODES = {
    "UNREGISTERED": (Outcome.PERMANENT, "unregistered"),
    "SENDER_ID_MISMATCH": (Outcome.PERMANENT, "sender_mismatch"),
    "THIRD_PARTY_AUTH_ERROR": (Outcome.TRANSIENT, "provider_auth"),
    "QUOTA_EXCEEDED": (Outcome.RATE_LIMITED, "http_429"),
}


class ServiceAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Of the key file that Google hands out, what is needed."""

    project_id: str
    client_email: str
    private_key: str
    token_uri: str
    private_key_id: str = ""


class SignInError(Exception):
    """No token was given; `result` says how the attempt ends."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.error_class)
        self.result = result


class _Token(msgspec.Struct, frozen=True):
    value: str
    until: datetime


class Fcm:
    """A `PushService`."""

    def __init__(
        self,
        clock: Clock,
        session: aiohttp.ClientSession,
        account: ServiceAccount,
        *,
        base_url: str = "https://fcm.googleapis.com",
    ) -> None:
        """Raises ValueError if the account's key is none."""
        self._clock = clock
        self._session = session
        self._account = account
        self._url = f"{base_url}/v1/projects/{account.project_id}/messages:send"
        self._key = signing_key(account.private_key, RSAPrivateKey)  # type: ignore[type-abstract]
        self._mask = Mask([account.private_key])
        self._token: _Token | None = None
        self._signing_in = asyncio.Lock()

    async def send(self, notification: Notification) -> Result:
        """One message."""
        body = _body(notification)
        sent = False
        try:
            async with asyncio.timeout(ATTEMPT_TIMEOUT.total_seconds()):
                token = await self._valid_token()
                sent = True
                answer = await self._post(body, token)
                if answer.status == 401:  # refused, so nothing is under way any more
                    sent = False
                    self._drop(token)
                    token = await self._valid_token()
                    sent = True
                    answer = await self._post(body, token)
        except SignInError as error:
            return error.result
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            result = failure(error, self._known())
            return result if sent else _not_sent(result)
        return self._judge(answer)

    async def _post(self, body: bytes, token: str) -> Answer:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return await post(self._session, self._url, headers=headers, body=body)

    # --- signing in -------------------------------------------------------------------------------

    async def _valid_token(self) -> str:
        """One exchange at a time; who waited for it uses what it gave."""
        async with self._signing_in:
            if self._token is None or self._token.until <= self._clock.now():
                self._token = await self._exchange()
            return self._token.value

    def _drop(self, token: str) -> None:
        if self._token is not None and self._token.value == token:
            self._token = None

    async def _exchange(self) -> _Token:
        now = self._clock.now()
        assertion = jwt.encode(
            {
                "iss": self._account.client_email,
                "scope": SCOPE,
                "aud": AUDIENCE,
                "iat": int(now.timestamp()),
                "exp": int((now + ASSERTION_LIFE).timestamp()),
            },
            self._key,
            algorithm="RS256",
            headers={"kid": self._account.private_key_id},
        )
        form = {"grant_type": GRANT, "assertion": assertion}
        mask = self._mask.and_also([assertion])
        try:
            answer = await post(self._session, self._account.token_uri, headers={}, form=form)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise SignInError(_not_sent(failure(error, mask))) from None
        said = answer.json
        value = said.get("access_token") if isinstance(said, dict) else None
        if answer.status != 200 or not isinstance(value, str) or not value:
            raise SignInError(
                Result(
                    outcome=Outcome.TRANSIENT,
                    status_code=answer.status,
                    error_class="provider_auth",
                    excerpt=excerpt_of(answer.body, mask),
                    retry_after=wait_of(Outcome.TRANSIENT, answer.headers.get("Retry-After"), now),
                )
            )
        life = said.get("expires_in")
        seconds = life if isinstance(life, int) else 0
        return _Token(value, now + max(timedelta(seconds=seconds) - RENEW_BEFORE, timedelta(0)))

    def _known(self) -> Mask:
        return self._mask.and_also([self._token.value]) if self._token else self._mask

    # --- answers ----------------------------------------------------------------------------------

    def _judge(self, answer: Answer) -> Result:
        said = answer.json
        return judge_provider(
            answer.status,
            answer.headers,
            excerpt_of(answer.body, self._known()),
            self._clock.now(),
            reason=_CODES.get(_error_code(said)),
            event_id=text_at(said, "name", self._known()),
        )


def _not_sent(result: Result) -> Result:
    """Whatever went wrong with signing in, no message had left."""
    return msgspec.structs.replace(result, outcome=Outcome.TRANSIENT)


def _body(notification: Notification) -> bytes:
    key = notification.delivery_key
    shown = {"title": notification.message.title, "body": notification.message.text}
    return msgspec.json.encode(
        {
            "message": {
                "token": notification.token,
                "notification": shown,
                "data": notification.data,
                "android": {"priority": "high", "notification": {"tag": key}},
                "apns": {"headers": {"apns-collapse-id": key}},
            }
        }
    )


def _error_code(said: Any) -> str:
    """`google.firebase.fcm.v1.FcmError` among the details, which is the most precise."""
    error = said.get("error") if isinstance(said, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for each in details if isinstance(details, list) else ():
        if isinstance(each, dict) and isinstance(each.get("errorCode"), str):
            return str(each["errorCode"])
    return ""

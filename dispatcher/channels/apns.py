"""Apple Push Notification service: HTTP/2, one connection for many notifications.

    POST {base}/3/device/{token}   authorization: bearer <ES256 token>, apns-id, apns-topic, …

`apns-id` is a UUID made from the delivery key, the same on every attempt; Apple repeats it in the
answer. A provider token is signed anew after 40 minutes: Apple refuses those older than an hour
(`ExpiredProviderToken`) and more than one in 20 minutes (`TooManyProviderTokenUpdates`).

| answer                                             | outcome      | error class               |
|----------------------------------------------------|--------------|---------------------------|
| 200                                                | ok           | (not an acknowledgement)  |
| BadDeviceToken, DeviceTokenNotForTopic             | permanent    | `address_invalid`         |
| Unregistered, ExpiredToken                         | permanent    | `unregistered`            |
| 413                                                | permanent    | `payload_too_large`       |
| other 4xx                                          | permanent    | `http_4xx`                |
| 429: TooManyRequests, TooManyProviderTokenUpdates  | rate_limited | `http_429`                |
| 403: InvalidProviderToken, ExpiredProviderToken, … | transient    | `provider_auth`           |
| 503, Shutdown                                      | transient    | `http_5xx`                |
| other 5xx                                          | unknown      | `http_5xx`                |
| no answer after it was sent                        | unknown      | `timeout`, `disconnected` |
"""

import asyncio
import logging
import ssl
import uuid
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

import httpx
import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from dispatcher.channels.http import CONNECT_SHARE, excerpt_of
from dispatcher.channels.masking import Mask
from dispatcher.channels.port import ATTEMPT_TIMEOUT, Outcome, Result, printable
from dispatcher.channels.provider import judge_provider, signing_key
from dispatcher.channels.push import Notification
from reminders.ports import Clock

RENEW_AFTER = timedelta(minutes=40)
NO_SOONER_THAN = timedelta(minutes=20)
KEPT_FOR = timedelta(hours=24)
"""How long Apple keeps it for a device that is off."""
CONNECTIONS = 4
"""Each carries hundreds of notifications at once. Apple takes many new ones for an attack."""
KEEPALIVE = timedelta(minutes=1)
_APNS_IDS = uuid.UUID("6f1d3c1e-6c0e-5f0b-9a39-5b0f2f0f6a11")
"""Our own name space of RFC 9562 UUIDs, version 5."""

_REASONS = {
    "BadDeviceToken": (Outcome.PERMANENT, "address_invalid"),
    "DeviceTokenNotForTopic": (Outcome.PERMANENT, "address_invalid"),
    "Unregistered": (Outcome.PERMANENT, "unregistered"),
    "ExpiredToken": (Outcome.PERMANENT, "unregistered"),
    "PayloadTooLarge": (Outcome.PERMANENT, "payload_too_large"),
    "TooManyRequests": (Outcome.RATE_LIMITED, "http_429"),
    "TooManyProviderTokenUpdates": (Outcome.RATE_LIMITED, "http_429"),
    "IdleTimeout": (Outcome.TRANSIENT, "disconnected"),
    "Shutdown": (Outcome.TRANSIENT, "http_5xx"),
}


class ApnsKey(msgspec.Struct, frozen=True, kw_only=True):
    """What Apple's developer site gives, and the app."""

    private_key: str
    """PEM, of the .p8 file."""
    key_id: str
    team_id: str
    topic: str


class _Token(msgspec.Struct, frozen=True):
    value: str
    made_at: datetime


class Apns:
    """A `PushService`. Enter it inside the running loop; leaving closes its connections."""

    def __init__(
        self,
        clock: Clock,
        key: ApnsKey,
        context: ssl.SSLContext,
        *,
        base_url: str = "https://api.push.apple.com",
        timeout: timedelta = ATTEMPT_TIMEOUT,
    ) -> None:
        """`context` is changed, so share it with nobody. Raises ValueError if the key is none."""
        for name in ("httpx", "httpcore", "hpack"):  # they log URLs, and with them device tokens
            logging.getLogger(name).setLevel(logging.WARNING)
        total = timeout.total_seconds()
        self._timeout_s = total
        self._clock = clock
        self._key = key
        self._signing_key = signing_key(key.private_key, EllipticCurvePrivateKey)  # type: ignore[type-abstract]
        self._mask = Mask([key.private_key])
        self._token: _Token | None = None
        self._client = httpx.AsyncClient(
            base_url=base_url,
            http1=False,
            http2=True,
            verify=context,
            trust_env=False,
            follow_redirects=False,
            limits=httpx.Limits(
                max_connections=CONNECTIONS,
                max_keepalive_connections=CONNECTIONS,
                keepalive_expiry=KEEPALIVE.total_seconds(),
            ),
            timeout=httpx.Timeout(total, connect=total * CONNECT_SHARE),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def send(self, notification: Notification) -> Result:
        """One notification."""
        progress = _Progress()
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._post(notification, progress)
                if self._renewed(response):
                    response = await self._post(notification, progress)
        except (httpx.HTTPError, TimeoutError, OSError, ValueError) as error:
            return self._failure(error, progress)
        return self._judge(response)

    async def _post(self, notification: Notification, progress: "_Progress") -> httpx.Response:
        now = self._clock.now()
        return await self._client.post(
            f"/3/device/{notification.token}",
            content=_body(notification),
            headers={
                "authorization": f"bearer {self._provider_token(now)}",
                "apns-id": apns_id(notification.delivery_key),
                "apns-topic": self._key.topic,
                "apns-push-type": "alert",
                "apns-priority": "10",
                "apns-expiration": str(int((now + KEPT_FOR).timestamp())),
                "apns-collapse-id": notification.delivery_key,
            },
            extensions={"trace": progress.trace},
        )

    # --- the provider token -----------------------------------------------------------------------

    def _provider_token(self, now: datetime) -> str:
        if self._token is None or now - self._token.made_at >= RENEW_AFTER:
            value = jwt.encode(
                {"iss": self._key.team_id, "iat": int(now.timestamp())},
                self._signing_key,
                algorithm="ES256",
                headers={"kid": self._key.key_id},
            )
            self._token = _Token(value, now)
        return self._token.value

    def _renewed(self, response: httpx.Response) -> bool:
        """Whether another token may help, and is allowed by now."""
        if response.status_code != 403 or _reason(response.content) != "ExpiredProviderToken":
            return False
        if self._token is None:
            return True
        if self._clock.now() - self._token.made_at < NO_SOONER_THAN:
            return False
        self._token = None
        return True

    # --- answers ----------------------------------------------------------------------------------

    def _judge(self, response: httpx.Response) -> Result:
        return judge_provider(
            response.status_code,
            response.headers,
            excerpt_of(response.content, self._known()),
            self._clock.now(),
            reason=_REASONS.get(_reason(response.content)),
            event_id=printable(response.headers.get("apns-id", "")),
        )

    def _failure(self, error: Exception, progress: "_Progress") -> Result:
        if isinstance(error, (TimeoutError, httpx.TimeoutException)):
            error_class = "timeout" if progress.sent else "connect_timeout"
        else:
            error_class = "disconnected" if progress.sent else "connect"
        return Result(
            outcome=Outcome.UNKNOWN if progress.sent else Outcome.TRANSIENT,
            error_class=error_class,
            excerpt=printable(self._known()(str(error))),
        )

    def _known(self) -> Mask:
        return self._mask.and_also([self._token.value]) if self._token else self._mask


class _Progress:
    """Whether anything of the request has left."""

    def __init__(self) -> None:
        self.sent = False

    async def trace(self, event: str, _info: object) -> None:
        """Sees the events of httpcore."""
        if event == "http2.send_request_headers.started":
            self.sent = True


def apns_id(delivery_key: str) -> str:
    """The same UUID for all attempts."""
    return str(uuid.uuid5(_APNS_IDS, delivery_key))


def _body(notification: Notification) -> bytes:
    alert = {"title": notification.message.title, "body": notification.message.text}
    return msgspec.json.encode({"aps": {"alert": alert, "sound": "default"}, **notification.data})


def _reason(body: bytes) -> str:
    try:
        said = msgspec.json.decode(body)
    except ValueError:
        return ""
    reason = said.get("reason") if isinstance(said, dict) else None
    return reason if isinstance(reason, str) else ""

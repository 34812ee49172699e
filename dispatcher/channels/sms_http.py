"""Any provider of SMS that takes a JSON POST: the body is a template, the answer names the message.

    template {"to":"{to}","text":"{text}","idempotencyKey":"{key}"}   + Authorization

`{to}`, `{text}` and `{key}` are put into the strings of the parsed template, so no text can add a
field. Where the provider deduplicates by the key, repeats are harmless; where not, give it none.
Statuses mean what `judge_provider` says.
"""

from typing import Any

import aiohttp
import msgspec

from dispatcher.channels.http import excerpt_of
from dispatcher.channels.masking import Mask
from dispatcher.channels.port import Result
from dispatcher.channels.provider import Answer, judge_provider, post, text_at
from reminders.ports import Clock


class HttpGateway(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be known about the provider."""

    url: str
    body: str
    """JSON with {to}, {text} and {key} inside strings."""
    authorization: str | None = None
    id_path: str = "id"


class HttpSms:
    """An `SmsProvider`."""

    name = "sms-http"

    def __init__(
        self, clock: Clock, session: aiohttp.ClientSession, gateway: HttpGateway, mask: Mask
    ) -> None:
        self._clock = clock
        self._session = session
        self._gateway = gateway
        self._template = msgspec.json.decode(gateway.body)
        self._mask = mask
        self._headers = {"Content-Type": "application/json"}
        if gateway.authorization is not None:
            self._headers["Authorization"] = gateway.authorization

    async def send(self, to: str, text: str, delivery_key: str) -> Result:
        """One message."""
        values = {"{to}": to, "{text}": text, "{key}": delivery_key}
        body = msgspec.json.encode(_filled(self._template, values))
        answer = await post(self._session, self._gateway.url, headers=self._headers, body=body)
        return self._judge(answer)

    def _judge(self, answer: Answer) -> Result:
        return judge_provider(
            answer.status,
            answer.headers,
            excerpt_of(answer.body, self._mask),
            self._clock.now(),
            event_id=text_at(answer.json, self._gateway.id_path, self._mask),
        )


def _filled(template: Any, values: dict[str, str]) -> Any:
    """In one pass: what a text contains is never taken for a placeholder."""
    if isinstance(template, dict):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    found, rest = "", template
    while rest:
        at, name = min(
            ((rest.find(name), name) for name in values if name in rest), default=(-1, "")
        )
        if at < 0:
            break
        found += rest[:at] + values[name]
        rest = rest[at + len(name) :]
    return found + rest

"""Twilio's message API as its documentation has it, with the magic numbers of its test credentials.

https://www.twilio.com/docs/messaging/api/message-resource and …/docs/iam/test-credentials
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

SID = "AC" + "a1" * 16
TOKEN = "b2" * 16
SENDER = "+15005550006"

# To → Twilio's code: https://www.twilio.com/docs/iam/test-credentials
MAGIC = {
    "+15005550001": 21211,
    "+15005550002": 21612,
    "+15005550003": 21408,
    "+15005550004": 21610,
    "+15005550009": 21614,
}


@dataclass
class TwilioApi:
    """Keeps messages; answers as Twilio does, or as the test says."""

    messages: list[dict[str, str]] = field(default_factory=list)
    instead: Callable[[web.Request], web.StreamResponse] | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One call."""
        form = {name: str(value) for name, value in (await request.post()).items()}
        if self.instead is not None:
            return self.instead(request)
        pair = base64.b64encode(f"{SID}:{TOKEN}".encode()).decode()
        if request.headers.get("Authorization") != f"Basic {pair}":
            return error(401, 20003, "Authenticate")
        if (request.method, request.path) != ("POST", f"/2010-04-01/Accounts/{SID}/Messages.json"):
            return error(404, 20404, "The requested resource was not found")
        return self._message(form)

    def _message(self, form: dict[str, str]) -> web.Response:
        to, body = form.get("To", ""), form.get("Body", "")
        if "From" not in form and "MessagingServiceSid" not in form:
            return error(400, 21603, "A 'From' phone number is required.")
        if not to:
            return error(400, 21604, "A 'To' phone number is required.")
        if to in MAGIC:
            return error(400, MAGIC[to], f"Refused: {to}")
        if not body:
            return error(400, 21602, "Message body is required.")
        if len(body) > 1600:
            return error(
                400, 21617, "The concatenated message body exceeds the 1600 character limit."
            )
        self.messages.append(form)
        sid = f"SM{len(self.messages):032x}"
        return web.json_response(
            {
                "sid": sid,
                "account_sid": SID,
                "api_version": "2010-04-01",
                "body": body,
                "to": to,
                "from": form.get("From"),
                "messaging_service_sid": form.get("MessagingServiceSid"),
                "status": "queued",
                "num_segments": "1",
                "num_media": "0",
                "direction": "outbound-api",
                "price": None,
                "price_unit": "USD",
                "error_code": None,
                "error_message": None,
                "date_created": "Sun, 29 Mar 2026 01:00:01 +0000",
                "date_updated": "Sun, 29 Mar 2026 01:00:01 +0000",
                "date_sent": None,
                "uri": f"/2010-04-01/Accounts/{SID}/Messages/{sid}.json",
                "subresource_uris": {},
            },
            status=201,
        )


def error(status: int, code: int, message: str, **headers: str) -> web.Response:
    """In Twilio's form."""
    return web.json_response(
        {
            "code": code,
            "message": message,
            "more_info": f"https://www.twilio.com/docs/errors/{code}",
            "status": status,
        },
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )

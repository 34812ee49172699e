"""Twilio's message API (2010-04-01): a form, basic auth, JSON back.

    POST {base}/2010-04-01/Accounts/{sid}/Messages.json   To, From | MessagingServiceSid, Body
    201 {"sid": "SM…", …}   else {"code": 21211, "message": …, "status": 400}

Twilio takes no idempotency key for messages, so a repeat after a lost answer can reach the receiver
twice. That is why an answer that leaves it open (500, 502, 504, none) is an unknown outcome and
marked, and a 503 is not: with that, Twilio says that it did nothing.
"""

import base64
from urllib.parse import quote

import aiohttp
import msgspec

from dispatcher.channels.http import excerpt_of
from dispatcher.channels.masking import Mask
from dispatcher.channels.port import Outcome, Result
from dispatcher.channels.provider import Answer, judge_provider, post, text_at
from reminders.ports import Clock

# From Twilio's error dictionary. What is not here is judged by its status.
_CODES = {
    20003: (Outcome.TRANSIENT, "provider_auth"),
    20005: (Outcome.TRANSIENT, "provider_auth"),  # account not active
    20429: (Outcome.RATE_LIMITED, "http_429"),
    14107: (Outcome.RATE_LIMITED, "sms_rate"),
    21611: (Outcome.RATE_LIMITED, "sms_queue_full"),
    30001: (Outcome.RATE_LIMITED, "sms_queue_full"),
    63018: (Outcome.RATE_LIMITED, "sms_rate"),
    21211: (Outcome.PERMANENT, "address_invalid"),
    21217: (Outcome.PERMANENT, "address_invalid"),
    21614: (Outcome.PERMANENT, "address_invalid"),  # not a mobile number
    21408: (Outcome.PERMANENT, "region_forbidden"),
    21610: (Outcome.PERMANENT, "opted_out"),
    21612: (Outcome.PERMANENT, "unreachable"),
    21617: (Outcome.PERMANENT, "text_too_long"),
    21602: (Outcome.PERMANENT, "text_empty"),
    30007: (Outcome.PERMANENT, "filtered"),
}


class TwilioAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Whose account, and from whom messages come."""

    account_sid: str
    user: str
    """The account's SID, or that of an API key."""
    password: str
    sender: str
    """A number, or the SID of a messaging service (MG…)."""
    base_url: str = "https://api.twilio.com"

    @property
    def authorization(self) -> str:
        """The header's value."""
        pair = f"{self.user}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be kept anywhere."""
        return (self.password, self.authorization)


class Twilio:
    """An `SmsProvider`."""

    name = "twilio"

    def __init__(
        self, clock: Clock, session: aiohttp.ClientSession, account: TwilioAccount, mask: Mask
    ) -> None:
        self._clock = clock
        self._session = session
        self._account = account
        self._mask = mask
        path = f"/2010-04-01/Accounts/{quote(account.account_sid, safe='')}/Messages.json"
        self._url = account.base_url + path

    async def send(self, to: str, text: str, delivery_key: str) -> Result:
        """One message; Twilio can't be told the key."""
        del delivery_key
        sender = self._account.sender
        sender_field = "MessagingServiceSid" if sender.startswith("MG") else "From"
        answer = await post(
            self._session,
            self._url,
            headers={"Authorization": self._account.authorization},
            form={"To": to, sender_field: sender, "Body": text},
        )
        return self._judge(answer)

    def _judge(self, answer: Answer) -> Result:
        said = answer.json
        code = said.get("code") if isinstance(said, dict) else None
        return judge_provider(
            answer.status,
            answer.headers,
            excerpt_of(answer.body, self._mask),
            self._clock.now(),
            reason=_CODES.get(code) if isinstance(code, int) else None,
            event_id=text_at(said, "sid", self._mask),
        )

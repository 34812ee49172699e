"""How addresses of people look: pure rules. Answers are None, or what is wrong, for a person.

Strict on purpose: what passes has one reading everywhere and no way to hold a second header,
another recipient or a display name. Looked at when given (scheduler) and before each attempt
(dispatcher).
"""

import re

MAX_EMAIL = 254
"""RFC 5321 4.5.3.1: what fits into a path."""
MAX_LOCAL_PART = 64
MAX_TOKEN = 4096
SUBJECT_BYTES = 512

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL_PART = re.compile(rf"{_ATOM}(\.{_ATOM})*")
_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
_E164 = re.compile(r"\+[1-9][0-9]{6,14}")
_FCM_TOKEN = re.compile(r"[A-Za-z0-9_:.\-%]+")
_APNS_TOKEN = re.compile(r"[0-9A-Fa-f]{64,200}")


def email_problem(address: str) -> str | None:
    """RFC 5321's Mailbox without quoted local parts and address literals; ASCII only."""
    if not address.isascii():
        return "an address is ASCII; write an IDN as xn--…"
    local, at, domain = address.rpartition("@")
    if not at or len(address) > MAX_EMAIL or len(local) > MAX_LOCAL_PART:
        return f"not one e-mail address of at most {MAX_EMAIL} characters, such as ada@example.com"
    labels = domain.split(".")
    if not _LOCAL_PART.fullmatch(local) or not all(map(_LABEL.fullmatch, labels)):
        return "not one plain e-mail address, such as ada@example.com"
    if len(labels) < 2 or labels[-1].isdigit():
        return f"{domain} is not a public domain"
    return None


def phone_problem(number: str) -> str | None:
    """ITU-T E.164, with the plus sign."""
    if _E164.fullmatch(number):
        return None
    return "not an E.164 number: + and 7 to 15 digits, the country code first, such as +33123456789"


def token_problem(token: str, provider: str) -> str | None:
    """A device token of `fcm` or `apns`."""
    if len(token) > MAX_TOKEN:
        return f"longer than {MAX_TOKEN} characters"
    if provider == "apns":
        if _APNS_TOKEN.fullmatch(token):
            return None
        return "not an APNs device token: 64 to 200 hexadecimal digits"
    return None if _FCM_TOKEN.fullmatch(token) else "not an FCM registration token"


def subject_problem(subject: str) -> str | None:
    """One line of text."""
    if len(subject.encode()) > SUBJECT_BYTES:
        return f"longer than {SUBJECT_BYTES} bytes"
    return None if subject.isprintable() else "a subject is one line without control characters"

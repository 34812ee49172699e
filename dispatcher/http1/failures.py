"""Why there is no answer."""

from typing import ClassVar


class HttpFailure(Exception):
    """No status line came. Its text may quote addresses and names, never the request."""

    word: ClassVar[str]
    """A stable one, for records and metrics."""
    sent: ClassVar[bool]
    """Whether the request, or part of it, may have reached the receiver."""


class NameFailed(HttpFailure):
    """The name has no address, or nobody could be asked."""

    word, sent = "dns", False


class ConnectFailed(HttpFailure):
    """Nobody takes connections there."""

    word, sent = "connect", False


class ConnectTimedOut(HttpFailure):
    """There was no connection within its share of the time."""

    word, sent = "connect_timeout", False


class TlsFailed(HttpFailure):
    """It is not who it should be, or speaks no TLS."""

    word, sent = "tls", False


class Disconnected(HttpFailure):
    """The connection ended after the request was written."""

    word, sent = "disconnected", True


class TimedOut(HttpFailure):
    """It had not answered by then."""

    word, sent = "timeout", True


class NotHttp(HttpFailure):
    """What came is no answer of HTTP/1."""

    word, sent = "protocol", True

"""Where a webhook may go: pure rules about URLs, addresses and headers (R-DEL-8, the SSRF guard).

A URL is looked at when it is given (scheduler) and before each attempt (dispatcher). A name can
still resolve to anything, so the dispatcher asks `address_problem` about each address that it
connects to; that rule counts, and the ones about names only give an earlier and clearer answer.

Answers are None, or what is wrong, for a person.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

MAX_URL_BYTES = 2048

Ports = tuple[range, ...]
HTTPS_ONLY: Ports = (range(443, 444), range(8443, 8444))
"""The ports that webhooks may go to unless the configuration names others."""
_DEFAULT_PORTS = {"http": 80, "https": 443}

_PRINTABLE = re.compile(r"[!-\[\]-~]*")  # ASCII without spaces and without the backslash
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")

# `is_global` lets some of these pass (NAT64, 6to4, multicast, …), so all are named.
_DENIED_V4 = tuple(
    (IPv4Network(network), name)
    for network, name in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignment"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmark"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_DENIED_V6 = tuple(
    (IPv6Network(network), name)
    for network, name in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("::/96", "IPv4-compatible"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "NAT64"),
        ("100::/64", "discard"),
        ("2001::/32", "Teredo"),
        ("2001:2::/48", "benchmark"),
        ("2001::/23", "protocol assignment"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")

RESERVED_HEADERS = frozenset(
    (
        # ours
        *("content-type", "user-agent", "webhook-id", "webhook-timestamp", "webhook-signature"),
        *("x-event-id", "x-signature", "x-tocsin-replay", "x-tocsin-subscriber"),
        # of the connection, not of the request (RFC 9110 7.6.1), or computed from the request
        *("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect"),
        *("host", "content-length", "content-encoding", "accept-encoding"),
    )
)
_NETLOC = re.compile(r"(?:\[[^\[\]]*\]|[^\[\]:]*)(?::[0-9]*)?")
"""A host, in brackets all of it or none, and a port."""
_PATH = re.compile(r"[/?#]")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIELD_VALUE = re.compile(r"[\t -~]*")


def ports_of(texts: Iterable[str]) -> Ports:
    """From `443` and `8000-8999`. Raises ValueError, which names the wrong one."""
    found = []
    for text in texts:
        first, dash, last = text.strip().partition("-")
        low, high = _port(first, text), _port(last if dash else first, text)
        if low > high:
            raise ValueError(f"{text!r}: the first port is above the last")
        found.append(range(low, high + 1))
    return tuple(found)


def _port(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit() and 1 <= int(digits[:6]) <= 65_535):
        raise ValueError(f"{text!r} is neither a port nor a range such as 8000-8999")
    return int(digits)


def url_problem(url: str, *, allow_loopback_http: bool, ports: Ports = HTTPS_ONLY) -> str | None:
    """Why a webhook may not go there, as far as the URL itself tells.

    `allow_loopback_http` is for development: localhost, 127.0.0.0/8 and ::1 are then allowed, by
    HTTP and at any port too.
    """
    if len(url) > MAX_URL_BYTES:
        return f"longer than {MAX_URL_BYTES} bytes"
    if not _PRINTABLE.fullmatch(url):
        return "a URL is printable ASCII without spaces and backslashes; write an IDN as xn--…"
    return _origin_problem(origin(url), allow_loopback_http=allow_loopback_http, ports=ports)


def origin(url: str) -> str:
    """Scheme, credentials, host and port, as written: what comes before path, query, fragment."""
    scheme, separator, rest = url.partition("://")
    return scheme + separator + _PATH.split(rest, 1)[0]


@lru_cache(maxsize=4096)
def _origin_problem(url: str, *, allow_loopback_http: bool, ports: Ports) -> str | None:
    """The verdict, of which paths know nothing; there are few origins and many paths."""
    problem = _form_problem(url)
    if problem is not None:
        return problem
    parts = urlsplit(url)
    if allow_loopback_http and _is_loopback(parts):
        return None
    if parts.scheme != "https":
        return "the scheme must be https"
    return _host_problem(parts) or _port_problem(parts, ports)


def _form_problem(url: str) -> str | None:
    """So strict that no two parsers read what is left differently."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "not a URL"
    if parts.scheme not in ("http", "https"):
        return "the scheme must be https"
    if port == 0 or not parts.hostname:
        return "not a URL with a host"
    if "@" in parts.netloc:
        return "credentials in a URL are refused; send a header"
    return None if _NETLOC.fullmatch(parts.netloc) else "not a URL"


def _port_problem(parts: SplitResult, ports: Ports) -> str | None:
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    if any(port in allowed for allowed in ports):
        return None
    names = ", ".join(str(each[0]) if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in ports)
    return f"port {port} is not among those that are allowed here: {names}"


def _is_loopback(parts: SplitResult) -> bool:
    host = (parts.hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return address_problem(host, allow_loopback=False) == _refused("loopback", host)


def _host_problem(parts: SplitResult) -> str | None:
    host = parts.hostname or ""
    if parts.netloc.startswith("["):
        return address_problem(host, allow_loopback=False)
    name = host.removesuffix(".")
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return "not a host name"
    if _NUMBER.fullmatch(labels[-1]):
        # 127.1, 0x7f.1 and 2130706433 are addresses to a resolver, whatever they look like.
        return address_problem(name, allow_loopback=False)
    if len(labels) == 1 or name == "localhost" or name.endswith(_LOCAL_SUFFIXES):
        return f"{host} is not a public host name"
    return None


def address_problem(address: str, *, allow_loopback: bool) -> str | None:
    """Why no connection may be made to an IP address. Anything but a plain literal is refused."""
    try:
        ip = ip_address(address)
    except ValueError:
        return f"{address} is not an IP address in its usual form"
    kind = _denied_kind(ip)
    if kind == "loopback" and allow_loopback:
        return None
    return _refused(kind, address) if kind else None


def _denied_kind(ip: IPv4Address | IPv6Address) -> str | None:
    if isinstance(ip, IPv4Address):
        found = next((name for network, name in _DENIED_V4 if ip in network), None)
    elif ip.scope_id is not None:
        found = "link-local"
    else:
        found = next((name for network, name in _DENIED_V6 if ip in network), None)
        if found is None and ip not in _GLOBAL_UNICAST:
            found = "non-global"
    return found if found or ip.is_global else "non-global"


def _refused(kind: str, address: str) -> str:
    return f"{address} is a {kind} address; only public ones are allowed"


def header_problem(name: str, value: str) -> str | None:
    """Why a caller's header can't be sent along with a webhook."""
    if not _TOKEN.fullmatch(name):
        return "not a header name"
    lowered = name.lower()
    if lowered in RESERVED_HEADERS or lowered.startswith("proxy-"):
        return "set by Tocsin or by HTTP itself"
    if not _FIELD_VALUE.fullmatch(value):
        return "a header value is printable ASCII"
    return None

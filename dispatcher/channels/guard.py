"""Keeps webhooks away from private networks (R-DEL-8).

    URL ─ url_problem ─▶ literal ──────────────────▶ socket_factory(address) ─▶ connect to it
                     └─▶ name ─▶ GuardedResolver ─▶ ┘

The last gate decides: each address that aiohttp is about to connect to, literal or resolved, v4 or
v6, passes `socket_factory`, and the socket that it gives is connected to that address and no other,
so a name that answers differently the second time gains nothing. The resolver refuses earlier only
to give the clearer error.
"""

import socket
import ssl
from collections.abc import Sequence
from typing import Any

import aiodns
from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from reminders.urls import address_problem

KEEPALIVE_S = 4.0
"""Shorter than the 5 s after which common servers close an idle connection under our feet."""
DNS_TTL_S = 10


class ForbiddenAddressError(OSError):
    """An address that no webhook may be sent to."""


class Resolver(AbstractResolver):
    """Asks these name servers (`address:port`), or those of the system. Needs a running loop.

    Not `getaddrinfo` in threads: there are few of them, and a name whose servers do not answer
    would hold one for many seconds, and with it the deliveries to everybody else. Not aiohttp's own
    on the same library: that leaves callbacks behind when it is closed.
    """

    def __init__(self, servers: Sequence[str] = ()) -> None:
        self._resolver = aiodns.DNSResolver(nameservers=list(servers) or None)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Its addresses; OSError if there are none."""
        try:
            found = await self._resolver.getaddrinfo(
                host, family=family, port=port, type=socket.SOCK_STREAM
            )
        except aiodns.error.DNSError as error:
            raise OSError(None, str(error.args[-1])) from error
        return [
            ResolveResult(
                hostname=host,
                host=_text(node.addr),
                port=port,
                family=socket.AddressFamily(node.family),
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for node in found.nodes
        ]

    async def close(self) -> None:
        """Cancels what is asked."""
        await self._resolver.close()


def _text(address: tuple[Any, ...]) -> str:
    """`fe80::1%2` with its scope, which the guard refuses by."""
    text = address[0].decode() if isinstance(address[0], bytes) else str(address[0])
    return f"{text}%{address[3]}" if len(address) > 3 and address[3] else text


class GuardedResolver(AbstractResolver):
    """Leaves out forbidden addresses; raises `ForbiddenAddressError` if nothing is left."""

    def __init__(self, inner: AbstractResolver, *, allow_loopback: bool) -> None:
        self._inner = inner
        self._allow_loopback = allow_loopback

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """As the inner one, without forbidden addresses."""
        found = await self._inner.resolve(host, port, family)
        problems = [
            address_problem(each["host"], allow_loopback=self._allow_loopback) for each in found
        ]
        allowed = [each for each, problem in zip(found, problems, strict=True) if problem is None]
        if found and not allowed:
            raise ForbiddenAddressError(f"{host}: {problems[0]}")
        return allowed

    async def close(self) -> None:
        """Closes the inner one."""
        await self._inner.close()


def guarded_connector(
    *,
    allow_loopback: bool,
    resolver: AbstractResolver,
    tls: ssl.SSLContext | None = None,
) -> TCPConnector:
    """Connects to public addresses only. Needs a running loop.

    Limits, and closing the resolver, are the caller's business.
    """

    def make_socket(info: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
        family, kind, protocol, _, address = info
        problem = address_problem(str(address[0]), allow_loopback=allow_loopback)
        if problem is not None:
            raise ForbiddenAddressError(problem)
        return socket.socket(family, kind, protocol)

    return TCPConnector(
        resolver=GuardedResolver(resolver, allow_loopback=allow_loopback),
        ssl=tls if tls is not None else True,
        socket_factory=make_socket,
        limit=0,
        ttl_dns_cache=DNS_TTL_S,
        keepalive_timeout=KEEPALIVE_S,
    )

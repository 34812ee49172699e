"""Keeps webhooks away from private networks (R-DEL-8).

    URL ─ url_problem ─▶ literal ─────────────────▶ gate(address) ─▶ connect to it
                     └─▶ name ─▶ Resolver ─▶ gate ─▶ ┘

The last gate decides: each address that is about to be connected to, literal or resolved, v4 or v6,
passes it (`http1.dialing`), and the socket that is made then is connected to that address and no
other, so a name that answers differently the second time gains nothing.
"""

import socket
from collections.abc import Sequence
from typing import Any

import aiodns

from dispatcher.http1 import AddressInfo, Gate, address_info
from reminders.urls import address_problem


class ForbiddenAddressError(OSError):
    """An address that no webhook may be sent to."""


def gate(*, allow_loopback: bool) -> Gate:
    """Lets public addresses pass."""

    def problem(address: str) -> ForbiddenAddressError | None:
        found = address_problem(address, allow_loopback=allow_loopback)
        return ForbiddenAddressError(found) if found is not None else None

    return problem


class Resolver:
    """Asks these name servers (`address:port`), or those of the system. Needs a running loop.

    Not `getaddrinfo` in threads: there are few of them, and a name whose servers do not answer
    would hold one for many seconds, and with it the deliveries to everybody else.
    """

    def __init__(self, servers: Sequence[str] = ()) -> None:
        self._resolver = aiodns.DNSResolver(nameservers=list(servers) or None)

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Its addresses, v4 and v6; OSError if there are none."""
        try:
            found = await self._resolver.getaddrinfo(
                host, family=socket.AF_UNSPEC, port=port, type=socket.SOCK_STREAM
            )
        except aiodns.error.DNSError as error:
            raise OSError(None, str(error.args[-1])) from error
        return [_info(node.addr) for node in found.nodes]

    async def close(self) -> None:
        """Cancels what is asked."""
        await self._resolver.close()


def _info(address: tuple[Any, ...]) -> AddressInfo:
    """`fe80::1%2` with its scope, which the gate refuses by."""
    text = address[0].decode() if isinstance(address[0], bytes) else str(address[0])
    return address_info(text, int(address[1]), int(address[3]) if len(address) > 3 else 0)

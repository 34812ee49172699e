"""Opens connections: a name is looked up once, and only addresses that pass the gate are tried.

The gate is asked twice. Of the addresses of a name those are left out that do not pass; then it is
asked about each one, literals as well, right before a socket is made that is connected to it and to
no other. So there is no way around it, and nothing that the name answers later matters.
"""

import asyncio
import socket
import ssl
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Protocol

import aiohappyeyeballs

from dispatcher.http1.connection import Connection
from dispatcher.http1.failures import ConnectFailed, NameFailed, TlsFailed
from dispatcher.http1.request import Origin

HEAD_START_S = 0.25
"""Of one address of a name before the next one is tried beside it (RFC 8305)."""
KNOWN_S = 10.0
"""How long the addresses of a name are believed."""
MOST_KNOWN = 4096
"""Names; those looked up first are forgotten first."""

AddressInfo = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int]]
"""As `getaddrinfo` has it: family, type, protocol, canonical name, address."""


class Lookup(Protocol):
    """Knows names."""

    async def resolve(self, host: str, port: int) -> Sequence[AddressInfo]:
        """Its addresses. Raises OSError if there are none, or nobody tells."""


Gate = Callable[[str], Exception | None]
"""Why an address must not be connected to, as the error to be raised; None: it may."""


class Dialer:
    """One for a client."""

    def __init__(self, lookup: Lookup, gate: Gate, tls: ssl.SSLContext) -> None:
        self._lookup = lookup
        self._gate = gate
        self._tls = tls
        self._known: OrderedDict[tuple[str, int], tuple[float, deque[AddressInfo]]] = OrderedDict()
        self._asking: dict[tuple[str, int], asyncio.Task[deque[AddressInfo]]] = {}

    async def dial(self, origin: Origin) -> Connection:
        """A connection to one of its addresses, each of which has its chance.

        Raises `HttpFailure`, or what the gate raises. A wrong certificate is what its owner has to
        hear of, whatever another address does.
        """
        addresses = await self._addresses(origin)
        if len(addresses) == 1:
            return await self._straight(origin, addresses[0])
        untrusted: TlsFailed | None = None
        while True:
            try:
                opened = await self._connect(addresses)
            except ConnectFailed as error:
                if untrusted is None:
                    raise
                raise untrusted from error
            peer = ""
            try:
                peer = opened.getpeername()[0]
                return await self._secure(origin, opened)
            except OSError as error:
                if isinstance(error, ssl.SSLError):
                    untrusted = untrusted or TlsFailed(str(error))
                left = [each for each in addresses if each[4][0] != peer]
                if not left or len(left) == len(addresses):
                    raise (untrusted or ConnectFailed(str(error))) from error
                addresses = left

    async def _straight(self, origin: Origin, info: AddressInfo) -> Connection:
        """To the only address there is: a third of the CPU, and nothing to choose from."""
        family, _, protocol, _, address = info
        problem = self._gate(address[0])
        if problem is not None:
            raise problem
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                Connection,
                *address[:2],
                family=family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST,  # it is never looked up again
                ssl=self._tls if origin.secure else None,
                server_hostname=origin.server_name if origin.secure else None,
            )
        except ssl.SSLError as error:
            raise TlsFailed(str(error)) from error
        except OSError as error:
            raise ConnectFailed(str(error)) from error
        return connection

    async def close(self) -> None:
        """Asks no more."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _connect(self, addresses: Sequence[AddressInfo]) -> socket.socket:
        forbidden: list[Exception] = []

        def make(info: AddressInfo) -> socket.socket:
            problem = self._gate(info[4][0])
            if problem is not None:
                forbidden.append(problem)
                raise problem
            return socket.socket(*info[:3])

        try:
            return await aiohappyeyeballs.start_connection(
                addresses,
                happy_eyeballs_delay=HEAD_START_S,
                interleave=1,
                socket_factory=make,
            )
        except OSError as error:
            if forbidden:
                raise forbidden[0] from error
            raise ConnectFailed(str(error)) from error

    async def _secure(self, origin: Origin, opened: socket.socket) -> Connection:
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                Connection,
                sock=opened,
                ssl=self._tls if origin.secure else None,
                server_hostname=origin.server_name if origin.secure else None,
            )
        except BaseException:
            opened.close()
            raise
        return connection

    # --- names ------------------------------------------------------------------------------------

    async def _addresses(self, origin: Origin) -> list[AddressInfo]:
        literal = _literal(origin)
        if literal is not None:
            return [literal]
        key = (origin.host, origin.port)
        known = self._known.get(key)
        if known is None or known[0] <= asyncio.get_running_loop().time():
            found = await self._ask(key)
        else:
            found = known[1]
        addresses = list(found)
        found.rotate(-1)  # connections are spread over them
        return addresses

    async def _ask(self, key: tuple[str, int]) -> deque[AddressInfo]:
        """Many may wait for one answer; one of them that gives up does not end it for others."""
        task = self._asking.get(key)
        if task is None:
            task = asyncio.create_task(self._look_up(*key), name="http1-look-up")
            self._asking[key] = task
            task.add_done_callback(lambda done: self._asked(key, done))
        return await asyncio.shield(task)

    def _asked(self, key: tuple[str, int], done: "asyncio.Task[deque[AddressInfo]]") -> None:
        del self._asking[key]
        if done.cancelled() or done.exception() is not None:
            return
        now = asyncio.get_running_loop().time()
        self._known.pop(key, None)
        self._known[key] = now + KNOWN_S, done.result()
        while len(self._known) > MOST_KNOWN or next(iter(self._known.values()))[0] <= now:
            self._known.popitem(last=False)

    async def _look_up(self, host: str, port: int) -> deque[AddressInfo]:
        try:
            found = await self._lookup.resolve(host, port)
        except OSError as error:
            raise NameFailed(f"{host}: {error.strerror or error}") from error
        if not found:
            raise NameFailed(f"{host} has no address")
        problems = [self._gate(each[4][0]) for each in found]
        passing = [each for each, problem in zip(found, problems, strict=True) if problem is None]
        if not passing:
            assert problems[0] is not None
            raise problems[0]
        return deque(passing)


def _literal(origin: Origin) -> AddressInfo | None:
    try:
        ip_address(origin.host)
    except ValueError:
        return None
    return address_info(origin.host, origin.port)


def address_info(text: str, port: int, scope: int = 0) -> AddressInfo:
    """Of an address in its notation; `scope`: of a link-local one of v6."""
    stream = (socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
    if ":" not in text:
        return (socket.AF_INET, *stream, (text, port))
    return (socket.AF_INET6, *stream, (f"{text}%{scope}" if scope else text, port, 0, scope))

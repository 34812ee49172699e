"""A name server on a UDP port: answers A queries from a script, AAAA with nothing (RFC 1035)."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

_A, _IN = 1, 1


class NameServer(asyncio.DatagramProtocol):
    """Each A query takes the next answer; the last one stays."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        """Names of the A queries."""
        self.address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Of asyncio."""
        self.transport = cast("asyncio.DatagramTransport", transport)
        host, port = transport.get_extra_info("sockname")
        self.address = f"{host}:{port}"

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        """One query."""
        name, end = _name(data)
        (kind,) = struct.unpack_from(">H", data, end)
        addresses: Sequence[str] = ()
        if kind == _A:
            self.asked.append(name)
            addresses = self.answers[0]
            if len(self.answers) > 1:
                self.answers.pop(0)
        head = data[:2] + struct.pack(">HHHHH", 0x8180, 1, len(addresses), 0, 0)
        question = data[12 : end + 4]
        records = b"".join(
            # a pointer to the question's name, type, class, a time to live of 0 s
            struct.pack(">HHHIH", 0xC00C, _A, _IN, 0, 4) + socket.inet_aton(each)
            for each in addresses
        )
        self.transport.sendto(head + question + records, peer)


def _name(data: bytes) -> tuple[str, int]:
    labels, at = [], 12
    while length := data[at]:
        labels.append(data[at + 1 : at + 1 + length].decode())
        at += 1 + length
    return ".".join(labels), at + 1


@asynccontextmanager
async def name_server(*answers: Sequence[str]) -> AsyncIterator[NameServer]:
    """Listens on a free port of loopback."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(
        lambda: NameServer(*answers), local_addr=("127.0.0.1", 0)
    )
    try:
        yield protocol
    finally:
        transport.close()

"""Does a server really answer? Asked in a few bytes over a socket: no driver, no threads."""

from __future__ import annotations

import socket
import struct
from typing import Final
from urllib.parse import urlsplit

TIMEOUT_S: Final = 2.0
REDIS_PORT: Final = 6379

# Opcodes of the CQL binary protocol, version 4 (native_protocol_v4.spec, section 2.4).
_STARTUP: Final = 0x01
_READY: Final = 0x02
_AUTHENTICATE: Final = 0x03
_QUERY: Final = 0x07
_RESULT: Final = 0x08
_HEADER: Final = struct.Struct(">BBhBi")
_CONSISTENCY_ONE: Final = 1


def split_host_port(text: str) -> tuple[str, int]:
    """The parts of "host:port"; ValueError if it is anything else."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) <= 0xFFFF:
        raise ValueError(f"{text!r} is not host:port")
    return host.strip("[]"), int(port)


def cassandra_answers(host: str, port: int) -> bool:
    """Whether a query of system.local returns rows, or the server asks for a login first."""
    try:
        with socket.create_connection((host, port), TIMEOUT_S) as connection:
            connection.settimeout(TIMEOUT_S)
            opcode = _exchange(
                connection, _STARTUP, b"\0\1" + _short("CQL_VERSION") + _short("3.0.0")
            )
            if opcode == _AUTHENTICATE:
                return True
            query = b"SELECT key FROM system.local"
            body = struct.pack(">i", len(query)) + query + struct.pack(">HB", _CONSISTENCY_ONE, 0)
            return opcode == _READY and _exchange(connection, _QUERY, body) == _RESULT
    except OSError:
        return False


def redis_answers(url: str) -> bool:
    """Whether PING is answered: PONG, or a demand for a login. LOADING means not yet.

    Of several hosts (sentinels) one must answer.
    """
    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2].split(",")
    if len(hosts) > 1:
        return any(redis_answers(parts._replace(netloc=host).geturl()) for host in hosts)
    try:
        with socket.create_connection(
            (parts.hostname or "localhost", parts.port or REDIS_PORT), TIMEOUT_S
        ) as connection:
            if parts.scheme == "rediss":
                return True  # TLS: that it accepts connections must do here
            connection.settimeout(TIMEOUT_S)
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
    except OSError:
        return False


def _short(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _exchange(connection: socket.socket, opcode: int, body: bytes) -> int:
    """Send one frame, read one; the answer's opcode."""
    connection.sendall(_HEADER.pack(4, 0, 0, opcode, len(body)) + body)
    header = _read(connection, _HEADER.size)
    _, _, _, answer, length = _HEADER.unpack(header)
    _read(connection, length)
    return int(answer)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ConnectionError("closed while answering")
        data += chunk
    return data

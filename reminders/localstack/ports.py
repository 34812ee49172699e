"""Free ports of this machine."""

import secrets
import socket
from pathlib import Path

HOST = "127.0.0.1"
FIRST = 15_000
FEWEST = 1_000
"""Ports to choose from, at least; else the kernel chooses."""
TRIES = 100
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        # As the servers do: TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def free_port(host: str = HOST) -> int:
    """One that nobody listens on now, and that no outgoing connection will be given before a server
    does: it is below those that the kernel gives to these.
    """
    below = _first_ephemeral()
    if below - FIRST >= FEWEST:
        for _ in range(TRIES):
            port = FIRST + secrets.randbelow(below - FIRST)
            if is_free(host, port):
                return port
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _first_ephemeral() -> int:
    try:
        return int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0

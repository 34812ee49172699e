"""A client of HTTP/1.1 that only posts, and costs a third of a general one (docs/decisions.md).

    Client.post ─ idle connection? ─ yes ──────────────────────────▶ Connection.exchange ─▶ Answer
                        └─ no ─▶ Dialer: look up ─▶ gate ─▶ connect ─▶ TLS ─▶ ┘

`client` keeps connections and bounds an exchange in time, `dialing` opens them to addresses that a
gate let pass, `connection` is one exchange after another on one of them, `request` the bytes of a
request, `failures` what there may be instead of an answer. The answers are parsed by llhttp.

No redirects, cookies, proxies, compression or pipelining: nothing that a receiver answers makes it
send anything anywhere. A request is written once and never again, on whatever connection: who calls
it decides about repeats.

Imports nothing else of the dispatcher; who may be connected to is its caller's business.
"""

from dispatcher.http1.client import Client
from dispatcher.http1.connection import Answer
from dispatcher.http1.dialing import AddressInfo, Dialer, Gate, Lookup, address_info
from dispatcher.http1.failures import HttpFailure
from dispatcher.http1.request import Origin, encode, origin_of, target_of

__all__ = [
    "AddressInfo",
    "Answer",
    "Client",
    "Dialer",
    "Gate",
    "HttpFailure",
    "Lookup",
    "Origin",
    "address_info",
    "encode",
    "origin_of",
    "target_of",
]

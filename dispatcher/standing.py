"""What is known about destinations: hosts, and endpoints at them. Pure.

A thousand customers may have their endpoints at one host of a platform. What burdens the host is
known by host (scheme, name, port): places, rate, and a breaker for what fails before anything of a
request is sent (refused, no name, no TLS). What a customer's endpoint does is its own fate (host
and path): how soon it answers, a breaker for time-outs and 5xx, `Retry-After`. An endpoint never
seen is judged by its host; if that was never seen either, it is a newcomer. Queries are left out of
an endpoint's name: they often differ with each call.

Providers (mail server, SMS, push) are the operator's own choice and never treated as slow; what is
said above about endpoints holds for a provider as a whole.

Pace is a running mean. An attempt that does not answer soon counts as `SLOW_SAMPLE` times the
limit, so that one hiccup among many does not make a destination slow, and two in a row do.

Times are seconds on any clock that does not go back.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum

from msgspec import Struct

from dispatcher.breaker import Breaker, BreakerPolicy, BreakerState
from dispatcher.bucket import Bucket, Rate
from dispatcher.capacity import Lane
from dispatcher.channels.port import Destination, Outcome, Result

REMEMBERED = 16_384
"""Hosts, and endpoints, beyond those in use."""
SLOW_SAMPLE = 4
WEIGHT = 0.2
"""Of the newest attempt in a pace."""
_SLACK_S = 0.01
"""Who comes at the very time that was asked for may go: times are rounded to ms on their way."""
_UNREACHED = frozenset(("connect", "connect_timeout", "dns", "tls"))
_UNANSWERED = frozenset(("timeout", "disconnected", "protocol", "http_5xx"))
_NO_PROBES = (False, False)
_OURS = frozenset(("internal", "provider_auth", "provider_busy", "channel_unavailable"))


class Sign(Enum):
    """What a result says about who was to answer."""

    ANSWERED = "answered"
    """It is there, whatever it said: a refusal (4xx) and "too many" (429) are answers."""
    DOWN = "down"
    """It is there, and can't do its work."""
    UNREACHED = "unreached"
    """It is not there."""
    NOTHING = "nothing"


def sign_of(result: Result | None) -> Sign:
    """None: no attempt was made."""
    if result is None or result.error_class in _OURS:
        return Sign.NOTHING
    if result.error_class in _UNREACHED:
        return Sign.UNREACHED
    if result.error_class in _UNANSWERED:
        return Sign.DOWN
    if result.outcome is Outcome.PERMANENT and not result.status_code:
        return Sign.NOTHING  # refused by ourselves
    return Sign.ANSWERED


class TurnedAway(Struct, frozen=True, kw_only=True, gc=False):
    """Not now."""

    reason: str
    """asked, open, rate, busy or slow."""
    wait_s: float = 0.0
    """How long it makes no sense to come again; 0: nobody knows."""


BUSY = TurnedAway(reason="busy")


class Change(Struct, frozen=True, kw_only=True, gc=False):
    """A breaker has moved."""

    destination: str
    endpoint: str
    """Empty: the whole host or provider."""
    state: BreakerState
    failures: int = 0
    """In a row."""
    wait_s: float = 0.0
    """How long it stays open."""


class Endpoint:
    """One at a host, or the host itself where its endpoints are not told apart."""

    __slots__ = ("breaker", "held_until", "host", "name", "pace_s", "using")

    def __init__(self, host: "Host", name: str, policy: BreakerPolicy) -> None:
        self.host = host
        self.name = name
        self.breaker = Breaker(policy)
        self.held_until = 0.0
        """Asked for by `Retry-After`."""
        self.pace_s: float | None = None
        self.using = 0


class Host:
    """A host or a provider."""

    __slots__ = ("breaker", "bucket", "known", "name", "pace_s", "places", "provider")

    def __init__(self, name: str, *, provider: bool, places: int, policy: BreakerPolicy) -> None:
        self.name = name
        self.provider = provider
        self.places = places
        self.breaker = Breaker(policy)
        self.bucket: Bucket | None = None
        self.pace_s: float | None = None
        """Of endpoints that were not known as slow."""
        self.known = 0
        """How many endpoints at it are."""


class Terms(Struct, frozen=True, kw_only=True):
    """What destinations are granted."""

    places: int = 64
    """At one host."""
    own_places: Mapping[str, int] = {}
    """At those named, such as a provider."""
    slow_after: timedelta = timedelta(seconds=1)
    """Who has not answered by then keeps nobody else out any longer."""
    breaker: BreakerPolicy = BreakerPolicy()
    rate_of: Callable[[str], Rate | None] = lambda _: None


class Standings:
    """All of them; as many as there may be, bounded."""

    def __init__(self, terms: Terms, on_change: Callable[[Change], None]) -> None:
        self._terms = terms
        self._slow_after_s = terms.slow_after.total_seconds()
        self._on_change = on_change
        self._hosts: dict[str, Host] = {}
        self._endpoints: OrderedDict[tuple[str, str], Endpoint] = OrderedDict()

    def __len__(self) -> int:
        return len(self._endpoints)

    def find(self, destination: Destination) -> Endpoint:
        """What is known. It may be forgotten while nobody counts as `using` it."""
        key = (destination.name, destination.endpoint)
        endpoint = self._endpoints.get(key)
        if endpoint is not None:
            self._endpoints.move_to_end(key)
            return endpoint
        if len(self._endpoints) >= REMEMBERED:
            self._forget_one()
        host = self._hosts.get(destination.name)
        if host is None:
            host = self._hosts[destination.name] = self._host(destination)
        host.known += 1
        endpoint = Endpoint(host, destination.endpoint, self._terms.breaker)
        self._endpoints[key] = endpoint
        return endpoint

    def _forget_one(self) -> None:
        """Of those that nobody uses, the one that was not asked for longest."""
        for key, endpoint in self._endpoints.items():
            if endpoint.using:
                continue
            del self._endpoints[key]
            endpoint.host.known -= 1
            if not endpoint.host.known:
                del self._hosts[endpoint.host.name]
            return

    def _host(self, destination: Destination) -> Host:
        name, terms = destination.name, self._terms
        places = terms.own_places.get(name, terms.places)
        host = Host(name, provider=destination.provider, places=places, policy=terms.breaker)
        rate = terms.rate_of(name)
        if rate is not None:
            host.bucket = Bucket(rate)
        return host

    def lane(self, endpoint: Endpoint) -> Lane:
        """How soon it may be expected to answer."""
        if endpoint.host.provider:
            return Lane.PROVEN
        pace_s = endpoint.pace_s if endpoint.pace_s is not None else endpoint.host.pace_s
        if pace_s is None:
            return Lane.NEW
        return Lane.SLOW if pace_s >= self._slow_after_s else Lane.PROVEN

    def refusal(self, endpoint: Endpoint, now: float) -> TurnedAway | None:
        """Why nothing may be sent there now."""
        held_s = endpoint.held_until - now
        if held_s > _SLACK_S:
            return TurnedAway(reason="asked", wait_s=held_s)
        host, own = _breakers(endpoint)
        if host.closed and own.closed:
            return None
        wait_s = max(host.wait_s(now), own.wait_s(now))
        return TurnedAway(reason="open", wait_s=wait_s) if wait_s > 0 else None

    def begin(self, endpoint: Endpoint, now: float) -> tuple[bool, bool]:
        """An attempt begins; whether it is the probe of the host's breaker, of the endpoint's."""
        host, own = _breakers(endpoint)
        if host.closed and own.closed:
            return _NO_PROBES
        probes = (host.begin(now), own.begin(now))
        for which, breaker in enumerate((host, own)):
            if probes[which]:
                at = endpoint.name if which else ""
                self._tell(endpoint.host, at, breaker, BreakerState.HALF_OPEN)
        return probes

    def judge(
        self, endpoint: Endpoint, probes: tuple[bool, bool], result: Result | None, now: float
    ) -> None:
        """An attempt ended so; None: none was made."""
        taken = result is not None and result.outcome is Outcome.OK
        if taken and endpoint.breaker.calm and endpoint.host.breaker.calm:
            return  # as nearly always: all of what follows would change nothing
        sign = sign_of(result)
        host = own = None
        if sign is Sign.UNREACHED:
            host = False
        elif sign is not Sign.NOTHING:
            host, own = True, sign is Sign.ANSWERED
        if endpoint.host.provider:
            host, own = None, None if sign is Sign.NOTHING else sign is Sign.ANSWERED
        self._move(endpoint, 0, probes, host, now)
        self._move(endpoint, 1, probes, own, now)
        if result is not None and result.retry_after is not None:
            endpoint.held_until = max(endpoint.held_until, now + result.retry_after.total_seconds())

    def _move(
        self,
        endpoint: Endpoint,
        which: int,
        probes: tuple[bool, bool],
        up: bool | None,  # noqa: FBT001 - three-valued, and private
        now: float,
    ) -> None:
        breaker, probe = _breakers(endpoint)[which], probes[which]
        at = endpoint.name if which else ""
        if up is None:
            breaker.untold(probe=probe)
        elif up:
            if breaker.answered():
                self._tell(endpoint.host, at, breaker, BreakerState.CLOSED)
        elif breaker.failed(now, probe=probe):
            wait_s = breaker.until - now
            self._tell(endpoint.host, at, breaker, BreakerState.OPEN, wait_s)

    def timed(self, endpoint: Endpoint, lane: Lane, took_s: float) -> None:
        """An attempt that began in that lane took so long."""
        endpoint.pace_s = _mean(endpoint.pace_s, took_s)
        if lane is not Lane.SLOW:
            endpoint.host.pace_s = _mean(endpoint.host.pace_s, took_s)

    def went_aside(self, endpoint: Endpoint, lane: Lane) -> None:
        """An attempt that began in that lane has not been answered soon."""
        self.timed(endpoint, lane, SLOW_SAMPLE * self._slow_after_s)

    def _tell(
        self, host: Host, at: str, breaker: Breaker, state: BreakerState, wait_s: float = 0.0
    ) -> None:
        self._on_change(
            Change(
                destination=host.name,
                endpoint=at,
                state=state,
                failures=breaker.failures,
                wait_s=round(wait_s, 3),
            )
        )


def _breakers(endpoint: Endpoint) -> tuple[Breaker, Breaker]:
    return endpoint.host.breaker, endpoint.breaker


def _mean(before: float | None, took_s: float) -> float:
    return took_s if before is None else before + WEIGHT * (took_s - before)

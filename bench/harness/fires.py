"""Fires to be measured: reminders that ring at the receiver, and what arrived."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from redis import Redis

from bench.harness.child import Child
from bench.harness.machine import Meter
from bench.harness.report import percentile
from bench.harness.stack import Stack

POLL_S = 0.1
PATIENCE_S = 60.0
"""For stragglers, beyond what was planned."""
CLOCK_SAMPLES = 50
WARM_RATE, WARM_S, WARM_AHEAD_S = 500, 30, 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FireSet:
    """Reminder n is due at `first_us + n × step_us` and rings at a path of its own."""

    name: str
    first_us: int
    """µs since 1970, whole ms."""
    step_us: int
    count: int
    group: str = ""
    """That they belong to."""
    hosts: int = 0
    """Other than 0: spread over so many hosts of a `crowd`, in turn."""
    port: int = 0
    """Where the crowd listens."""

    @property
    def last_us(self) -> int:
        """Of the last one."""
        return self.first_us + (self.count - 1) * self.step_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """What became of a set. All times in ms, by the reference clock, sorted."""

    lateness_ms: Sequence[float]
    """Of the first request of each fire."""
    missing: int
    repeats: int
    """Requests beyond the first."""
    strangers: int
    """Requests of other sets."""
    last_us: int
    """When the last first request came."""

    @property
    def early(self) -> int:
        """Fires before their time: there must be none."""
        return sum(ms < 0 for ms in self.lateness_ms)

    def at(self, share: float) -> float:
        """A percentile."""
        return percentile(self.lateness_ms, share)


@dataclass(slots=True, kw_only=True)
class Receiver:
    """The receiver's process."""

    child: Child
    url: str
    reference_offset_us: float
    """Redis TIME minus this machine's clock: both are read on this machine, so it is nearly 0."""

    def wait(self, count: int, until_us: int) -> None:
        """Until so many came since the last `take`, or the time and some patience are over."""
        while self.child.ask("count")["count"] < count:
            if time.time() > until_us / 1e6 + PATIENCE_S:
                return
            time.sleep(POLL_S)

    def take(self, expected: FireSet) -> Arrivals:
        """What came since the last time."""
        seen: dict[str, float] = {}
        repeats = strangers = last_us = 0
        for path, at_ns in self.child.ask("take")["arrivals"]:
            name, due_us, _ = path.split("/")
            if name != expected.name:
                strangers += 1
            elif path in seen:
                repeats += 1
            else:
                at_us = at_ns / 1000 + self.reference_offset_us
                seen[path] = (at_us - int(due_us)) / 1000
                last_us = max(last_us, int(at_us))
        return Arrivals(
            lateness_ms=sorted(seen.values()),
            missing=expected.count - len(seen),
            repeats=repeats,
            strangers=strangers,
            last_us=last_us,
        )


@contextmanager
def receiving(stack: Stack) -> Iterator[Receiver]:
    """A receiver on loopback."""
    with Child("receiver") as child:
        port = child.hear("port")["port"]
        yield Receiver(
            child=child,
            url=f"http://127.0.0.1:{port}",
            reference_offset_us=reference_offset_us(stack.endpoints.redis_url),
        )


def reference_offset_us(redis_url: str) -> float:
    """Of several readings the one with the shortest round trip."""
    samples: list[tuple[float, float]] = []
    with Redis.from_url(redis_url) as client:
        for _ in range(CLOCK_SAMPLES):
            before = time.time_ns()
            seconds, micros = client.time()
            after = time.time_ns()
            samples.append((after - before, seconds * 1e6 + micros - (before + after) / 2000))
    return min(samples)[1]


def create(stack: Stack, receiver: Receiver, sets: Sequence[FireSet]) -> list[str]:
    """Creates them by a stream; their ids. Returns when all are acknowledged."""
    plain = [
        {
            "name": s.name,
            "first_us": s.first_us,
            "step_us": s.step_us,
            "count": s.count,
            "group": s.group,
            "hosts": s.hosts,
            "port": s.port,
        }
        for s in sets
    ]
    with Child("loader", address=stack.grpc_address, url=receiver.url, sets=plain) as child:
        return list(child.hear("created")["ids"])


def warm(stack: Stack, receiver: Receiver) -> None:
    """Some seconds of fires that nobody measures, once for a stack."""
    if stack.warm:
        return
    stack.progress("  warming up …")
    first_us = whole_ms(time.time() + WARM_AHEAD_S)
    step_us = 1_000_000 // WARM_RATE
    fires = FireSet(name="warm", first_us=first_us, step_us=step_us, count=WARM_RATE * WARM_S)
    create(stack, receiver, [fires])
    receiver.wait(fires.count, fires.last_us)
    missing = receiver.take(fires).missing
    assert not missing, f"{missing} of the warm-up's fires did not come"
    stack.warm = True


def bare(
    receiver: Receiver, way: str, name: str, count: int, step_us: int
) -> tuple[Arrivals, float]:
    """The reference: what a bare loop of the same rate achieves, and its CPU µs a post."""
    with Child(
        "bare_http", way=way, url=f"{receiver.url}/{name}", count=count, step_us=step_us
    ) as child:
        child.hear("begin")
        receiver.child.ask("take")
        meter = Meter({"loop": child.pid})
        meter.start()
        child.hear("end")
        usage = meter.stop()
    arrivals = receiver.take(FireSet(name=name, first_us=0, step_us=step_us, count=count))
    return arrivals, usage.cpu["loop"] / count * 1e6


def whole_ms(seconds: float) -> int:
    """µs since 1970, rounded up to a whole ms."""
    return -(-int(seconds * 1e6) // 1000) * 1000

"""A scenario is a function that plays on a stage; this runs them one after another."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from reminders.localstack import Endpoints
from reminders.localstack.ring import Ring
from tests.chaos.backstage import Backstage
from tests.chaos.client import Client, Notes
from tests.chaos.fleet import fleet
from tests.chaos.receiver import Receiver
from tests.chaos.report import Row, details, line
from tests.chaos.stage import Progress, Stage, World
from tests.chaos.witness import Witness

SHARDS = 8


class Scenario(Struct, frozen=True, kw_only=True):
    """One of them."""

    name: str
    play: Callable[[Stage], None]
    within_s: float | None
    """The worst gap that is allowed; None: as long as it takes."""
    ring: bool
    """Whether it needs several Cassandra nodes, or a Redis that fails over."""


SCENARIOS: list[Scenario] = []


def scenario(
    name: str, *, within_s: float | None = None, ring: bool = False
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Adds the function, in the order of the source."""

    def add(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        SCENARIOS.append(Scenario(name=name, play=play, within_s=within_s, ring=ring))
        return play

    return add


@contextmanager
def world(
    endpoints: Endpoints,
    folder: Path,
    names: Sequence[str],
    progress: Progress,
    *,
    redis_url: Callable[[], str],
    ring: Ring | None = None,
    fault: str | None = None,
    **settings: str,
) -> Iterator[World]:
    """Everything runs. The servers are the caller's. `fault`: one of `planted`."""
    with ExitStack() as stack:
        backstage = stack.enter_context(Backstage())
        receiver = backstage.run(Receiver().start())
        stack.callback(lambda: backstage.run(receiver.close()))
        progress("migrating a new keyspace …")
        made = stack.enter_context(
            fleet(endpoints, folder, tuple(names), fault=fault, shards=str(SHARDS), **settings)
        )
        witness = backstage.run(
            Witness.connect(endpoints.cassandra_hosts, made.keyspace, shards=SHARDS)
        )
        stack.callback(lambda: backstage.run(witness.close()))
        progress(f"starting {', '.join(names)} …")
        made.complete()
        yield World(
            fleet=made,
            backstage=backstage,
            receiver=receiver,
            witness=witness,
            redis_url=redis_url,
            ring=ring,
            progress=progress,
        )


def play(the_world: World, one: Scenario, *, patience: float = 1) -> Row:
    """Plays it on a complete fleet, and judges. Bounds of time are multiplied by `patience`."""
    fleet_ = the_world.fleet
    fleet_.complete()
    fleet_.ready()
    the_world.progress(f"{one.name}")
    began = time.monotonic()
    tag = f"{one.play.__name__}-{os.getpid()}"
    notes = Notes()
    client = Client(list(fleet_.grpc.values()), notes, the_world.receiver.url(tag), tag)
    stage = Stage(world=the_world, name=one.name, tag=tag, client=client, notes=notes)
    try:
        try:
            one.play(stage)
        except Exception as failure:  # noqa: BLE001 (shown as the scenario's, and the next one plays)
            stage.failures.append(f"it ended early: {type(failure).__name__}: {failure}")
            _repair(the_world)
        fleet_.complete()
        verdict = stage.finish()
    finally:
        client.close()
    if one.within_s is not None and verdict.worst_gap_s > one.within_s * patience:
        verdict.broken.append(
            f"the worst gap is {verdict.worst_gap_s:.2f} s, allowed are {one.within_s} s"
        )
    row = Row(scenario=one.name, verdict=verdict, seconds=time.monotonic() - began)
    the_world.progress(line(row))
    for each in details(row):
        the_world.progress(each)
    return row


def _repair(the_world: World) -> None:
    """After a scenario that ended in the middle: whatever it took down comes back."""
    the_world.fleet.resume(*the_world.fleet.system.running)
    for server in the_world.ring.servers if the_world.ring else ():
        if server.process is None:
            server.start()
        else:
            server.resume()
        server.wait()

"""Runs a plan and judges it."""

import asyncio
import gc
import time
from datetime import datetime, timedelta

from msgspec import Struct

from tests.simulation.checker import Checker
from tests.simulation.clients import Clients
from tests.simulation.faults import Faults
from tests.simulation.history import BASE, History, Violation
from tests.simulation.patches import tamed
from tests.simulation.plan import Plan
from tests.simulation.world import World

LONGEST_END_S = 25 * 60.0
"""How long after the last fault everything must be settled."""
REST_AFTER = timedelta(seconds=30)
"""How far behind the last fault the watermark must come."""
LEFT_JOBS_S = 20.0
"""What dead processes had is taken over in this time."""
LOOK_EVERY_S = 5.0


class Report(Struct, kw_only=True):
    """What came of a run."""

    plan: Plan
    violations: list[Violation]
    history: History
    simulated_s: float = 0.0
    took_s: float = 0.0
    """Of processor time."""
    calls: int = 0
    troubles: int = 0
    sendings: int = 0


def run(plan: Plan, *, tracing: bool = False) -> Report:
    """One run, from nothing."""
    collecting = gc.isenabled()
    gc.disable()
    began = time.process_time()
    try:
        world = World(plan, tracing=tracing)
        with tamed(world), world.editions.in_use():
            world.run(lambda: _course(world))
        history = world.history
        return Report(
            plan=plan,
            violations=history.violations,
            history=history,
            simulated_s=world.loop.now_us / 1e6,
            took_s=time.process_time() - began,
            calls=world.network.calls,
            troubles=world.troubled,
            sendings=sum(len(each) for each in history.sendings.values()),
        )
    finally:
        if collecting:
            gc.enable()


async def _course(world: World) -> None:
    """Things happen; then everything heals and comes to rest."""
    world.start_all()
    clients = Clients(world, BASE)
    faults = Faults(world, clients)
    faults.schedule(world.plan)
    await asyncio.sleep(world.plan.length / 1000)
    faults.heal()
    clients.cancel_endless()
    await asyncio.sleep(max(0.0, world.plan.echo / 1000 - world.loop.time()))
    faults.disarm()
    clients.cancel_endless()  # what arrived late
    rest = world.now() + REST_AFTER
    if await _rested(world, rest):
        await asyncio.sleep(LEFT_JOBS_S)
    Checker(world, rest).check()


async def _rested(world: World, rest: datetime) -> bool:
    """Waits until everything due before `rest` is settled; says so if it does not come to that."""
    deadline_s = world.loop.time() + LONGEST_END_S
    while world.loop.time() < deadline_s:
        await asyncio.sleep(LOOK_EVERY_S)
        if world.judge.settled_through() >= rest and not world.judge.unsettled(rest):
            return True
    for state in world.judge.unsettled(rest)[:5]:
        world.broken(
            "unsettled", f"{state.entry.key.entry_id} {state.fate}", state.entry.reminder_id
        )
    if world.judge.settled_through() < rest:
        world.broken("watermark-stands", f"{world.judge.settled_through()}")
    return False

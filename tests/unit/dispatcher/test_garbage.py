"""Jobs leave no cycles: the collector has nothing to find."""

from typing import Any

import pytest

from tests.garbage import TIMES, left_behind


@pytest.mark.parametrize("result", ["OK", "BUSY", "GONE"])
async def test_a_job_leaves_nothing_for_the_collector(worlds: Any, result: str) -> None:
    """Whatever came of it."""
    world = worlds()
    jobs = [world.job(await world.reminder(f"r{number}")) for number in range(TIMES + 1)]
    runner = world.runner()

    async def work(number: int) -> None:
        world.sender.results = [getattr(world, result)]
        await runner.run(jobs[number])

    assert not await left_behind(work)

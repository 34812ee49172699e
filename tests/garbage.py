"""What only the collector would free, which stops the loop to find it.

At a hundred failures a second their tracebacks alone made it look at tens of thousands of objects,
for 20 to 50 ms each time.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

TIMES = 20
TURNS = 20
"""Of the loop, in which what was closed last is told so."""


async def left_behind(work: Callable[[int], Coroutine[Any, Any, object]]) -> Counter[str]:
    """The types of what it was, after `TIMES` of the work in tasks."""
    await asyncio.create_task(work(TIMES))  # whatever is made once
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for number in range(TIMES):
            await asyncio.create_task(work(number))
        for _ in range(TURNS):
            await asyncio.sleep(0)
        gc.collect()
        return Counter(type(each).__name__ for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

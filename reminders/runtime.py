"""How a service's process lives beside others: its turns on a CPU, its garbage collector, how many
files it may have open.
"""

import ctypes
import gc
import os
import platform
import resource
import struct
import sys
from datetime import timedelta

TURN = timedelta(microseconds=300)
"""Longer than a service needs to hand something on; the kernel's own is 3 ms or so."""
YOUNG, MIDDLE, OLD = 1_000, 1, 700
"""Thresholds of the collector, which takes a µs or more for each object that it looks at: so 1 ms
for the young ones, and 3 for those that survived once, which are looked at once more. With ten
times as many of these, as is usual, it stopped a dispatcher's loop for 10 to 50 ms, every three
seconds beside endpoints that hang. All that lives long is hardly ever looked at: services leave no
cycles on their paths (`tests.garbage`)."""

_SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274}
"""The system call's number by machine; Python and older C libraries have no name for it."""
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
"""struct sched_attr (sched_setattr(2)): size, policy, flags, nice, priority; runtime, deadline and
period in ns."""


def take_short_turns(turn: timedelta = TURN) -> bool:
    """Asks for shorter but earlier turns of this thread, and of those that it starts from now on.

    Who wakes then goes before whoever computes at length, such as a database's compiler threads on
    the same machine: it waits for less than a ms instead of some ten. Its share of the CPU stays
    the same. Needs no privilege. Linux heeds it from 6.12 on (EEVDF) and else ignores it.

    Answers whether the kernel has taken it; False where somebody has chosen another scheduling
    policy, where it is not allowed (seccomp), and on other systems.
    """
    number = _SET_ATTRIBUTES.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return False
    policy = os.sched_getscheduler(0)
    if policy != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    turn_ns = turn // timedelta(microseconds=1) * 1_000
    wanted = _ATTRIBUTES.pack(_ATTRIBUTES.size, policy, 0, nice, 0, turn_ns, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.syscall(number, 0, ctypes.create_string_buffer(wanted), 0) == 0)


def allow_files() -> int:
    """Lets it have as many files and connections open as the system allows it at all; how many.

    The usual limit, 1,024, is for programs that still use select(2). A dispatcher may wait for more
    receivers than that.
    """
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):  # macOS allows less than it says
        return usual
    return most


def calm_collector() -> None:
    """Lets the garbage collector look less often at what lives long, and never again at what
    start-up made.

    Services make thousands of short-lived values a second, hardly any of them in cycles; looking
    as often as usual took a tenth of a dispatcher's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)

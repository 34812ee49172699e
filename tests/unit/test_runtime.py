"""What a process asks of the kernel and of the collector."""

import ctypes
import gc
import os
import platform
import resource
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import pytest

from reminders import runtime

T = TypeVar("T")

GET_ATTRIBUTES = {"x86_64": 315, "aarch64": 275}
LINUX = sys.platform == "linux" and platform.machine() in GET_ATTRIBUTES
KERNEL = tuple(int(part) for part in platform.release().split(".")[:2]) if LINUX else (0, 0)


def in_a_thread(work: Callable[[], T]) -> T:
    """Turns belong to a thread: the others of this process keep theirs."""
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def attributes() -> tuple[int, ...]:
    """Of this thread: size, policy, flags, nice, priority, runtime, deadline, period."""
    buffer = ctypes.create_string_buffer(48)
    number = GET_ATTRIBUTES[platform.machine()]
    assert ctypes.CDLL(None).syscall(number, 0, buffer, len(buffer), 0) == 0
    return struct.unpack("=IIQiIQQQ", buffer.raw)


@pytest.mark.skipif(not LINUX or KERNEL < (6, 12), reason="the kernel knows no turns")
def test_turns_get_shorter_and_nothing_else_changes() -> None:
    """Not the policy, and not the nice value."""

    def work() -> tuple[tuple[int, ...], bool, tuple[int, ...]]:
        before = attributes()
        return before, runtime.take_short_turns(timedelta(microseconds=700)), attributes()

    before, taken, after = in_a_thread(work)
    assert taken
    assert after[5] == 700_000
    assert after[:5] == before[:5]


@pytest.mark.skipif(not LINUX, reason="no such policies")
def test_who_chose_another_policy_keeps_it() -> None:
    """An operator's choice stands."""

    def work() -> tuple[bool, int]:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        return runtime.take_short_turns(), os.sched_getscheduler(0)

    assert in_a_thread(work) == (False, os.SCHED_BATCH)


def test_where_it_is_unknown_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another system or machine: nothing is asked of it."""
    monkeypatch.setattr(platform, "machine", lambda: "another")
    assert not runtime.take_short_turns()


def test_the_collector_looks_seldom_at_what_lives_long() -> None:
    """And never at what start-up made."""
    before, kept = gc.get_threshold(), gc.get_freeze_count()
    try:
        runtime.calm_collector()
        assert gc.get_threshold() == (runtime.YOUNG, runtime.MIDDLE, runtime.OLD)
        assert gc.get_freeze_count() > kept
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def test_as_many_files_as_the_system_allows() -> None:
    """In a process of its own, which starts with the usual limit."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    program = (
        "import resource as r\n"
        "from reminders.runtime import allow_files\n"
        "most = r.getrlimit(r.RLIMIT_NOFILE)[1]\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (256, most))\n"
        "print(allow_files(), *r.getrlimit(r.RLIMIT_NOFILE))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == [str(most)] * 3

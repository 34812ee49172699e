"""What processes cost, as the kernel counts it (/proc; proc(5)). Linux only."""

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SAMPLE_EVERY_S = 0.25
MIB = 1024 * 1024


def cpu_s(pid: int) -> float:
    """CPU seconds of all its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND  # utime, stime


def rss_mib(pid: int) -> float:
    """Resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / MIB


def busy_s() -> float:
    """CPU seconds that all processes of the machine used so far, and the hypervisor took."""
    user, nice, system, _idle, _wait, irq, soft, steal = (
        int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + soft + steal) / TICKS_A_SECOND


def child_running(text: str) -> int | None:
    """The pid of a child of this process whose command line has the text."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            command = (entry / "cmdline").read_text()
        except OSError:
            continue
        if int(parent) == os.getpid() and text in command:
            return int(entry.name)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a stretch of time cost."""

    seconds: float
    cpu: Mapping[str, float]
    """CPU seconds by name."""
    elsewhere: float
    """Cores that processes other than ours kept busy: the machine's noise."""

    def micros_each(self, name: str, count: int) -> float | None:
        """CPU µs for each of so many, by all processes of that service; None for one that is not
        ours to see.
        """
        cpu = [used for each, used in self.cpu.items() if each.partition("-")[0] == name]
        return sum(cpu) / count * 1e6 if cpu and count else None


class Meter:
    """Reads the CPU of processes from `start` to `stop`. Names are shown in tables."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        self._processes = {**processes, "bench": os.getpid()}
        self._before: dict[str, float] = {}
        self._busy = 0.0
        self._started = 0.0

    def start(self) -> None:
        """From here."""
        self._started, self._busy, self._before = time.monotonic(), busy_s(), self._read()

    def stop(self) -> Usage:
        """To here."""
        seconds, busy, after = time.monotonic() - self._started, busy_s(), self._read()
        cpu = {name: after[name] - self._before[name] for name in after}
        elsewhere = max(busy - self._busy - sum(cpu.values()), 0.0) / seconds
        return Usage(seconds=seconds, cpu=cpu, elsewhere=elsewhere)

    def _read(self) -> dict[str, float]:
        return {name: cpu_s(pid) for name, pid in self._processes.items()}


@dataclass(slots=True)
class MemoryWatch:
    """Samples the memory of processes in the background while its block lasts."""

    processes: Mapping[str, int]
    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """By name: (monotonic seconds, MiB)."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.series = {name: [] for name in self.processes}
        self._thread = threading.Thread(target=self._run, name="memory-watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def most(self, name: str, since: float = 0.0, until: float = float("inf")) -> float:
        """The largest sample of that stretch; 0 if there is none."""
        return max((mib for at, mib in self.series[name] if since <= at <= until), default=0.0)

    def latest(self, name: str) -> float:
        """The last sample, or one that is taken now."""
        return self.series[name][-1][1] if self.series[name] else rss_mib(self.processes[name])

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_EVERY_S):
            now = time.monotonic()
            for name, pid in self.processes.items():
                self.series[name].append((now, rss_mib(pid)))

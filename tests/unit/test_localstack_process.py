"""What a server that is started here shares with others, and whom it lets go first."""

import json
import os
import sys
from pathlib import Path

import pytest

from reminders.localstack.process import NICE, start, yielding

TELL = """
import json, os
print(json.dumps([os.getsid(0), os.getpgid(0), os.getpid(), os.nice(0), os.sched_getscheduler(0)]))
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's scheduler")


@pytest.mark.parametrize("yields", [False, True])
def test_ctrl_c_does_not_reach_it_and_a_store_yields(tmp_path: Path, yields: bool) -> None:
    """In this session, since Linux shares the CPU among sessions first; not in this group."""
    output = tmp_path / "output"
    command = [sys.executable, "-c", TELL]
    server = start("it", yielding(command) if yields else command, output=output)
    assert server.process.wait(timeout=20) == 0
    session, group, pid, nice, policy = json.loads(output.read_text())
    assert session == os.getsid(0)
    assert group == pid != os.getpgid(0)
    assert nice == min(os.nice(0) + (NICE if yields else 0), 19)
    assert policy == (os.SCHED_BATCH if yields else os.sched_getscheduler(0))

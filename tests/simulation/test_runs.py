"""Runs with and without faults keep every promise, and are the same each time."""

import hashlib
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tests.simulation.generate import generate
from tests.simulation.history import History, Violation
from tests.simulation.plan import Crash, Cut, Pause, Plan, Trim, from_json, to_json
from tests.simulation.run import Report, run
from tests.simulation.shrink import Shrinker
from tests.simulation.wishes import Cancel, Create

SEEDS = 12
"""Run with every `make test`; `make simulate` runs as many as one likes."""
ROOT = Path(__file__).parents[2]


def calm() -> Plan:
    """Reminders and operators, and nothing that goes wrong."""
    rings = [
        Create(at=2_000 + n * 300, name=f"c{n}", via=n, rings=20_000 + n * 997) for n in range(40)
    ]
    rule = Create(at=3_000, name="rule", rings=30_000, every_s=20, count=4)
    cancels = [Cancel(at=19_500 + n * 997, target=f"c{n}", via=n) for n in range(0, 40, 3)]
    return Plan(seed=7, length=90_000, items=(*rings, rule, *cancels))


def test_without_faults_everything_rings_once_and_on_time() -> None:
    """What was not cancelled, within a second of its time; what was, not at all."""
    report = run(calm())
    assert report.violations == []
    assert sorted(map(len, report.history.sendings.values())) == [1] * (40 - 14 + 4)
    assert len(report.history.answers) == 14


def test_hints_that_are_lost_while_redis_is_away_cost_no_lateness() -> None:
    """A scheduler that can't reach Redis for some seconds creates what rings soon after: scanners
    hear of it in time, not by the trailing scan, fifteen seconds late.
    """
    created = [
        Create(at=30_000 + n * 200, name=f"c{n}", via=n, rings=36_000 + n * 300) for n in range(20)
    ]
    cut = Cut(at=29_000, process="scheduler", server="redis", for_=4_500)
    report = run(Plan(seed=1, length=60_000, items=(cut, *created)))
    assert report.violations == []
    late = [each[0].at - each[0].fire_at for each in report.history.sendings.values()]
    assert len(late) == len(created)
    assert max(late) < timedelta(seconds=1)


def test_jobs_that_are_lost_from_their_streams_come_back_soon() -> None:
    """An operator deletes them before anybody took them: the trailing scan misses them, and nothing
    comes twice.
    """
    created = [
        Create(at=5_000 + n * 100, name=f"c{n}", via=n, rings=30_000 + n * 700) for n in range(30)
    ]
    pause = Pause(at=29_500, process="dispatcher", for_=4_000)
    trims = [Trim(at=33_000, stream="jobs", shard=shard) for shard in range(4)]
    report = run(Plan(seed=1, length=70_000, items=(*created, pause, *trims)))
    assert report.violations == []
    late = [each[0].at - each[0].fire_at for each in report.history.sendings.values()]
    assert len(late) == len(created)
    assert timedelta(seconds=6) < max(late) < timedelta(seconds=22)
    assert report.sendings == len(created)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_with_faults_every_promise_is_kept(seed: int) -> None:
    """See the package docstring for what is promised; replay as it says there."""
    report = run(generate(seed))
    assert [str(violation) for violation in report.violations] == []


def test_the_seeds_see_faults_and_sends() -> None:
    """They would keep every promise as well if nothing happened in them."""
    reports = [run(generate(seed)) for seed in range(4)]
    assert sum(report.troubles for report in reports) > 10
    assert sum(report.sendings for report in reports) > 50


def digest(report: Report) -> str:
    """Of everything that was sent and answered, and when."""
    sendings = [
        (each.at_us, each.process, each.key, each.attempt)
        for sendings in report.history.sendings.values()
        for each in sendings
    ]
    told = repr((sorted(sendings), report.history.answers, report.calls))
    return hashlib.sha256(told.encode()).hexdigest()


def test_a_seed_is_the_same_run_every_time() -> None:
    """Also with other things run before it in the same process."""
    first = digest(run(generate(11)))
    run(generate(12))
    assert digest(run(generate(11), tracing=True)) == first


def test_a_seed_is_the_same_run_in_another_process() -> None:
    """So what a test found can be replayed from the command line."""
    code = (
        "from tests.simulation.test_runs import digest, generate, run\n"
        "print(digest(run(generate(11))))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    again = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    assert found.stdout == again.stdout != b""


def test_a_plan_survives_its_file() -> None:
    """What is kept of a failing run is all of it."""
    plan = generate(3)
    assert from_json(to_json(plan)) == plan


def test_a_failing_plan_is_shrunk_to_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """One create and one crash of thirty items, if it takes these two."""
    crash = Crash(at=21_000, process="scanner-1", down=500)
    plan = calm().only([*calm().items[:30], crash])

    def judged(shorter: Plan) -> Report:
        names = {item.name for item in shorter.items if isinstance(item, Create)}
        bad = crash in shorter.items and "c17" in names
        lost = [Violation(rule="lost", at_us=0, what="c17")] if bad else []
        return Report(plan=shorter, violations=lost, history=History())

    monkeypatch.setattr("tests.simulation.shrink.run", judged)
    shrinker = Shrinker(judged(plan), progress=lambda _runs, _left: None)
    shrunk = shrinker.shrink()
    assert shrunk.items == (calm().items[17], crash)
    assert shrinker.runs < 60

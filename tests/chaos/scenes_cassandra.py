"""Faults of Cassandra: three nodes, three copies, and no hints are kept for a node that is down."""

import time
from datetime import UTC, datetime, timedelta

from reminders.localstack.ring import Server
from tests.acceptance.system import until
from tests.chaos.playing import scenario
from tests.chaos.stage import Stage

QUORUM_LOST_S = 20.0
HANGS_S = 15.0
REFUSED_IN_S = 7.0
"""A scheduler's limit of 5 s, and a busy machine."""
ON_TIME_S = 2.0
NOTICED_S = 90.0


def _nodes(stage: Stage) -> list[Server]:
    assert stage.world.ring is not None
    return stage.world.ring.nodes


def _back(stage: Stage, node: Server) -> None:
    """It answers, and the others know it."""
    node.start()
    node.wait()
    until(lambda: _creates(stage), "creates are answered again", NOTICED_S)


def _creates(stage: Stage) -> bool:
    """Whether one works at the first try."""
    (number,) = stage.notes.numbers(1)
    at = stage.due(datetime.now(UTC) + timedelta(seconds=3))
    return stage.client.create_once(stage.client.request(number, at))


def _try(stage: Stage, tries: list[bool], until_s: float) -> None:
    """Creates, one after another; what is answered later than that does not count."""
    while time.time() < until_s:
        answered = _creates(stage)
        if time.time() < until_s:
            tries.append(answered)


@scenario("Cassandra: one node of three down, back with old data", ring=True, within_s=10)
def node_down(stage: Stage) -> None:
    """Nothing stops. When it is back, another goes: every quorum then holds the one that missed all
    that was written meanwhile.
    """
    one, _, three = _nodes(stage)
    stage.load(30)
    stage.until_arrived(60)
    with stage.trouble("kill -9 of a Cassandra node", explains=False):
        three.kill()
        time.sleep(15)
        due = [stage.due(datetime.now(UTC) + timedelta(seconds=70 + i / 20)) for i in range(200)]
        numbers = set(stage.create(due))
        stage.must(numbers <= stage.notes.expected.keys(), "creates failed, two nodes being up")
    _back(stage, three)
    with stage.trouble("kill -9 of another, the first one has old data", explains=False):
        one.kill()
        stage.load(20)
        time.sleep(max(20.0, due[-1].timestamp() + 2 - time.time()))
    _back(stage, one)


@scenario("Cassandra: one node of three hangs for 15 s", ring=True, within_s=10)
def node_hangs(stage: Stage) -> None:
    """Nobody knows that it is down, so some requests go to it. Reads and stamped writes are asked
    of another as well, LWTs after a while: most creates go through, and everything rings.
    """
    stage.load(25)
    stage.until_arrived(60)
    _, _, three = _nodes(stage)
    tries: list[bool] = []
    began = time.time()
    with stage.trouble("SIGSTOP of a Cassandra node", explains=False):
        three.pause()
        _try(stage, tries, began + HANGS_S)
        three.resume()
    stage.say(f"{len(tries)} creates, one after another")
    stage.must(
        len(tries) > 2 and sum(tries) >= len(tries) / 2,
        f"creates beside it: {tries}, most must go through at the first try",
    )
    until(lambda: _creates(stage), "creates are answered again", NOTICED_S)


@scenario("Cassandra: quorum lost for 20 s", ring=True)
def quorum_lost(stage: Stage) -> None:
    """Two nodes hang: creates are refused, what is in the heap rings on time, settling waits."""
    stage.load(45, live=0)
    stage.until_arrived(60)
    _, two, three = _nodes(stage)
    tries: list[bool] = []
    began = time.time()
    with stage.trouble("SIGSTOP of two Cassandra nodes", explains=False):
        two.pause()
        three.pause()
        stage.meanwhile("creates", lambda: _try(stage, tries, began + QUORUM_LOST_S))
        time.sleep(QUORUM_LOST_S)
        two.resume()
        three.resume()
    stage.must(tries and not any(tries), f"creates without a quorum: {tries}, all must fail")
    refusals = stage.notes.refusals
    stage.must(
        set(refusals) == {"UNAVAILABLE"}, f"creates were not answered as unavailable: {refusals}"
    )
    stage.must(
        stage.notes.slowest_refusal_s < REFUSED_IN_S,
        f"a create was refused after {stage.notes.slowest_refusal_s:.1f} s",
    )
    stage.say(
        f"{len(refusals)} creates refused, the slowest in {stage.notes.slowest_refusal_s:.1f} s"
    )
    on_time = sum(
        began + 2 < one.at_s < began + QUORUM_LOST_S
        and one.at_s - datetime.fromisoformat(one.fire_at).timestamp() < ON_TIME_S
        for one in stage.arrived()
    )
    stage.must(on_time > 200, f"only {on_time} rang on time while the quorum was lost")
    stage.say(f"{on_time} rang on time meanwhile")
    until(lambda: _creates(stage), "creates are answered again", NOTICED_S)

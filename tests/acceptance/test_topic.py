"""A reminder for a topic reaches every subscriber, though its dispatcher is killed on the way."""

import json
from pathlib import Path

from tests.acceptance.system import Receiver, System, until

SUBSCRIBERS = 400


def test_every_subscriber_is_told_though_the_dispatcher_is_killed(
    tocsin: System, receiver: Receiver, tmp_path: Path
) -> None:
    """One key for each, whoever sends it; who was told for certain is not told again."""
    lines = (
        {"subscriberId": f"s{n}", "endpoint": {"webhook": {"url": receiver.url("news")}}}
        for n in range(SUBSCRIBERS)
    )
    file = tmp_path / "subscribers.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    secrets = str(tmp_path / "secrets.jsonl")
    tocsin.tocsin("subscriber", "import", "news", str(file), "--secrets-to", secrets)

    created = tocsin.create("create", "--topic", "news", "--in", "2s", "--params", '{"n": 1}')
    receiver.wait("news", 20)
    tocsin.kill("dispatcher")
    tocsin.start("dispatcher")

    requests = receiver.wait("news", SUBSCRIBERS)
    told = {request.body["subscriberId"]: request.key for request in requests}
    assert sorted(told) == sorted(f"s{n}" for n in range(SUBSCRIBERS))
    assert {(r.body["subscriberId"], r.key) for r in requests} == set(told.items())
    assert all(request.lateness_s >= 0 for request in requests)

    def ended() -> bool:
        [occurrence] = tocsin.json("occurrences", created["reminderId"])["occurrences"]
        return bool(occurrence["status"] == "OCCURRENCE_STATUS_COMPLETED")

    until(ended, "all are on record")
    [occurrence] = tocsin.json("occurrences", created["reminderId"])["occurrences"]
    assert int(occurrence["targetCount"]) == SUBSCRIBERS
    assert int(occurrence["fanOut"]["deliveredCount"]) == SUBSCRIBERS

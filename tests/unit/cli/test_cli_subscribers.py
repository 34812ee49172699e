"""`tocsin subscriber`: flags to messages, answers to lines, secrets shown once; and imports."""

import io
import json
import os
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict
from google.rpc.status_pb2 import Status
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as reminder_calls
from tocsin.v1 import topic_service_pb2 as calls
from tocsin.v1 import topic_service_pb2_grpc as service

from reminders.cli import importing
from reminders.cli.importing import BATCH, BREAKS, Import, StoreAway

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE.value[0]
INVALID = grpc.StatusCode.INVALID_ARGUMENT.value[0]


class FakeTopics(service.TopicServiceServicer):
    """Remembers what it was asked. Streams break off after `breaks_after` answers, once."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.put: dict[str, str] = {}
        """Request id by subscriber."""
        self.breaks_after: list[int] = []
        self.away: list[str] = []
        """Subscribers that the store can't take the first time."""
        self.test = calls.SendTestResponse(reminder_id="r1", occurrence_id="o1")

    def PutSubscriber(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        del context
        self.requests.append(request)
        return calls.PutSubscriberResponse(subscriber=request.subscriber, secret="whsec_once")

    def StreamSubscribers(self, request_iterator: Any, context: Any) -> Any:  # noqa: N802, D102
        left = self.breaks_after.pop(0) if self.breaks_after else None
        for batch in request_iterator:
            if left == 0:
                context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
            left = None if left is None else left - 1
            yield calls.PutSubscribersResponse(
                results=[self._result(each) for each in batch.requests],
                batch_number=batch.batch_number,
            )

    def _result(self, request: Any) -> calls.PutSubscriberResult:
        name = request.subscriber.subscriber_id
        if name in self.away:
            self.away.remove(name)
            return calls.PutSubscriberResult(error=Status(code=UNAVAILABLE, message="away"))
        if name.startswith("bad"):
            return calls.PutSubscriberResult(error=Status(code=INVALID, message="not an id"))
        replaced = name in self.put
        assert self.put.setdefault(name, request.request_id) == request.request_id
        return calls.PutSubscriberResult(
            put=calls.PutSubscriberResponse(secret=f"whsec_{name}", replaced=replaced)
        )

    def GetSubscriber(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        del context
        self.requests.append(request)
        return _subscriber()

    PauseSubscriber = ResumeSubscriber = GetSubscriber

    def ListSubscribers(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        del context
        self.requests.append(request)
        return calls.ListSubscribersResponse(subscribers=[_subscriber()], next_page_token="more")

    def DeleteSubscriber(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        del context
        self.requests.append(request)
        return calls.DeleteSubscriberResponse(deleted=True)

    def RotateSecret(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        del context
        self.requests.append(request)
        answer = calls.RotateSecretResponse(subscriber=_subscriber(), secret="whsec_new")
        answer.previous_expire_time.FromJsonString("2026-12-02T09:00:00Z")
        return answer

    def SendTest(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        del context
        self.requests.append(request)
        return self.test


def _subscriber() -> calls.Subscriber:
    """A paused one with two secrets."""
    made = calls.Subscriber(
        topic_id="t", subscriber_id="s1", paused=True, filter={"kind": "news"}, time_zone="UTC"
    )
    made.endpoint.webhook.url = "https://example.com/hook"
    made.secrets.add().create_time.FromJsonString("2026-12-01T09:00:00Z")
    before = made.secrets.add()
    before.create_time.FromJsonString("2026-11-01T09:00:00Z")
    before.expire_time.FromJsonString("2026-12-02T09:00:00Z")
    return made


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTopics]:
    """On a free port."""
    fake = FakeTopics()
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    service.add_TopicServiceServicer_to_server(fake, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv("TOCSIN_GRPC_ADDRESS", f"127.0.0.1:{port}")
    yield fake
    server.stop(grace=None).wait()


Tocsin = Callable[..., Any]


def test_every_flag_of_a_put_reaches_its_field(
    topics: FakeTopics, tocsin: Tocsin, tmp_path: Path
) -> None:
    """The secret comes from a file; what the server made is shown."""
    file = tmp_path / "secret"
    file.write_text("whsec_mine\n")
    result = tocsin(
        *("subscriber", "put", "t", "s1", "--namespace", "acme", "--webhook", "https://x.example"),
        *("--header", "x-key=v", "--template", "hello", "--label", "plan=gold"),
        *("--filter", "kind=news", "--zone", "Asia/Tokyo", "--secret-file", str(file)),
        *("--request-id", "q"),
    )
    assert result.code == 0, result.err
    (request,) = topics.requests
    assert MessageToDict(request) == {
        "subscriber": {
            "namespace": "acme",
            "topicId": "t",
            "subscriberId": "s1",
            "endpoint": {
                "webhook": {"url": "https://x.example", "headers": {"x-key": "v"}},
                "templateId": "hello",
            },
            "labels": {"plan": "gold"},
            "filter": {"kind": "news"},
            "timeZone": "Asia/Tokyo",
        },
        "secret": "whsec_mine",
        "requestId": "q",
    }
    assert "secret: whsec_once" in result.out
    assert "shown this once" in result.out


@pytest.mark.parametrize(
    ("flags", "endpoint"),
    [
        (["--email", "a@b.example", "--subject", "Hi"], "email"),
        (["--sms", "+33123456789"], "sms"),
        (["--push", "token", "--provider", "fcm"], "push"),
        (["--log"], "log"),
    ],
)
def test_an_endpoint_of_each_kind(
    topics: FakeTopics, tocsin: Tocsin, flags: list[str], endpoint: str
) -> None:
    """One flag each."""
    assert tocsin("subscriber", "put", "t", "s1", *flags).code == 0
    assert topics.requests[0].subscriber.endpoint.WhichOneof("kind") == endpoint


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "say where to"),
        (["--log", "--sms", "+33123456789"], "has one endpoint"),
        (["--log", "--label", "x"], "key=value"),
        (["--log", "--secret-file", "/no/such"], "No such file"),
    ],
)
def test_wrong_usage_calls_nobody(
    topics: FakeTopics, tocsin: Tocsin, flags: list[str], said: str
) -> None:
    """It ends with 2 and the remedy."""
    result = tocsin("subscriber", "put", "t", "s1", *flags)
    assert result.code == 2
    assert said in " ".join(result.err.replace("│", " ").split())
    assert not topics.requests


def test_a_subscriber_is_shown_without_its_secrets(topics: FakeTopics, tocsin: Tocsin) -> None:
    """Only when they were made, and until when they sign. Pause and resume show the same."""
    for command in ("get", "pause", "resume"):
        result = tocsin("subscriber", command, "t", "s1")
        assert result.code == 0, result.err
        assert "paused" in result.out
        assert "made 2026-11-01 09:00:00Z, signs until 2026-12-02 09:00:00Z" in result.out
        assert json.loads(tocsin("subscriber", command, "t", "s1", "--json").out)["paused"]
    assert all(
        MessageToDict(each) == {"namespace": "default", "topicId": "t", "subscriberId": "s1"}
        for each in topics.requests
    )


@pytest.mark.parametrize(
    ("flags", "paused"), [([], None), (["--paused"], True), (["--active"], False)]
)
def test_a_list_is_filtered_and_paged(
    topics: FakeTopics, tocsin: Tocsin, flags: list[str], paused: bool | None
) -> None:
    """Unset is neither."""
    result = tocsin("subscriber", "list", "t", "--label", "plan=gold", "--page-size", "7", *flags)
    assert result.code == 0, result.err
    (request,) = topics.requests
    assert (request.page_size, dict(request.labels)) == (7, {"plan": "gold"})
    assert (request.paused if request.HasField("paused") else None) is paused
    assert "https://example.com/hook" in result.out
    assert "--page-token more" in result.out


def test_a_delete_says_whether_it_was_there(topics: FakeTopics, tocsin: Tocsin) -> None:
    """In a word."""
    assert tocsin("subscriber", "delete", "t", "s1").out == "deleted\n"
    assert topics.requests[0].subscriber_id == "s1"


@pytest.mark.parametrize(("flags", "seconds"), [([], None), (["--overlap", "0s"], 0)])
def test_a_rotation_shows_the_new_secret(
    topics: FakeTopics, tocsin: Tocsin, flags: list[str], seconds: int | None
) -> None:
    """And until when the old one signs; an overlap of zero is not the default."""
    result = tocsin("subscriber", "rotate-secret", "t", "s1", *flags)
    assert result.code == 0, result.err
    (request,) = topics.requests
    assert (request.overlap.seconds if request.HasField("overlap") else None) == seconds
    assert "sign until 2026-12-02 09:00:00Z" in result.out
    assert "secret: whsec_new" in result.out


def test_a_test_shows_what_was_answered(topics: FakeTopics, tocsin: Tocsin) -> None:
    """Status, how long it took, and the start of the body."""
    delivery = topics.test.delivery
    delivery.status = reminder_pb2.DELIVERY_STATUS_DELIVERED
    attempt = delivery.attempts.add(number=1, status_code=200, excerpt="thanks")
    attempt.duration.FromMilliseconds(12)
    topics.test.finished = True
    result = tocsin("subscriber", "test", "t", "s1", "--param", "a=b", "--wait", "3s")
    assert result.code == 0, result.err
    (request,) = topics.requests
    assert (dict(request.params), request.wait.seconds) == ({"a": "b"}, 3)
    assert "delivered" in result.out
    assert "attempt 1 took 12 ms: thanks" in result.out
    topics.test.ClearField("delivery")
    assert "nothing was sent: tocsin explain r1" in tocsin("subscriber", "test", "t", "s1").out
    topics.test.finished = False
    assert "not known yet: tocsin deliveries r1" in tocsin("subscriber", "test", "t", "s1").out


def lines(count: int, **more: Any) -> str:
    """Of a file."""
    hook = {"webhook": {"url": "https://example.com/hook"}}
    made = ({"subscriberId": f"s{n}", "endpoint": hook, **more} for n in range(count))
    return "".join(json.dumps(each) + "\n" for each in made)


def test_an_import_puts_each_line_and_keeps_the_secrets(
    topics: FakeTopics, tocsin: Tocsin, tmp_path: Path
) -> None:
    """In a file that only its owner reads; a bad line refuses only itself, by its number."""
    file, kept = tmp_path / "in.jsonl", tmp_path / "secrets.jsonl"
    text = lines(3) + "\nnot json\n[1]\n" + '{"subscriberId": "bad", "endpoint": {"log": {}}}\n'
    file.write_text(text + '{"subscriberId": "s9", "endpoint": {"log": {}}, "colour": "red"}\n')
    result = tocsin("subscriber", "import", "t", str(file), "--secrets-to", str(kept))
    assert result.code == 1
    assert result.out == "3 put (0 were there before), 4 refused\n"
    refused = [line.split(":")[0] for line in result.err.splitlines() if line.startswith("line")]
    assert sorted(refused) == ["line 5", "line 6", "line 7", "line 8"]
    secrets = [json.loads(line) for line in kept.read_text().splitlines()]
    assert secrets == [{"subscriberId": f"s{n}", "secret": f"whsec_s{n}"} for n in range(3)]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_what_is_wrong_with_a_line_is_said_in_one(
    topics: FakeTopics, tocsin: Tocsin, tmp_path: Path
) -> None:
    """Nothing that a line says is passed over: not where it is for, nor bytes that are no text."""
    log = '"subscriberId": "s", "endpoint": {"log": {}}'
    wrong = {
        "[1]": "no subscriber in JSON: not an object",
        '{"colour": 1}': "no subscriber in JSON: ",
        f'{{"topicId": "other", {log}}}': "is for 'other', this import for 't'",
        f'{{"namespace": "other", {log}}}': "is for 'other', this import for 'default'",
        f'{{"labels": {{"a": "\udcff"}}, {log}}}': "no subscriber in JSON: ",
    }
    file = tmp_path / "in.jsonl"
    right = f'{{"topicId": "t", "namespace": "default", {log}}}'
    file.write_text("\n".join([*wrong, right]), encoding="utf-8", errors="surrogateescape")
    result = tocsin("subscriber", "import", "t", str(file))
    assert result.out == f"1 put (0 were there before), {len(wrong)} refused\n"
    said = [line for line in result.err.splitlines() if line.startswith("line")]
    assert len(said) == len(wrong)
    assert all(part in line for part, line in zip(wrong.values(), said, strict=True))


def test_a_secret_that_nobody_would_keep_is_not_made(
    topics: FakeTopics, tocsin: Tocsin, tmp_path: Path
) -> None:
    """Lines that bring their own need no file."""
    file = tmp_path / "in.jsonl"
    file.write_text(lines(1) + lines(1, secret="whsec_mine"))
    result = tocsin("subscriber", "import", "t", str(file))
    assert "line 1: has no secret: give --secrets-to" in result.err
    assert result.out.startswith("1 put")
    assert list(topics.put) == ["s0"]


def test_a_stream_that_breaks_is_taken_up_where_it_was(
    topics: FakeTopics, tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line once, under the same request id; also what the store was away for."""
    monkeypatch.setattr(importing, "pause", lambda _: None)
    count = 10 * BATCH + 3
    topics.breaks_after = [2, 0, 5]
    topics.away = ["s7", f"s{count - 1}"]
    file, kept = tmp_path / "in.jsonl", tmp_path / "secrets.jsonl"
    file.write_text(lines(count))
    result = tocsin(
        *("subscriber", "import", "t", str(file), "--secrets-to", str(kept), "--run", "run")
    )
    assert result.code == 0, result.err
    assert result.out.startswith(f"{count} put")
    assert topics.put == {f"s{n}": f"run.{n + 1}" for n in range(count)}
    named = [json.loads(line)["subscriberId"] for line in kept.read_text().splitlines()]
    assert set(named) == set(topics.put)


def test_an_import_gives_up_in_the_end(topics: FakeTopics) -> None:
    """After so many breaks in a row, waiting longer before each."""
    topics.away = ["s0"] * (BREAKS + 5)
    waits: list[float] = []
    work = Import("ns", "t", "run", lines(1).splitlines(), io.StringIO(), waits.append)
    with grpc.insecure_channel(os.environ["TOCSIN_GRPC_ADDRESS"]) as channel:
        stub = service.TopicServiceStub(channel)
        with pytest.raises(StoreAway):
            work.through(stub)
    assert len(waits) == BREAKS - 1
    assert waits == sorted(waits)


def test_giving_up_says_how_to_go_on(
    topics: FakeTopics, tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the import's own id."""
    monkeypatch.setattr(importing, "pause", lambda _: None)
    topics.breaks_after = [0] * (BREAKS + 5)
    file = tmp_path / "in.jsonl"
    file.write_text(lines(1, secret="whsec_mine"))
    result = tocsin("subscriber", "import", "t", str(file), "--run", "mine")
    assert result.code == 1
    assert "--run mine takes this import up again" in result.err


def test_a_reminder_for_a_topic_needs_no_channel(scheduler: Any, tocsin: Tocsin) -> None:
    """And is listed by it; whom it is for must be said once."""
    assert tocsin("create", "--topic", "t", "--in", "5s", "--label", "kind=news").code == 0
    assert tocsin("list", "--topic", "t").code == 0
    create, listing = scheduler.requests
    assert isinstance(create, reminder_calls.CreateReminderRequest)
    reminder = create.reminder
    assert (reminder.topic_id, reminder.user_id, len(reminder.channels)) == ("t", "", 0)
    assert (listing.topic_id, listing.user_id) == ("t", "")
    for flags in ([], ["--user", "u", "--topic", "t"]):
        for command in (["create", "--in", "5s", "--log"], ["list"]):
            result = tocsin(*command, *flags)
            assert result.code == 2
            assert "one of --user and --topic" in " ".join(result.err.split())
    assert len(scheduler.requests) == 2

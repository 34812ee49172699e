"""`tocsin recipient`: flags to messages, answers to lines."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict
from tocsin.v1 import recipient_service_pb2 as calls
from tocsin.v1 import recipient_service_pb2_grpc as service


class FakeRecipients(service.RecipientServiceServicer):
    """Answers what was put, and remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def PutRecipient(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        del context
        self.requests.append(request)
        answer = calls.Recipient()
        answer.CopyFrom(request.recipient)
        answer.etag = "e1"
        answer.update_time.FromDatetime(datetime(2026, 12, 1, 9, tzinfo=UTC))
        return answer

    def GetRecipient(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        self.requests.append(request)
        context.abort(grpc.StatusCode.NOT_FOUND, "no recipient record")

    def DeleteRecipient(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        del context
        self.requests.append(request)
        return calls.DeleteRecipientResponse()


@pytest.fixture
def recipients(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRecipients]:
    """On a free port."""
    fake = FakeRecipients()
    server = grpc.server(ThreadPoolExecutor(max_workers=1))
    service.add_RecipientServiceServicer_to_server(fake, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv("TOCSIN_GRPC_ADDRESS", f"127.0.0.1:{port}")
    yield fake
    server.stop(grace=None).wait()


FULL = (
    *("recipient", "put", "u1", "--namespace", "acme", "--email", "ada@example.com"),
    *("--sms", "+33123456789", "--push", "fcm:a:b", "--push", "apns:c0", "--zone", "Europe/Paris"),
    *("--locale", "fr-CA", "--opt-out", "sms", "--quiet", "22:00-07:00", "--quiet-rule", "drop"),
    *("--etag", "e0"),
)


def test_every_flag_reaches_its_field(
    recipients: FakeRecipients, tocsin: Callable[..., Any]
) -> None:
    """And the answer tells all of it."""
    result = tocsin(*FULL)
    assert result.code == 0, result.err
    [request] = recipients.requests
    assert MessageToDict(request) == {
        "etag": "e0",
        "recipient": {
            "namespace": "acme",
            "userId": "u1",
            "email": "ada@example.com",
            "sms": "+33123456789",
            "push": [
                {"token": "a:b", "provider": "PUSH_PROVIDER_FCM"},
                {"token": "c0", "provider": "PUSH_PROVIDER_APNS"},
            ],
            "timeZone": "Europe/Paris",
            "locale": "fr-CA",
            "optOuts": ["OPT_OUT_SMS"],
            "quietHours": {"start": "22:00", "end": "07:00", "rule": "QUIET_RULE_DROP"},
        },
    }
    said = {line[:13].strip(): line[13:].strip() for line in result.out.splitlines()}
    assert said["quiet"] == "22:00 to 07:00: drop"
    assert said["opted out of"].strip() == "sms"
    assert said["etag"] == "e1"
    assert "fcm:a:b" in said["push"]
    assert "apns:c0" in said[""]


def test_the_answer_for_programs(recipients: FakeRecipients, tocsin: Callable[..., Any]) -> None:
    """JSON, whatever is asked."""
    assert json.loads(tocsin(*FULL, "--json").out)["quietHours"]["end"] == "07:00"
    assert json.loads(tocsin("recipient", "delete", "u1", "--json").out) == {}


def test_a_record_that_is_not_there(recipients: FakeRecipients, tocsin: Callable[..., Any]) -> None:
    """The server's word, and a failure."""
    result = tocsin("recipient", "get", "u1", "--namespace", "acme")
    assert (result.code, result.err) == (1, "error: NOT_FOUND: no recipient record\n")
    assert MessageToDict(recipients.requests[0]) == {"namespace": "acme", "userId": "u1"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--push", "a1b2"], "write fcm:TOKEN or apns:TOKEN"),
        (["--opt-out", "fax"], "choose one of email, sms, push"),
        (["--quiet", "22:00"], "write start-end"),
        (["--quiet", "22:00-07:00", "--quiet-rule", "shout"], "choose one of wait, drop"),
    ],
)
def test_wrong_usage_calls_nobody(
    recipients: FakeRecipients, tocsin: Callable[..., Any], flags: list[str], said: str
) -> None:
    """It ends with 2 and the remedy."""
    result = tocsin("recipient", "put", "u1", *flags)
    assert result.code == 2
    assert said in " ".join(result.err.replace("│", " ").split())
    assert not recipients.requests

"""What callers wrote, on a terminal."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from google.protobuf.message import Message
from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202e\x9b31m"


def hostile(message: Message) -> Message:
    """The same with every text of it, however deep, as somebody may have written it."""
    for name, value in message.ListFields():
        texts = name.type == name.TYPE_STRING
        if name.message_type and name.message_type.GetOptions().map_entry:
            getattr(message, name.name)[HOSTILE] = HOSTILE
        elif name.type == name.TYPE_MESSAGE:
            for each in value if isinstance(value, Sequence) else [value]:
                hostile(each)
        elif texts and isinstance(value, str):
            setattr(message, name.name, HOSTILE + value)
        elif texts:
            value[:] = [HOSTILE + each for each in value]
    return message


@pytest.mark.parametrize(
    "command", ["get", "list", "occurrences", "deliveries", "explain", "watch"]
)
def test_what_callers_wrote_does_not_command_the_terminal(
    command: str, scheduler: Any, answers: Any, tocsin: Callable[..., Any]
) -> None:
    """Escape sequences, bells and marks of direction are shown, never sent."""
    texts = {"user_id": "u", "group_id": "g", "pause_reason": "p", "labels": {"a": "b"}}
    stored = answers.stored(channels=[pb.Channel(webhook=pb.WebhookChannel(url="x"))], **texts)
    occurrence = answers.claimed(pb.OCCURRENCE_STATUS_FAILED)
    delivery = pb.Delivery(
        occurrence_id="o",
        channel_id="c",
        delivery_key="k",
        error_class="e",
        status=pb.DELIVERY_STATUS_FAILED,
        attempts=[pb.Attempt(number=1, error_class="e", excerpt="x")],
    )
    explained = calls.ExplainedOccurrence(
        occurrence=occurrence,
        explanation="e",
        deliveries=[calls.ExplainedDelivery(delivery=delivery, replay_command="r")],
    )
    answered: dict[str, Message] = {
        "GetReminder": stored if command == "get" else answers.fired(),
        "ListReminders": calls.ListRemindersResponse(reminders=[stored]),
        "ListOccurrences": calls.ListOccurrencesResponse(occurrences=[occurrence]),
        "ListDeliveries": calls.ListDeliveriesResponse(deliveries=[delivery]),
        "ExplainReminder": calls.ExplainReminderResponse(reminder=stored, occurrences=[explained]),
    }
    scheduler.answers |= {call: [hostile(answer)] for call, answer in answered.items()}
    asked = {"list": ["--user", "u1"], "watch": ["r1", "--every", "1ms"]}.get(command, ["r1"])
    result = tocsin(command, *asked)
    assert result.code == 0
    assert "\\x1b[2J" in result.out
    assert all(each.isprintable() for each in result.out.replace("\n", ""))

"""A scheduler that answers what a test tells it, and the command line run in this process."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls
from tocsin.v1 import reminder_service_pb2_grpc as service

from reminders.cli.app import run

FIRES = datetime(2026, 12, 24, 8, 0, tzinfo=UTC)


class Answers:
    """Messages as a scheduler would answer them."""

    @staticmethod
    def occurrence(**changes: Any) -> pb.Occurrence:
        """09:00 in Paris on Christmas Eve."""
        made = pb.Occurrence(
            reminder_id="r1",
            occurrence_id="20261224T090000",
            planned_local="2026-12-24T09:00:00",
            time_zone="Europe/Paris",
            status=pb.OCCURRENCE_STATUS_PLANNED,
        )
        made.fire_time.FromDatetime(FIRES)
        made.MergeFrom(pb.Occurrence(**changes))
        return made

    @staticmethod
    def stored(**changes: Any) -> pb.Reminder:
        """A reminder with that occurrence ahead."""
        local = pb.LocalTime(date="2026-12-24", time="09:00", time_zone="Europe/Paris")
        made = pb.Reminder(
            reminder_id="r1",
            version=1,
            etag="e1",
            user_id="u1",
            status=pb.REMINDER_STATUS_SCHEDULED,
            schedule=pb.Schedule(local=local),
            channels=[pb.Channel(log=pb.LogChannel())],
            next_occurrences=[Answers.occurrence()],
        )
        made.MergeFrom(pb.Reminder(**changes))
        return made

    @staticmethod
    def fired() -> pb.Reminder:
        """The same once nothing is ahead."""
        made = Answers.stored(status=pb.REMINDER_STATUS_FIRED)
        del made.next_occurrences[:]
        return made

    @staticmethod
    def claimed(status: Any) -> pb.Occurrence:
        """Its occurrence, claimed 12 ms after its time."""
        made = Answers.occurrence(status=status)
        made.claim_time.FromDatetime(FIRES + timedelta(milliseconds=12))
        return made


@pytest.fixture
def answers() -> type[Answers]:
    """To make messages with."""
    return Answers


@dataclass(slots=True)
class FakeScheduler(service.ReminderServiceServicer):
    """Records requests, and gives the answers queued for a call; the last one again and again."""

    requests: list[Message] = field(default_factory=list)
    answers: dict[str, list[Message | Exception]] = field(default_factory=dict)
    failure: Callable[[grpc.ServicerContext], None] | None = None
    address: str = ""

    def _answer(self, call: str, request: Message, context: grpc.ServicerContext) -> Any:
        self.requests.append(request)
        if self.failure is not None:
            self.failure(context)
        queue = self.answers[call]
        return queue.pop(0) if len(queue) > 1 else queue[0]

    def CreateReminder(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("CreateReminder", request, context)

    def BatchCreateReminders(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        raise NotImplementedError

    def StreamCreateReminders(self, request_iterator: Any, context: Any) -> Any:  # noqa: N802, D102
        raise NotImplementedError

    def GetReminder(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("GetReminder", request, context)

    def ListReminders(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("ListReminders", request, context)

    def CancelReminder(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("CancelReminder", request, context)

    def CancelGroup(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("CancelGroup", request, context)

    def RescheduleReminder(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("RescheduleReminder", request, context)

    def UpdateReminder(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("UpdateReminder", request, context)

    def PauseReminder(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("PauseReminder", request, context)

    def ResumeReminder(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("ResumeReminder", request, context)

    def TriggerReminder(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("TriggerReminder", request, context)

    def BackfillReminder(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("BackfillReminder", request, context)

    def PreviewOccurrences(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("PreviewOccurrences", request, context)

    def ListOccurrences(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("ListOccurrences", request, context)

    def ExplainReminder(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("ExplainReminder", request, context)

    def ReplayOccurrence(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("ReplayOccurrence", request, context)

    def ListDeliveries(self, request: Any, context: Any) -> Any:  # noqa: N802, D102
        return self._answer("ListDeliveries", request, context)


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeScheduler]:
    """The fake on a free port, which the command line finds by its variable."""
    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    fake = FakeScheduler(
        answers={
            "CreateReminder": [calls.CreateReminderResponse(reminder=Answers.stored())],
            "GetReminder": [Answers.stored()],
            "ListReminders": [
                calls.ListRemindersResponse(reminders=[Answers.stored()], total_size=1)
            ],
            "CancelReminder": [
                calls.CancelReminderResponse(
                    reminder=Answers.stored(status=pb.REMINDER_STATUS_CANCELLED)
                )
            ],
            "RescheduleReminder": [
                calls.RescheduleReminderResponse(reminder=Answers.stored(version=2))
            ],
            "UpdateReminder": [calls.UpdateReminderResponse(reminder=Answers.stored(version=2))],
            "PauseReminder": [
                calls.PauseReminderResponse(
                    reminder=Answers.stored(status=pb.REMINDER_STATUS_PAUSED, pause_reason="why")
                )
            ],
            "ResumeReminder": [calls.ResumeReminderResponse(reminder=Answers.stored(version=3))],
            "ListOccurrences": [calls.ListOccurrencesResponse(occurrences=[Answers.occurrence()])],
            "ListDeliveries": [calls.ListDeliveriesResponse()],
        }
    )
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    service.add_ReminderServiceServicer_to_server(fake, server)
    fake.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    monkeypatch.setenv("TOCSIN_GRPC_ADDRESS", fake.address)
    yield fake
    server.stop(grace=None).wait()


@dataclass(frozen=True, slots=True)
class Result:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def tocsin(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Runs `tocsin …` here."""

    def call(*arguments: str) -> Result:
        with pytest.raises(SystemExit) as ended:
            run(arguments)
        captured = capsys.readouterr()
        return Result(int(ended.value.code or 0), captured.out, captured.err)

    return call

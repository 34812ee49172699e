"""The callers: they create and change as a careful client does, and note what they hear.

A call that is answered UNAVAILABLE (or not at all) is repeated with the same request id, at the
other scheduler, until it is answered or the patience is over; only then is it "unanswered".
"""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import grpc
from msgspec import Struct, field
from tocsin.v1 import reminder_pb2, reminder_service_pb2, reminder_service_pb2_grpc

from tests.chaos.instants import aware, instant, instant_id, occurrences_of
from tests.chaos.rules import Duty, Expected

CALL_S = 6.0
REFUSED_S = 30.0
"""Longer than the service may take to find out that it can't."""
PATIENCE_S = 60.0
AGAIN_S = 0.2
TRANSIENT = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
ALREADY = grpc.StatusCode.FAILED_PRECONDITION
A_BATCH = 100

Answer = TypeVar("Answer")


class UnansweredError(Exception):
    """Nobody knows what became of the call."""


class TwiceMadeError(Exception):
    """One request id made two reminders."""


class Notes(Struct):
    """What all callers of a scenario heard. Shared by threads, under `lock`."""

    expected: dict[int, Expected] = field(default_factory=dict)
    """By number."""
    unanswered: set[int] = field(default_factory=set)
    unavailable: int = 0
    """Calls that were answered UNAVAILABLE, or not in time."""
    refusals: list[str] = field(default_factory=list)
    """The codes of single creates that were refused."""
    slowest_refusal_s: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)
    _next: int = 0

    def numbers(self, count: int) -> range:
        """New ones."""
        with self.lock:
            self._next += count
            return range(self._next - count, self._next)


class Client:
    """Speaks to all schedulers in turn."""

    def __init__(self, addresses: Sequence[str], notes: Notes, url: str, tag: str) -> None:
        self._channels = [grpc.insecure_channel(address, _OPTIONS) for address in addresses]
        self._stubs = [reminder_service_pb2_grpc.ReminderServiceStub(c) for c in self._channels]
        self._turn = 0
        self._url = url
        self.notes = notes
        self.tag = tag

    def close(self) -> None:
        """Hangs up."""
        for channel in self._channels:
            channel.close()

    # --- creates ----------------------------------------------------------------------------------

    def request(
        self, number: int, at: datetime, *, group: str = ""
    ) -> reminder_service_pb2.CreateReminderRequest:
        """A one-shot."""
        made = self._blank(number)
        made.reminder.schedule.at.FromDatetime(at.replace(tzinfo=None))
        made.reminder.group_id = group
        return made

    def rule(
        self, number: int, start: datetime, every_s: int, count: int
    ) -> reminder_service_pb2.CreateReminderRequest:
        """Every few seconds, so many times; none of them may be passed over."""
        made = self._blank(number)
        rule = made.reminder.schedule.recurrence
        rule.rrule = f"FREQ=SECONDLY;INTERVAL={every_s};COUNT={count}"
        rule.start, rule.time_zone = f"{start:%Y-%m-%dT%H:%M:%S}", "UTC"
        made.reminder.policies.catch_up = reminder_pb2.CATCH_UP_POLICY_ALL
        return made

    def _blank(self, number: int) -> reminder_service_pb2.CreateReminderRequest:
        made = reminder_service_pb2.CreateReminderRequest(request_id=f"{self.tag}-{number}")
        made.reminder.user_id = f"{self.tag}-{number % 10}"
        made.reminder.channels.add().webhook.url = self._url
        made.reminder.params.update({"number": number})
        return made

    def create(self, requests: Sequence[reminder_service_pb2.CreateReminderRequest]) -> None:
        """In batches; those that fail for now are sent again."""
        for first in range(0, len(requests), A_BATCH):
            self._create_batch(list(requests[first : first + A_BATCH]))

    def _create_batch(self, left: list[reminder_service_pb2.CreateReminderRequest]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while left:
            call = reminder_service_pb2.BatchCreateRemindersRequest(requests=left)
            try:
                results = self.call(lambda stub: stub.BatchCreateReminders, call).results
            except UnansweredError:
                results = []
            refused = left[len(results) :]
            for request, result in zip(left, results, strict=False):
                if result.HasField("created"):
                    self.acknowledged(request, result.created)
                else:
                    assert result.error.code == grpc.StatusCode.UNAVAILABLE.value[0], result.error
                    refused.append(request)
            left = refused
            if left and time.monotonic() > deadline:
                with self.notes.lock:
                    self.notes.unanswered |= {_number(request) for request in left}
                return
            if left:
                with self.notes.lock:
                    self.notes.unavailable += 1
                time.sleep(AGAIN_S)

    def create_once(self, request: reminder_service_pb2.CreateReminderRequest) -> bool:
        """One attempt; whether it was acknowledged."""
        began = time.monotonic()
        try:
            answer = self._next_stub().CreateReminder(request, timeout=REFUSED_S)
        except grpc.RpcError as error:
            if _code(error) not in TRANSIENT:
                raise
            with self.notes.lock:
                self.notes.unanswered.add(_number(request))
                self.notes.unavailable += 1
                self.notes.refusals.append(_code(error).name)
                took_s = time.monotonic() - began
                self.notes.slowest_refusal_s = max(self.notes.slowest_refusal_s, took_s)
            return False
        self.acknowledged(request, answer)
        return True

    def stream(
        self, requests: Sequence[reminder_service_pb2.CreateReminderRequest], pause_s: float
    ) -> list[reminder_service_pb2.CreateReminderRequest]:
        """One stream of small batches, with a pause between them; those that nobody answered."""
        size = 5
        batches = [list(requests[i : i + size]) for i in range(0, len(requests), size)]

        def feed() -> Any:
            for number, batch in enumerate(batches):
                yield reminder_service_pb2.BatchCreateRemindersRequest(
                    requests=batch, batch_number=number
                )
                time.sleep(pause_s)

        left = {request.request_id: request for request in requests}
        try:
            for answer in self._stubs[0].StreamCreateReminders(feed()):
                for request, result in zip(
                    batches[answer.batch_number], answer.results, strict=True
                ):
                    if result.HasField("created"):
                        self.acknowledged(request, result.created)
                        del left[request.request_id]
        except grpc.RpcError as error:
            if _code(error) not in TRANSIENT:
                raise
        return list(left.values())

    def acknowledged(
        self,
        request: reminder_service_pb2.CreateReminderRequest,
        answer: reminder_service_pb2.CreateReminderResponse,
    ) -> None:
        """From now on it is a promise."""
        number, made = _number(request), answer.reminder
        expected = Expected(number=number, reminder_id=made.reminder_id, told_s=time.time())
        if request.reminder.schedule.HasField("recurrence"):
            due = occurrences_of(request.reminder.schedule.recurrence)
        else:
            due = {instant_id(request.reminder.schedule): instant(request.reminder.schedule)}
        expected.occurrences = due
        expected.duties = dict.fromkeys(due, Duty.MUST)
        with self.notes.lock:
            before = self.notes.expected.get(number)
            if before is not None and before.reminder_id != made.reminder_id:
                raise TwiceMadeError(f"{before.reminder_id} and {made.reminder_id}")
            self.notes.expected.setdefault(number, expected)
            self.notes.unanswered.discard(number)

    # --- changes ----------------------------------------------------------------------------------

    def cancel(self, number: int) -> None:
        """Of a one-shot."""
        expected = self.notes.expected[number]
        call = reminder_service_pb2.CancelReminderRequest(
            reminder_id=expected.reminder_id, request_id=f"{self.tag}-{number}-cancel"
        )
        try:
            fired = self.call(lambda stub: stub.CancelReminder, call).was_fired
        except UnansweredError:
            self._decide(number, Duty.MAY)
            return
        self._decide(number, Duty.MUST if fired else Duty.NEVER)

    def reschedule(self, number: int, to: datetime) -> None:
        """Of a one-shot: exactly one of the two times rings."""
        expected = self.notes.expected[number]
        call = reminder_service_pb2.RescheduleReminderRequest(
            reminder_id=expected.reminder_id, request_id=f"{self.tag}-{number}-move"
        )
        call.schedule.at.FromDatetime(to.replace(tzinfo=None))
        name = instant_id(call.schedule)
        try:
            self.call(lambda stub: stub.RescheduleReminder, call)
        except UnansweredError:
            old = new = Duty.MAY
        except grpc.RpcError as error:
            if _code(error) is not ALREADY:
                raise
            old, new = Duty.MUST, Duty.NEVER
        else:
            old, new = Duty.NEVER, Duty.MUST
        self._decide(number, old)
        with self.notes.lock:
            expected.occurrences[name] = to
            expected.duties[name] = new
            expected.told_s = time.time()

    def cancel_group(self, group: str) -> datetime:
        """When everything before became void."""
        call = reminder_service_pb2.CancelGroupRequest(group_id=group)
        answer = self.call(lambda stub: stub.CancelGroup, call)
        return aware(answer.cancel_time)

    def _decide(self, number: int, duty: Duty) -> None:
        with self.notes.lock:
            duties = self.notes.expected[number].duties
            for name in duties:
                duties[name] = duty

    # --- calls ------------------------------------------------------------------------------------

    def call(self, method: Callable[[Any], Callable[..., Answer]], request: Any) -> Any:
        """Until it is answered.

        Raises:
            UnansweredError: not within the patience.
            grpc.RpcError: it was answered with another error than "try again".
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return method(self._next_stub())(request, timeout=CALL_S)
            except grpc.RpcError as error:
                if _code(error) not in TRANSIENT:
                    raise
                with self.notes.lock:
                    self.notes.unavailable += 1
                if time.monotonic() > deadline:
                    raise UnansweredError from error
                time.sleep(AGAIN_S)

    def _next_stub(self) -> Any:
        self._turn += 1
        return self._stubs[self._turn % len(self._stubs)]


_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


def _code(error: grpc.RpcError) -> grpc.StatusCode:
    code: grpc.StatusCode = error.code()
    return code


def _number(request: reminder_service_pb2.CreateReminderRequest) -> int:
    number = request.reminder.params["number"]
    assert isinstance(number, float)
    return int(number)

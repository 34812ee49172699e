"""Many subscribers from a file: batches in flight, answers in order, sent again after a break.

Every line has a request id made of the import's own id and the line's number, so what was not
answered can be sent again: a subscriber is made once, and its secret is answered again. Memory is
that of a few batches, whatever the file holds.
"""

import json
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import IO, Any

import grpc
from google.protobuf import json_format
from tocsin.v1 import topic_service_pb2 as calls
from tocsin.v1.topic_service_pb2_grpc import TopicServiceStub

from reminders.cli import rpc
from reminders.cli.failure import CommandError
from reminders.cli.import_files import keep, keeping, reading
from reminders.cli.options import Connection

BATCH = 250
IN_FLIGHT = 8
"""Batches that are sent and not answered."""
BREAKS = 8
"""Breaks of the stream in a row, without an answer between them, until it gives up."""
LONGEST_WAIT_S = 10.0
SHOWN = 20
"""Refused lines that are told one by one."""
REPORT_EVERY_S = 1.0

Line = tuple[int, calls.PutSubscriberRequest]
Batch = list[Line]


def import_subscribers(
    connection: Connection, topic: str, file: Path, secrets_to: Path | None, run: str | None
) -> None:
    """Raises `CommandError` if a line was refused, or the server stayed away."""
    name = run or token_hex(8)
    with reading(file) as lines, keeping(secrets_to) as secrets:
        work = Import(connection.namespace, topic, name, lines, secrets, pause)
        with rpc.calling(connection, TopicServiceStub) as stub:
            try:
                work.through(stub)
            except (grpc.RpcError, StoreAway, KeyboardInterrupt) as error:
                said = f"{work.put} put so far; --run {name} takes this import up again"
                sys.stderr.write(f"{said}\n")
                if isinstance(error, StoreAway):
                    raise CommandError("the server could not write, again and again") from error
                raise
    print(f"{work.put} put ({work.replaced} were there before), {work.refused} refused")
    if work.refused:
        raise CommandError(f"{work.refused} lines were refused")


def pause(seconds: float) -> None:
    """Before the next try."""
    time.sleep(seconds)


class StoreAway(Exception):
    """The server is there, and could not write now."""


class Import:
    """One file on its way."""

    def __init__(
        self,
        namespace: str,
        topic: str,
        name: str,
        lines: Iterable[str],
        secrets: IO[str] | None,
        pause: Callable[[float], None],
    ) -> None:
        """`name`: of this import, the first part of its request ids. `pause`: between streams, in
        seconds.
        """
        self.put = self.replaced = 0
        self._refused_here = self._refused_there = 0  # by gRPC's thread, and by ours
        self._namespace = namespace
        self._topic = topic
        self._name = name
        self._secrets = secrets
        self._batches = self._batched(enumerate(lines, start=1))
        self._open: deque[Batch] = deque()
        """Sent, or to be sent again, and not answered; oldest first."""
        self._lock = threading.Lock()
        self._pause = pause
        self._reported_at = time.monotonic()

    @property
    def refused(self) -> int:
        """Lines, whoever refused them."""
        return self._refused_here + self._refused_there

    @property
    def _settled(self) -> int:
        return self.put + self._refused_there

    def through(self, stub: TopicServiceStub) -> None:
        """All of it. A stream that breaks off is taken up again."""
        breaks = 0
        while True:
            before = self._settled
            try:
                self._stream(stub)
            except (grpc.RpcError, StoreAway) as error:
                breaks = 0 if self._settled > before else breaks + 1
                if not _may_pass(error) or breaks == BREAKS:
                    raise
                self._pause(min(LONGEST_WAIT_S, 0.2 * 2**breaks))
            else:
                return

    def _stream(self, stub: TopicServiceStub) -> None:
        """One stream, to its end. Sending is gRPC's own thread; the semaphore holds it back."""
        places = threading.Semaphore(IN_FLIGHT)
        ended = threading.Event()
        again = deque(self._open)

        def sending() -> Iterator[calls.PutSubscribersRequest]:
            while True:
                places.acquire()
                batch = again.popleft() if again else self._take(ended)
                if batch is None:
                    return
                yield _message(batch)

        call = stub.StreamSubscribers(sending())
        try:
            for answer in call:
                left = self._answered(self._open[0], answer)
                if left:
                    self._open[0] = left
                    raise StoreAway
                self._open.popleft()
                places.release()
        finally:
            call.cancel()  # nothing, where it has ended
            with self._lock:  # what is being taken is among the open ones afterwards
                ended.set()
            places.release()

    def _take(self, ended: threading.Event) -> Batch | None:
        """The next batch, noted as open; None at the end of the file, or of the stream."""
        with self._lock:
            batch = None if ended.is_set() else next(self._batches, None)
            if batch is not None:
                self._open.append(batch)
            return batch

    def _batched(self, lines: Iterator[tuple[int, str]]) -> Iterator[Batch]:
        read = (line for number, text in lines if (line := self._read(number, text)) is not None)
        while batch := list(islice(read, BATCH)):
            yield batch

    def _read(self, number: int, text: str) -> Line | None:
        """None: blank, or refused here."""
        if not text.strip():
            return None
        try:
            content = _object(text)
            secret = content.pop("secret", "")
            asked = json_format.ParseDict(content, calls.Subscriber())
        except (ValueError, TypeError, AttributeError, json_format.ParseError) as error:
            self._unread(number, f"is no subscriber in JSON: {' '.join(str(error).split())}")
            return None
        if elsewhere := self._elsewhere(asked):
            self._unread(number, elsewhere)
            return None
        if not isinstance(secret, str):
            self._unread(number, "has a secret that is no text")
            return None
        if self._secrets is None and not secret and asked.endpoint.HasField("webhook"):
            said = "has no secret: give --secrets-to for those the server makes"
            self._unread(number, said)
            return None
        asked.namespace, asked.topic_id = self._namespace, self._topic
        name = f"{self._name}.{number}"
        request = calls.PutSubscriberRequest(subscriber=asked, secret=secret, request_id=name)
        return number, request

    def _elsewhere(self, asked: calls.Subscriber) -> str:
        """What is wrong with a line that names another place than the command does."""
        for flag, told, ours in (
            ("TOPIC", asked.topic_id, self._topic),
            ("--namespace", asked.namespace, self._namespace),
        ):
            if told not in ("", ours):
                return f"is for {told!r}, this import for {ours!r}: import it with {flag} {told!r}"
        return ""

    def _answered(self, batch: Batch, answer: calls.PutSubscribersResponse) -> Batch:
        """What is to be sent again: lines that the store was away for."""
        left: Batch = []
        for (number, request), result in zip(batch, answer.results, strict=True):
            if result.HasField("error"):
                code = _name_of(result.error.code)
                if code == grpc.StatusCode.UNAVAILABLE.name:
                    left.append((number, request))
                    continue
                self._refused_there += 1
                self._tell(number, "; ".join(rpc.explain_status(code, result.error)))
                continue
            self.put += 1
            self.replaced += result.put.replaced
            if result.put.secret and self._secrets is not None:
                keep(self._secrets, request.subscriber.subscriber_id, result.put.secret)
        if self._secrets is not None:
            self._secrets.flush()
        self._report()
        return left

    def _unread(self, number: int, why: str) -> None:
        self._refused_here += 1
        self._tell(number, why)

    def _tell(self, number: int, why: str) -> None:
        if self.refused <= SHOWN:
            sys.stderr.write(f"line {number}: {why}\n")
        if self.refused == SHOWN:
            sys.stderr.write("further refused lines are only counted\n")

    def _report(self) -> None:
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._reported_at >= REPORT_EVERY_S:
            self._reported_at = now
            sys.stderr.write(f"{self.put} put, {self.refused} refused …\n")


def _object(text: str) -> dict[str, Any]:
    """Raises ValueError."""
    text.encode()  # a lone surrogate stands for a byte that is none of UTF-8
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("not an object in braces")  # noqa: TRY004 - as what `loads` raises
    return content


def _may_pass(error: Exception) -> bool:
    """Whether waiting may help."""
    if isinstance(error, grpc.RpcError):
        return error.code() is grpc.StatusCode.UNAVAILABLE
    return isinstance(error, StoreAway)


def _name_of(code: int) -> str:
    return next((each.name for each in grpc.StatusCode if each.value[0] == code), str(code))


def _message(batch: Batch) -> calls.PutSubscribersRequest:
    return calls.PutSubscribersRequest(
        requests=[request for _, request in batch], batch_number=batch[0][0]
    )

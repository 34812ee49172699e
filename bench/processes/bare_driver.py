"""The ceiling of creates: the bare driver writing their rows in unlogged batches of 32.

At most 8 batches are under way, and the next is sent from the callback of the one before: no
event loop is involved. All is made before the measured stretch: `bound`: batches of bound
statements, as anybody would use the driver; `bytes`: whole batches as bytes, by
`reminders.storage.wire`. Events: `begin`, `end` {count, seconds}.
"""

import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.query import BatchStatement, BatchType, BoundStatement

from bench.harness.child import arguments, say
from bench.harness.sample import far_reminders
from reminders.storage.expiry import Expiry
from reminders.storage.rows import Rows
from reminders.storage.session import connect
from reminders.storage.settings import StorageSettings
from reminders.storage.statements import prepare
from reminders.storage.wire import Mutation, Prepared, batch

GROUP = 32
"""As the service's own: of 20, each create costs Cassandra as much or a little more."""
IN_FLIGHT = 8

Send = Callable[[], Any]
"""Sends a batch; its driver future."""


def mutations(
    count: int, settings: StorageSettings, prepared: dict[str, Prepared]
) -> Iterator[Mutation]:
    """The rows of each create, as storage writes them."""
    rows = Rows(prepared, Expiry(settings.retention))
    for new in far_reminders(count, settings.shards):
        own, others = rows.created(new)
        yield Mutation(own.rows + others.rows, own.statements + others.statements)


def bound(mutation: Mutation, by_id: dict[bytes, Any]) -> Iterator[BoundStatement]:
    """The same rows as bound statements: their values are bytes already once they are bound."""
    rows, at = mutation.rows, 0
    for _ in range(mutation.statements):
        (id_length,) = struct.unpack_from(">xH", rows, at)
        query_id = rows[at + 3 : at + 3 + id_length]
        at += 3 + id_length
        (columns,) = struct.unpack_from(">H", rows, at)
        at += 2
        statement = BoundStatement(by_id[query_id])
        statement.values = []
        for _ in range(columns):
            (length,) = struct.unpack_from(">i", rows, at)
            statement.values.append(rows[at + 4 : at + 4 + length])
            at += 4 + length
        yield statement


def senders(way: str, count: int, session: Session, settings: StorageSettings) -> list[Send]:
    """Everything that can be made before."""
    prepared = prepare(session)
    by_id = {one.statement.query_id: one.statement for one in prepared.values()}
    profile = session.get_execution_profile(EXEC_PROFILE_DEFAULT)
    made = mutations(count, settings, prepared)
    sends: list[Send] = []
    while group := list(islice(made, GROUP)):
        if way == "bytes":
            sends.append(_as_bytes(session, profile, group))
        else:
            statement = BatchStatement(BatchType.UNLOGGED)
            for mutation in group:
                statement.add_all(list(bound(mutation, by_id)), [None] * mutation.statements)
            sends.append(partial(session.execute_async, statement))
    return sends


def _as_bytes(session: Session, profile: Any, group: list[Mutation]) -> Send:
    joined = Mutation(b"".join(one.rows for one in group), sum(one.statements for one in group))

    def send() -> Any:
        future = batch(session, profile, [joined])
        future.send_request()
        return future

    return send


class Pump:
    """Keeps a number of batches under way until all are sent."""

    def __init__(self, sends: list[Send]) -> None:
        self._sends = iter(sends)
        self._lock = threading.Lock()
        self._open = IN_FLIGHT
        self._failure: BaseException | None = None
        self._over = threading.Event()

    def run(self) -> None:
        """Returns when the last is acknowledged."""
        for _ in range(IN_FLIGHT):
            self._next()
        self._over.wait()
        if self._failure is not None:
            raise self._failure

    def _next(self, _rows: Any = None) -> None:
        with self._lock:
            send = next(self._sends, None)
            if send is None:
                self._open -= 1
                if not self._open:
                    self._over.set()
                return
        send().add_callbacks(self._next, self._failed)

    def _failed(self, error: BaseException) -> None:
        self._failure = error
        self._over.set()


def main() -> None:
    """One stretch, counted in creates."""
    given = arguments()
    settings = StorageSettings(
        hosts=tuple(given["hosts"]), keyspace=given["keyspace"], shards=given["shards"]
    )
    cluster, session = connect(settings, settings.keyspace)
    try:
        warm = senders(given["way"], given["count"] // 10, session, settings)
        sends = senders(given["way"], given["count"], session, settings)
        Pump(warm).run()
        say("begin")
        started = time.perf_counter()
        Pump(sends).run()
        say("end", count=given["count"], seconds=time.perf_counter() - started)
        sys.stdin.readline()
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()

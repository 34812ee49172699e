"""Brings a keyspace up to date. Safe from many processes at once, and after one died half-way.

One process at a time works: it holds row 0 of `migrations`, taken by LWT and left behind for
`LOCK_TTL_S` at most; the others wait. A migration is recorded when it is complete, so one that
stopped half-way runs again: its statements must bear that. (Two processes that create one table at
once can end up with two table ids. Hence the lock, and hence the fixed id of `migrations` itself,
which is created outside it.)

What belongs to the whole life of a keyspace is written once, by the first run: a progress row for
each shard, then the number of shards. Progress starts at the instant when the first run began, as
recorded, whoever finishes it: nothing is due before a keyspace exists.
"""

import asyncio
import hashlib
import time
import uuid
from dataclasses import dataclass
from typing import Any

import structlog
from cassandra import InvalidRequest, OperationTimedOut, Timeout
from cassandra.cluster import Session
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed, wait_random

from reminders.errors import StoreUnavailable
from reminders.storage.bridge import translated
from reminders.storage.expiry import SECOND_US
from reminders.storage.refusal import KeyspaceRefused
from reminders.storage.session import connect
from reminders.storage.settings import StorageSettings
from reminders.storage.statements import MIGRATIONS, parse, split

log = structlog.get_logger(__name__)

LOCK_TTL_S = 120
"""Longer than any single migration takes; prolonged before each."""
LOCK_POLL_S = 0.3
PATIENCE_S = 300.0
"""How long a process waits for another one's run."""
SCHEMA_TIMEOUT_S = 60.0
SCHEMA_SETTLES_S = 15.0
MINUTE_US = 60 * SECOND_US

_CQL = {s.name: s.text for s in parse((MIGRATIONS / "bookkeeping.cql").read_text())}


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    number: int
    name: str
    source: str

    @property
    def checksum(self) -> str:
        """Tells a file that was edited after it was applied."""
        return hashlib.sha256("\n".join(split(self.source)).encode()).hexdigest()[:16]


def known() -> list[Migration]:
    """All migrations of this release, in order."""
    found = []
    for path in sorted(MIGRATIONS.glob("[0-9]*.cql")):
        number, _, name = path.stem.partition("_")
        found.append(Migration(int(number), name, path.read_text()))
    return found


async def migrate(settings: StorageSettings) -> list[int]:
    """Creates the keyspace if needed and applies what is missing; the numbers that this call
    applied.

    Raises:
        KeyspaceRefused: It was made for another number of shards, or by other migrations.
        StoreUnavailable: Cassandra does not answer, or another process holds the lock for minutes.
    """
    return await asyncio.to_thread(_migrate, settings)


def _migrate(settings: StorageSettings) -> list[int]:
    cluster, session = connect(settings, None)
    try:
        with translated("migrate"):
            return Migrator(session, settings).run()
    finally:
        cluster.shutdown()


def check(session: Session, settings: StorageSettings) -> None:
    """Refuses a keyspace that is not what this process is configured for.

    A keyspace that is ahead of this release is fine: processes are upgraded one by one. Blocks.
    """
    if session.execute(_CQL["table_seen"], (settings.keyspace,)).one() is None:
        raise KeyspaceRefused(keyspace=settings.keyspace, problem="is empty: run `tocsin migrate`")
    applied = _applied(session)
    missing = [m.number for m in known() if m.number not in applied]
    shards = _shards(session) if not missing else None
    if shards is None:
        lacks = f"migrations {missing}" if missing else "its number of shards"
        raise KeyspaceRefused(
            keyspace=settings.keyspace, problem=f"lacks {lacks}: run `tocsin migrate`"
        )
    _check_shards(settings, shards)


def _applied(session: Session) -> dict[int, str]:
    """Checksums by number."""
    rows = session.execute(_CQL["migrations_read"])
    return {number: checksum for number, checksum, _, applied in rows if applied}


def _shards(session: Session) -> int | None:
    row = session.execute(_CQL["shards_read"]).one()
    return int(row[0]) if row is not None else None


def _check_shards(settings: StorageSettings, stored: int) -> None:
    if stored != settings.shards:
        raise KeyspaceRefused(
            keyspace=settings.keyspace,
            problem=f"was made for {stored} shards, and this process is set to {settings.shards}",
        )


_once_visible = Retrying(
    retry=retry_if_exception_type(InvalidRequest),
    wait=wait_fixed(0.2),
    stop=stop_after_delay(SCHEMA_SETTLES_S),
    reraise=True,
)
"""Runs a step on what another process has just created: a node shows it in its schema tables before
it knows it."""


_through_time_outs = Retrying(
    retry=retry_if_exception_type((Timeout, OperationTimedOut)),
    wait=wait_random(0.1, 0.6),
    stop=stop_after_delay(SCHEMA_TIMEOUT_S),
    reraise=True,
)
"""Processes that ask for the lock at once time each other's LWTs out."""


class Migrator:
    """One run."""

    def __init__(self, session: Session, settings: StorageSettings) -> None:
        self._session = session
        self._settings = settings
        self._holder = uuid.uuid4().hex

    def run(self) -> list[int]:
        """See `migrate`."""
        self._ensure_keyspace()
        _once_visible(self._session.set_keyspace, self._settings.keyspace)
        self._ensure_table()
        _once_visible(self._lock)
        try:
            applied = _applied(self._session)
            done = [m.number for m in known() if self._apply(m, applied)]
            self._initialise()
        finally:
            self._execute("lock_release", self._holder)
        return done

    def _execute(self, statement: str, *values: Any) -> Any:
        """The first row. All of the migrator's statements may be repeated, its LWTs as well."""
        session, text = self._session, _CQL[statement]
        return _through_time_outs(session.execute, text, values, timeout=SCHEMA_TIMEOUT_S).one()

    def _ddl(self, text: str) -> None:
        """Waits until all nodes agree on the schema; the driver does as well, but goes on if they
        don't.
        """
        future = self._session.execute_async(text, timeout=SCHEMA_TIMEOUT_S)
        future.result()
        if not future.is_schema_agreed:
            raise StoreUnavailable(operation="migrate: schema agreement")

    def _ensure_keyspace(self) -> None:
        if self._execute("keyspace_seen", self._settings.keyspace) is not None:
            return
        copies = dict(self._settings.replication)
        simple = copies.pop("", None)
        options = {"class": "SimpleStrategy" if simple else "NetworkTopologyStrategy"}
        options |= {"replication_factor": str(simple)} if simple else {}
        options |= {name: str(count) for name, count in copies.items()}
        replication = ", ".join(f"'{key}': '{value}'" for key, value in options.items())
        self._ddl(
            f"CREATE KEYSPACE IF NOT EXISTS {self._settings.keyspace}"
            f" WITH replication = {{{replication}}}"
        )
        log.info("keyspace.created", keyspace=self._settings.keyspace, replication=options)

    def _ensure_table(self) -> None:
        keyspace = self._settings.keyspace
        if self._execute("table_seen", keyspace) is not None:
            return
        table_id = uuid.uuid5(uuid.NAMESPACE_URL, f"tocsin:{keyspace}.migrations")
        self._ddl(_CQL["create_table"].format(table_id=table_id))

    def _lock(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        waiting = False
        while not self._take_lock():
            if time.monotonic() > deadline:
                raise StoreUnavailable(operation="migrate: lock held by another process")
            if not waiting:
                log.info("migration.awaited", keyspace=self._settings.keyspace)
                waiting = True
            time.sleep(LOCK_POLL_S)

    def _take_lock(self) -> bool:
        row = self._execute("lock_take", self._holder, LOCK_TTL_S)
        # a lost answer leaves us the lock: the next try finds our own name
        return bool(row[0]) or self._holder in row

    def _keep_lock(self) -> None:
        if not self._execute("lock_keep", LOCK_TTL_S, self._holder, self._holder)[0]:
            raise StoreUnavailable(operation="migrate: lock lost to another process")

    def _apply(self, migration: Migration, applied: dict[int, str]) -> bool:
        """False if it is there already."""
        if migration.number in applied:
            if applied[migration.number] != migration.checksum:
                raise KeyspaceRefused(
                    keyspace=self._settings.keyspace,
                    problem=f"was migrated by another {migration.number:03}_{migration.name}.cql",
                )
            return False
        self._keep_lock()
        log.info("migration.started", number=migration.number, name=migration.name)
        now_us = time.time_ns() // 1000
        checksum = migration.checksum
        self._execute("migration_start", migration.number, migration.name, checksum, now_us)
        for statement in split(migration.source):
            self._ddl(statement)
        self._execute("migration_finish", checksum, migration.number)
        log.info("migration.applied", number=migration.number, name=migration.name)
        return True

    def _initialise(self) -> None:
        """Progress rows first, the number of shards last: with it the keyspace counts as
        complete.
        """
        stored = _shards(self._session)
        if stored is not None:
            _check_shards(self._settings, stored)
            return
        started = {row[0]: row[2] for row in self._session.execute(_CQL["migrations_read"])}
        settled = started[known()[0].number] // MINUTE_US * MINUTE_US
        for shard in range(self._settings.shards):
            self._execute("progress_start", shard, settled, settled)
        self._execute("shards_write", str(self._settings.shards))

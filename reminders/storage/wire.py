"""Batches as bytes: the one place that reaches below the driver's public interface.

Binding values through `BoundStatement` costs more client CPU than everything else of a grouped
write (FACTS, "Writing fast with cassandra-driver"). Here a row of a batch is serialized once, when
it is made, and a batch is the rows joined, framed as the native protocol (v3 to v5) says:
native_protocol_v5.spec, §4.1.7.

What of the driver is relied on (`cassandra-driver` is pinned, `tests/contract/store` compares the
bytes with its own): `BatchMessage` as the base of a message with `send_body`, the constructor of
`ResponseFuture`, and that it prepares a statement again by its id when a server has forgotten it.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from cassandra import ConsistencyLevel, ProtocolVersion
from cassandra.cluster import ExecutionProfile, ResponseFuture, Session
from cassandra.protocol import BatchMessage
from cassandra.query import BatchStatement, PreparedStatement

_length = Struct(">i").pack
_short = Struct(">H").pack
_head = Struct(">BH").pack
_UNLOGGED = 1
_PREPARED = 1
_SERIAL_FLAG = 0x10

_bigint = Struct(">iq").pack
_integer = Struct(">ii").pack
_bigint_integer = Struct(">iqii").pack
_integer_bigint = Struct(">iiiq").pack


# Values as they stand in a row: length and bytes. Neighbours of fixed size are packed at once.


def framed(value: bytes) -> bytes:
    """A blob, or text as UTF-8."""
    return _length(len(value)) + value


def text(value: str) -> bytes:
    """A text."""
    encoded = value.encode()
    return _length(len(encoded)) + encoded


def bigint(value: int) -> bytes:
    """A bigint or a timestamp."""
    return _bigint(8, value)


def integer(value: int) -> bytes:
    """An int."""
    return _integer(4, value)


def bigint_integer(first: int, second: int) -> bytes:
    """A bigint and an int, such as stamp and TTL."""
    return _bigint_integer(8, first, 4, second)


def integer_bigint(first: int, second: int) -> bytes:
    """An int and a bigint."""
    return _integer_bigint(4, first, 8, second)


class Mutation(NamedTuple):
    """Rows that are written together, as they stand in a batch."""

    rows: bytes
    statements: int

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.rows)


class Prepared:
    """A prepared statement, for single use through the driver or as a row of a batch."""

    __slots__ = ("_head", "statement")

    def __init__(self, statement: PreparedStatement) -> None:
        self.statement = statement
        query_id: bytes = statement.query_id
        self._head = b"".join(
            (
                bytes((_PREPARED,)),
                _short(len(query_id)),
                query_id,
                _short(len(statement.column_metadata)),
            )
        )

    def bind(self, *values: Any) -> Any:
        """For single use; Python values."""
        return self.statement.bind(values)

    def row(self, *values: bytes) -> bytes:
        """For a batch; framed values, all of them, in the statement's order, none null."""
        return self._head + b"".join(values)


class _RawBatch(BatchMessage):  # type: ignore[misc]
    """A batch whose rows are bytes. The underscore keeps the driver from registering it as a
    reply.
    """

    def __init__(
        self, rows: Sequence[bytes], count: int, profile: ExecutionProfile, *, serial: bool
    ) -> None:
        super().__init__(None, (), profile.consistency_level)
        self._rows = rows
        self._count = count
        self._serial = profile.serial_consistency_level if serial else None

    def send_body(self, f: Any, protocol_version: int) -> None:
        f.write(_head(_UNLOGGED, self._count))
        for rows in self._rows:
            f.write(rows)
        f.write(_short(self.consistency_level))
        flags = 0 if self._serial is None else _SERIAL_FLAG
        wide = ProtocolVersion.uses_int_query_flags(protocol_version)
        f.write(_length(flags) if wide else bytes((flags,)))
        if self._serial is not None:
            f.write(_short(self._serial))


CONDITIONAL_TIMEOUT_S = 2.5
"""Of an LWT. It is never asked of two nodes at once, so whoever waits for a coordinator that hangs
had better ask another one in time; they find out themselves what became of the first try."""


def _template(*, idempotent: bool) -> BatchStatement:
    """What retry and load-balancing policies are shown in place of the batch."""
    statement = BatchStatement(consistency_level=ConsistencyLevel.LOCAL_QUORUM)
    statement.is_idempotent = idempotent
    return statement


_PLAIN = _template(idempotent=True)
_CONDITIONAL = _template(idempotent=False)


def batch(
    session: Session,
    profile: ExecutionProfile,
    mutations: Sequence[Mutation],
    *,
    conditional: bool = False,
    row_factory: Any = None,
) -> ResponseFuture:
    """An unlogged batch, not sent yet: add callbacks, then `send_request()`."""
    message = _RawBatch(
        [mutation.rows for mutation in mutations],
        sum(mutation.statements for mutation in mutations),
        profile,
        serial=conditional,
    )
    shown = _CONDITIONAL if conditional else _PLAIN
    timeout_s = profile.request_timeout
    if conditional:
        timeout_s = min(timeout_s, CONDITIONAL_TIMEOUT_S)
    again = None if conditional else profile.speculative_execution_policy.new_plan(None, shown)
    return ResponseFuture(
        session,
        message,
        shown,
        timeout_s,
        retry_policy=profile.retry_policy,
        row_factory=row_factory or profile.row_factory,
        load_balancer=profile.load_balancing_policy,
        speculative_execution_plan=again,
    )

"""The named statements of `cql/`, and the text of migrations.

A statement begins with `-- name: …`; comment lines below it describe it; `-- consistency: …`
overrides the session's. The rest up to the next name is its text.
"""

from dataclasses import dataclass
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.cluster import Session

from reminders.storage.wire import Prepared

CQL = Path(__file__).parent / "cql"
MIGRATIONS = Path(__file__).parent / "migrations"
_NAME = "-- name:"
_CONSISTENCY = "-- consistency:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One named statement."""

    name: str
    description: str
    text: str
    consistency: str | None = None

    @property
    def idempotent(self) -> bool:
        """Whether the driver may try it on another host. LWTs are not: their first try may have
        applied.
        """
        return " IF " not in self.text


def parse(source: str) -> list[Statement]:
    """The statements of one file, in order."""
    found = []
    for section in ("\n" + source).split("\n" + _NAME)[1:]:
        name, *lines = section.strip().splitlines()
        notes = [line for line in lines if line.startswith("--")]
        consistency = [line for line in notes if line.startswith(_CONSISTENCY)]
        found.append(
            Statement(
                name=name.strip(),
                description=" ".join(
                    n.removeprefix("--").strip() for n in notes if n not in consistency
                ),
                text="\n".join(line for line in lines if not line.startswith("--")).strip(),
                consistency=consistency[0].removeprefix(_CONSISTENCY).strip()
                if consistency
                else None,
            )
        )
    return found


def load() -> dict[str, Statement]:
    """All statements by name. A name that stands twice is an error."""
    found: dict[str, Statement] = {}
    for path in sorted(CQL.glob("*.cql")):
        for statement in parse(path.read_text()):
            if statement.name in found:
                raise ValueError(f"{path.name}: {statement.name} is defined twice")
            found[statement.name] = statement
    return found


def prepare(session: Session) -> dict[str, Prepared]:
    """Prepares every statement for this session's keyspace. Blocks."""
    prepared = {}
    for statement in load().values():
        handle = session.prepare(statement.text)
        handle.is_idempotent = statement.idempotent
        if statement.consistency is not None:
            handle.consistency_level = ConsistencyLevel.name_to_value[statement.consistency]
        prepared[statement.name] = Prepared(handle)
    return prepared


def split(source: str) -> list[str]:
    """The statements of a migration, without comments."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";") if part.strip()]

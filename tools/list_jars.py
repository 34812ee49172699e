"""Write reminders/localstack/cassandra.jars: the jars of a Cassandra, resolved, pinned by sha256.

Run by hand when CASSANDRA_VERSION in reminders/localstack/runtime.py changes.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path

from jgo.maven import MavenContext
from jgo.parse import Endpoint

from reminders.localstack.runtime import CASSANDRA_VERSION, LIST, Jar

HEADER = """\
# The jars of a Cassandra node, as org.apache.cassandra:cassandra-all:{version} resolves them:
# sha256, then group:artifact:version[:classifier]. tools/list_jars.py writes this file.
"""


def main() -> None:
    """Resolve, download, hash, write."""
    with tempfile.TemporaryDirectory() as scratch:
        context = MavenContext(repo_cache=Path(scratch), timeout=60)
        wanted = Endpoint.parse(f"org.apache.cassandra:cassandra-all:{CASSANDRA_VERSION}")
        root = context.create_dependency(replace(wanted.coordinates[0], scope="compile"))
        inputs, transitive = context.resolver.resolve([root])
        needed = [*inputs, *(each for each in transitive if each.scope in ("compile", "runtime"))]
        jars = [
            Jar(
                sha256=hashlib.sha256(each.artifact.resolve().read_bytes()).hexdigest(),
                group=each.artifact.groupId,
                artifact=each.artifact.artifactId,
                version=each.artifact.version,
                classifier=each.artifact.classifier,
            )
            for each in needed
        ]
    lines = [
        f"{jar.sha256}  {jar.coordinate}\n" for jar in sorted(jars, key=lambda jar: jar.coordinate)
    ]
    LIST.write_text(HEADER.format(version=CASSANDRA_VERSION) + "".join(lines))
    print(f"{LIST}: {len(lines)} jars")


if __name__ == "__main__":
    main()

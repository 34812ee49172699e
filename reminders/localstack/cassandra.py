"""A Cassandra node as a local process: its configuration and its start.

Durability. With Cassandra's default, `commitlog_sync: periodic`, a kill -9 of the node loses what
it acknowledged during the last 100 ms: a replay stops at the last marker in the segment, however
much more of it is in the page cache (seen: 72 of 4,030 writes). Three replicas make up for that; a
single node cannot. So a local node syncs each group of writes before it answers (`batch`), which
costs it half of its writes a second (3,700 instead of 9,500 rows/s one by one, 26,000 instead of
50,000 in batches of 20, on a 2-core machine). `TOCSIN_CASSANDRA_COMMITLOG_SYNC=periodic` is for
measuring against clusters that run with the default.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reminders.localstack.failure import StepFailedError
from reminders.localstack.process import ServerProcess, start, yielding

HEAP_VARIABLE: Final = "TOCSIN_CASSANDRA_HEAP"
COMMITLOG_VARIABLE: Final = "TOCSIN_CASSANDRA_COMMITLOG_SYNC"

COMMITLOG_SYNC: Final = {
    "batch": "commitlog_sync: batch",
    "periodic": "commitlog_sync: periodic\ncommitlog_sync_period: 10s",
}

CONFIGURATION: Final = """\
cluster_name: tocsin-local
num_tokens: {num_tokens}
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
listen_address: {address}
rpc_address: {address}
native_transport_port: {cql_port}
storage_port: {storage_port}
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "{seeds}"}}]
data_file_directories: ["{directory}/data"]
commitlog_directory: "{directory}/commitlog"
saved_caches_directory: "{directory}/saved_caches"
hints_directory: "{directory}/hints"
cdc_raw_directory: "{directory}/cdc_raw"
{commitlog_sync}
commitlog_total_space: 512MiB
# Grouped writes warn from 5 KiB on by default, and would fill the log with it. The node is ours.
batch_size_warn_threshold: 64KiB
batch_size_fail_threshold: 1024KiB
unlogged_batch_across_partitions_warn_threshold: 1000
# Tests drop and truncate often; a snapshot each would only fill the disk.
auto_snapshot: false
hinted_handoff_enabled: {hints}
"""

LOGGING: Final = """\
<configuration>
  <appender name="FILE" class="ch.qos.logback.core.rolling.RollingFileAppender">
    <file>{directory}/system.log</file>
    <rollingPolicy class="ch.qos.logback.core.rolling.FixedWindowRollingPolicy">
      <fileNamePattern>{directory}/system.%i.log</fileNamePattern><minIndex>1</minIndex><maxIndex>1</maxIndex>
    </rollingPolicy>
    <triggeringPolicy class="ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy">
      <maxFileSize>10MB</maxFileSize>
    </triggeringPolicy>
    <encoder><pattern>%-5level [%thread] %date{{ISO8601}} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="FILE"/></root>
</configuration>
"""

# What Cassandra reaches into on Java 17, as its own jvm17-server.options lists it.
_EXPORTS: Final = (
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
    "jdk.unsupported/sun.misc",
)
_OPENS: Final = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
)
_JVM: Final = (
    "-XX:+UseG1GC",
    "-XX:+ParallelRefProcEnabled",
    "-XX:MaxGCPauseMillis=300",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+PerfDisableSharedMem",
    "-Djava.awt.headless=true",
    "-Djdk.attach.allowAttachSelf=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.useCacheForAllThreads=true",
    "-Dio.netty.allocator.maxOrder=11",
    "-Dcassandra-foreground=yes",
    "-Dcassandra.shutdown_announce_in_ms=0",
)
# A node alone has no ring to hear from and no gossip to wait for.
_ALONE: Final = ("-Dcassandra.ring_delay_ms=0", "-Dcassandra.skip_wait_for_gossip_to_settle=0")


@dataclass(frozen=True, slots=True, kw_only=True)
class CassandraSettings:
    """One node.

    Attributes:
        directory: data, configuration and logs.
        address: a loopback address; the nodes of a ring use 127.0.0.1, .2, .3 and the same ports.
        cql_port: where clients connect.
        storage_port: where nodes talk to each other.
        seeds: addresses of the ring's first nodes; empty: the node is alone.
        heap: as Java's -Xmx takes it ("1G").
        commitlog_sync: a key of COMMITLOG_SYNC.
        hints: whether the others keep what a node misses while it is down; without, it comes back
            with old data.
    """

    directory: Path
    address: str
    cql_port: int
    storage_port: int
    seeds: tuple[str, ...] = ()
    heap: str = "1G"
    commitlog_sync: str = "batch"
    hints: bool = True


def tuning_from_environment() -> tuple[str, str]:
    """(heap, commitlog_sync) as the environment has them.

    Raises:
        StepFailedError: a value that means nothing; names the variable.
    """
    heap = os.environ.get(HEAP_VARIABLE) or "1G"
    if heap[-1] not in "MmGg" or not heap[:-1].isdigit():
        raise StepFailedError(
            step=f"read {HEAP_VARIABLE}",
            why=f"{heap!r} is no size",
            remedy="write it like 1G or 768M",
        )
    sync = os.environ.get(COMMITLOG_VARIABLE) or "batch"
    if sync not in COMMITLOG_SYNC:
        raise StepFailedError(
            step=f"read {COMMITLOG_VARIABLE}",
            why=f"{sync!r} is not known",
            remedy=f"one of {', '.join(COMMITLOG_SYNC)}",
        )
    return heap, sync


def render(settings: CassandraSettings) -> str:
    """The content of cassandra.yaml."""
    seeds = settings.seeds or (settings.address,)
    return CONFIGURATION.format(
        num_tokens=4 if settings.seeds else 1,
        address=settings.address,
        cql_port=settings.cql_port,
        storage_port=settings.storage_port,
        seeds=",".join(f"{seed}:{settings.storage_port}" for seed in seeds),
        directory=settings.directory,
        commitlog_sync=COMMITLOG_SYNC[settings.commitlog_sync],
        hints=str(settings.hints).lower(),
    )


def command_line(java: Path, jars: Sequence[Path], settings: CassandraSettings) -> list[str]:
    """How the node is started; no JMX port is opened."""
    directory = settings.directory
    return [
        str(java),
        f"-Xms{settings.heap}",
        f"-Xmx{settings.heap}",
        *_JVM,
        *(() if settings.seeds else _ALONE),
        *(f"--add-exports={package}=ALL-UNNAMED" for package in _EXPORTS),
        *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENS),
        f"-Djava.io.tmpdir={directory / 'tmp'}",
        f"-Dcassandra.config={(directory / 'cassandra.yaml').as_uri()}",
        f"-Dcassandra.storagedir={directory}",
        f"-Dlogback.configurationFile={(directory / 'logback.xml').as_uri()}",
        "-cp",
        os.pathsep.join(map(str, jars)),
        "org.apache.cassandra.service.CassandraDaemon",
    ]


def launch(
    java: Path, jars: Sequence[Path], settings: CassandraSettings, *, keep_open: Sequence[int] = ()
) -> ServerProcess:
    """Write the configuration and start the node; does not wait until it answers."""
    directory = settings.directory
    (directory / "tmp").mkdir(parents=True, exist_ok=True)
    (directory / "cassandra.yaml").write_text(render(settings))
    (directory / "logback.xml").write_text(LOGGING.format(directory=directory))
    return start(
        "Cassandra",
        yielding(command_line(java, jars, settings)),  # the services have an instant to keep
        output=directory / "output.log",
        logs=[directory / "system.log"],
        environment={
            "MALLOC_ARENA_MAX": "4"
        },  # else native memory grows with the number of threads
        keep_open=keep_open,
    )

"""Real Cassandra and Redis as local processes: no root, no container engine, nothing to install.

    with provide(Path(".local"), progress=print) as endpoints:
        ...                        # endpoints.cassandra_hosts, endpoints.redis_url

`provide` is the one place that chooses where servers come from: addresses in the environment, else
local processes. The steps of the local way, each in a module of its own:

    runtime    a Java 17 and the jars of Cassandra, into a cache shared by all checkouts of the user
    cassandra  configuration and start of a node        redis   the same for a redis-server
    process    a child that never outlives its parent   probe   "does it answer?", without a driver
    datadir    one run for each data folder, ports kept between runs
    ring       several of each, with replicas and sentinels, to take down one by one

Everything is synchronous and reports its long steps. Imported by the command line, the tests and
the benchmarks, never by a service; it imports nothing else of this project.
"""

from reminders.localstack.failure import StepFailedError
from reminders.localstack.provide import Endpoints, provide

__all__ = ["Endpoints", "StepFailedError", "provide"]

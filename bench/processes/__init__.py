"""The other sides of the benchmarks, each run as a process of its own: see `harness.child`."""

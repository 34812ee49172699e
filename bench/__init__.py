"""Benchmarks on the real stack, each figure beside a ceiling or reference of the same run.

`make bench` = `python -m bench`. Start reading at `__main__`; then one file for each benchmark,
whose docstring says what is measured, how, and against what:

    creates      creates/s by call, batch and stream        claims      claims/s of one scanner
    lateness     of fires spread evenly                     recurrence  next occurrences/s by FREQ
    burst        thousands due at one :00                   cancel      cancel latency under load
    throughput   deliveries/s of one dispatcher             fanout      a topic's subscribers
    isolation    a healthy endpoint beside many that hang   group       cancelling one, of any size
    memory       a store that stands still while creates stream in

`processes/` are the other sides, a process each: load generators, the HTTP receiver, the bare
loops that serve as references. `harness/` starts the stack, reads /proc, and prints. Nobody
imports this package.
"""

"""Deterministic simulation: the real services, many of each, on one thread in virtual time.

```
 generate ──▶ Plan: a list of items ──▶ run ──▶ World
                (seed, or a file)                │ VirtualLoop: time passes when nobody is busy
                                                 │ Host: clocks that drift and jump
      ┌──────────────────────────────────────────┤
      ▼                                          ▼
 Process: scheduler, scanner, dispatcher, expander: the very code, on the services' own clock
      │ Link: its ports
      ▼
 Network: latency, loss, repetition, delay; traps for one call; cuts
      ▼
 MemoryStore, MemoryCoordination: the adapters that pass the contract suites of the real ones
      │ each call as it takes effect                              at the end
      ▼                                                           ▼
 Judge: early? no lease? acknowledged unsettled? watermark?   Checker: was every promise kept?
```

`loop`, `process`          virtual time, hosts, processes that freeze and die.
`reference`, `zonedata`    the servers' time, and the zone data of each host.
`link`, `network`          the way of a call, and what can happen to it.
`items`, `wishes`, `plan`  what may happen in a run; `generate` mixes other kinds of faults for each
                           seed; `recipes`, `recipes_beside` make two or three meet that do harm
                           only together (`draft`: a plan in the making).
`faults`, `clients`, `operators`, `receivers`  who carries a plan out; `asking`: how.
`world`, `run`, `patches`  puts it together. Patched are chance, machine time, log and metrics.
`history`, `judge`, `expected`, `checker`  what happened, what should have, and what of it breaks a
                           promise.
`shrink`, `__main__`       from a failing seed to the few items that it takes.
`planted`                  faults in the code, each of which must be found: who guards the guards.

What is checked of each run:

* every acknowledged occurrence that was not cancelled is delivered, or a reason is on record;
* nothing is sent of which a change or a group cancel answered that it does not ring;
* nothing is claimed or sent early by the reference clock, nor claimed without the lease;
* nothing is sent again once the ledger knew of the delivery when the job was given out; any other
  repeat has a fault that explains it; without faults nothing is late;
* a job leaves its stream after its entry is handled, a fire after it is expanded;
* the watermark passes only what is settled, and in the end everything is, no record is left
  changing, and no stream holds anything;
* one key is one reminder, a retry is one row, a read shows what was answered before;
* an update leaves the times as they are; a trigger that was acknowledged rings once, whoever
  repeats the call, unless a change answered that it does not; a backfill rings what it named, no
  change ending it, and nothing twice;
* behind a walk with newer zone data what is ahead keeps its local time by them, and rings once;
* no service ends by itself, and none logs what it holds for a bug.

Use:

    make simulate SEEDS=200            seeds 0 to 199, on all processors; or SEEDS=1000-1500
    python -m tests.simulation 17-18 --trace --about expander-1 r3x…    one seed, step by step
    python -m tests.simulation --plan .local/simulation/seed-17.json   a shrunk one again
    python -m tests.simulation --planted                               how soon each is found

A failing seed is shrunk by itself: its plan is kept in `.local/simulation`, and its trace is shown.
To make a unit test of it, take the order of calls from the trace.

Runs are the same each time, with one exception: sets of strings have another order in each Python
process unless PYTHONHASHSEED is set; the command line sets it to 0.
"""

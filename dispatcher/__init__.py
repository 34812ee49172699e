"""Delivers what was claimed, at least once, and says so in the ledger.

    jobs stream ─▶ service ─▶ runner ─▶ leg ─▶ channel ─▶ receiver
        ▲                                │
        │                                ▼
        └─ acknowledger ◀─────────── settler ─▶ ledger row ─▶ retry's due entry ─▶ handled

Sends come first: while many are under way, what ended is put on record a little later, and then
many at a time. A process that dies repeats at most what it sent within the last second or so.

The order is the guarantee (DESIGN §7): a job is acknowledged after its due entry is handled, that
after the retry's entry is written, that after the ledger row, that after the send. A crash between
any two leaves a job that comes again, and whoever gets it reads the ledger first:

| crashed after       | what the repeat finds       | and does                               |
|---------------------|-----------------------------|----------------------------------------|
| (before) the send   | no row of this attempt      | records "outcome unknown", sends again |
| the ledger row      | the row: ended              | sends nothing                          |
| … of a retrying leg | the row, with the next time | writes the same retry entry again      |
| handled             | the same                    | the same, and acknowledges             |

A first send of an occurrence that nobody can have begun reads nothing; one of a backfill, whose claim
Redis may have forgotten, reads the record and the ledger. A page of a backfill is turned here, too:
it writes the entries of its occurrences, which come back as jobs. Store or Redis not answering
makes settling wait, in this process; the job stays unacknowledged and is renewed meanwhile.

`service`       the loops: take, keep, recover, drain; `flights`, `acknowledger`, `settings`.
`settler`       puts ends of sends on record, in batches.
`runner`, `leg` one job, one channel of it; `work` is what they hold.
`decision`, `rows`, `retry`  pure: what to do, what the ledger says, when to try again.
`gate`, `requeue`  the record's word on later attempts; entries that come back.
`destinations`  places at a receiver, so that a slow one keeps nobody else out.
`facts`, `telemetry`  what happened, for log and metrics.
`channels`      the ways out.

Start reading at `leg`. Nobody imports this package but its own `__main__` and the command line.
"""

"""Delivers what was claimed, at least once, and says so in the ledger.

    jobs stream ─▶ service ─▶ runner ─▶ leg ─▶ channel ─▶ receiver
        ▲                                │
        │                                ▼
        └─ acknowledger ◀─────────── settler ─▶ ledger row ─▶ retry's due entry ─▶ handled

What ends failed or expired goes into a list before it goes into the ledger, so that no crash can
leave it out: readers compare the two.

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

A delivery (one leg) by its ledger row, and who acts next:

    (no row) ──▶ SENDING ──▶ DELIVERED, CONFIRMED         who sends: records it
        │           │ └────▶ RETRYING ──▶ a due entry at next_attempt_at ──claimed──▶ SENDING …
        │           └──────▶ FAILED, EXPIRED, CANCELLED   (permanent, too old, the record's word)
        ├─ quiet hours: PENDING (a retry: RETRYING) ─▶ a parked due entry at their end
        └─ no place in time: a parked due entry, PENDING or RETRYING until then

| state                       | who owns the next action                                           |
|-----------------------------|--------------------------------------------------------------------|
| job in the stream, new      | any dispatcher: its read                                           |
| job taken, process lives    | that process: renews the job until it is settled                   |
| job taken, process dead     | any dispatcher, after `claim_idle`: reads the ledger first         |
| job gone from the stream    | the trailing scan: claims it again with `recheck`                  |
| SENDING, nobody at it       | whoever gets the job again: "outcome unknown", then sends          |
| RETRYING, its entry written | the scanner, at its time                                           |
| RETRYING, its entry missing | whoever gets the job again: writes it (its time is on record)      |
| on record, not handled      | whoever gets the job again: marks it, sends nothing                |
| handled, not acknowledged   | whoever gets the job again: acknowledges                           |
| crashes processes           | after `max_crashes` in a row: FAILED, `poison`, an alarm (`leg`)   |
| raises, alone, three times  | its process: FAILED, `poison`, handled, an alarm (`poison`)        |

A replay is a retry of a delivery that had ended, asked for: its leg says after how many attempts,
and it goes on from there unless the ledger has it as taken.

A first send of an occurrence that nobody can have begun reads nothing; one of a backfill, whose
claim Redis may have forgotten, reads the record and the ledger. A page of a backfill is turned
here, too: it writes the entries of its occurrences, which come back as jobs. Store or Redis not
answering makes settling wait, in this process; the job stays unacknowledged and is renewed
meanwhile.

A topic's reminder has a leg for each subscriber. Its job only writes entries: sixteen chains of
pages, and one that counts; pages are turned by whatever dispatcher gets them (`fanout`).

`service`       the loops: take, start, drain; `recovery` keeps and takes over; `flights`,
                `acknowledger`, `settings`.
`settler`       puts ends of sends on record, in batches.
`runner`, `leg` one job, one channel of it; `work` is what they have in hand.
`hold`          what was handed over ahead of its time waits for it.
`fanout`, `stretch`, `room`  a topic's subscribers, page by page, so many at once.
`tally`         counts how far a fan-out has come.
`receivers`     whom a leg is for: a channel, or a subscriber as it is now.
`addressing`, `quiet_hours`  the recipient record's word: where to, and whether now.
`decision`, `rows`, `retry`  pure: what to do, what the ledger says, when to try again.
`poison`        jobs whose handling raises again and again.
`gate`, `requeue`  the record's word on later attempts; entries that come back.
`destinations`  who may be sent something now, so that a slow one keeps nobody else out; on top of
                `line`, `patience`, `standing` (hosts and endpoints), `capacity` (seats), `breaker`,
                `bucket`, `timepiece`.
`health`, `blame`  which endpoints fail, and whose fault it is: nothing is sent to disabled ones;
                `known` are those that a process knows of.
`ended`         the list of what ended failed or expired, beside the ledger.
`events`        tells the operator: lost deliveries, poison, disabled endpoints.
`facts`, `telemetry`  what happened, for log and metrics.
`insistence`    a step that is repeated until store and Redis answer.
`configured`    the channels and the operator's events that the settings name.
`channels`      the ways out; `channels.port` has the five outcomes of an attempt.
`http1`         the client that posts webhooks.

Start reading at `leg`. Nobody imports this package but its own `__main__` and the command line.
"""

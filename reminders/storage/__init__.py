"""The Cassandra adapter: `reminders.ports.Store` on Cassandra 5. Only it imports the driver.

Start reading at `store` (what services wire in their `__main__`); then

    records, due, users, ledger, dedup, progress, fences,
    subscribers, ended, endpoints
                    a port each; changes: LWTs of `records`
    rows            what every plain write puts into which table
    layout, expiry  where bodies go; how long rows stay
    writer          group commit: many callers' rows in few batches
    wire            batches as bytes
    session         cluster, consistency, retry and time-out policy
    reactor         the driver's connections on the service's loop
    bridge          driver futures to awaitables, driver errors to the domain's
    statements      loads and prepares `cql/`: every statement, named and described
    checks          whether the keyspace has enough copies
    migrate         applies `migrations/`: the schema, numbered

How writes stay safe (DESIGN §3, §5):

- Every plain statement carries the caller's stamp, so sending it again changes nothing: the writer
  may resend, and never needs to know what a lost answer did. Nothing here uses a server's clock as
  a stamp but LWTs, which refuse another one.
- A record's static cells are written plainly by its creation only, stamped behind the clock, and by
  LWT from then on (`changes`). An LWT writes all of them, so that they expire together.
- INSERTs never bind outcome or fate columns: a bound null would erase them.
- Nothing is deleted to cancel it. The deletions there are, of live entries, index rows and
  subscribers, carry stamps; the first two are of rows at the far end of what is read.

All instants are stored as µs since 1970 (`…_us bigint`), because a CQL timestamp keeps milliseconds
and two entries of one millisecond must keep their order; the minute of a partition is a timestamp.
"""

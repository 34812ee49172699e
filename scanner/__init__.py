"""The scanner: rings what is due, at its time, once for each shard.

```
 members ──rendezvous──▶ which shards are mine ──lease──▶ a Lead for each (token, until lost)
 due partitions ──slices, ahead of time──┐
 hints (written for a time already read) ┴▶ timer heap ──at the time──▶ claims ──▶ jobs, fires
 trailing scan, a few seconds behind: what is open is claimed again, with `recheck`
```

`placement`  who should lead which shard. Pure.
`lead`       one shard while its lease is held: its queue of claims.
`timer`      the heap that wakes at the next `ring_at`.
`reader`     slices and hints into the heap.
`pace`       how many missed ones of a shard are claimed at once, beside what is due.
`settler`    the trailing scan and the watermark; `trail` keeps what is left to look at, `examiner`
             decides what becomes of a late entry.
`service`    leases, and the life of it all. Start reading here.

The token in Redis is the fence: every claim carries it. What a process believes about its lease
only saves work. A lease is trusted until its last renewal *started* + life − margin; an answer of
LOST or MOVED, or no answer until then, ends the lead, and with it everything in its queue. Nothing
is lost by that: entries are in Cassandra until they are handled, and the next lead reads from the
watermark.
"""

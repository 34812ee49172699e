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
             decides what becomes of a late entry, `fenced` ends what a cancelled group left.
`service`    leases, and the life of it all. Start reading here.

The token in Redis is the fence: every claim carries it. What a process believes about its lease
only saves work. A lease is trusted until its last renewal *started* + life − margin; an answer of
LOST or MOVED, or no answer until then, ends the lead, and with it everything in its queue. Nothing
is lost by that: entries are in Cassandra until they are handled, and the next lead reads from the
watermark.

A due entry from its write to the watermark. Only Cassandra's columns count as states; what Redis
knows (claimed, void) decides about a first claim and nothing else:

```
            writer: live entry, then due row
                       │
                       ▼         its time            dispatcher: sent, on record
        ┌─────────── OPEN ─────────────▶ (claimed) ───────────────────────────▶ HANDLED
        │              │  ▲                 │  ▲                                 │     │
 change │              │  └─ refused: early, │  │ trailing scan: job gone,        │     │ recurs
 (DESIGN│ late,        │     stale, void     │  │ handed on again (recheck)       │     ▼
  §5)   │ orphan,      │                     └──┘                                 │  expander:
        ▼ fenced       ▼                                                          │  EXPANDED
      VOID ──┬──── closed by the scan ────────────────────────────▶ HANDLED       │     │
             └─ claimed before: CLAIMED (wins), rings             (and EXPANDED)  └──┬──┘
                                                                                     ▼
                                              minute older than the grace, all of it settled:
                                                             the watermark passes
```

| state                          | who owns the next action                                       |
|--------------------------------|----------------------------------------------------------------|
| OPEN, ahead                    | nobody has to: the reader will read its slice                  |
| OPEN, within the look-ahead    | the reader, or whoever hears its hint; then the timer          |
| OPEN, due                      | the lead: claims it                                            |
| OPEN, due, not claimed         | the trailing scan: by its record it is claimed, skipped, closed |
| claimed, job in the stream     | dispatchers                                                    |
| claimed, job gone              | the trailing scan: the same claim with `recheck` adds it again |
| VOID, its record changing      | whoever meets it: finishes the change                          |
| VOID                           | the trailing scan: closes it                                   |
| CLAIMED by a change            | the trailing scan: claims it, past all voids                   |
| HANDLED, recurs, not EXPANDED  | expanders; the trailing scan tells them again                  |
| settled                        | the settler: moves the watermark                               |
| unreadable                     | the trailing scan: an alarm, and its end after an hour         |
| in a minute 27 days old        | an operator: `tocsin rebuild`; the watermark stays             |
"""

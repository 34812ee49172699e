"""What a reminder is, in frozen values without behaviour or I/O.

`definition`  what the caller asked for: schedule, policies, channels.
`entry`       what waits to ring: occurrences, due entries, their keys and bodies.
`record`      what is kept of a reminder: the record, its change in progress, dedup claims.
`recipient`   where a user is reached, and when not.
`subscriber`  who is told what a topic says, and the secrets that sign it.
`fanout`      how far the deliveries to a topic's subscribers have come.
`ledger`      what happened: deliveries and attempts, one row for each.
`ended`       what ended without having arrived: a list beside the ledger.
`endpoint`    where deliveries go, by what name, and whether it fails or is disabled.

The values are `msgspec` structs rather than dataclasses: frozen and keyword-only alike, they come
with the codec that storage and streams use and are several times cheaper to make on hot paths.
Every `datetime` is aware and UTC unless its name says `local`; those are naive.
New fields go last and have defaults: stored values of older versions must still decode.
Any part of Tocsin may import this package; it imports nothing of Tocsin but `recurrence.policies`
and the pure `urls`.
"""

"""The Redis adapter: leases, claims, hand-off streams, hints, and the reference clock.

Only each service's `__main__` imports it; everything else sees `reminders.ports`. Start at
`adapter` (`RedisCoordination`, all of it), then `claims` and `lua/claim.lua`, the heart. The server
is the one that the URL names, or the master that its sentinels name (`masters`).

Nothing in Redis is the truth: all of it can be rebuilt from Cassandra. But a loss must be noticed.
So every script compares the server it runs on with the shard's home, written with its lease:

    lease free ──acquire──▶ home:{s} = this server, since its TIME     (older copies are STALE)
         ▲                        │
         │                claim, renew, refire, revoke compare
         │                        ├── same server ──▶ go on
    drop the heap ◀── MOVED ──────┴── another (fail-over, restart), or no home (data lost)

The lease of a shard, and who acts next in each state:

    FREE ──acquire: 1──▶ HELD ──renew: 1──▶ HELD (each `renew_every`)
      ▲                   │ │ │
      │ release, or       │ │ └─ renew, claim: MOVED ──▶ LOST: another home, or none
      │ its life ends     │ └─── renew, claim: 0 ──────▶ LOST: somebody else's token
      └───────────────────┘      no answer until trusted_until ──▶ LOST, as far as the holder knows

| state                  | who acts next                                                          |
|------------------------|------------------------------------------------------------------------|
| FREE                   | the member whom placement wants: acquires within `renew_every`         |
| HELD                   | the holder: renews, claims. Nobody else's claim is taken (the token)   |
| HELD, holder dead      | Redis: the life ends; then as FREE. At most life + `renew_every`       |
| HELD, holder stopped   | the same; when it wakes, its token is refused: it drops everything     |
| HELD, member unwanted  | the holder: claims what is due already, then releases                  |
| LOST                   | the holder: drops its heap, and acquires anew if it is still wanted    |
| kept by another home   | anybody: such a lease counts as FREE                                   |

`home:{s}` has two instants. `since_us` is set with every acquisition: copies read before it are
STALE. `known_us` is set where the home is: it stays through hand-overs and begins anew after a
fail-over, a restart or a loss. What was claimed since then is on record here, so "not claimed" can
be relied on for what was due after it; before that a changer is in doubt (`Revocation`).

Why a first claim can't overtake a void (DESIGN §5). The changer sets `void` before it answers, and
it lives for look-ahead + margin. A claim of a copy that was read before the void was set finds the
void; or it comes after the void expired, more than look-ahead + margin after the copy was read, and
is STALE: copies are refused from half the margin on, the other half pays for the difference of two
clocks. If the void was lost, so was the home, or it is another server: MOVED, and then the copy is
older than the new home. All services must have the same look-ahead and margin.

Keys (all but `members` carry the hash tag of their shard: on a cluster a shard is in one place):

    lease:{s}            token of the holder                              a lease's life
    home:{s}             hash: server, since_us, known_us                 permanent
    fired:{s}:<minute>   hash: dedupe id → job id; minutes since 1970     hours after a claim
    void:{s}:<reminder>  first claims up to this version are refused      look-ahead + margin
    voidgroup:{s}:<group>  what was created up to then (µs) is refused    the same
    jobs:{s}, fires:{s}  streams; field `e` an entry, `r` one to recheck  until done
    near:{s}             stream; `e` entry, `w` written_from in ms        trimmed by age
    members              sorted set: member → when it beat, server's ms   a lease's life

What it costs (2026-11-30, 2 busy cores, redis-server 7.0.15 and 6.2.14, 200 entries of 200 bytes a
call, beside a bare script of SET NX + XADD in the same run): a claim takes 3.4–4.0 µs of server CPU
where the bare script takes 3.9–4.9, and 2.7 µs of client CPU against 1.8. The columns of a batch go
as one MessagePack blob with one HMGET, MGET and HSET a call: with an argument and commands for each
value it was 3.5 µs against 2.8, with a key for each dedupe id 4.5. A dedupe id takes 140 bytes in a
hash for each minute, 210 as a key of its own. (Hashed to 16 characters it would take 109: not worth
the unreadable keys.) A hash of 156,000 ids takes 40 ms to free when it expires, unless the server
has `lazyfree-lazy-expire yes`: a start-up check warns. One command alone: 60–90 µs of client CPU.
"""

from reminders.coordination.adapter import RedisCoordination
from reminders.coordination.checks import inspect_server
from reminders.coordination.clock import RedisClock
from reminders.coordination.connection import Lives, Timeouts
from reminders.findings import Finding, Severity

__all__ = [
    "Finding",
    "Lives",
    "RedisClock",
    "RedisCoordination",
    "Severity",
    "Timeouts",
    "inspect_server",
]

"""Which member should lead which shard: rendezvous hashing.

A member that comes or goes moves only its own shards.

"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b


def owner(shard: int, members: Sequence[str]) -> str:
    """The member with the highest hash for this shard; everybody finds the same."""
    return max(members, key=lambda member: _weight(shard, member))


def owned_by(member: str, members: Iterable[str], shards: int) -> set[int]:
    """The shards that `member` should lead."""
    everybody = sorted(set(members) | {member})
    return {shard for shard in range(shards) if owner(shard, everybody) == member}


def _weight(shard: int, member: str) -> bytes:
    return blake2b(f"{shard}/{member}".encode(), digest_size=8).digest()

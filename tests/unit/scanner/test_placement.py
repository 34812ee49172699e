"""Which member leads which shard."""

from collections import Counter

from scanner.placement import owned_by, owner

MEMBERS = [f"member-{n}" for n in range(5)]


def test_every_shard_has_one_owner_and_all_agree() -> None:
    """Each computes its own share; together they are everything."""
    shares = [owned_by(member, MEMBERS, 256) for member in MEMBERS]
    assert sum(map(len, shares)) == 256
    assert set().union(*shares) == set(range(256))


def test_shards_are_spread_evenly() -> None:
    """Within a half of the mean, for every member."""
    shares = Counter(owner(shard, MEMBERS) for shard in range(1000))
    assert all(100 < shares[member] < 300 for member in MEMBERS)


def test_a_member_that_comes_or_goes_moves_only_its_own_shards() -> None:
    """All others stay where they are."""
    with_all = {shard: owner(shard, MEMBERS) for shard in range(256)}
    without = {shard: owner(shard, MEMBERS[:-1]) for shard in range(256)}
    moved = {shard for shard in range(256) if with_all[shard] != without[shard]}
    assert moved == {shard for shard in range(256) if with_all[shard] == MEMBERS[-1]}


def test_a_member_that_is_not_seen_yet_counts_itself() -> None:
    """Its own heartbeat may not be in the answer."""
    assert owned_by("new", [], 4) == {0, 1, 2, 3}
    assert owned_by("new", MEMBERS, 256) == owned_by("new", [*MEMBERS, "new"], 256)

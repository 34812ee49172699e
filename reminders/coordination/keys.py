"""Names of keys. The hash tag `{shard}` keeps a shard's keys on one node of a cluster."""

from datetime import datetime

MEMBERS = "members"


def lease(shard: int) -> str:
    """Token of the shard's holder."""
    return f"lease:{{{shard}}}"


def home(shard: int) -> str:
    """Which server the lease was taken on, and when."""
    return f"home:{{{shard}}}"


def fired_prefix(shard: int) -> str:
    """Of the dedupe hashes; the minute since 1970 follows."""
    return f"fired:{{{shard}}}:"


def fired_minute(promised_at: datetime) -> int:
    """Minutes since 1970."""
    return int(promised_at.timestamp() // 60)


def void_prefix(shard: int) -> str:
    """Of the void keys; the reminder id follows."""
    return f"void:{{{shard}}}:"


def group_prefix(shard: int) -> str:
    """Of the keys that make groups void; `group` follows."""
    return f"voidgroup:{{{shard}}}:"


def group(namespace: str, group_id: str) -> str:
    """A group's name over all namespaces, which have no slash in theirs."""
    return f"{namespace}/{group_id}"


def stream(name: str, shard: int) -> str:
    """`jobs`, `fires` or `near`."""
    return f"{name}:{{{shard}}}"

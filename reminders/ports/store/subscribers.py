"""Who is told what a topic says."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from reminders.model.subscriber import Secret, Subscriber


class Subscribers(Protocol):
    """Who is told what a topic says, by (namespace, topic_id) in `SUBSCRIBER_BUCKETS` partitions.

    Definition, pause and each secret are cells of their own: writing one never undoes another.
    """

    async def put(self, subscribers: Sequence[Subscriber]) -> None:
        """Replaces the definitions whole, each stamped with its own `stamp`, and adds the secrets
        that they bring; others stay. The pause is not written: that is `pause`'s.

        Not atomic over several.
        """

    async def add_secret(
        self, subscriber: Subscriber, secret: Secret, *, gone: Sequence[Secret] = ()
    ) -> None:
        """Adds one, stamped with its own `stamp`, and takes away those that are `gone`."""

    async def pause(self, subscriber: Subscriber, *, paused: bool, stamp: int) -> None:
        """Sets or clears its pause, and `pause_stamp`."""

    async def delete(
        self, namespace: str, topic_id: str, subscriber_id: str, *, stamp: int
    ) -> None:
        """Takes away all of it that was written up to `stamp`."""

    async def read(self, namespace: str, topic_id: str, subscriber_id: str) -> Subscriber | None:
        """One of them."""

    async def read_many(
        self, namespace: str, topic_id: str, subscriber_ids: Collection[str]
    ) -> Mapping[str, Subscriber]:
        """By id; those that are not there are left out."""

    async def page(
        self, namespace: str, topic_id: str, bucket: int, *, after: str | None = None, limit: int
    ) -> list[Subscriber]:
        """At most `limit` of a bucket in order of `subscriber_id`, strictly after `after`, paused
        ones included. Fewer than `limit`: that was all.
        """

    async def count(self, namespace: str, topic_id: str) -> int:
        """How many there are, paused ones included. Its cost grows with them: not for every fire
        of a huge topic.
        """

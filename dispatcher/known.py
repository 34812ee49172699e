"""Endpoints that fail or are disabled, as this process knows them: what it has written itself, and
the list that all processes share.
"""

from collections.abc import Iterator

import structlog

from reminders.errors import Unavailable
from reminders.lifecycle import health
from reminders.lifecycle.health import LISTED_AFTER
from reminders.model.endpoint import ENDPOINT_BUCKETS, Endpoint
from reminders.platform import Platform

PAGE = 1_000
MOST = 100_000
"""Of the list: what is beyond is tried as if it were healthy, with an alarm."""

Name = tuple[str, str]
"""Namespace and endpoint_id."""

log = structlog.get_logger()


class Known:
    """One for a process. False while none of them is known."""

    def __init__(self, platform: Platform) -> None:
        self._clock = platform.clock
        self._listed = platform.store.endpoints
        self._known: dict[Name, Endpoint] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, name: Name) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._known.values())

    def get(self, name: Name) -> Endpoint | None:
        """None: as far as is known, it is healthy."""
        return self._known.get(name)

    def learn(self, name: Name, endpoint: Endpoint | None) -> None:
        """As it stands by now; None: it has no row any more."""
        if endpoint is not None and endpoint.troubled:
            self._known[name] = endpoint
        else:
            self._known.pop(name, None)

    async def read(self) -> bool:
        """Whether the list could be read, and replaces what is known."""
        before = dict(self._known)
        found: dict[Name, Endpoint] = {}
        try:
            for bucket in range(ENDPOINT_BUCKETS):
                await self._bucket(bucket, found)
        except Unavailable as error:
            log.warning("endpoints.unavailable", operation=error.operation)
            return False
        # What was learnt meanwhile is newer than what was read; what is not listed yet is our own.
        young = self._clock.now() - 2 * LISTED_AFTER
        for name, endpoint in self._known.items():
            last = endpoint.last_failure_at
            unlisted = not health.is_listed(endpoint) and last is not None and last > young
            if before.get(name) is not endpoint or unlisted:
                found[name] = endpoint
        for name in before.keys() - self._known.keys():
            found.pop(name, None)
        self._known = found
        return True

    async def _bucket(self, bucket: int, found: dict[Name, Endpoint]) -> None:
        after: Name | None = None
        while True:
            page = await self._listed.page(bucket, after=after, limit=PAGE)
            for one in page:
                found[one.namespace, one.endpoint_id] = one
            if len(page) < PAGE:
                return
            if len(found) >= MOST:
                log.error("endpoints.too_many", most=MOST)
                return
            after = page[-1].namespace, page[-1].endpoint_id

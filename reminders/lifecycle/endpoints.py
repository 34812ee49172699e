"""What is known of endpoints, as it is stored: changed by whoever has seen something, in one order.

`health` says what each fact makes of an endpoint; here the next version is written by LWT, so that
dispatchers and operators who act at the same time agree, and then the list of those in trouble
follows. A crash between the two leaves the list behind by a version: the next one to change the
endpoint, or to see that the two differ, puts it right.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import structlog
from msgspec import Struct

from reminders.errors import InvalidRequest, NotReady, Violation
from reminders.lifecycle import health
from reminders.model.endpoint import ENDPOINT_BUCKETS, Address, Endpoint
from reminders.platform import Platform

KNOWN_WITHIN = timedelta(seconds=15)
"""So long after it was disabled or enabled, every dispatcher acts by it."""

Next = Callable[[Endpoint | None], Endpoint | None]
"""What is stored now → its next version, or None."""

log = structlog.get_logger(__name__)


class Named(Struct, frozen=True, kw_only=True):
    """How a caller names an endpoint."""

    namespace: str
    endpoint_id: str
    address: Address | None = None
    """Where it was named by that."""


class EndpointPlace(Struct, frozen=True, kw_only=True, array_like=True):
    """How far a list has come."""

    bucket: int
    endpoint_id: str = ""


class Endpoints:
    """One for a process."""

    def __init__(self, platform: Platform) -> None:
        self._store = platform.store.endpoints
        self._clock = platform.clock

    # --- for whoever has seen something -----------------------------------------------------------

    async def advance(
        self, namespace: str, endpoint_id: str, following: Next
    ) -> tuple[Endpoint | None, bool]:
        """Its version now, and whether this call made it. Repeating is safe."""
        while True:
            known = await self._store.read(namespace, endpoint_id)
            changed = following(known)
            if changed is None:
                return known, False
            if await self._store.save(changed):
                await self.publish(changed)
                return changed, True

    async def publish(self, endpoint: Endpoint) -> None:
        """Puts the list right."""
        if health.is_listed(endpoint):
            await self._store.show(endpoint)
        else:
            await self._store.hide(endpoint)

    # --- for operators ----------------------------------------------------------------------------

    async def get(self, named: Named) -> Endpoint:
        """As it is; healthy where nothing is on record."""
        known = await self._store.read(named.namespace, named.endpoint_id)
        return known if known is not None else _healthy(named)

    async def troubled(
        self, namespace: str, *, disabled_only: bool, after: EndpointPlace | None, limit: int
    ) -> tuple[Sequence[Endpoint], EndpointPlace | None]:
        """Those that are disabled, or have failed for some minutes; where to go on, or None."""
        found: list[Endpoint] = []
        place = after or EndpointPlace(bucket=0)
        while place.bucket < ENDPOINT_BUCKETS:
            page = await self._store.page(
                place.bucket,
                namespace=namespace,
                after=(namespace, place.endpoint_id),
                limit=limit,
            )
            for one in page:
                if disabled_only and not one.disabled:
                    continue
                found.append(one)
                if len(found) == limit:
                    return found, EndpointPlace(bucket=place.bucket, endpoint_id=one.endpoint_id)
            if len(page) < limit:
                place = EndpointPlace(bucket=place.bucket + 1)
            else:
                place = EndpointPlace(bucket=place.bucket, endpoint_id=page[-1].endpoint_id)
        return found, None

    async def disable(self, named: Named) -> Endpoint:
        """By hand. In force everywhere after `KNOWN_WITHIN`."""
        at = self._now("disable an endpoint")
        if named.address is None and await self._unknown(named):
            violation = Violation(
                field="endpoint_id",
                reason="VALUE_INVALID",
                description="nothing is on record of it: name it by its webhook_url",
            )
            raise InvalidRequest(violations=[violation])

        def disabled(known: Endpoint | None) -> Endpoint | None:
            address = named.address or _address(known or _healthy(named))
            return health.disabled_by_hand(known, address, at)

        return await self._settled(named, disabled)

    async def enable(self, named: Named) -> Endpoint:
        """In force everywhere after `KNOWN_WITHIN`. One that is not disabled stays as it is."""
        at = self._now("enable an endpoint")
        return await self._settled(named, lambda known: health.enabled(known, at))

    async def _settled(self, named: Named, following: Next) -> Endpoint:
        found, changed = await self.advance(named.namespace, named.endpoint_id, following)
        if found is None:
            return _healthy(named)
        if changed:
            log.info(
                "endpoint.changed",
                namespace=named.namespace,
                endpoint_id=named.endpoint_id,
                disabled=found.disabled,
            )
        else:
            await self.publish(found)  # a call before may have died in between
        return found

    async def _unknown(self, named: Named) -> bool:
        return await self._store.read(named.namespace, named.endpoint_id) is None

    def _now(self, operation: str) -> datetime:
        if not self._clock.in_bounds():
            raise NotReady(operation=operation)
        return self._clock.now()


def _address(known: Endpoint) -> Address:
    return Address(namespace=known.namespace, kind=known.kind, address=known.address)


def _healthy(named: Named) -> Endpoint:
    address = named.address
    return Endpoint(
        namespace=named.namespace,
        endpoint_id=named.endpoint_id,
        kind=address.kind if address is not None else "",
        address=address.shown if address is not None else "",
        version=0,
        stamp=0,
    )

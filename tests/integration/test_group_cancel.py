"""CancelGroup over gRPC, on real Cassandra and Redis: who rings, who does not, how fast it is."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import grpc
import pytest
import pytest_asyncio
from tocsin.v1 import reminder_pb2
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceStub

from reminders.coordination import RedisCoordination
from reminders.lifecycle import Reminders
from reminders.localstack import Endpoints
from reminders.model.ledger import OccurrenceStatus
from reminders.platform import Limits, Platform
from reminders.storage.migrate import migrate
from reminders.storage.session import connect
from reminders.storage.settings import StorageSettings
from reminders.storage.store import CassandraStore
from scanner.service import Scanner
from scheduler.server import Scheduler
from scheduler.settings import SchedulerSettings
from tests.contract.coordination.support import RedisServer, find_servers, no_server, start_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tocsin.v1.reminder_service_pb2_grpc import ReminderServiceAsyncStub

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHARDS = 64


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One that the tests may stop answering."""
    servers = find_servers()
    if not servers:
        no_server()
    folder: Path = tmp_path_factory.mktemp("redis")
    server = start_server(servers[0], folder)
    yield server
    server.stop()


@dataclass
class Service:
    """A scheduler on real servers, and a client of it."""

    platform: Platform
    reminders: Reminders
    stub: ReminderServiceAsyncStub

    async def create(self, seconds: int, group_id: str = "", user_id: str = "u") -> str:
        """Its id."""
        request = pb.CreateReminderRequest()
        reminder = request.reminder
        reminder.user_id, reminder.group_id = user_id, group_id
        reminder.schedule.after.seconds = seconds
        reminder.channels.add().log.SetInParent()
        return (await self.stub.CreateReminder(request)).reminder.reminder_id

    async def status(self, reminder_id: str) -> str:
        """As Get shows it."""
        found = await self.stub.GetReminder(pb.GetReminderRequest(reminder_id=reminder_id))
        name = reminder_pb2.ReminderStatus.Name(found.status)
        return name.removeprefix("REMINDER_STATUS_").lower()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Endpoints, redis_server: RedisServer) -> AsyncIterator[Service]:
    """With a keyspace of its own."""
    settings = StorageSettings(
        hosts=tuple(stack.cassandra_hosts.split(",")),
        keyspace=f"groups_{uuid4().hex[:12]}",
        shards=SHARDS,
        request_timeout=timedelta(seconds=10),
    )
    await migrate(settings)
    store = await CassandraStore.connect(settings)
    limits = Limits(shards=SHARDS)
    coordination = await RedisCoordination.connect(
        redis_server.url, lookahead=limits.lookahead, margin=limits.margin
    )
    clock = coordination.clock
    platform = Platform(store=store, coordination=coordination, clock=clock, limits=limits)
    reminders = Reminders(platform)
    scheduler = Scheduler(reminders, clock, SchedulerSettings(address="127.0.0.1:0"))
    port = await scheduler.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Service(platform, reminders, ReminderServiceStub(channel))
    await scheduler.stop(timedelta(0))
    await coordination.close()
    await store.close()
    cluster, session = connect(settings, None)
    session.execute(f"DROP KEYSPACE {settings.keyspace}", timeout=60)
    cluster.shutdown()


@asynccontextmanager
async def scanning(service: Service) -> AsyncIterator[None]:
    """A scanner at work."""
    stop = asyncio.Event()
    scanner = Scanner(service.platform, service.reminders.changes.finish)
    task = asyncio.create_task(scanner.run(stop))
    try:
        yield
        stop.set()
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_cancelled_group_is_silent_and_a_later_member_rings(service: Service) -> None:
    """In under a second, over 64 shards; get, list and total show it at once; the ledger says why
    it did not ring.
    """
    group = f"g{uuid4().hex}"
    near = await service.create(4, group, "a")
    far = await service.create(3600, group, "a")
    other = await service.create(3600, "", "a")
    async with scanning(service):
        await asyncio.sleep(1)  # the scanner has the near one in its heap
        began = time.monotonic()
        answer = await service.stub.CancelGroup(pb.CancelGroupRequest(group_id=group))
        lasted = [time.monotonic() - began]
        later = await service.create(2, group, "b")
        assert await service.status(near) == "cancelled"
        assert await service.status(far) == "cancelled"
        assert await service.status(other) == "scheduled"
        assert await service.status(later) == "scheduled"
        page = await service.stub.ListReminders(pb.ListRemindersRequest(user_id="a"))
        assert [one.reminder_id for one in page.reminders] == [other]
        assert page.total_size == 1
        for _ in range(2):  # the machine may be busy with other tests
            began = time.monotonic()
            await service.stub.CancelGroup(pb.CancelGroupRequest(group_id=f"g{uuid4().hex}"))
            lasted.append(time.monotonic() - began)
        assert min(lasted) < 1.0
        assert answer.cancel_time.ToDatetime().timestamp() > 0
        await _until_ended(service, near)
        assert await _claimed(service, later)
        assert not await _claimed(service, near)


async def test_redis_down_is_unavailable_and_safe_to_repeat(
    service: Service, redis_server: RedisServer
) -> None:
    """The server is stopped and goes on: the repeat answers."""
    group = f"g{uuid4().hex}"
    reminder_id = await service.create(3600, group)
    pid = redis_server.process.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await service.stub.CancelGroup(pb.CancelGroupRequest(group_id=group))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    await service.stub.CancelGroup(pb.CancelGroupRequest(group_id=group))
    assert await service.status(reminder_id) == "cancelled"


async def test_a_group_has_a_name(service: Service) -> None:
    """An empty one is refused, and one that no create would take."""
    for group_id, namespace in (("", ""), ("x" * 129, ""), ("g", "not one")):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await service.stub.CancelGroup(
                pb.CancelGroupRequest(namespace=namespace, group_id=group_id)
            )
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def _until_ended(service: Service, reminder_id: str) -> None:
    """Waits for the trailing scan."""
    async with asyncio.timeout(60):
        while not (rows := await service.platform.store.ledger.page(reminder_id, limit=9)):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    assert [(row.ended, row.reason) for row in rows] == [
        (OccurrenceStatus.CANCELLED, "group_cancelled")
    ]


async def _claimed(service: Service, reminder_id: str) -> bool:
    stored: Any = await service.platform.store.records.read(reminder_id)
    (entry,) = stored.live
    found = await service.platform.coordination.claims.claimed(entry.key.shard, [entry])
    return entry.dedupe_id in found.claimed

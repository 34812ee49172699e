"""Whatever process dies, nothing is lost; and what comes twice carries the same key."""

from datetime import UTC, datetime, timedelta

import grpc
from tocsin.v1 import reminder_pb2, reminder_service_pb2, reminder_service_pb2_grpc

from tests.acceptance.system import SERVICES, Receiver, System


def _create(tocsin: System, receiver: Receiver, path: str, delays_s: list[float]) -> None:
    at = datetime.now(UTC)
    requests = []
    for delay in delays_s:
        reminder = reminder_pb2.Reminder(user_id=f"crash-{path}")
        reminder.schedule.at.FromDatetime((at + timedelta(seconds=delay)).replace(tzinfo=None))
        reminder.channels.add().webhook.url = receiver.url(path)
        requests.append(reminder_service_pb2.CreateReminderRequest(reminder=reminder))
    with grpc.insecure_channel(tocsin.environment["TOCSIN_GRPC_ADDRESS"]) as channel:
        stub = reminder_service_pb2_grpc.ReminderServiceStub(channel)
        answer = stub.BatchCreateReminders(
            reminder_service_pb2.BatchCreateRemindersRequest(requests=requests)
        )
    assert all(result.HasField("created") for result in answer.results)


def test_a_killed_scanner_is_replaced_and_nothing_is_lost(
    tocsin: System, receiver: Receiver
) -> None:
    """Kill -9 in the middle of a stream of fires: the other scanner takes over in under 10 s."""
    _create(tocsin, receiver, "takeover", [2 + i * 0.1 for i in range(150)])
    receiver.wait("takeover", 20)
    tocsin.kill("scanner")
    requests = receiver.wait("takeover", 150)
    worst = max(r.lateness_s for r in requests)
    assert min(r.lateness_s for r in requests) >= 0
    assert worst < 10
    tocsin.start("scanner")


def test_everything_killed_and_started_again_loses_nothing(
    tocsin: System, receiver: Receiver
) -> None:
    """Some were under way, some ahead, some came due while nothing ran."""
    _create(tocsin, receiver, "restart", [1 + i * 0.1 for i in range(200)])
    receiver.wait("restart", 10)
    tocsin.kill(*SERVICES)
    tocsin.start(*SERVICES)
    requests = receiver.wait("restart", 200, patience_s=120)
    assert min(r.lateness_s for r in requests) >= 0
    by_reminder = {r.body["reminderId"]: r.key for r in requests}
    assert all(by_reminder[r.body["reminderId"]] == r.key for r in requests)


def test_sigterm_drains_and_exits_cleanly(tocsin: System, receiver: Receiver) -> None:
    """No service needs a second signal; what was due is delivered by those that come after."""
    _create(tocsin, receiver, "drain", [1 + i * 0.05 for i in range(100)])
    receiver.wait("drain", 5)
    assert tocsin.stop("scanner", "dispatcher", "expander", "scheduler") == [0, 0, 0, 0]
    tocsin.start("scanner", "dispatcher", "expander", "scheduler")
    requests = receiver.wait("drain", 100)
    assert len(requests) == 100, "an orderly stop repeats nothing"

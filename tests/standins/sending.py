"""One attempt, ready to be given to a sender."""

from datetime import UTC, datetime
from typing import Any

from dispatcher.channels.port import Outgoing
from reminders.model.definition import Channel, Target
from reminders.model.entry import Occurrence

NOW = datetime(2026, 3, 29, 1, 0, 1, tzinfo=UTC)
KEY = "dlv_0123456789abcdef0123456789abcdef01234567"


def outgoing(target: Target, params_json: str = "{}", **fields: Any) -> Outgoing:
    """The gap in Paris: 02:30 was promised as 03:00."""
    given: dict[str, Any] = {
        "delivery_key": KEY,
        "channel": Channel(channel_id="c1", target=target),
        "namespace": "default",
        "reminder_id": "r1",
        "occurrence": Occurrence(
            occurrence_id="20260329T023000",
            nominal_local=datetime.fromisoformat("2026-03-29T02:30:00"),
            planned_local=datetime.fromisoformat("2026-03-29T03:00:00"),
            zone="Europe/Paris",
            planned_at=datetime(2026, 3, 29, 1, tzinfo=UTC),
            fire_at=datetime(2026, 3, 29, 1, tzinfo=UTC),
            zone_data="2026a",
        ),
        "attempt": 1,
        "user_id": "u1",
        "template_id": None,
        "params_json": params_json,
    }
    return Outgoing(**(given | fields))

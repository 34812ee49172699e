"""A receiver is told that it is a replay; nobody else can say so."""

from datetime import UTC, datetime

import pytest

from dispatcher.channels.port import Outgoing
from dispatcher.channels.webhook import headers_of
from reminders.model.definition import Channel, Webhook
from reminders.model.entry import Occurrence

AT = datetime(2026, 12, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(("replay", "said"), [(True, "1"), (False, None)])
def test_only_a_replay_is_marked(replay: bool, said: str | None) -> None:
    """Whatever the reminder's own headers say."""
    local = AT.replace(tzinfo=None)
    outgoing = Outgoing(
        delivery_key="dlv_1",
        channel=Channel(channel_id="hook", target=Webhook(url="https://example.com/")),
        namespace="ns",
        reminder_id="r",
        occurrence=Occurrence(
            occurrence_id="20261201T090000Z",
            nominal_local=local,
            planned_local=local,
            zone="UTC",
            planned_at=AT,
            fire_at=AT,
            zone_data="2026a",
        ),
        attempt=2,
        user_id="u",
        template_id=None,
        params_json="{}",
        replay=replay,
    )
    headers = headers_of(outgoing, {"X-Tocsin-Replay": "0", "X-Own": "a"})
    assert headers.get("x-tocsin-replay") == said
    assert "X-Tocsin-Replay" not in headers
    assert headers["X-Own"] == "a"

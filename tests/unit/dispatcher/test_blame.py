"""Whose fault a failure is."""

import pytest

from dispatcher.blame import LATELY, SEVERAL, Fault, Ways, fault, is_gone
from dispatcher.channels.port import Outcome
from tests.unit.lifecycle.world import NOON, SECOND


@pytest.mark.parametrize(
    ("kind", "outcome", "error_class", "whose"),
    [
        ("webhook", Outcome.TRANSIENT, "http_5xx", Fault.ENDPOINT),
        ("webhook", Outcome.PERMANENT, "http_3xx", Fault.ENDPOINT),
        ("webhook", Outcome.RATE_LIMITED, "http_429", Fault.OURS),
        ("webhook", Outcome.UNKNOWN, "timeout", Fault.WAY),
        ("webhook", Outcome.TRANSIENT, "dns", Fault.WAY),
        ("webhook", Outcome.PERMANENT, "secret_unknown", Fault.OURS),
        ("webhook", Outcome.PERMANENT, "template_invalid", Fault.OURS),
        ("webhook", Outcome.PERMANENT, "url_forbidden", Fault.OURS),
        ("webhook", Outcome.TRANSIENT, "internal", Fault.OURS),
        ("email", Outcome.PERMANENT, "smtp_550", Fault.WAY),
        ("email", Outcome.TRANSIENT, "smtp_451", Fault.OURS),
        ("email", Outcome.TRANSIENT, "provider_auth", Fault.OURS),
        ("email", Outcome.TRANSIENT, "connect", Fault.OURS),
        ("sms", Outcome.PERMANENT, "address_invalid", Fault.WAY),
        ("sms", Outcome.UNKNOWN, "http_5xx", Fault.OURS),
        ("push", Outcome.PERMANENT, "unregistered", Fault.WAY),
    ],
)
def test_only_some_errors_are_the_endpoints(
    kind: str, outcome: Outcome, error_class: str, whose: Fault
) -> None:
    """What a provider or we are to blame for is nobody else's."""
    assert fault(kind, outcome, error_class) is whose


def test_the_way_is_to_blame_where_nothing_comes_through_for_anybody() -> None:
    """One or two can't tell; one success among them can."""
    ways = Ways()
    asked = [ways.blocked("webhook", f"ep_{number}", NOON) for number in range(SEVERAL + 2)]
    assert asked == [False] * (SEVERAL - 1) + [True] * 3
    assert ways.blocked("webhook", "ep_0", NOON)
    assert not ways.blocked("email", "ep_0", NOON)
    ways.worked("webhook", NOON)
    assert not ways.blocked("webhook", "ep_9", NOON + LATELY)
    late = NOON + LATELY + SECOND
    asked = [ways.blocked("webhook", f"ep_{number}", late) for number in range(SEVERAL)]
    assert asked == [False] * (SEVERAL - 1) + [True]


def test_one_endpoint_alone_is_to_blame_itself() -> None:
    """However often it fails."""
    ways = Ways()
    assert not any(ways.blocked("webhook", "ep_1", NOON) for _ in range(10))


def test_gone_is_said_by_webhooks_and_push_services() -> None:
    """Of a URL with a query it is said of that one only."""
    assert is_gone("webhook", "http_410", exact=True)
    assert not is_gone("webhook", "http_410", exact=False)
    assert not is_gone("webhook", "http_4xx", exact=True)
    assert is_gone("push", "unregistered", exact=True)
    assert not is_gone("email", "smtp_550", exact=True)

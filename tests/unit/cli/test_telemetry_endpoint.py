"""What a process says about itself: logs, metrics, readiness."""

import io
import json
import logging
from collections.abc import Iterator

import aiohttp
import pytest
import structlog
from prometheus_client import CollectorRegistry

from reminders.telemetry.endpoint import endpoint
from reminders.telemetry.logs import configure_logging
from reminders.telemetry.metrics import meter_provider

LOOPBACK = "127.0.0.1"


@pytest.fixture
def restored_logging() -> Iterator[None]:
    """Logging as it was before."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


async def test_ready_answers_503_with_the_reasons_until_there_are_none() -> None:
    """An orchestrator reads the status, a person the reasons; /live is 200 all the while."""
    problems = ["clock drifts", "no lease"]
    async with (
        endpoint(LOOPBACK, 0, lambda: problems, registry=CollectorRegistry()) as port,
        aiohttp.ClientSession(f"http://{LOOPBACK}:{port}") as session,
    ):
        async with session.get("/ready") as answer:
            assert answer.status == 503
            assert await answer.json() == {"ready": False, "problems": problems}
        async with session.get("/live") as answer:
            assert answer.status == 200
        problems.clear()
        async with session.get("/ready") as answer:
            assert answer.status == 200
            assert await answer.json() == {"ready": True, "problems": []}


async def test_metrics_are_exposed_with_the_services_name() -> None:
    """A histogram of OpenTelemetry's arrives as Prometheus's text."""
    registry = CollectorRegistry()
    provider = meter_provider(registry, service="scanner", instance="i1")
    histogram = provider.get_meter("tocsin.scanner").create_histogram(
        "tocsin_lateness", unit="s", explicit_bucket_boundaries_advisory=[0.01, 0.025, 0.05]
    )
    histogram.record(0.02, {"lane": "live"})
    async with (
        endpoint(LOOPBACK, 0, list, registry=registry) as port,
        aiohttp.ClientSession(f"http://{LOOPBACK}:{port}") as session,
        session.get("/metrics") as answer,
    ):
        text = await answer.text()
        assert answer.content_type == "text/plain"
    provider.shutdown()
    assert 'tocsin_lateness_seconds_bucket{lane="live",le="0.01"} 0.0' in text
    assert 'tocsin_lateness_seconds_bucket{lane="live",le="0.025"} 1.0' in text
    assert 'service_name="scanner"' in text


async def test_a_port_that_is_taken_is_an_oserror() -> None:
    """So that the process can say which setting is to blame."""
    async with endpoint(LOOPBACK, 0, list) as port:
        with pytest.raises(OSError, match="in use"):
            async with endpoint(LOOPBACK, port, list):
                pass


def test_a_log_line_is_an_event_with_fields_and_who_said_it(restored_logging: None) -> None:
    """JSON, one line, whatever the values."""
    stream = io.StringIO()
    configure_logging(service="scanner", instance="i1", level="info", stream=stream)
    log = structlog.get_logger()
    log.info("slice_read", shard=3, entries=500, name="a\nb")
    log.debug("not_shown")
    [line] = stream.getvalue().splitlines()
    content = json.loads(line)
    assert content.pop("timestamp").endswith("Z")
    assert content == {
        "level": "info",
        "event": "slice_read",
        "service": "scanner",
        "instance": "i1",
        "shard": 3,
        "entries": 500,
        "name": "a\nb",
    }


def test_a_librarys_line_becomes_an_event_of_ours(restored_logging: None) -> None:
    """Its prose is a field; a context may name another service; exceptions come along."""
    stream = io.StringIO()
    configure_logging(service="in-memory", instance="i1", stream=stream)
    structlog.contextvars.bind_contextvars(service="dispatcher")
    try:
        int("bad")
    except ValueError:
        logging.getLogger("some.library").exception("went %s", "wrong")
    logging.getLogger("grpc").info("chatter")
    [line] = stream.getvalue().splitlines()
    content = json.loads(line)
    assert (content["event"], content["logger"]) == ("library.log", "some.library")
    assert (content["message"], content["service"]) == ("went wrong", "dispatcher")
    assert "ValueError: invalid literal" in content["exception"]


def test_people_get_lines_without_json_and_tracebacks_without_values(
    restored_logging: None,
) -> None:
    """Local variables may hold passwords."""
    stream = io.StringIO()
    configure_logging(service="s", instance="i", style="console", stream=stream)
    log = structlog.get_logger()
    password = "hunter2"
    try:
        int(password + "x")
    except ValueError:
        log.exception("failed", shard=1)
    assert "shard=1" in stream.getvalue()
    assert "password =" not in stream.getvalue()
    assert "Traceback" in stream.getvalue()

"""Logs to stderr, ours and the libraries' alike."""

import logging
import sys
from collections.abc import Callable
from typing import Any, Literal, TextIO

import msgspec
import structlog
from structlog.typing import EventDict, Processor

# Chatty below WARNING, and of no use to whoever operates Tocsin.
_QUIET_LIBRARIES = ("aiohttp.access", "asyncio", "cassandra", "grpc")


def configure_logging(
    *,
    service: str,
    instance: str,
    level: str = "info",
    style: Literal["json", "console"] = "json",
    stream: TextIO | None = None,
) -> None:
    """Logs from here on carry `service` and `instance`, unless the context binds others.

    Replaces what an earlier call set up. The JSON keys are `timestamp` (UTC), `level`, `event`,
    `service`, `instance` and those of the event.
    """
    output = stream or sys.stderr
    # A person reads one process at a time, and knows which.
    names = {"service": service} | ({"instance": instance} if style == "json" else {})
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _identity(**names),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    rendering = _rendering(style, colors=output.isatty())
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(output),
        cache_logger_on_first_use=False,  # a later call must reach loggers made at import
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(), _library_event],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(handlers=[handler], level=threshold, force=True)
    logging.captureWarnings(capture=True)
    for name in _QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))


def _identity(**names: str) -> Processor:
    """Says who speaks; several services in one process bind their own name instead."""

    def add(_logger: Any, _method: str, event: EventDict) -> EventDict:
        for key, value in names.items():
            event.setdefault(key, value)
        return event

    return add


def _library_event(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A library's message is prose: it becomes a field of a constant event."""
    record: logging.LogRecord = event["_record"]
    event["logger"], event["message"] = record.name, event["event"]
    event["event"] = "library.log"
    return event


def _rendering(style: Literal["json", "console"], *, colors: bool) -> list[Processor]:
    if style == "console":
        plain = structlog.dev.plain_traceback  # the rich one shows locals, passwords among them
        return [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(_dumps)]


def _dumps(event: EventDict, default: Callable[[Any], Any] | None = None, **_: Any) -> str:
    first = {key: event.get(key) for key in ("timestamp", "level", "event")}
    return msgspec.json.encode(first | dict(event), enc_hook=default or str).decode()

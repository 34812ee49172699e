"""Renders messages from the operator's templates, where there is one.

    {templates_dir}/{namespace}/{template_id}/{channel}/{locale}/{part}
    …/default/appointment/email/fr/subject.txt

`locale` is the receiver's (`zh-Hant-TW`), else what is left of it without its last parts
(`zh-Hant`, `zh`: RFC 4647 3.4), else `default`; all parts of one message come from one folder. It
stands in the recipient record, else in `locale` of the params. Parts: `subject.txt`, `text.txt` and
`html.html` of an e-mail; `text.txt` of an SMS; `title.txt` and `text.txt` of a push message;
`payload.json` of a webhook.

Templates see the reminder's params by their names, and `params` and `reminder` (`facts_of`). They
are Jinja2 in its sandbox; in `.html` everything is escaped, in `payload.json` write `{{ name|tojson
}}`. A name that is not there is an error, not an empty text: nobody is told "You owe  €". CPU time
and size are bounded, so that one template delays nobody else: rendering runs in threads of its own,
is stopped where it is, and `template_bounds` looks at what one step would make.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import jinja2
import msgspec
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dispatcher.channels.port import Outcome, Outgoing, Result, printable
from dispatcher.channels.template_bounds import bounded_filters, check_method, check_repeat, kept

MAX_PART_BYTES = 64 * 1024
MAX_CPU = timedelta(milliseconds=250)
"""For all parts of one message."""
DEFAULT_LOCALE = "default"
_THREADS = 2
_SEGMENT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class TemplateError(Exception):
    """It could not be rendered; `result` says how the attempt ends."""

    def __init__(self, error_class: str, said: str, outcome: Outcome = Outcome.PERMANENT) -> None:
        super().__init__(error_class, said)
        self.result = Result(outcome=outcome, error_class=error_class, excerpt=printable(said))


class Templates:
    """Of one folder; `None`: there are none. Shared by all channels; `close` it."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        if folder is None:
            return
        self._environment = _Environment(
            loader=jinja2.FileSystemLoader(folder),
            autoescape=lambda name: name is not None and name.endswith(".html"),
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=False,
        )
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="templates")

    def close(self) -> None:
        """Ends its threads; what runs is stopped by its own bound."""
        if self._folder is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def render(
        self, outgoing: Outgoing, channel: str, parts: Iterable[str]
    ) -> Mapping[str, str]:
        """The parts that the template has; empty where there is no template.

        Raises:
            TemplateError: `template_variable_missing`, `template_invalid` or `template_too_large`,
                which stay so; `template_too_slow`, which may pass.
        """
        if self._folder is None or outgoing.template_id is None:
            return {}
        segments = (outgoing.namespace, outgoing.template_id, channel)
        if not all(map(_is_segment, segments)):
            return {}
        loop = asyncio.get_running_loop()
        call = (self._folder, self._environment, segments, outgoing, tuple(parts))
        return await loop.run_in_executor(self._threads, _render, *call)


NO_TEMPLATES = Templates(None)


class _CodeGenerator(CodeGenerator):
    """Has the outcome of each `~` looked at."""

    def visit_Concat(self, node: jinja2.nodes.Concat, frame: Frame) -> None:  # noqa: N802 - Jinja's
        """One `a ~ b ~ c`."""
        self.write("environment.kept(")
        super().visit_Concat(node, frame)
        self.write(")")


def _concat(parts: Iterable[str]) -> str:
    """Of many that are small each."""
    return str(kept("".join(parts)))


class _Environment(ImmutableSandboxedEnvironment):
    """Of Jinja2's sandbox what it leaves open: texts of any size by one operator or call."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))
    code_generator_class = _CodeGenerator
    concat = staticmethod(_concat)  # of `set` blocks, macros, …

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.filters = bounded_filters(self.filters)

    kept = staticmethod(kept)

    def call(
        self, context: jinja2.runtime.Context, called: Any, /, *args: Any, **named: Any
    ) -> Any:
        """Of whatever a template calls, but for filters."""
        check_method(called, *args, **named)
        return super().call(context, called, *args, **named)

    def call_binop(
        self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any
    ) -> Any:
        if operator == "%" and isinstance(left, str):
            raise SecurityError("% on a text: use ~ or the filter `format` with short widths")
        if operator == "**" and not (abs(left) < 10**6 and abs(right) <= 64):
            raise SecurityError("** with so large numbers")
        if operator == "*":
            check_repeat(left, right)
            check_repeat(right, left)
        return kept(super().call_binop(context, operator, left, right))


def _is_segment(name: str) -> bool:
    """Fit to be a folder's name: no way to leave the templates' own."""
    return bool(name) and not name.startswith(".") and _SEGMENT.issuperset(name)


def _render(
    folder: Path,
    environment: jinja2.Environment,
    segments: tuple[str, ...],
    outgoing: Outgoing,
    parts: tuple[str, ...],
) -> dict[str, str]:
    """In a thread."""
    params = _decode(outgoing.params_json)
    locale = outgoing.locale or params.get("locale")
    place = next(
        (each for each in _places(segments, locale) if (folder / each).is_dir()),
        None,
    )
    if place is None:
        return {}
    facts = facts_of(outgoing, params)
    with _errors(place):
        found = {
            part: environment.get_template(f"{place}/{part}")
            for part in parts
            if (folder / place / part).is_file()
        }
        with _bounded(MAX_CPU):
            return {part: _text(each.generate(facts), part) for part, each in found.items()}


def _places(segments: tuple[str, ...], locale: object) -> Iterator[str]:
    base = "/".join(segments)
    if isinstance(locale, str) and _is_segment(locale):
        yield f"{base}/{locale}"
        subtags = locale.replace("_", "-").split("-")
        yield from (f"{base}/{'-'.join(subtags[:count])}" for count in range(len(subtags), 0, -1))
    yield f"{base}/{DEFAULT_LOCALE}"


def facts_of(outgoing: Outgoing, params: Mapping[str, Any]) -> dict[str, Any]:
    """What a template sees."""
    occurrence, to = outgoing.occurrence, outgoing.subscriber
    of_topic: dict[str, Any] = {}
    if to is not None:
        of_topic = {
            "topic_id": to.topic_id,
            "subscriber_id": to.subscriber_id,
            "subscriber_local": outgoing.subscriber_local or occurrence.planned_local,
            "subscriber_time_zone": to.time_zone or occurrence.zone,
        }
    return {
        **params,
        **of_topic,
        "params": params,
        "reminder": {
            "id": outgoing.reminder_id,
            "user_id": outgoing.user_id,
            "namespace": outgoing.namespace,
            "delivery_key": outgoing.delivery_key,
            "occurrence_id": occurrence.occurrence_id,
            "local": occurrence.planned_local,
            "time_zone": occurrence.zone,
            "at": occurrence.planned_at,
        },
    }


def _text(chunks: Iterable[str], part: str) -> str:
    found: list[str] = []
    size = 0
    for chunk in chunks:
        size += len(chunk) if chunk.isascii() else len(chunk.encode())
        if size > MAX_PART_BYTES:
            raise TemplateError("template_too_large", f"{part} has over {MAX_PART_BYTES} bytes")
        found.append(chunk)
    return "".join(found)


@contextmanager
def _errors(place: str) -> Iterator[None]:
    """The words of this module for whatever Jinja and the template's own code raise."""
    try:
        yield
    except TemplateError:
        raise
    except jinja2.UndefinedError as error:
        raise TemplateError("template_variable_missing", f"{place}: {error.message}") from error
    except jinja2.TemplateSyntaxError as error:
        said = f"{error.name or place}, line {error.lineno}: {error.message}"
        raise TemplateError("template_invalid", said) from error
    except Exception as error:  # a template is a program: it can raise anything
        said = f"{place}: {type(error).__name__}: {error}"
        raise TemplateError("template_invalid", said) from error


@contextmanager
def _bounded(cpu: timedelta) -> Iterator[None]:
    """Stops this thread's Python code after so much CPU time of its own.

    Of its own, so that a busy machine makes no template fail. Every line and every call of the
    template's compiled code passes the trace function.
    """
    until = time.thread_time() + cpu.total_seconds()

    def trace(_frame: FrameType, _event: str, _argument: object) -> Callable[..., Any]:
        if time.thread_time() > until:
            raise TemplateError(
                "template_too_slow", f"it takes over {cpu.total_seconds()} s", Outcome.TRANSIENT
            )
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)

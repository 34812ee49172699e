"""The arguments and flags that commands share. Groups of flags are dataclasses: `with_options` puts
them on a command.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Annotated, Any, get_type_hints

from typer import Argument, Option

type_hints = functools.partial(get_type_hints, include_extras=True)

_WHEN = "When (exactly one of --in, --at, --local, --rrule, --cron)"
_WHERE = "Where to (at least one)"
_WHAT = "What"
_POLICIES = "Policies (the server's defaults unless given)"
_CALL = "Call"

ReminderId = Annotated[str, Argument(metavar="REMINDER", help="As `create` printed it.")]
Etag = Annotated[
    str | None, Option("--etag", help="Only this version; `get` shows it.", rich_help_panel=_CALL)
]
RequestId = Annotated[
    str | None,
    Option("--request-id", help="The same for retries of this very call.", rich_help_panel=_CALL),
]
PageSize = Annotated[int, Option("--page-size", min=1, max=1000, help="How many at most.")]
PageToken = Annotated[str, Option("--page-token", help="Where the page before ended.")]


def with_options(*groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of these dataclasses.

    The command gets an instance of each first, in order, then its own parameters by keyword.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def call(**given: Any) -> None:
            instances = [
                group(**{each.name: given.pop(each.name) for each in fields(group)})
                for group in groups
            ]
            command(*instances, **given)

        own = list(inspect.signature(command, eval_str=True).parameters.values())[len(groups) :]
        flags = [parameter for group in groups for parameter in _parameters(group)]
        signature = inspect.Signature([*flags, *own])
        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__annotations__ = {
            each.name: each.annotation for each in signature.parameters.values()
        }
        return call

    return decorate


def _parameters(group: type[Any]) -> list[inspect.Parameter]:
    hints = type_hints(group)
    found = []
    for each in fields(group):
        default: Any = inspect.Parameter.empty
        if each.default_factory is not MISSING:
            default = each.default_factory()
        elif each.default is not MISSING:
            default = each.default
        found.append(
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=hints[each.name],
            )
        )
    return found


def _option(flag: str, text: str, panel: str, **more: Any) -> Any:
    return Option(flag, help=text, rich_help_panel=panel, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Whom to call, and how to print the answer."""

    address: Annotated[
        str | None,
        _option(
            "--address",
            "host:port of the scheduler; else from tocsin.toml, else 127.0.0.1:50051.",
            _CALL,
            envvar="TOCSIN_GRPC_ADDRESS",
        ),
    ] = None
    namespace: Annotated[str, _option("--namespace", "The tenant.", _CALL)] = "default"
    json: Annotated[bool, _option("--json", "The answer as JSON, for programs.", _CALL)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """The schedule."""

    after: Annotated[str | None, _option("--in", "From now, such as 5s, 2h30m or P1D.", _WHEN)] = (
        None
    )
    at: Annotated[
        str | None, _option("--at", "An instant, such as 2026-12-01T09:00:00Z.", _WHEN)
    ] = None
    local: Annotated[
        str | None, _option("--local", "A wall-clock time such as 09:00, in --zone.", _WHEN)
    ] = None
    date: Annotated[
        str | None, _option("--date", "Of --local, such as 2026-12-24; else the next day.", _WHEN)
    ] = None
    rrule: Annotated[
        str | None, _option("--rrule", "RFC 5545, such as FREQ=WEEKLY;BYDAY=MO.", _WHEN)
    ] = None
    cron: Annotated[str | None, _option("--cron", "Five fields, or @daily.", _WHEN)] = None
    start: Annotated[
        str | None, _option("--start", "First local time of a rule: 2026-12-07T09:00.", _WHEN)
    ] = None
    zone: Annotated[
        str | None,
        _option("--zone", "IANA name such as Europe/Paris; else the user's record's.", _WHEN),
    ] = None
    exdate: Annotated[
        list[str], _option("--exdate", "A local time to leave out; repeatable.", _WHEN)
    ] = field(default_factory=list)
    rdate: Annotated[list[str], _option("--rdate", "A local time to add; repeatable.", _WHEN)] = (
        field(default_factory=list)
    )
    count: Annotated[int | None, _option("--count", "End after so many.", _WHEN, min=1)] = None
    until: Annotated[str | None, _option("--until", "End at this instant.", _WHEN)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Channels and content."""

    webhook: Annotated[list[str], _option("--webhook", "URL to POST to; repeatable.", _WHERE)] = (
        field(default_factory=list)
    )
    header: Annotated[
        list[str], _option("--header", "name=value for the webhooks; repeatable.", _WHERE)
    ] = field(default_factory=list)
    secret: Annotated[
        str | None, _option("--secret", "Name of the secret that signs the webhooks.", _WHERE)
    ] = None
    email: Annotated[list[str], _option("--email", "Address to mail to; repeatable.", _WHERE)] = (
        field(default_factory=list)
    )
    subject: Annotated[str | None, _option("--subject", "Of the e-mails.", _WHERE)] = None
    sms: Annotated[
        list[str], _option("--sms", "Number such as +33123456789; repeatable.", _WHERE)
    ] = field(default_factory=list)
    push: Annotated[list[str], _option("--push", "Device token; repeatable.", _WHERE)] = field(
        default_factory=list
    )
    provider: Annotated[
        str | None, _option("--provider", "Of the device tokens: fcm | apns.", _WHERE)
    ] = None
    by: Annotated[
        list[str],
        _option("--by", "email | sms | push, where the user's record says; repeatable.", _WHERE),
    ] = field(default_factory=list)
    log: Annotated[bool, _option("--log", "A line in the dispatcher's log.", _WHERE)] = False
    param: Annotated[
        list[str], _option("--param", "key=text for the payload; repeatable.", _WHAT)
    ] = field(default_factory=list)
    params: Annotated[str | None, _option("--params", "The payload as a JSON object.", _WHAT)] = (
        None
    )
    template: Annotated[str | None, _option("--template", "Rendered if it exists.", _WHAT)] = None
    label: Annotated[
        list[str], _option("--label", "key=value, for yourself; repeatable.", _WHAT)
    ] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class What(Content):
    """The same, and for whom."""

    user: Annotated[
        str | None, _option("--user", "Whom to remind: your id of the user.", _WHAT)
    ] = None
    topic: Annotated[
        str | None, _option("--topic", "Or all who subscribe to this topic.", _WHAT)
    ] = None
    group: Annotated[str | None, _option("--group", "A campaign, cancelled as a whole.", _WHAT)] = (
        None
    )
    dedup_key: Annotated[
        str | None, _option("--dedup-key", "At most one reminder for a key.", _WHAT)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewContent(Content):
    """The same, of which only what is given replaces anything."""

    user: Annotated[str | None, _option("--user", "Whom to remind from now on.", _WHAT)] = None
    clear: Annotated[
        list[str],
        _option("--clear", "A field to set to its default, as policies.gap; repeatable.", _WHAT),
    ] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarFlags:
    """Awkward dates."""

    gap: Annotated[str | None, _option("--gap", "next-valid | shift-forward | skip", _POLICIES)] = (
        None
    )
    overlap: Annotated[str | None, _option("--overlap", "earlier | later | both", _POLICIES)] = None
    missing_day: Annotated[
        str | None,
        _option(
            "--missing-day", "skip | clamp | next-business-day | previous-business-day", _POLICIES
        ),
    ] = None
    holidays: Annotated[str | None, _option("--holidays", "FR, US-CA, …", _POLICIES)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFlags(CalendarFlags):
    """The same, lateness, failures."""

    catch_up: Annotated[str | None, _option("--catch-up", "latest | all | none", _POLICIES)] = None
    catch_up_max_age: Annotated[
        str | None, _option("--catch-up-max-age", "Of a missed occurrence.", _POLICIES)
    ] = None
    expire_after: Annotated[
        str | None, _option("--expire-after", "How late a one-shot may ring.", _POLICIES)
    ] = None
    jitter: Annotated[str | None, _option("--jitter", "Spread by up to ±30s.", _POLICIES)] = None
    max_attempts: Annotated[
        int | None, _option("--max-attempts", "For one delivery.", _POLICIES, min=1)
    ] = None
    retry_schedule: Annotated[
        str | None, _option("--retry-schedule", "Longest waits: 0s,5s,5m,30m", _POLICIES)
    ] = None
    retry_max_age: Annotated[
        str | None, _option("--retry-max-age", "Of the last attempt.", _POLICIES)
    ] = None

"""The entry points: one for each request message."""

import re
from datetime import datetime

import msgspec
from msgspec import Struct
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1.reminder_pb2 import Reminder

from reminders.errors import InvalidRequest, Violation
from reminders.lifecycle import Call, CreateRequest
from reminders.lifecycle.previewing import PreviewRequest
from reminders.lifecycle.problems import Problems, Reason, check_length, optional, shown
from reminders.lifecycle.replaying import Asked
from reminders.lifecycle.request_limits import DEFAULT_REQUEST_LIMITS, RequestLimits
from reminders.model.definition import Definition, Schedule
from reminders.recurrence.errors import KeyInvalid
from reminders.recurrence.identity import parse_occurrence_key
from scheduler.tokens import unseal, version_of
from scheduler.validation.backfills import Range, read_range
from scheduler.validation.deployment import DEFAULT_CHANNEL_RULES, ChannelRules, Deployment
from scheduler.validation.masks import read_mask
from scheduler.validation.policies import DEFAULTS
from scheduler.validation.previews import read_preview
from scheduler.validation.reminders import DEFAULT_NAMESPACE, ID_BYTES, read_definition
from scheduler.validation.replays import read_replay
from scheduler.validation.schedules import read_schedule

REMINDER_ID_BYTES = 40
PAUSE_REASON_BYTES = 512
MAX_BATCH = 500
DEFAULT_PAGE = 50
DEFAULT_EXPLAINED, MAX_EXPLAINED = 20, 100
MAX_PAGE = 1_000

_NAMESPACE = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII).fullmatch


class Name(Struct, frozen=True, kw_only=True):
    """Which reminder."""

    namespace: str
    reminder_id: str


class Window(Struct, frozen=True, kw_only=True):
    """Which part of a list."""

    scope: tuple[str, ...]
    """What the list's page tokens are bound to."""
    limit: int
    position: str
    """Empty: from the start."""


class ChangeRequest(Struct, frozen=True, kw_only=True):
    """Which version to change, and the id of this very call."""

    name: Name
    expected_version: int | None
    request_id: str | None
    schedule: Schedule | None = None
    """Of a reschedule."""
    paths: tuple[str, ...] = ()
    """Of an update."""

    @property
    def call(self) -> Call:
        """As the use cases take it."""
        return Call(
            namespace=self.name.namespace,
            reminder_id=self.name.reminder_id,
            expected_version=self.expected_version,
            request_id=self.request_id,
        )


class Validator:
    """Reads requests by the rules of this deployment. Every method raises `InvalidRequest`."""

    def __init__(
        self,
        *,
        allow_loopback_http: bool,
        limits: RequestLimits = DEFAULT_REQUEST_LIMITS,
        channels: ChannelRules = DEFAULT_CHANNEL_RULES,
    ) -> None:
        self._deployment = Deployment(
            allow_loopback_http=allow_loopback_http, limits=limits, channels=channels
        )

    def create(self, request: pb.CreateReminderRequest, now: datetime) -> CreateRequest:
        """One reminder to make."""
        problems = Problems()
        reminder = request.reminder
        namespace = _namespace(reminder.namespace, "reminder.namespace", problems)
        if not request.HasField("reminder"):
            problems.required("reminder", "what to remind of, whom and when")
            problems.raise_if_any()
        definition = read_definition(
            reminder, now, "reminder", problems, deployment=self._deployment
        )
        request_id = optional(request.request_id, ID_BYTES, "request_id", problems)
        keyed = request_id is not None or (definition is not None and definition.dedup_key)
        too_late = tuple(problems.found) if keyed and problems.only(Reason.TIME_IN_PAST) else ()
        if definition is None or len(too_late) < len(problems.found):
            raise InvalidRequest(violations=problems.found)
        return CreateRequest(
            namespace=namespace,
            definition=definition,
            request_id=request_id,
            validate_only=request.validate_only,
            too_late=too_late,
        )

    def batch(self, request: pb.BatchCreateRemindersRequest) -> None:
        """The batch as such, not what is in it."""
        count = len(request.requests)
        problems = Problems()
        if not count:
            problems.required("requests", f"1 to {MAX_BATCH} of them")
        elif count > MAX_BATCH:
            problems.add(
                "requests",
                Reason.BATCH_TOO_LARGE,
                f"has {count} items; at most {MAX_BATCH} are taken: send several batches",
            )
        problems.raise_if_any()

    def get(self, request: pb.GetReminderRequest) -> Name:
        """Which reminder."""
        problems = Problems()
        name = _name(request.namespace, request.reminder_id, problems)
        problems.raise_if_any()
        return name

    def list_reminders(self, request: pb.ListRemindersRequest) -> tuple[str, str, Window]:
        """Namespace, user, and which part of the list."""
        problems = Problems()
        namespace = _namespace(request.namespace, "namespace", problems)
        if not request.user_id:
            problems.required("user_id", "whose reminders to list")
        check_length(request.user_id, ID_BYTES, "user_id", problems)
        window = _window(request, ("reminders", namespace, request.user_id), problems)
        problems.raise_if_any()
        return namespace, request.user_id, window

    def cancel(self, request: pb.CancelReminderRequest) -> ChangeRequest:
        """What to cancel."""
        problems = Problems()
        change = _change(request, None, problems)
        problems.raise_if_any()
        return change

    def reschedule(self, request: pb.RescheduleReminderRequest, now: datetime) -> ChangeRequest:
        """What to move, and where to. The stored policies are not known here: defaults stand in."""
        problems = Problems()
        limits = self._deployment.limits
        schedule = read_schedule(request.schedule, DEFAULTS, now, "schedule", problems, limits)
        change = _change(request, schedule, problems)
        problems.raise_if_any()
        return change

    def update(self, request: pb.UpdateReminderRequest) -> ChangeRequest:
        """What to change. What comes of it is judged by `merged`, when it meets what is stored."""
        problems = Problems()
        reminder = request.reminder
        name = _name(reminder.namespace, reminder.reminder_id, problems, under="reminder.")
        change = _changed(name, request, problems)
        paths = read_mask(request, problems)
        problems.raise_if_any()
        return msgspec.structs.replace(change, paths=paths)

    def merged(self, reminder: Reminder, kept: Schedule | None, now: datetime) -> Definition:
        """A reminder with its updated fields, as if it were created; `kept`: the stored schedule
        where that is not updated.
        """
        problems = Problems()
        definition = read_definition(
            reminder,
            now,
            "reminder",
            problems,
            deployment=self._deployment,
            schedule=kept,
        )
        if definition is None or problems.found:
            raise InvalidRequest(violations=problems.found)
        return definition

    def pause(self, request: pb.PauseReminderRequest) -> ChangeRequest:
        """What to pause."""
        problems = Problems()
        change = _change(request, None, problems)
        check_length(request.reason, PAUSE_REASON_BYTES, "reason", problems)
        problems.raise_if_any()
        return change

    def resume(self, request: pb.ResumeReminderRequest) -> ChangeRequest:
        """What to resume."""
        problems = Problems()
        change = _change(request, None, problems)
        problems.raise_if_any()
        return change

    def trigger(self, request: pb.TriggerReminderRequest) -> tuple[Name, str | None]:
        """What to ring, and the id of this very call."""
        problems = Problems()
        name = _name(request.namespace, request.reminder_id, problems)
        request_id = optional(request.request_id, ID_BYTES, "request_id", problems)
        problems.raise_if_any()
        return name, request_id

    def backfill(
        self, request: pb.BackfillReminderRequest, now: datetime
    ) -> tuple[Name, Range, str | None]:
        """Whose past range, and the id of this very call."""
        problems = Problems()
        name = _name(request.namespace, request.reminder_id, problems)
        asked = read_range(request, now, problems)
        request_id = optional(request.request_id, ID_BYTES, "request_id", problems)
        problems.raise_if_any()
        assert asked is not None
        return name, asked, request_id

    def preview(self, request: pb.PreviewOccurrencesRequest, now: datetime) -> PreviewRequest:
        """What to show of which schedule."""
        problems = Problems()
        asked = read_preview(request, now, problems, self._deployment.limits)
        if asked is None or problems.found:
            raise InvalidRequest(violations=problems.found)
        return asked

    def cancel_group(self, request: pb.CancelGroupRequest) -> tuple[str, str]:
        """Namespace and group."""
        problems = Problems()
        namespace = _namespace(request.namespace, "namespace", problems)
        if not request.group_id:
            problems.required("group_id", "which group to cancel")
        check_length(request.group_id, ID_BYTES, "group_id", problems)
        problems.raise_if_any()
        return namespace, request.group_id

    def list_occurrences(self, request: pb.ListOccurrencesRequest) -> tuple[Name, Window]:
        """Whose ledger, and which part of it."""
        problems = Problems()
        name = _name(request.namespace, request.reminder_id, problems)
        window = _window(request, ("occurrences", name.namespace, name.reminder_id), problems)
        problems.raise_if_any()
        return name, window

    def replay(self, request: pb.ReplayOccurrenceRequest) -> tuple[Name, Asked, str | None]:
        """What to send again, and the id of this very call."""
        problems = Problems()
        name = _name(request.namespace, request.reminder_id, problems)
        asked = read_replay(request, problems)
        request_id = optional(request.request_id, ID_BYTES, "request_id", problems)
        problems.raise_if_any()
        return name, asked, request_id

    def explain(self, request: pb.ExplainReminderRequest) -> tuple[Name, int]:
        """Whose history, and how many occurrences of it."""
        problems = Problems()
        name = _name(request.namespace, request.reminder_id, problems)
        limit = request.occurrence_limit or DEFAULT_EXPLAINED
        if not 1 <= limit <= MAX_EXPLAINED:
            problems.add(
                "occurrence_limit",
                Reason.VALUE_INVALID,
                f"must be from 1 to {MAX_EXPLAINED}, or 0 for {DEFAULT_EXPLAINED}",
            )
        problems.raise_if_any()
        return name, limit

    def list_deliveries(self, request: pb.ListDeliveriesRequest) -> tuple[Name, str | None, Window]:
        """Whose ledger, of which occurrence (None: all), and which part of it."""
        problems = Problems()
        name = _name(request.namespace, request.reminder_id, problems)
        occurrence_id = request.occurrence_id
        if occurrence_id:
            try:
                parse_occurrence_key(occurrence_id)
            except KeyInvalid as error:
                problems.add("occurrence_id", Reason.VALUE_INVALID, error.reason)
        scope = ("deliveries", name.namespace, name.reminder_id, occurrence_id)
        window = _window(request, scope, problems)
        problems.raise_if_any()
        return name, occurrence_id or None, window


def not_under(prefix: str, error: InvalidRequest) -> InvalidRequest:
    """The same violations with paths from within `prefix`: a reschedule has no `reminder.`."""
    return InvalidRequest(
        violations=[
            Violation(
                field=one.field.removeprefix(prefix), reason=one.reason, description=one.description
            )
            for one in error.violations
        ]
    )


def _namespace(namespace: str, field: str, problems: Problems) -> str:
    if not namespace:
        return DEFAULT_NAMESPACE
    if not _NAMESPACE(namespace):
        problems.add(
            field,
            Reason.NAMESPACE_INVALID,
            f"{shown(namespace)} is not 1-64 characters of A-Z, a-z, 0-9, '.', '_' and '-'",
        )
    return namespace


def _name(namespace: str, reminder_id: str, problems: Problems, *, under: str = "") -> Name:
    field = f"{under}reminder_id"
    if not reminder_id:
        problems.required(field, "the id that the create answered")
    check_length(reminder_id, REMINDER_ID_BYTES, field, problems)
    namespace = _namespace(namespace, f"{under}namespace", problems)
    return Name(namespace=namespace, reminder_id=reminder_id)


def _change(
    request: pb.CancelReminderRequest
    | pb.RescheduleReminderRequest
    | pb.PauseReminderRequest
    | pb.ResumeReminderRequest,
    schedule: Schedule | None,
    problems: Problems,
) -> ChangeRequest:
    name = _name(request.namespace, request.reminder_id, problems)
    return _changed(name, request, problems, schedule)


def _changed(
    name: Name,
    request: pb.CancelReminderRequest
    | pb.RescheduleReminderRequest
    | pb.UpdateReminderRequest
    | pb.PauseReminderRequest
    | pb.ResumeReminderRequest,
    problems: Problems,
    schedule: Schedule | None = None,
) -> ChangeRequest:
    version = None
    if request.etag:
        version = version_of(request.etag, name.reminder_id)
        if version is None:
            problems.add(
                "etag", Reason.VALUE_INVALID, "is not one of this reminder; send what Get answered"
            )
    return ChangeRequest(
        name=name,
        expected_version=version,
        request_id=optional(request.request_id, ID_BYTES, "request_id", problems),
        schedule=schedule,
    )


def _window(
    request: pb.ListRemindersRequest | pb.ListOccurrencesRequest | pb.ListDeliveriesRequest,
    scope: tuple[str, ...],
    problems: Problems,
) -> Window:
    limit = request.page_size or DEFAULT_PAGE
    if not 1 <= limit <= MAX_PAGE:
        problems.add(
            "page_size",
            Reason.VALUE_INVALID,
            f"must be from 1 to {MAX_PAGE}, or 0 for {DEFAULT_PAGE}",
        )
    position: str | None = ""
    if request.page_token:
        position = unseal(request.page_token, *scope)
        if position is None:
            problems.add(
                "page_token",
                Reason.VALUE_INVALID,
                "is not of this list; leave it empty for the first page",
            )
    return Window(scope=scope, limit=limit, position=position or "")

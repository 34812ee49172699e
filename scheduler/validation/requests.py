"""The entry points: one for each request message."""

from datetime import datetime

import msgspec
from tocsin.v1 import reminder_service_pb2 as pb
from tocsin.v1.reminder_pb2 import Reminder

from reminders.errors import InvalidRequest, Violation
from reminders.lifecycle import CreateRequest
from reminders.lifecycle.previewing import PreviewRequest
from reminders.lifecycle.problems import Problems, Reason, check_length, optional
from reminders.lifecycle.replaying import Asked
from reminders.lifecycle.request_limits import DEFAULT_REQUEST_LIMITS, RequestLimits
from reminders.lifecycle.targets import Wanted
from reminders.model.definition import Definition, audience_of
from scheduler.validation.backfills import Range, read_range
from scheduler.validation.batches import check_batch
from scheduler.validation.changes import ChangeRequest, read_change, read_changed
from scheduler.validation.delivery_lists import read_wanted
from scheduler.validation.deployment import DEFAULT_CHANNEL_RULES, ChannelRules, Deployment
from scheduler.validation.masks import read_mask
from scheduler.validation.names import Name, read_name, read_namespace
from scheduler.validation.policies import DEFAULTS
from scheduler.validation.previews import read_preview
from scheduler.validation.reach import UNREAD, Reach
from scheduler.validation.reminders import ID_BYTES, read_audience, read_definition
from scheduler.validation.replays import read_replay
from scheduler.validation.schedules import Against, read_schedule
from scheduler.validation.windows import Window, read_window

PAUSE_REASON_BYTES = 512
DEFAULT_EXPLAINED, MAX_EXPLAINED = 20, 100


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

    def create(
        self, request: pb.CreateReminderRequest, now: datetime, reach: Reach = UNREAD
    ) -> CreateRequest:
        """One reminder to make. `reach`: what the user's record lends."""
        problems = Problems()
        reminder = request.reminder
        namespace = read_namespace(reminder.namespace, "reminder.namespace", problems)
        if not request.HasField("reminder"):
            problems.required("reminder", "what to remind of, whom and when")
            problems.raise_if_any()
        definition = read_definition(
            reminder, now, "reminder", problems, deployment=self._deployment, reach=reach
        )
        request_id = optional(request.request_id, ID_BYTES, "request_id", problems)
        keyed = request_id is not None or (definition is not None and definition.dedup_key)
        # a repeat of what was taken when it came in time, and while the record had an address
        excused = (Reason.TIME_IN_PAST, Reason.NO_ADDRESS) if reach.read else (Reason.TIME_IN_PAST,)
        too_late = tuple(problems.found) if keyed and problems.only(*excused) else ()
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
        check_batch(request.requests)

    def get(self, request: pb.GetReminderRequest) -> Name:
        """Which reminder."""
        problems = Problems()
        name = read_name(request.namespace, request.reminder_id, problems)
        problems.raise_if_any()
        return name

    def list_reminders(self, request: pb.ListRemindersRequest) -> tuple[str, str, Window]:
        """Namespace, audience (see `Definition`), and which part of the list."""
        problems = Problems()
        namespace = read_namespace(request.namespace, "namespace", problems)
        user_id, topic_id = read_audience(request, "", problems)
        audience = audience_of(user_id, topic_id)
        window = read_window(request, ("reminders", namespace, audience), problems)
        problems.raise_if_any()
        return namespace, audience, window

    def cancel(self, request: pb.CancelReminderRequest) -> ChangeRequest:
        """What to cancel."""
        problems = Problems()
        change = read_change(request, None, problems)
        problems.raise_if_any()
        return change

    def reschedule(
        self, request: pb.RescheduleReminderRequest, now: datetime, *, zone: str = ""
    ) -> ChangeRequest:
        """What to move, and where to. The stored policies are not known here: defaults stand in.
        `zone`: of the user's record.
        """
        problems = Problems()
        against = Against(now=now, limits=self._deployment.limits, zone=zone)
        schedule = read_schedule(request.schedule, DEFAULTS, against, "schedule", problems)
        change = read_change(request, schedule, problems)
        problems.raise_if_any()
        return change

    def update(self, request: pb.UpdateReminderRequest) -> ChangeRequest:
        """What to change. What comes of it is judged by `merged`, when it meets what is stored."""
        problems = Problems()
        reminder = request.reminder
        name = read_name(reminder.namespace, reminder.reminder_id, problems, under="reminder.")
        change = read_changed(name, request, problems)
        paths = read_mask(request, problems)
        problems.raise_if_any()
        return msgspec.structs.replace(change, paths=paths)

    def merged(self, reminder: Reminder, now: datetime, reach: Reach) -> Definition:
        """A reminder with its updated fields, as if it were created."""
        problems = Problems()
        definition = read_definition(
            reminder,
            now,
            "reminder",
            problems,
            deployment=self._deployment,
            reach=reach,
        )
        if definition is None or problems.found:
            raise InvalidRequest(violations=problems.found)
        return definition

    def pause(self, request: pb.PauseReminderRequest) -> ChangeRequest:
        """What to pause."""
        problems = Problems()
        change = read_change(request, None, problems)
        check_length(request.reason, PAUSE_REASON_BYTES, "reason", problems)
        problems.raise_if_any()
        return change

    def resume(self, request: pb.ResumeReminderRequest) -> ChangeRequest:
        """What to resume."""
        problems = Problems()
        change = read_change(request, None, problems)
        problems.raise_if_any()
        return change

    def trigger(self, request: pb.TriggerReminderRequest) -> tuple[Name, str | None]:
        """What to ring, and the id of this very call."""
        problems = Problems()
        name = read_name(request.namespace, request.reminder_id, problems)
        request_id = optional(request.request_id, ID_BYTES, "request_id", problems)
        problems.raise_if_any()
        return name, request_id

    def backfill(
        self, request: pb.BackfillReminderRequest, now: datetime
    ) -> tuple[Name, Range, str | None]:
        """Whose past range, and the id of this very call."""
        problems = Problems()
        name = read_name(request.namespace, request.reminder_id, problems)
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
        namespace = read_namespace(request.namespace, "namespace", problems)
        if not request.group_id:
            problems.required("group_id", "which group to cancel")
        check_length(request.group_id, ID_BYTES, "group_id", problems)
        problems.raise_if_any()
        return namespace, request.group_id

    def list_occurrences(self, request: pb.ListOccurrencesRequest) -> tuple[Name, Window]:
        """Whose ledger, and which part of it."""
        problems = Problems()
        name = read_name(request.namespace, request.reminder_id, problems)
        window = read_window(request, ("occurrences", name.namespace, name.reminder_id), problems)
        problems.raise_if_any()
        return name, window

    def replay(self, request: pb.ReplayOccurrenceRequest) -> tuple[Name, Asked, str | None]:
        """What to send again, and the id of this very call."""
        problems = Problems()
        name = read_name(request.namespace, request.reminder_id, problems)
        asked = read_replay(request, problems)
        request_id = optional(request.request_id, ID_BYTES, "request_id", problems)
        problems.raise_if_any()
        return name, asked, request_id

    def explain(self, request: pb.ExplainReminderRequest) -> tuple[Name, int]:
        """Whose history, and how many occurrences of it."""
        problems = Problems()
        name = read_name(request.namespace, request.reminder_id, problems)
        limit = request.occurrence_limit or DEFAULT_EXPLAINED
        if not 1 <= limit <= MAX_EXPLAINED:
            problems.add(
                "occurrence_limit",
                Reason.VALUE_INVALID,
                f"must be from 1 to {MAX_EXPLAINED}, or 0 for {DEFAULT_EXPLAINED}",
            )
        problems.raise_if_any()
        return name, limit

    def list_deliveries(self, request: pb.ListDeliveriesRequest) -> tuple[Name, Wanted, Window]:
        """Whose ledger, which deliveries, and which part of them."""
        problems = Problems()
        name = read_name(request.namespace, request.reminder_id, problems)
        wanted = read_wanted(request, problems)
        scope: tuple[str, ...]
        scope = ("deliveries", name.namespace, name.reminder_id, request.occurrence_id)
        if wanted.subscriber_id or wanted.statuses:
            scope += (wanted.subscriber_id, *sorted(wanted.statuses))
        window = read_window(request, scope, problems)
        problems.raise_if_any()
        return name, wanted, window


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

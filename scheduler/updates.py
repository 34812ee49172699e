"""What comes of an update.

The fields that its mask names are put into the stored reminder, as Get answers it, and the whole is
read as a create would be: so an update can make nothing that a create would refuse.
"""

from datetime import datetime
from typing import Final

from google.protobuf.field_mask_pb2 import FieldMask
from msgspec.structs import replace
from tocsin.v1 import reminder_pb2 as pb

from reminders.errors import InvalidRequest, Violation
from reminders.lifecycle.problems import Reason
from reminders.model.definition import Definition
from scheduler.mapping.definitions import put_definition
from scheduler.validation import Validator
from scheduler.validation.masks import MASK, SCHEDULE
from scheduler.validation.reach import UNREAD, Reach
from scheduler.validation.wanting import record_wanted

_ADDRESSED: Final = frozenset(("user_id", "channels"))


class Edit:
    """One update, to be made of whatever is stored."""

    def __init__(
        self, reminder: pb.Reminder, paths: tuple[str, ...], now: datetime, validator: Validator
    ) -> None:
        self._reach = UNREAD
        self.wanted: tuple[str, str] | None = None
        """Namespace and user whose recipient record could fill in what it was refused for."""
        self._paths = paths
        self._mask = FieldMask(paths=paths)
        self._reminder = pb.Reminder()
        self._reminder.CopyFrom(reminder)
        # a policy that is named and not set takes its default, also where no other one is given
        self._reminder.policies.retry.SetInParent()
        self._now = now
        self._validator = validator

    @property
    def reschedules(self) -> bool:
        """Whether the schedule is among the fields."""
        return SCHEDULE in self._paths

    @property
    def content(self) -> bytes:
        """What was asked for; equal for a retry."""
        picked = pb.Reminder()
        self._put_into(picked)
        return "\0".join(self._paths).encode() + picked.SerializeToString(deterministic=True)

    def __call__(self, stored: Definition) -> Definition:
        """Raises `InvalidRequest`, with paths as in the request."""
        if stored.topic_id and "user_id" in self._paths:
            raise _of_a_topic()
        merged = pb.Reminder(namespace=self._reminder.namespace)
        put_definition(merged, stored)
        self._put_into(merged)
        # The record that its channels lean on is asked for anew only where the user or they change.
        reach = replace(
            self._reach,
            trusted=_ADDRESSED.isdisjoint(self._paths),
            kept=None if self.reschedules else stored.schedule,
        )
        try:
            made = self._validator.merged(merged, self._now, reach)
        except InvalidRequest:
            self.wanted = record_wanted(merged)
            raise
        return replace(made, only_subscriber=stored.only_subscriber)

    def lean_on(self, reach: Reach) -> None:
        """From now on, what that record says fills in what is missing."""
        self._reach = reach

    def _put_into(self, message: pb.Reminder) -> None:
        self._mask.MergeMessage(
            self._reminder, message, replace_message_field=True, replace_repeated_field=True
        )


def _of_a_topic() -> InvalidRequest:
    return InvalidRequest(
        violations=[
            Violation(
                field=MASK,
                reason=Reason.FIELD_IMMUTABLE,
                description="user_id: the reminder goes to a topic, which is fixed at creation",
            )
        ]
    )

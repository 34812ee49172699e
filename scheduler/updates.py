"""What comes of an update.

The fields that its mask names are put into the stored reminder, as Get answers it, and the whole is
read as a create would be: so an update can make nothing that a create would refuse.
"""

from datetime import datetime

from google.protobuf.field_mask_pb2 import FieldMask
from tocsin.v1 import reminder_pb2 as pb

from reminders.model.definition import Definition
from scheduler.mapping.definitions import put_definition
from scheduler.validation import Validator
from scheduler.validation.masks import SCHEDULE


class Edit:
    """One update, to be made of whatever is stored."""

    def __init__(
        self, reminder: pb.Reminder, paths: tuple[str, ...], now: datetime, validator: Validator
    ) -> None:
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
        merged = pb.Reminder(namespace=self._reminder.namespace)
        put_definition(merged, stored)
        self._put_into(merged)
        kept = None if self.reschedules else stored.schedule
        return self._validator.merged(merged, kept, self._now)

    def _put_into(self, message: pb.Reminder) -> None:
        self._mask.MergeMessage(
            self._reminder, message, replace_message_field=True, replace_repeated_field=True
        )

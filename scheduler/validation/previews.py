"""A preview: schedule and policies as in a create, and which part of it to show."""

from datetime import datetime

from tocsin.v1 import reminder_service_pb2 as pb

from reminders.lifecycle.previewing import PreviewRequest, read_count
from reminders.lifecycle.problems import Problems
from reminders.lifecycle.request_limits import RequestLimits
from scheduler.validation.policies import DEFAULTS, read_policies
from scheduler.validation.schedules import Against, read_schedule
from scheduler.validation.times import read_instant


def read_preview(
    request: pb.PreviewOccurrencesRequest, now: datetime, problems: Problems, limits: RequestLimits
) -> PreviewRequest | None:
    """None if its schedule can't be read; what is wrong is noted."""
    after = None
    late = Problems()  # of later fields: what is wrong is listed in the order of the fields
    if request.HasField("after"):
        after = read_instant(request.after, "after", late, round_up=False)
    count = read_count(request.count, "count", late)
    created = after or now
    if request.schedule.WhichOneof("kind") == "recurrence":
        created = max(created, now)  # a rule may be looked at from before its start
    policies = DEFAULTS
    if request.HasField("policies"):
        policies = read_policies(request.policies, "policies", problems)
    against = Against(now=created, limits=limits)
    schedule = read_schedule(request.schedule, policies, against, "schedule", problems)
    problems.found += late.found
    if schedule is None:
        return None
    return PreviewRequest(schedule=schedule, policies=policies, after=after, count=count)

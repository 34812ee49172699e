"""`tocsin explain` for people: an occurrence at a time, each with whom it reached."""

from tocsin.v1 import reminder_pb2 as pb
from tocsin.v1 import reminder_service_pb2 as calls

from reminders.cli.progress import fanout_text
from reminders.cli.render import (
    console,
    delivery_word,
    moment,
    receiver_text,
    reminder_details,
    run_text,
    utc_text,
    word,
)
from reminders.cli.render import local_text as spaced


def show(answer: calls.ExplainReminderResponse) -> None:
    """The whole answer, newest occurrence first."""
    out = console()
    out.print(reminder_details(answer.reminder))
    out.print(f"next: {action_text(answer.next_action)}")
    for one in answer.occurrences:
        out.print()
        for line in occurrence_lines(one):
            out.print(line)
    if answer.truncated:
        out.print("\nthere are older ones: --limit, or `tocsin occurrences`")


def occurrence_lines(one: calls.ExplainedOccurrence) -> list[str]:
    """What was promised, why it did or did not fire, and who was attempted."""
    occurrence = one.occurrence
    promised = f"{spaced(occurrence.planned_local)} {occurrence.time_zone}"
    if one.policy:
        promised += f" (asked for {spaced(occurrence.nominal_local)}; {one.policy})"
    instant = utc_text(moment(occurrence.planned_time))
    lines = [
        f"{occurrence.occurrence_id}  promised {promised}  =  {instant}",
        f"  {one.explanation}",
    ]
    if run := run_text(occurrence):
        lines.append(f"  {run}")
    if occurrence.HasField("fan_out") and not occurrence.fan_out.finished:
        lines.append(f"  progress: {fanout_text(occurrence.fan_out)}")
    for each in one.deliveries:
        lines += _delivery_lines(each)
    if not one.deliveries or one.next_action.owner == "nobody":
        lines.append(f"  next: {action_text(one.next_action)}")
    return lines


def _delivery_lines(each: calls.ExplainedDelivery) -> list[str]:
    delivery = each.delivery
    who = receiver_text(delivery.channel_id, delivery.subscriber_id)
    taken = ", acknowledged by the receiver" if delivery.acknowledged else ""
    lines = [f"  {who}: {delivery_word(delivery)}{taken}, key {delivery.delivery_key}"]
    lines += [f"    {_attempt_text(attempt)}" for attempt in delivery.attempts]
    safety = word(calls.ReplaySafety.Name(each.replay_safety), "REPLAY_SAFETY_")
    command = f": {each.replay_command}" if each.replay_command else ""
    lines.append(f"    next: {action_text(each.next_action)}")
    lines.append(f"    replay: {safety}{command}")
    return lines


def _attempt_text(attempt: pb.Attempt) -> str:
    status = str(attempt.status_code) if attempt.status_code else ""
    said = " ".join(part for part in (status, attempt.error_class) if part) or "taken"
    unknown = " (may have arrived)" if attempt.outcome_unknown else ""
    return f"attempt {attempt.number} at {utc_text(moment(attempt.start_time))}: {said}{unknown}"


def action_text(action: calls.NextAction) -> str:
    """`scanner claims it at its time (2026-12-01 09:00:00Z)`."""
    at = f" ({utc_text(moment(action.time))})" if action.HasField("time") else ""
    if action.owner == "nobody":
        return action.action
    return f"the {action.owner} {action.action}{at}"

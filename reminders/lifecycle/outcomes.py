"""What a change says about the old version's occurrences. Pure."""

from collections.abc import Collection, Sequence

from reminders.model.definition import Recurring
from reminders.model.entry import DueEntry, Kind, Occurrence
from reminders.model.record import Change, OccurrenceAnswer, Outcome, Record, Status


def finish_entry(new: Record, change: Change) -> DueEntry:
    """The entry that makes somebody come back to the change."""
    return DueEntry(
        key=change.finish,
        kind=Kind.FINISH,
        namespace=new.namespace,
        reminder_id=new.reminder_id,
        version=change.version,
        occurrence=None,
        record_created_at=new.created_at,
    )


def outcome_of(
    change: Change, revoked: Sequence[DueEntry], triggers: Sequence[DueEntry], fired: set[str]
) -> Outcome:
    """How a change ends. `triggers`: those that it decides about. Whether it applies, only the
    schedule's own occurrences say.
    """
    previous = change.previous
    if previous.status is Status.FIRED:
        applied, answers = False, _known(previous)
    else:
        answers = _answers(revoked, fired)
        applied = _applies(change, answers)
    return Outcome(
        request_id=change.request_id,
        action=change.action,
        content_hash=change.content_hash,
        version=change.version,
        applied=applied,
        answers=(*answers, *_answers(triggers, fired)),
    )


def _known(fired: Record) -> list[OccurrenceAnswer]:
    """Of one that had fired before: what the change found out that was refused for it."""
    refused = next((each for each in fired.outcomes if not each.applied), None)
    return [each for each in refused.answers if each.was_fired] if refused is not None else []


def _answers(entries: Sequence[DueEntry], fired: set[str]) -> list[OccurrenceAnswer]:
    answers: dict[str, OccurrenceAnswer] = {}
    for entry in entries:  # twice the same where one was moved meanwhile
        assert entry.occurrence is not None
        occurrence_id = entry.occurrence.occurrence_id
        answers[occurrence_id] = OccurrenceAnswer(
            occurrence_id=occurrence_id,
            planned_at=entry.occurrence.planned_at,
            was_fired=occurrence_id in fired,
        )
    return list(answers.values())


def emitted_by(
    change: Change,
    past: Sequence[DueEntry],
    revoked: Sequence[DueEntry],
    fired: Collection[str],
) -> list[Occurrence]:
    """What rang under the old version, or is past in other ways; before another schedule also the
    furthest of earlier versions, whose ordinals count by rules of their own.
    """
    entries = (*past, *(entry for entry in revoked if entry.occurrence_id in fired))
    emitted = [entry.occurrence for entry in entries if entry.occurrence is not None]
    if change.previous.emitted is not None and not change.keeps_schedule:
        emitted.append(change.previous.emitted)
    return emitted


def _applies(change: Change, answers: Collection[OccurrenceAnswer]) -> bool:
    """A rule can always be changed; a one-shot not once it fired, or both times would ring."""
    if isinstance(change.previous.definition.schedule, Recurring):
        return True
    return not answers or not all(answer.was_fired for answer in answers)

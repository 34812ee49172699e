"""Create a reminder over the real command line, and it rings on time at a real HTTP receiver."""

from datetime import UTC, datetime, timedelta

from tests.acceptance.system import Receiver, System, until


def test_a_reminder_rings_once_at_its_time_and_is_on_record(
    tocsin: System, receiver: Receiver
) -> None:
    """Never early, within a second or so, with one key in both headers, and in the ledger."""
    created = tocsin.create(
        "create",
        "--user",
        "u1",
        "--in",
        "2s",
        "--webhook",
        receiver.url("once"),
        "--params",
        '{"n": 12}',
    )
    [request] = receiver.wait("once")
    assert request.headers["webhook-id"] == request.key == request.body["eventId"]
    assert request.body["payload"] == {"n": 12}
    assert request.body["reminderId"] == created["reminderId"]
    assert 0 <= request.lateness_s < 5
    reminder_id = created["reminderId"]
    got = until(
        lambda: (g := tocsin.json("get", reminder_id))["status"].endswith("FIRED") and g, "fired"
    )
    assert got["reminderId"] == reminder_id
    [delivery] = tocsin.json("deliveries", reminder_id)["deliveries"]
    assert delivery["deliveryKey"] == request.key
    assert delivery["status"] == "DELIVERY_STATUS_CONFIRMED"
    assert [a["statusCode"] for a in delivery["attempts"]] == [204]
    [occurrence] = tocsin.json("occurrences", reminder_id)["occurrences"]
    assert occurrence["status"] == "OCCURRENCE_STATUS_COMPLETED"
    of_it = tocsin.json("deliveries", reminder_id, "--occurrence", occurrence["occurrenceId"])
    assert of_it["deliveries"] == [delivery]
    assert len(receiver.at("once")) == 1


def test_a_rule_rings_again_and_again_with_different_keys(
    tocsin: System, receiver: Receiver
) -> None:
    """Each occurrence is materialized after the one before it fired."""
    start = (datetime.now(UTC) + timedelta(seconds=2)).astimezone()
    local = start.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    created = tocsin.create(
        *("create", "--user", "u2", "--rrule", "FREQ=SECONDLY;INTERVAL=2;COUNT=4"),
        *("--start", local, "--zone", "UTC", "--webhook", receiver.url("rule")),
    )
    requests = receiver.wait("rule", 4)
    assert len({r.key for r in requests}) == len(requests) == 4
    assert [r.body["occurrenceId"] for r in requests] == sorted(
        r.body["occurrenceId"] for r in requests
    )
    assert all(r.lateness_s >= 0 for r in requests)
    until(
        lambda: tocsin.json("get", created["reminderId"])["status"].endswith("FIRED"), "rule ended"
    )


def test_a_local_time_is_promised_in_its_zone(tocsin: System) -> None:
    """09:00 in New York on a summer day is 13:00Z, and the answer says so."""
    created = tocsin.create(
        *("create", "--user", "u3", "--local", "09:00", "--date", "2027-07-15"),
        *("--zone", "America/New_York", "--log"),
    )
    [occurrence] = created["nextOccurrences"]
    assert occurrence["plannedTime"] == "2027-07-15T13:00:00Z"
    assert occurrence["plannedLocal"] == "2027-07-15T09:00:00"
    listed = tocsin.json("list", "--user", "u3")
    assert [r["reminderId"] for r in listed["reminders"]] == [created["reminderId"]]
    assert listed["totalSize"] == 1


def test_a_cancel_just_before_the_fire_keeps_it_silent(tocsin: System, receiver: Receiver) -> None:
    """Answered "not fired", it never rings: a later reminder does, and it did not."""
    created = tocsin.create(
        "create", "--user", "u4", "--in", "8s", "--webhook", receiver.url("never")
    )
    sentinel = receiver.url("sentinel")
    tocsin.create("create", "--user", "u4", "--in", "9s", "--webhook", sentinel)
    cancelled = tocsin.json("cancel", created["reminderId"])
    assert cancelled.get("wasFired", False) is False
    assert cancelled["reminder"]["status"] == "REMINDER_STATUS_CANCELLED"
    receiver.wait("sentinel")
    assert receiver.at("never") == []
    again = tocsin.json("cancel", created["reminderId"])
    assert again.get("wasFired", False) is False


def test_a_cancel_after_the_fire_says_so(tocsin: System, receiver: Receiver) -> None:
    """`was_fired` is true, and what rang stays rung."""
    created = tocsin.create(
        "create", "--user", "u5", "--in", "1s", "--webhook", receiver.url("rang")
    )
    receiver.wait("rang")
    cancelled = tocsin.json("cancel", created["reminderId"])
    assert cancelled["wasFired"] is True
    assert cancelled["reminder"]["status"] == "REMINDER_STATUS_FIRED"


def test_a_rescheduled_reminder_rings_at_the_new_time_only(
    tocsin: System, receiver: Receiver
) -> None:
    """Exactly one of the two times."""
    created = tocsin.create(
        "create", "--user", "u6", "--in", "1h", "--webhook", receiver.url("moved")
    )
    moved = tocsin.json("reschedule", created["reminderId"], "--in", "2s")
    assert moved["reminder"]["version"] == "2"
    [request] = receiver.wait("moved")
    assert request.lateness_s >= 0
    assert len(tocsin.json("deliveries", created["reminderId"])["deliveries"]) == 1


def test_the_same_dedup_key_is_the_same_reminder(tocsin: System) -> None:
    """Same answer, one reminder; other content is a clear conflict."""
    same = ("create", "--user", "u7", "--in", "2h", "--log", "--dedup-key", "daily:u7")
    first, second = tocsin.create(*same), tocsin.create(*same)
    assert first["reminderId"] == second["reminderId"]
    assert first["nextOccurrences"] == second["nextOccurrences"]
    conflict = tocsin.tocsin(*same[:4], "3h", *same[5:], expect=1)
    assert "DEDUP_CONFLICT" in conflict


def test_bad_input_names_every_field_and_changes_nothing(tocsin: System) -> None:
    """All violations at once, with the remedy."""
    answer = tocsin.tocsin(
        *("create", "--user", "u8", "--local", "09:00", "--zone", "+02:00"),
        *("--webhook", "http://example.com/"),
        expect=1,
    )
    assert "time_zone" in answer
    assert "url" in answer
    assert tocsin.json("list", "--user", "u8").get("reminders", []) == []


def test_a_trigger_arrives_at_once_and_a_backfill_brings_what_was_missed(
    tocsin: System, receiver: Receiver
) -> None:
    """Beside a rule that goes on; each under a key of its own, and on record as what it is."""
    now = datetime.now(UTC)
    local = (now - timedelta(hours=2, minutes=10)).strftime("%Y-%m-%dT%H:%M:%S")
    created = tocsin.create(
        *("create", "--user", "u-beside", "--rrule", "FREQ=HOURLY", "--start", local),
        *("--zone", "UTC", "--webhook", receiver.url("beside")),
    )
    reminder_id = created["reminderId"]
    ahead = [one["occurrenceId"] for one in created["nextOccurrences"]]
    asked = ("trigger", reminder_id, "--request-id", "t1")
    triggered = tocsin.json(*asked)["occurrence"]["occurrenceId"]
    [request] = receiver.wait("beside")
    assert request.body["occurrenceId"] == triggered
    assert triggered.endswith("Z")
    assert 0 <= request.lateness_s < 5
    again = until(
        lambda: (o := tocsin.json(*asked)["occurrence"])["status"].endswith("COMPLETED") and o,
        "on record",
    )
    assert again["occurrenceId"] == triggered
    begin = (now - timedelta(hours=1, minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    dry = tocsin.json("backfill", reminder_id, "--from", begin, "--dry-run")
    assert dry["occurrenceCount"] == "2"
    tocsin.json("backfill", reminder_id, "--from", begin)
    missed = {one["occurrenceId"] for one in dry["occurrences"]}
    arrived = {one.body["occurrenceId"] for one in receiver.wait("beside", 3)}
    assert arrived == {triggered, *missed}
    got = tocsin.json("get", reminder_id)
    assert [one["occurrenceId"] for one in got["nextOccurrences"]] == ahead

    def origins() -> dict[str, str]:
        rows = tocsin.json("occurrences", reminder_id)["occurrences"]
        return {one["occurrenceId"]: one["origin"].rpartition("_")[2] for one in rows}

    expected = {triggered: "TRIGGER"} | dict.fromkeys(missed, "BACKFILL")
    until(lambda: expected.items() <= origins().items(), "all in the ledger")
    assert len(receiver.at("beside")) == 3

"""What people and operators ask for. Times are ms since the run began."""

from tests.simulation.items import Item


class Create(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Somebody wants to be reminded."""

    fault = False
    name: str
    """What other items call it."""
    via: int = 0
    """Which scheduler is asked first."""
    rings: int
    """When, or when the first time."""
    every_s: int = 0
    """Above 0: a rule with this interval."""
    count: int = 0
    """Occurrences of the rule; 0: for ever."""
    zone: str = "UTC"
    wall: bool = False
    """By the clocks of its zone: a rule that names local times, which newer zone data may move.
    Else it counts elapsed time, or names an instant."""
    catch_up: str = "latest"
    channels: tuple[str, ...] = ("inbox",)
    """Names of receivers."""
    keyed: bool = False
    """With a dedup_key, so that it is repeated until it is answered."""
    patience: int = 20_000
    """How long an answer is awaited."""
    group: str = ""
    topic: str = ""
    """Its subscribers are told, in place of `channels`."""


class Subscribe(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """A topic has subscribers from then on; before it has a reminder."""

    fault = False
    topic: str
    count: int


class Cancel(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Somebody no longer wants it."""

    fault = False
    target: str
    via: int = 0
    once: bool = False
    """Whoever is not answered does not ask again."""


class Reschedule(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Somebody wants it at another time."""

    fault = False
    target: str
    via: int = 0
    rings: int
    every_s: int = 0
    count: int = 0
    zone: str = "UTC"
    once: bool = False


class CancelGroup(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Somebody cancels all of a group."""

    fault = False
    group: str
    via: int = 0


class Silence(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Somebody pauses it."""

    fault = False
    target: str
    via: int = 0


class Wake(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Somebody resumes it."""

    fault = False
    target: str
    via: int = 0


class Update(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Somebody wants other content, and the times as they are."""

    fault = False
    target: str
    via: int = 0
    catch_up: str = ""
    """Of a rule; empty: as it is."""
    channels: tuple[str, ...] = ()
    """Other receivers; none: as they are."""


class Trigger(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Somebody wants it to ring now, once more."""

    fault = False
    target: str
    via: int = 0
    once: bool = False
    """Whoever is not answered does not ask again."""


class Backfill(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Somebody wants what a rule named and did not ring."""

    fault = False
    target: str
    via: int = 0
    start: int
    """From when on, may lie before the run."""
    end: int = 0
    """Until before when; 0: when it is asked for."""


class NewZoneData(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Every process computes by newer zone data from then on: clocks in `zonedata.ZONE` are further
    by so much.
    """

    fault = True
    shift_s: int


class Recompute(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """An operator walks over all reminders with the data that a scheduler has, and moves what they
    move; again and again until it is through.
    """

    fault = False
    via: int = 0


class Get(Item, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Somebody looks."""

    fault = False
    target: str
    via: int = 0

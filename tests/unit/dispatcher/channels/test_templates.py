"""Templates: which one is taken, what it may do, how it fails."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.channels.messages import Message, message_of
from dispatcher.channels.port import Outcome, Outgoing
from dispatcher.channels.templates import MAX_PART_BYTES, NO_TEMPLATES, TemplateError, Templates
from reminders.model.definition import Email
from reminders.model.subscriber import Subscriber
from tests.standins.sending import KEY, NOW, outgoing

Write = Callable[..., None]


@pytest.fixture
def templates(tmp_path: Path) -> Iterator[Templates]:
    """Of an empty folder."""
    it = Templates(tmp_path)
    yield it
    it.close()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Puts a part of the template `tea` for e-mail."""

    def put(content: str, *, part: str = "text.txt", locale: str = "default", **place: str) -> None:
        given = {"namespace": "default", "template": "tea", "channel": "email"} | place
        folder = tmp_path.joinpath(*given.values(), locale)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / part).write_text(content)

    return put


def sent(template_id: str | None = "tea", locale: str = "", **params: Any) -> Outgoing:
    """An e-mail with these params."""
    target = Email(to="ada@example.com")
    return outgoing(target, json.dumps(params), template_id=template_id, locale=locale)


async def text_of(templates: Templates, it: Outgoing) -> str | None:
    """What is rendered of its text."""
    return (await templates.render(it, "email", ("text.txt",))).get("text.txt")


async def failure_of(templates: Templates, it: Outgoing) -> tuple[str, Outcome, str]:
    """How it fails: error class, outcome, what is said."""
    with pytest.raises(TemplateError) as failed:
        await text_of(templates, it)
    result = failed.value.result
    return result.error_class, result.outcome, result.excerpt


async def test_a_template_sees_params_and_the_reminder(templates: Templates, write: Write) -> None:
    """Params by their names, and what was promised."""
    write(
        "{{ who.name }}: {{ params.who.name }} {{ reminder.local.strftime('%H:%M') }} {{ cups[1] }}"
    )
    it = sent(who={"name": "Ada"}, cups=[1, 2])
    assert await text_of(templates, it) == "Ada: Ada 03:00 2"
    write("{{ reminder.delivery_key }} {{ reminder.time_zone }} {{ reminder.id }}")
    assert await text_of(templates, it) == f"{KEY} Europe/Paris r1"


async def test_a_template_sees_the_subscriber_of_a_topic(
    templates: Templates, write: Write
) -> None:
    """Whose zone is the occurrence's where it has none of its own."""
    write("{{ topic_id }} {{ subscriber_id }} {{ subscriber_local }} {{ subscriber_time_zone }}")
    bare = sent()
    one = Subscriber(
        namespace="default",
        topic_id="deploys",
        subscriber_id="s1",
        channel=bare.channel,
        created_at=NOW,
        updated_at=NOW,
        stamp=1,
    )
    it = replace(bare, subscriber=one)
    assert await text_of(templates, it) == "deploys s1 2026-03-29 03:00:00 Europe/Paris"
    it = replace(bare, subscriber=replace(one, time_zone="Asia/Tokyo"))
    assert await text_of(templates, it) == "deploys s1 2026-03-29 10:00:00 Asia/Tokyo"
    message = await message_of(NO_TEMPLATES, replace(it, test=True), "email", subject="Tea")
    assert message.title == "[test] Tea"


@pytest.mark.parametrize(
    ("locale", "expected"),
    [
        *(("fr-CA", "allô"), ("fr-FR", "salut"), ("fr", "salut"), ("fr_CA", "allô")),
        *(("de-DE", "hello"), ("", "hello")),
        *(("zh-Hant-TW", "你好"), ("zh-Hans", "hello")),
    ],
)
async def test_the_nearest_locale_is_taken(
    templates: Templates, write: Write, locale: str, expected: str
) -> None:
    """Shorter by a part each time, at last the default; the receiver's goes before the params'."""
    write("hello")
    write("你好", locale="zh-Hant")
    write("salut", locale="fr")
    write("allô", locale="fr-CA")
    assert await text_of(templates, sent(locale=locale)) == expected
    by_params = outgoing(Email(to="a@b.example"), json.dumps({"locale": locale}), template_id="tea")
    assert await text_of(templates, by_params) == expected


async def test_parts_of_one_message_come_from_one_folder(
    templates: Templates, write: Write
) -> None:
    """No French subject above an English text."""
    write("hello")
    write("Subject", part="subject.txt")
    write("Sujet", part="subject.txt", locale="fr")
    parts = await templates.render(sent(locale="fr"), "email", ("subject.txt", "text.txt"))
    assert parts == {"subject.txt": "Sujet"}


@pytest.mark.parametrize(
    "template_id", [None, "other", "", "..", ".", "../tea", "tea/../tea", "/tea", ".tea", "tea\x00"]
)
async def test_without_a_template_of_that_name_nothing_is_rendered(
    templates: Templates, write: Write, template_id: str | None
) -> None:
    """And no name leads out of the folder of its namespace."""
    write("hello")
    assert await text_of(templates, sent(template_id)) is None


async def test_another_namespace_has_its_own(templates: Templates, write: Write) -> None:
    """Tenants do not see each other's."""
    write("theirs", namespace="acme")
    assert await text_of(templates, sent()) is None


async def test_html_is_escaped_and_text_is_not(templates: Templates, write: Write) -> None:
    """By the part's name; what the operator wrote stands."""
    write("{{ x }}")
    write("<i>{{ x }}</i>", part="html.html")
    parts = await templates.render(sent(x="<b>&"), "email", ("text.txt", "html.html"))
    assert parts == {"text.txt": "<b>&", "html.html": "<i>&lt;b&gt;&amp;</i>"}


@pytest.mark.parametrize(
    "source",
    ["{{ gone }}", "{{ who.gone }}", "{% for x in gone %}{% endfor %}", "{{ gone|upper }}"],
)
async def test_a_missing_variable_is_an_error_and_named(
    templates: Templates, write: Write, source: str
) -> None:
    """Rather than an empty text."""
    write(source)
    error_class, outcome, said = await failure_of(templates, sent(who={}))
    assert (error_class, outcome) == ("template_variable_missing", Outcome.PERMANENT)
    assert "gone" in said


@pytest.mark.parametrize(
    "source",
    [
        "{{ oops",
        "{% include 'other.txt' %}",
        "{{ 1 / 0 }}",
        "{{ x.__class__.__mro__ }}",
        "{{ x|nofilter }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ 'x' * 10**9 }}",
        "{{ [1] * 10**9 }}",
        "{{ 9 ** 9999999 }}",
        "{{ '%999999999d' % 1 }}",
        "{{ x.update({}) }}",
        "{{ raise_it() }}",
    ],
)
async def test_a_broken_or_greedy_template_is_an_error(
    templates: Templates, write: Write, source: str
) -> None:
    """Whatever it tries; the process goes on."""
    write(source)
    error_class, outcome, said = await failure_of(templates, sent(x={}))
    assert error_class in ("template_invalid", "template_variable_missing")
    assert outcome is Outcome.PERMANENT
    assert said
    write("fine again")
    assert await text_of(templates, sent()) == "fine again"


async def test_size_is_bounded(templates: Templates, write: Write) -> None:
    """While it is made, not after."""
    write("{% for i in range(99999) %}0123456789{% endfor %}")
    error_class, outcome, _ = await failure_of(templates, sent())
    assert (error_class, outcome) == ("template_too_large", Outcome.PERMANENT)
    write("é" * (MAX_PART_BYTES // 2))
    assert await text_of(templates, sent()) == "é" * (MAX_PART_BYTES // 2)


async def test_time_is_bounded_though_nothing_is_written(
    templates: Templates, write: Write
) -> None:
    """It would take days; and it may have been the machine, so it is tried again."""
    write("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
    error_class, outcome, _ = await failure_of(templates, sent())
    assert (error_class, outcome) == ("template_too_slow", Outcome.TRANSIENT)
    write("fine again")
    assert await text_of(templates, sent()) == "fine again"


# --- messages -------------------------------------------------------------------------------------


async def test_without_a_template_people_read_title_and_text() -> None:
    """Else the params, one a line; there is always a title and a text."""

    async def message(subject: str | None = None, **params: Any) -> Message:
        return await message_of(NO_TEMPLATES, sent(None, **params), "email", subject=subject)

    assert await message(title="Tea", text="Ready.") == Message(title="Tea", text="Ready.")
    assert (await message("From the channel", title="Tea")).title == "From the channel"
    assert await message(title="Tea", cups=2, who="Ada") == Message(
        title="Tea", text="cups: 2\nwho: Ada"
    )
    assert await message() == Message(title="Reminder", text="Reminder")
    assert (await message(title="a\r\nb\x00\u2028 c" + "x" * 500)).title == ("a b c" + "x" * 500)[
        :200
    ]
    assert (await message(title=7, text=[1])).title == "Reminder"


async def test_a_templates_subject_goes_before_the_channels(
    templates: Templates, write: Write
) -> None:
    """And loses its line ends."""
    write("Tea\nfor {{ who }}\n", part="subject.txt")
    write("Hi {{ who }}\n")
    found = await message_of(templates, sent(who="Ada"), "email", subject="other")
    assert found == Message(title="Tea for Ada", text="Hi Ada")

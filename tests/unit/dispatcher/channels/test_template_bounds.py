"""What one step of a template may make, whoever chose the numbers and texts in it."""

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.channels.template_bounds import MAX_MADE
from dispatcher.channels.templates import TemplateError, Templates
from reminders.model.definition import Email
from tests.standins.sending import outgoing

HUGE: dict[str, Any] = {"n": 50_000_000, "text": "a\t\n" * 3_000, "list": ["b" * 3_000] * 3}
"""A caller's params."""
GROWS = "{{% set it = namespace(x='aa') %}}{{% for i in range(25) %}}{}{{% endfor %}}"


@pytest.fixture
def templates(tmp_path: Path) -> Iterator[Templates]:
    """Of one folder."""
    it = Templates(tmp_path)
    yield it
    it.close()


async def rendered(templates: Templates, folder: Path, source: str, **params: Any) -> str:
    """The text of an e-mail by a template."""
    place = folder / "default" / "tea" / "email" / "default"
    place.mkdir(parents=True)
    (place / "text.txt").write_text(source)
    it = outgoing(Email(to="ada@example.com"), json.dumps(params), template_id="tea")
    return (await templates.render(it, "email", ("text.txt",)))["text.txt"]


@pytest.mark.parametrize(
    "source",
    [
        *(f"{{{{ text.{name}(n)|length }}}}" for name in ("center", "ljust", "rjust", "zfill")),
        "{{ text.expandtabs(n)|length }}",
        "{{ text.replace('a', text)|length }}",
        "{{ text.join(list * 3000)|length }}",
        "{{ text|center(n)|length }}",
        "{{ text|center(width=n)|length }}",
        "{{ text|indent(n)|length }}",
        "{{ text|indent(text)|length }}",
        "{{ text|replace('a', text)|length }}",
        "{{ (list * 100000)|length }}",
        "{{ (list * 300)|join(text)|length }}",
        "{{ [text]|map('center', n)|list|length }}",
        "{{ (text|attr('center'))(n)|length }}",
        "{{ list|batch(n, 'x')|list|length }}",
        "{{ list|slice(n)|list|length }}",
        "{{ [list]|tojson(indent=n)|length }}",
        "{{ '%50000000d'|format(1)|length }}",
        "{{ '%*d'|format(n, 1)|length }}",
        "{{ '{:50000000}'.format(1)|length }}",
        "{{ '{:{w}}'.format(1, w=n)|length }}",
        "{{ '{0:{1}}'.format_map({'0': 1, '1': n})|length }}",
        "{{ ('{0}' * 3000).format(text)|length }}",
        GROWS.format("{% set it.x = it.x ~ it.x %}"),
        GROWS.format("{% set it.x = it.x + it.x %}"),
        GROWS.format("{% set it.x %}{{ it.x }}{{ it.x }}{% endset %}"),
        "{% macro m(x) %}{{ x }}{{ x }}{% endmacro %}" + GROWS.format("{% set it.x = m(it.x) %}"),
    ],
)
async def test_no_step_makes_what_the_process_can_t_hold(
    templates: Templates, tmp_path: Path, source: str
) -> None:
    """It is refused before it is made, or in the step in which it has become too large."""
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError) as failed:
            await rendered(templates, tmp_path, source, **HUGE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert failed.value.result.error_class == "template_invalid"
    assert "SecurityError" in failed.value.result.excerpt
    assert peak < 10 * MAX_MADE


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ 'a'.center(5) }}|{{ 'a'|center(3) }}|{{ 'a'.ljust(2) }}", "  a  | a |a "),
        ("{{ name.replace('n', 'm') }} {{ name|replace('n', 'm', 1) }}", "Amm Amn"),
        ("{{ ', '.join(['a', 'b']) }} {{ [1, 2]|join('-') }}", "a, b 1-2"),
        ("{{ [{'k': 1}, {'k': 2}]|join(', ', attribute='k') }}", "1, 2"),
        ("{{ [1, 2]|map('string')|join('+') }}", "1+2"),
        ("{{ 'a\nb'|indent(2) }}", "a\n  b"),
        ("{{ '%.2f'|format(3.14159) }} {{ '%05d'|format(7) }}", "3.14 00007"),
        ("{{ '{:,} {:>5}'.format(1234567, 'a') }}", "1,234,567     a"),
        ("{{ '{a}'.format_map({'a': 123456789}) }}", "123456789"),
        ("{{ [1, 2, 3]|batch(2)|list }}", "[[1, 2], [3]]"),
        ("{{ {'a': [1]}|tojson }}", '{"a": [1]}'),
        ("{{ 'a' ~ 1 ~ name }}{{ 'a' + name }}{{ 1 + 2 }}{{ [1] + [2] }}", "a1AnnaAnn3[1, 2]"),
        ("{{ 'ab' * 3 }}{{ 3 * [1] }}{{ 2 * 4 }}", "ababab[1, 1, 1]8"),
    ],
)
async def test_what_templates_are_for_is_left_alone(
    templates: Templates, tmp_path: Path, source: str, text: str
) -> None:
    """Padding, formats, lists."""
    assert await rendered(templates, tmp_path, source, name="Ann") == text


async def test_wrong_arguments_are_named_by_the_call_itself(
    templates: Templates, tmp_path: Path
) -> None:
    """They are no question of size."""
    with pytest.raises(TemplateError) as failed:
        await rendered(templates, tmp_path, "{{ 'a'.center('x') }}")
    assert "TypeError" in failed.value.result.excerpt

"""What people read: title, text and HTML of one message, from a template or from the params."""

from typing import Any

import msgspec

from dispatcher.channels.port import Outgoing
from dispatcher.channels.templates import Templates

DEFAULT_TITLE = "Reminder"
TEST = "[test] "
"""Before the title of a test send."""
MAX_TITLE = 200
"""Characters: of a subject line, or of a notification's first line."""

SUBJECT, TEXT, HTML, TITLE = "subject.txt", "text.txt", "html.html", "title.txt"

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """To one person."""

    title: str
    """One line, printable."""
    text: str
    html: str | None = None


async def message_of(
    templates: Templates, outgoing: Outgoing, channel: str, *, subject: str | None = None
) -> Message:
    """From the template, and where it lacks a part, from the params.

    Without a template: the title is `subject`, else `title` of the params; the text is `text` of
    the params, else the other params, one a line.

    Raises:
        TemplateError: As `Templates.render`.
    """
    parts = await templates.render(outgoing, channel, (SUBJECT, TITLE, TEXT, HTML))
    params = _decode(outgoing.params_json)
    title = parts.get(SUBJECT) or parts.get(TITLE) or subject or params.get("title")
    line = _line(title if isinstance(title, str) else "") or DEFAULT_TITLE
    if outgoing.test:
        line = f"{TEST}{line}"[:MAX_TITLE]
    text = parts.get(TEXT)
    if text is None:
        text = _plain(params)
    return Message(title=line, text=text.strip() or line, html=parts.get(HTML))


def _plain(params: dict[str, Any]) -> str:
    text = params.get("text")
    if isinstance(text, str):
        return text
    return "\n".join(
        f"{key}: {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for key, value in params.items()
        if key not in ("title", "locale")
    )


def _line(text: str) -> str:
    """Without line ends and control characters: what goes into a header is one line."""
    words = "".join(each if each.isprintable() else " " for each in text).split()
    return " ".join(words)[:MAX_TITLE]

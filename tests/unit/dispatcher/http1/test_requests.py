"""The bytes of a request, read back by a parser of requests."""

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.http1 import encode, origin_of, target_of
from reminders.urls import header_problem, origin

HOOKS = origin_of("https://hooks.example")


class Read:
    """What a receiver's parser makes of bytes."""

    def __init__(self, request: bytes) -> None:
        self.target = self.body = b""
        self.headers: list[tuple[str, str]] = []
        self.requests = 0
        parser = httptools.HttpRequestParser(self)
        parser.feed_data(request)
        self.method = parser.get_method()

    def on_url(self, url: bytes) -> None:
        """Of the request line."""
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One."""
        self.headers.append((name.decode(), value.decode()))

    def on_body(self, body: bytes) -> None:
        """Some of it."""
        self.body += body

    def on_message_complete(self) -> None:
        """One request."""
        self.requests += 1


@given(
    path=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40),
    headers=st.dictionaries(
        st.from_regex(r"[A-Za-z-]{1,12}", fullmatch=True),
        st.text(st.characters(min_codepoint=32, max_codepoint=126)).map(str.strip),
        max_size=4,
    ),
    body=st.binary(max_size=200),
)
def test_what_is_written_is_what_is_read(path: str, headers: dict[str, str], body: bytes) -> None:
    """One POST, with exactly these headers besides those of HTTP, and this body."""
    mine = {name: value for name, value in headers.items() if not header_problem(name, value)}
    read = Read(encode(HOOKS, target_of(path), mine, body))
    assert (read.method, read.requests, read.body) == (b"POST", 1, body)
    assert read.target.startswith(b"/")
    assert read.headers == [
        ("Host", "hooks.example"),
        ("Accept", "*/*"),
        *mine.items(),
        ("Content-Length", str(len(body))),
    ]


@given(
    name=st.sampled_from(["X-A", "X\r", "X\n", "X\0"]),
    value=st.sampled_from(
        ["ok", "a\r\nX-B: 1", "a\nb", "a\rb", "a\r\n\r\nGET / HTTP/1.1", "\0", "é"]
    ),
)
def test_nothing_that_ends_a_line_is_written(name: str, value: str) -> None:
    """Neither in a name nor in a value; nor what is no ASCII."""
    if (name, value) == ("X-A", "ok"):
        assert b"X-A: ok\r\n" in encode(HOOKS, "/", {name: value}, b"")
    else:
        with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
            encode(HOOKS, "/", {name: value}, b"")


@pytest.mark.parametrize("target", ["/a\r\nX: 1", "/a\n", "/é"])
def test_nor_in_a_target(target: str) -> None:
    """It is escaped by `target_of`; what is not is refused."""
    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
        encode(HOOKS, target, {}, b"")


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://h.example", "/"),
        ("https://h.example/", "/"),
        ("https://h.example?a=b", "/?a=b"),
        ("https://h.example#part", "/"),
        ("https://h.example/a/b?c=d&e=%20f#part", "/a/b?c=d&e=%20f"),
        ("https://h.example/a//b/../c", "/a//b/../c"),
        ("https://h.example/%7Ea/%2Fb", "/%7Ea/%2Fb"),
        ('https://h.example/"<{|}>^`', "/%22%3C%7B%7C%7D%3E%5E%60"),
        ("https://h.example/[x]?y=[]", "/%5Bx%5D?y=%5B%5D"),
    ],
)
def test_the_target_is_the_path_as_written(url: str, target: str) -> None:
    """A signature or a router may depend on it; only what no request line may hold is escaped."""
    assert target_of(url[len(origin(url)) :]) == target


@pytest.mark.parametrize(
    ("text", "host", "port", "authority"),
    [
        ("https://Hooks.Example", "hooks.example", 443, "hooks.example"),
        ("HTTPS://hooks.example:443", "hooks.example", 443, "hooks.example"),
        ("http://hooks.example:443", "hooks.example", 443, "hooks.example:443"),
        ("http://hooks.example", "hooks.example", 80, "hooks.example"),
        ("https://hooks.example.:8443", "hooks.example.", 8443, "hooks.example:8443"),
        ("https://[2001:DB8::1]", "2001:db8::1", 443, "[2001:db8::1]"),
        ("http://127.0.0.1:8080", "127.0.0.1", 8080, "127.0.0.1:8080"),
    ],
)
def test_an_origin_as_a_connection_needs_it(
    text: str, host: str, port: int, authority: str
) -> None:
    """The name is looked up as written, the certificate and `Host` have no last dot."""
    found = origin_of(text)
    assert (found.host, found.port, found.authority) == (host, port, authority)
    assert found.server_name == host.rstrip(".")
    assert found.secure == text.lower().startswith("https")


@pytest.mark.parametrize(
    "text", ["hooks.example", "ftp://hooks.example", "https://", "https://a:b"]
)
def test_no_origin(text: str) -> None:
    """Checked before; still no guess is made."""
    with pytest.raises(ValueError):  # noqa: PT011 - of several kinds
        origin_of(text)

"""Where a webhook may go, as far as a URL, an address or a header tells by itself."""

import pytest

from reminders.urls import address_problem, header_problem, ports_of, url_problem

PUBLIC = ["8.8.8.8", "1.1.1.1", "192.0.1.1", "2606:4700:4700::1111", "2a00:1450:4007::200e"]

FORBIDDEN = {
    "0.0.0.0": "unspecified",
    "10.1.2.3": "private",
    "100.64.0.1": "carrier-grade NAT",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "169.254.169.254": "link-local",
    "172.31.255.255": "private",
    "192.0.0.8": "protocol assignment",
    "192.0.2.1": "documentation",
    "192.88.99.1": "6to4 relay",
    "192.168.0.1": "private",
    "198.18.0.1": "benchmark",
    "198.51.100.7": "documentation",
    "203.0.113.9": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "::": "unspecified",
    "::1": "loopback",
    "::127.0.0.1": "IPv4-compatible",
    "::ffff:127.0.0.1": "IPv4-mapped",
    "::ffff:8.8.8.8": "IPv4-mapped",
    "64:ff9b::7f00:1": "NAT64",
    "64:ff9b::8.8.8.8": "NAT64",
    "64:ff9b:1::1": "NAT64",
    "100::1": "discard",
    "2001::1": "Teredo",
    "2001:2::1": "benchmark",
    "2001:10::1": "protocol assignment",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4",
    "2002:808:808::1": "6to4",
    "3fff::1": "documentation",
    "4000::1": "non-global",
    "5f00::1": "non-global",
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "2606:4700::1%1": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "ff0e::1": "multicast",
}


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    """Both families."""
    assert address_problem(address, allow_loopback=False) is None


@pytest.mark.parametrize(("address", "kind"), FORBIDDEN.items())
def test_a_special_address_is_refused_by_name(address: str, kind: str) -> None:
    """Those too that `is_global` lets pass."""
    assert address_problem(address, allow_loopback=False) == (
        f"{address} is a {kind} address; only public ones are allowed"
    )


@pytest.mark.parametrize(("address", "kind"), FORBIDDEN.items())
def test_development_allows_loopback_and_nothing_else(address: str, kind: str) -> None:
    """The relaxed policy opens 127.0.0.0/8 and ::1 only."""
    problem = address_problem(address, allow_loopback=True)
    assert (problem is None) == (kind == "loopback")


@pytest.mark.parametrize(
    "form", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.01", "", "localhost"]
)
def test_an_address_in_an_unusual_form_is_refused(form: str) -> None:
    """What resolvers read as an address and `ipaddress` does not."""
    assert address_problem(form, allow_loopback=True) is not None


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com./hook",
        "https://EXAMPLE.com:8443/hook?x=1#part",
        "https://xn--bcher-kva.example/",
        "https://8.8.8.8/hook",
        "https://[2606:4700:4700::1111]:443/hook",
        "https://under_score.example.com/%7Ea",
    ],
)
def test_public_https_is_allowed(url: str) -> None:
    """Names, literals, ports, paths."""
    assert url_problem(url, allow_loopback_http=False) is None


REFUSED = [
    "http://example.com/",
    "ftp://example.com/",
    "//example.com/",
    "example.com",
    "https://",
    "https:///hook",
    "https://user@example.com/",
    "https://user:secret@example.com/",
    "https://example.com@127.0.0.1/",
    "https://example.com:0/",
    "https://example.com:99999/",
    "https://example.com:port/",
    "https://example.com\\@127.0.0.1/",
    "https://exa mple.com/",
    "https://example.com/a b",
    "https://example.com/\nhost",
    "https://bücher.example/",
    "https://127.0.0.1.",
    "https://１２７.０.０.１/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://api.localhost/",
    "https://printer.local/",
    "https://metadata.google.internal/",
    "https://redis/",
    "https://-bad-.example/",
    "https://a..example/",
    "https://exam%70le.com/",
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://1.2.3.4.5/",
    "https://256.1.1.1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[fe80::1%25eth0]/",
    "https://[v1.a]/",
    "https://[::1",
    "https://[2606:4700:4700::1111]x/",
    "https://[2606:4700:4700::1111]x:443/",
    "https://[2606:4700:4700::1111].example.com/",
    "https://[2606:4700:4700::1111]127.0.0.1/",
    "https://x[2606:4700:4700::1111]/",
    "https://[2606:4700:4700::1111][::1]/",
    "https://example.com/" + "a" * 2048,
]


@pytest.mark.parametrize("url", REFUSED)
def test_everything_else_is_refused(url: str) -> None:
    """Private places, other schemes, and whatever two parsers could read differently."""
    assert url_problem(url, allow_loopback_http=False)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8080/hook", "http://localhost:1/", "http://[::1]/", "https://127.0.0.1/"],
)
def test_development_allows_loopback_urls(url: str) -> None:
    """Only where the configuration says so."""
    assert url_problem(url, allow_loopback_http=True) is None
    assert url_problem(url, allow_loopback_http=False)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "javascript:alert(1)", "gopher://x/"])
def test_another_scheme_is_what_is_named(url: str) -> None:
    """Whatever else such a URL lacks."""
    assert url_problem(url, allow_loopback_http=True) == "the scheme must be https"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "http://10.0.0.1/",
        "http://127.1/",
        "https://10.0.0.1/",
        "http://[::1]x/",
    ],
)
def test_development_allows_no_other_plain_http(url: str) -> None:
    """The exception is about loopback."""
    assert url_problem(url, allow_loopback_http=True)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("Authorization", "Bearer x", True),
        ("X-Tenant", "", True),
        ("Content-Type", "text/plain", False),
        ("WEBHOOK-ID", "1", False),
        ("x-event-id", "1", False),
        ("Host", "example.com", False),
        ("Transfer-Encoding", "chunked", False),
        ("Proxy-Authorization", "x", False),
        ("X-Split", "a\r\nHost: b", False),
        ("X Space", "a", False),
        ("", "a", False),
        ("X-Latin", "é", False),
    ],
)
def test_headers_of_the_caller_never_replace_ours(name: str, value: str, allowed: bool) -> None:
    """Nor those of the connection, nor can one hold a second."""
    assert (header_problem(name, value) is None) == allowed


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://example.com/", True),
        ("https://example.com:443/", True),
        ("https://example.com:8443/", True),
        ("https://example.com:80/", False),
        ("https://example.com:22/", False),
        ("https://8.8.8.8:6379/", False),
        ("https://[2606:4700:4700::1111]:9042/", False),
    ],
)
def test_only_the_ports_of_https_unless_configured(url: str, allowed: bool) -> None:
    """A webhook is no way to knock at other services; the answer names what is allowed."""
    problem = url_problem(url, allow_loopback_http=False)
    assert (problem is None) == allowed
    assert problem is None or problem.endswith("allowed here: 443, 8443")


def test_ports_by_configuration() -> None:
    """Ranges too; those of development's loopback are free."""
    ports = ports_of(("9000-9999", "443"))
    for port, allowed in ((9000, True), (9999, True), (8999, False), (8443, False)):
        url = f"https://example.com:{port}/"
        assert (url_problem(url, allow_loopback_http=False, ports=ports) is None) == allowed
    assert url_problem("http://127.0.0.1:1/", allow_loopback_http=True, ports=ports) is None

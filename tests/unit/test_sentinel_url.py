"""`redis+sentinel://…`: what it says, and what is no such URL."""

import pytest

from reminders.config.settings import Settings
from reminders.localstack.provide import given_url
from reminders.sentinel_url import SentinelUrl, is_sentinel_url, parse_sentinel_url


def test_it_names_sentinels_service_database_and_login() -> None:
    """A port may be left out; the login is that of the servers, and may be quoted."""
    told = parse_sentinel_url("redis+sentinel://me:p%40ss@s1,s2:7000,[::1]:7001/my%20ring/2")
    assert told == SentinelUrl(
        sentinels=(("s1", 26379), ("s2", 7000), ("::1", 7001)),
        service="my ring",
        database=2,
        username="me",
        password="p@ss",
    )
    assert "p@ss" not in repr(told)
    assert parse_sentinel_url("redis+sentinel://s1/ring").database == 0


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://s1",
        "redis+sentinel://s1/",
        "redis+sentinel:///ring",
        "redis+sentinel://s1,/ring",
        "redis+sentinel://s1:0/ring",
        "redis+sentinel://s1:x/ring",
        "redis+sentinel://s1:70000/ring",
        "redis+sentinel://s1/ring/db",
        "redis+sentinel://s1/ring?db=1",
        "redis://s1/ring",
    ],
)
def test_anything_else_is_refused(url: str) -> None:
    """With the form that it must have; a password is not repeated."""
    with pytest.raises(ValueError, match="write redis\\+sentinel://host:port"):
        parse_sentinel_url(url.replace("://", "://u:s3cret@"))


def test_the_settings_and_the_local_servers_take_it() -> None:
    """Other URLs stay what they were."""
    url = "redis+sentinel://s1:1,s2:2/ring"
    assert Settings(redis_url=url).redis_url == url
    assert given_url(url) == url
    assert is_sentinel_url(url)
    assert not is_sentinel_url("redis://s1")

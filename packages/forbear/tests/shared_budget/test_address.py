"""URLs of servers: what is understood, and errors that say what is wrong without the password."""

import pytest

from forbear.shared_budget.address import parse_url

GOOD = [
    ("redis://localhost", "redis://localhost:6379/0", []),
    ("redis://h:1/2", "redis://h:1/2", [(b"SELECT", b"2")]),
    ("redis://:s%40crt@h?db=3", "redis://h:6379/3", [(b"AUTH", b"s@crt"), (b"SELECT", b"3")]),
    ("rediss://me:s@[::1]:7", "rediss://[::1]:7/0", [(b"AUTH", b"me", b"s")]),
    ("unix:///run/a%20b.sock?db=1", "unix:///run/a b.sock?db=1", [(b"SELECT", b"1")]),
    ("unix://:s@/run/v.sock", "unix:///run/v.sock", [(b"AUTH", b"s")]),
]


@pytest.mark.parametrize(("url", "shown", "greeting"), GOOD)
def test_a_url_is_parsed(url: str, shown: str, greeting: list[tuple[bytes, ...]]) -> None:
    """It is shown without user and password, which go into the first commands."""
    address = parse_url("url", url)
    assert address.shown == shown
    assert address.greeting() == greeting


BAD = [
    ("", "it has no scheme"),
    ("localhost:6379", "its scheme is another one"),
    ("http://:hunter2@h", "its scheme is another one"),
    ("redis://:hunter2@", "it has no host"),
    ("redis://:hunter2@h:0", "its port is 0"),
    ("redis://:hunter2@h:99999", "it cannot be parsed"),
    ("redis://:hunter2@h/x", "its database is not a number"),
    ("redis://:hunter2@h/1?db=2", "it names the database twice"),
    ("redis://hunter2@h", "it has a user without a password"),
    ("redis://:hunter2@h?timeout=1", "its option `timeout` is not known; pass a client object for other options"),
    ("redis://:hunter2@h?db", "it cannot be parsed"),
    ("redis://:hunter2@h#1", "it has a fragment (#)"),
    ("unix://:hunter2@", "it has no path"),
    ("redis://:hunter2\udc80@h", "it cannot be parsed"),
    ("redis://:hunter2@h\0", "it has a zero character"),
    ("unix://run/v.sock", "its path must begin with a slash"),
]


@pytest.mark.parametrize(("url", "why"), BAD)
def test_a_wrong_url_is_refused(url: str, why: str) -> None:
    """The error names the parameter and the forms, but never the URL, which may have a password."""
    with pytest.raises(ValueError, match="`there` must be a URL such as redis://") as caught:
        parse_url("there", url)
    assert str(caught.value).endswith(f", but {why}")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__

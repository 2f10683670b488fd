"""Keys by which hosts drop duplicates: at which origins they count, and which values are refused."""

import pickle
from typing import Any

import pytest

from forbear.http.idempotency import IdempotencyKey
from forbear.http.request import Request


@pytest.mark.parametrize(
    ("origins", "request_", "expected"),
    [
        ("https://api.example.com", Request("POST", "api.example.com", "/"), True),
        ("https://api.example.com/", Request("POST", "api.example.com:443", "/a?b"), True),
        ("api.example.com", Request("POST", "API.example.com", "/"), True),
        ("api.example.com", Request("POST", "api.example.com", "/", scheme="http"), False),
        (["https://a.example", "http://API.example.com:8443"], Request("POST", "api.EXAMPLE.com:8443", "/"), False),
        (
            ["https://a.example", "http://API.example.com:8443"],
            Request("POST", "api.EXAMPLE.com", "/", scheme="http", port=8443),
            True,
        ),
        ("https://api.example.com", Request("POST", "example.com", "/"), False),
        ("https://[::1]:8080", Request("POST", "[::1]:8080", "/"), True),
        ("[::1]", Request("POST", "[::1]", "/"), True),
    ],
)
def test_a_key_counts_only_at_named_origins(origins: Any, request_: Request, expected: bool) -> None:
    """A key counts at the origins that were named, with their scheme and port; a host alone means https."""
    key = IdempotencyKey("Key", origins)
    assert key.is_for(request_.origin) is expected
    assert pickle.loads(pickle.dumps(key)) == key


def test_the_hosts_of_a_key() -> None:
    """Each is there once, without scheme and port."""
    key = IdempotencyKey("Key", ["https://b.example:8443", "http://b.example", "A.example", "[::1]"])
    assert key.hosts == ("::1", "a.example", "b.example")


def test_the_repr_of_a_key() -> None:
    """It shows what the user wrote."""
    assert repr(IdempotencyKey("Key", "https://h.example", add=True)) == (
        "IdempotencyKey(header='Key', origins=('https://h.example',), add=True)"
    )


@pytest.mark.parametrize(
    ("header", "origins", "add", "words"),
    [
        ("a b", "h.example", False, "`header` must be the name of a header"),
        ("", "h.example", False, "`header` must be the name of a header"),
        (None, "h.example", False, "`header` must"),
        ("Key", None, False, "`origins` must .*; got None"),
        ("Key", [], False, "`origins` must .*; got none"),
        ("Key", 7, False, "`origins` must .*; got 7"),
        ("Key", [7], False, r"`origins` must .*; got \(7,\)"),
        ("Key", "https://h.example/v1", False, "`origins` must .*, without a path; got 'https://h.example/v1'"),
        ("Key", "ftp://h.example", False, "`origins` must .*; got the origin 'ftp://h.example'"),
        ("Key", "*.example", False, r"`origins` must .*; got the origin 'https://\*.example'"),
        ("Key", "user@h.example", False, "`origins` must .*; got the origin 'https://user@h.example'"),
        ("Key", "", False, "`origins` must .*; got the origin 'https://'"),
        ("Key", "h.example", 1, "`add` must be True .* or False, got 1"),
    ],
)
def test_wrong_keys(header: Any, origins: Any, add: Any, words: str) -> None:
    """The error names the parameter, the rule and the value."""
    with pytest.raises((TypeError, ValueError), match=words):
        IdempotencyKey(header, origins, add)

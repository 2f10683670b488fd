"""Keys by which hosts drop duplicates: for which hosts they count, and which values are refused."""

import pickle
from typing import Any

import pytest

from forbear.http.idempotency import IdempotencyKey


@pytest.mark.parametrize(
    ("hosts", "host", "expected"),
    [
        ("api.example.com", "api.example.com", True),
        (["a.example", "API.example.com"], "api.EXAMPLE.com:8443", True),
        ("api.example.com", "example.com", False),
        ("::1", "[::1]:8080", True),
        ("[::1]", "::1", True),
        (None, "anything.example", True),
    ],
)
def test_hosts(hosts: Any, host: str, expected: bool) -> None:
    """A key counts on the hosts that were named, in any case and at any port; None stands for all."""
    key = IdempotencyKey("Key", hosts)
    assert key.is_for(host) is expected
    assert pickle.loads(pickle.dumps(key)) == key


@pytest.mark.parametrize(
    ("header", "hosts", "add", "words"),
    [
        ("a b", "h.example", False, "`header` must be the name of a header"),
        ("", "h.example", False, "`header` must be the name of a header"),
        (None, "h.example", False, "`header` must"),
        ("Key", [], False, "`hosts` must .*; got none"),
        ("Key", 7, False, "`hosts` must .*; got 7"),
        ("Key", [7], False, "`hosts` must .*; got 7"),
        ("Key", "https://h.example", False, "`hosts` must .* without scheme and port; got 'https://h.example'"),
        ("Key", "h.example:443", False, "`hosts` must .*; got 'h.example:443'"),
        ("Key", "*.example", False, r"`hosts` must .*; got '\*.example'"),
        ("Key", "", False, "`hosts` must .*; got ''"),
        ("Key", "h.example", 1, "`add` must be True .* or False, got 1"),
    ],
)
def test_wrong_keys(header: Any, hosts: Any, add: Any, words: str) -> None:
    """The error names the parameter, the rule and the value."""
    with pytest.raises((TypeError, ValueError), match=words):
        IdempotencyKey(header, hosts, add)

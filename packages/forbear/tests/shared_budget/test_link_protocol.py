"""URLs of servers, and the connection: scripts that the server does not know yet, their order, and its end."""

import socket
import threading
import time
from collections.abc import Generator

import pytest
from redis import Redis

from forbear.shared_budget import link as link_module
from forbear.shared_budget.link import Address, SocketLink, hide_login, parse_url
from forbear.shared_budget.script import BucketState, LinkFailed, command, key_of, parse
from forbear.testing.valkey import valkey_server
from forbear_testkit.clients.redis.proxy import Command, Fate, proxy

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
    assert address.greeting == greeting


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


@pytest.mark.parametrize(("text", "shown"), [("of bob, bobby: s3cret", "of [redacted], bobby: [redacted]"), ("", "")])
def test_a_login_is_hidden(text: str, shown: str) -> None:
    """The user only where it is a word of its own; without a login the text stays."""
    assert hide_login(text, ("bob", "s3cret")) == shown
    assert hide_login(text, (None, None)) == text


@pytest.fixture(scope="module")
def path() -> Generator[str]:
    """Run one server for all tests of this module."""
    with valkey_server() as running:
        yield running


def answers(link: SocketLink, count: int) -> list[object]:
    """Return so many responses."""
    until = time.monotonic() + 10
    responses = link.receive()
    while len(responses) < count and time.monotonic() < until:
        link.wait(1)
        responses += link.receive()
    return responses


def test_a_server_that_forgot_the_script_gets_it_again(path: str) -> None:
    """The digest is sent, and the script only where the server does not know it; each command is executed once."""
    with proxy(path, lambda _: "forward") as seen, Redis(unix_socket_path=path) as admin:
        link = SocketLink(parse_url("url", f"redis://127.0.0.1:{seen.port}"))
        states: list[BucketState] = []
        for flushes in (True, False, True):
            if flushes:
                admin.script_flush()
            link.send(command(key_of("forgot"), 9_000_000, 1_000_000, 0), 0.0)
            states += map(parse, answers(link, 1))
        link.close()
    assert seen.asked == ["EVALSHA", "EVAL", "EVALSHA", "EVALSHA", "EVAL"]
    assert [state.tokens for state in states] == [1_900_000, 2_900_000, 3_900_000]


def test_responses_keep_the_order_of_the_commands(path: str) -> None:
    """The first command has to be sent anew, and the second one is executed before that."""
    fates: list[Fate] = [b"-NOSCRIPT No matching script.\r\n"]

    def script(command: Command) -> Fate:
        return fates.pop(0) if fates else b"*3\r\n:0\r\n:%b\r\n:0\r\n" % command[5]

    with proxy(path, script) as seen:
        link = SocketLink(parse_url("url", f"redis://127.0.0.1:{seen.port}"))
        for deposit in (1, 2):
            link.send(command(b"k", 9, deposit, 0), 0.0)
        assert answers(link, 2) == [[0, 1, 0], [0, 2, 0]]
        link.close()
    assert seen.asked == ["EVALSHA", "EVALSHA", "EVAL"]


def test_a_script_that_is_never_known_ends(path: str) -> None:
    """A server that does not know the script that it was just sent is given up."""
    with proxy(path, lambda _: b"-NOSCRIPT No matching script.\r\n") as seen:
        link = SocketLink(parse_url("url", f"redis://127.0.0.1:{seen.port}"))
        link.send(command(b"k", 9, 1, 0), 0.0)
        with pytest.raises(LinkFailed, match="the server refused the script: NOSCRIPT"):
            answers(link, 1)
        link.close()


@pytest.mark.parametrize("fate", [b"+QUEUED\r\n", b"*3\r\n:0\r\n:0\r\n:0\r\n"])
def test_a_strange_response_to_the_greeting(path: str, fate: Fate) -> None:
    """Only OK lets the script follow."""
    with proxy(path, lambda _: fate) as seen:
        link = SocketLink(parse_url("url", f"redis://127.0.0.1:{seen.port}/1"))
        link.send(command(b"k", 9, 1, 0), 0.0)
        with pytest.raises(LinkFailed, match="the server sent a response to AUTH or SELECT that is not OK"):
            answers(link, 1)
        link.close()


def test_a_connection_that_opens_too_late_is_closed(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The link was closed while a thread looked up the name; an unclosed socket would be a warning."""
    closed, connect = threading.Event(), link_module._connect

    def connect_late(address: Address) -> socket.socket:
        assert closed.wait(10)
        return connect(address)

    monkeypatch.setattr(link_module, "_connect", connect_late)
    with proxy(path, lambda _: "forward") as seen:
        link = SocketLink(parse_url("url", f"redis://localhost:{seen.port}"))
        link.send(command(b"k", 9, 1, 0), 0.0)
        opener = link._opener
        link.close()
        closed.set()
        assert opener is not None
        opener.join(10)
        assert link.receive() == []
    assert seen.asked == []

"""Redirects with 307 and 308 in a function: the server that sends one has executed nothing."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
import requests

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply

LOST, OK = Answer(end="close"), reply(200, b"{}")
POLICY = forbear.retry(on=Exception, attempts=2, timeout=None)
Post = Callable[..., int]

_OPEN = ExitStack()


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the clients that a test has opened."""
    with _OPEN:
        yield


class Broken(Exception):
    """The error of a function."""


def moved(status: int) -> Answer:
    """Return a redirect to /moved."""
    return reply(status, b"", "Location: /moved")


def with_httpx(wire: Wire, **more: Any) -> Post:
    """Return a function that posts by httpx, follows redirects, and returns the status."""
    client = _OPEN.enter_context(httpx.Client(follow_redirects=True, verify=False))
    forbear.install(client, attempts=1, **more)

    def post(path: str = "/charges", **rest: Any) -> int:
        return client.post(wire.url + path, **rest).status_code

    return post


def with_requests(wire: Wire, **more: Any) -> Post:
    """Return a function that posts by requests, and returns the status."""
    session = forbear.install(_OPEN.enter_context(requests.Session()), attempts=1, **more)

    def post(path: str = "/charges", **rest: Any) -> int:
        return session.post(wire.url + path, timeout=5, **rest).status_code

    return post


BOTH = pytest.mark.parametrize("make", [with_httpx, with_requests])


@BOTH
@pytest.mark.parametrize(("status", "attempts"), [(307, 2), (308, 2), (302, 1)])
def test_what_was_only_redirected_was_not_executed(make: Callable[..., Post], status: int, attempts: int) -> None:
    """A redirect and a refusal leave nothing executed, so the function is called again; 302 may follow a success."""
    with Wire(moved(status), reply(404), moved(status), reply(404)) as wire, virtual_time():
        post, calls = make(wire), list[int]()

        def charge() -> None:
            calls.append(post())
            raise Broken

        with pytest.raises(Broken):
            POLICY.call(charge)
        assert calls == [404] * attempts

"""Responses that helpers of a failed function keep for it, and those that lie in what wraps them."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import httpx
import pytest
import requests

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
OK, LOST, BUSY = reply(200, b"{}"), Answer(end="close"), reply(500, b"{}")


def methods(work: Callable[[str], object], *answers: Answer) -> list[str]:
    """Return the methods of the requests that a function sends, which fails in each attempt."""
    with Wire(*(answers or (OK,))) as wire, virtual_time():
        url = f"{wire.url}/orders"
        with pytest.raises((KeyError, ZeroDivisionError, requests.RequestException, httpx.HTTPError)):
            POLICY.call(work, url)
        return [seen.method for seen in wire.seen]


CURRENT: ContextVar[Any] = ContextVar("CURRENT")
BY_NAME: dict[str, Any] = {}


def create(url: str) -> Any:
    """Send an order, and return the response."""
    return requests.post(url, timeout=5)


def set_current(url: str) -> None:
    """Send an order, and keep its response in a context variable."""
    CURRENT.set(create(url))
    CURRENT.set(requests.post(url, timeout=5))


class Shop:
    """A client of the user's own, which keeps responses in several ways."""

    last: Any = None

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.by_name: dict[str, Any] = {}

    def send(self, url: str) -> None:
        """Keep the response, and return nothing."""
        self.last = requests.post(url, timeout=5)

    def send_and_use(self, url: str) -> None:
        """Use what a helper has kept."""
        self.send(url)
        self.last.json()["id"]

    def append(self, url: str) -> None:
        """Put the response into a list of outside."""
        self.all.append(requests.post(url, timeout=5))
        self.all[-1].json()["id"]

    def set_item(self, url: str) -> None:
        """Put the response into a dict of outside."""
        self.by_name["order"] = requests.post(url, timeout=5)
        raise KeyError(url)


class Order:
    """An order that sends itself."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __enter__(self) -> Self:
        self.reply = create(self.url)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @cached_property
    def answer(self) -> Any:
        """The response, asked for once."""
        return requests.post(self.url, timeout=5)


@dataclass
class Box:
    """A thing that holds another one."""

    inner: Any


SHOP = Shop()


def by_object(url: str) -> None:
    """Use a client of outside that keeps the last response, and returns none."""
    SHOP.send(url)
    raise KeyError(url)


def by_module(url: str) -> None:
    """Put the response into a global dict."""
    BY_NAME["order"] = requests.post(url, timeout=5)
    raise KeyError(url)


def by_context(url: str) -> None:
    """Use a context variable that a helper sets."""
    set_current(url)
    raise KeyError(url)


def by_manager(url: str) -> None:
    """Use an object whose class sends."""
    with Order(url) as order:
        raise KeyError(order)


def by_property(url: str) -> None:
    """Use a property that sends."""
    order = Order(url)
    order.answer.json()["id"]


def in_boxes(url: str) -> None:
    """Hold the response in an object of an object."""
    order = Box(Box(create(url)))
    raise KeyError(order)


def by_method_of_it(url: str) -> None:
    """Hold only a method of the response."""
    get = create(url).json
    get()["id"]


def in_a_partial(url: str) -> None:
    """Hold the response as an argument of a call to come."""
    later = partial(print, create(url))
    raise KeyError(later)


def by_a_thread(url: str) -> None:
    """Send in a thread, by a function within."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(requests.post(url, timeout=5)))
    thread.start()
    thread.join()
    raise KeyError(len(found))


def by_a_name_within(url: str) -> None:
    """Set a variable by a function within."""
    order = None

    def send() -> None:
        nonlocal order
        order = create(url)

    send()
    raise KeyError(order)


def by_a_task(url: str) -> None:
    """Hold a task whose result is the response."""

    async def main() -> None:
        async with httpx.AsyncClient(verify=False) as client, asyncio.TaskGroup() as group:
            task = group.create_task(client.post(url))
        task.result().json()["id"]

    asyncio.run(main())


WORKS = [
    SHOP.send_and_use, SHOP.append, SHOP.set_item, by_object, by_module, by_manager, by_property, in_boxes,
    by_method_of_it, in_a_partial, by_a_thread, by_a_name_within, by_a_task,
]  # fmt: skip


@pytest.mark.parametrize("work", WORKS)
def test_a_write_that_worked(work: Callable[[str], None]) -> None:
    """A response that a helper keeps, or that lies in a wrapper, was sent in the attempt."""
    assert methods(work) == ["POST"]


def test_a_context_variable() -> None:
    """A variable of the context that a helper sets counts as a global does."""
    assert methods(by_context) == ["POST", "POST"]


def keep_errors(url: str) -> None:
    """Catch the error of a request, keep it, and fail later."""
    errors = []
    try:
        create(url).raise_for_status()
    except requests.RequestException as error:
        errors.append(error)
    raise KeyError(len(errors))


def gather_errors(url: str) -> None:
    """Have the error of a request as a result."""

    async def main() -> None:
        async with httpx.AsyncClient(verify=False) as client:
            results = await asyncio.gather(client.post(url), return_exceptions=True)
        raise KeyError(len(results))

    asyncio.run(main())


def wait_for_errors(url: str) -> None:
    """Have the error of a request in a task that failed."""

    async def main() -> None:
        async with httpx.AsyncClient(verify=False) as client:
            done, _ = await asyncio.wait([asyncio.create_task(client.post(url))])
            failed = [task for task in done if task.exception()]
            raise KeyError(len(failed))

    asyncio.run(main())


@pytest.mark.parametrize("work", [keep_errors, gather_errors, wait_for_errors])
def test_a_failure_that_was_caught_and_kept(work: Callable[[str], None]) -> None:
    """An error that a variable holds shows what was sent, as the one does that arrives."""
    assert methods(work, LOST) == ["POST"]


def test_a_failure_that_does_no_harm() -> None:
    """An error that proves that nothing was executed may be kept, and so may one of before the run."""
    assert methods(keep_errors, reply(404)) == ["POST"] * 3
    with Wire() as nobody:
        pass

    def ask(url: str, error: object = None) -> None:
        text = str(error or before)
        requests.get(url, headers={"X-Text": text[:1]}, timeout=5)
        keep_errors(nobody.url)

    before: Any = None
    assert methods(ask) == ["GET"] * 3
    try:
        keep_errors(nobody.url)
        create(nobody.url)
    except KeyError as error:
        before = error
        assert methods(ask) == ["GET"] * 3
    with Wire(LOST) as wire, pytest.raises(requests.ConnectionError) as caught:
        create(wire.url)
    assert methods(partial(ask, error=caught.value)) == ["GET"] * 3


BODY = """
class Deal:
    for attempt in policy:
        with attempt:
            {0}
"""
HELD = "holder = new()\nfor attempt in policy:\n    with attempt:\n        {0}"


@pytest.mark.parametrize(
    ("code", "work"),
    [
        (BODY, "order = create(url); 1 / 0"),
        (HELD, "holder.order = create(url); 1 / 0"),
        (HELD, "holder.send(url); holder.last.json()['id']"),
    ],
)
def test_a_block_elsewhere(code: str, work: str) -> None:
    """The body of a class has variables of its own, and an object from before a block may be filled within it."""

    def run(url: str) -> None:
        exec(code.format(work), {"create": create, "new": Shop, "policy": POLICY, "url": url})

    with Wire(OK) as wire, virtual_time():
        with pytest.raises((KeyError, ZeroDivisionError)):
            run(wire.url)
        assert len(wire.seen) == 1


async def _fail(client: httpx.AsyncClient, url: str) -> None:
    await client.get(url)
    raise KeyError(url)


@pytest.mark.parametrize("before", [False, True])
def test_an_async_block(before: bool) -> None:
    """A response that a variable has held since before an asynchronous loop is none of its writes."""

    async def work(url: str) -> None:
        async with httpx.AsyncClient(verify=False) as client:
            response = await client.post(url) if before else None
            async for attempt in POLICY:
                async with attempt:
                    if not before:
                        order = await client.post(url)
                        raise KeyError(order)
                    await _fail(client, url)
        raise AssertionError(response)

    with Wire(OK) as wire, virtual_time():
        with pytest.raises(KeyError):
            asyncio.run(work(wire.url))
        assert [seen.method for seen in wire.seen] == ["POST", *["GET"] * 3 * before]


@pytest.mark.parametrize("library", [httpx, requests])
def test_the_status_of_an_argument(library: Any) -> None:
    """`raise_for_status` of a response that is an argument shows a request of before."""
    calls = list[int]()

    def check(response: Any) -> None:
        calls.append(1)
        response.raise_for_status()

    with Wire(BUSY) as wire, virtual_time():
        with pytest.raises((requests.HTTPError, httpx.HTTPStatusError)):
            POLICY.call(check, library.post(wire.url))
        assert len(calls) == 3
        with pytest.raises((requests.HTTPError, httpx.HTTPStatusError)):
            POLICY.call(lambda: check(library.post(wire.url)))
        assert len(calls) == 4


class Login(httpx.Auth):
    """An `auth_flow` that asks for a token first."""

    requires_response_body = True

    def __init__(self, grant: dict[str, str]) -> None:
        self.grant = grant

    def auth_flow(self, request: httpx.Request) -> Any:
        """Send the request for the token, then the request itself."""
        response = yield httpx.Request("POST", request.url.join("/token"), data=self.grant)
        request.headers["Authorization"] = response.text
        yield request


@pytest.mark.parametrize(("kind", "calls"), [("client_credentials", 3), ("refresh_token", 1)])
def test_a_token_of_an_auth_flow(kind: str, calls: int) -> None:
    """A token by client credentials may be asked for again; one by a refresh token, which is used up, may not."""
    with closing(httpx.Client(verify=False, auth=Login({"grant_type": kind}))) as client:
        sent = methods(client.get, OK, LOST, OK, LOST, OK, LOST)
    assert sent == ["POST", "GET"] * calls


class Telling(SimpleNamespace):
    """An object that tells when somebody asks it for what it lacks."""

    asked: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        raise AttributeError(name)


def test_nothing_is_asked_for_its_helpers() -> None:
    """Helpers are looked up without running code of the user."""
    Telling.asked.clear()
    holder = Telling(held=Telling())

    def work(url: str) -> None:
        response = create(url)
        raise KeyError(holder.held, response)

    assert methods(work) == ["POST"]
    assert Telling.asked == []


def test_a_helper_that_fails_before_it_sends() -> None:
    """Nothing is held, so the function is called again."""

    def work(_: str) -> None:
        shop = Shop()
        if not shop.all:
            raise KeyError("nothing to send")
        shop.send("")

    assert methods(work) == []

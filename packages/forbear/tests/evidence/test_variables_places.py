"""Places where a failed function holds a response: variables, objects, attributes, globals, scripts, its error."""

import http.client
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from textwrap import indent
from typing import Any, ClassVar, NamedTuple

import httpx
import pytest
import requests

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Wire, reply

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)


class ShopError(Exception):
    """An error of the user's own, which knows no request."""


def attempts(work: Callable[[str], object], status: int) -> int:
    """Return how often a function is called whose requests are answered by a status."""
    calls = list[str]()
    with Wire(*[reply(status, b"{}")] * 3) as wire, virtual_time():

        def function() -> None:
            calls.append(wire.url)
            work(f"{wire.url}/orders")

        with pytest.raises((ShopError, KeyError)):
            POLICY.call(function)
    return len(calls)


@dataclass(slots=True)
class Order:
    """A thing that was ordered, and the response."""

    answer: Any


LAST: list[Any] = []
latest: Any = None


class Shop:
    """A shop that keeps each response."""

    last: Any = None

    def order(self, url: str) -> None:
        """Send an order, and keep the response before it fails."""
        self.last = got = httpx.post(url)
        LAST.append(got)
        raise ShopError(got.status_code)

    def order_only(self, url: str) -> None:
        """Send an order, and hold its response nowhere else."""
        self.last = requests.post(url, timeout=5)
        raise ShopError(url)

    def send(self, url: str) -> Any:
        """Send an order, keep its response, and return it."""
        self.last = requests.post(url, timeout=5)
        return self.last

    def order_by_helper(self, url: str) -> None:
        """Send by a helper that keeps the response, and hold it, too."""
        got = self.send(url)
        raise ShopError(got.status_code)

    def order_by_object(self, url: str) -> None:
        """Send by a helper that keeps the response, and hold it in an object, too."""
        order = Order(self.send(url))
        raise ShopError(repr(order))

    def ask(self, _: str) -> None:
        """Use what an earlier order has left."""
        raise ShopError(self.last.status_code)


def order_in_general(url: str) -> None:
    """Send an order, and hold its response in a global variable."""
    global latest  # noqa: PLW0603 - the test is about it
    latest = requests.post(url, timeout=5)
    raise ShopError(url)


STORING = [
    Shop().order, Shop().order_only, Shop().order_by_helper, Shop().order_by_object, order_in_general
]  # fmt: skip


@pytest.mark.parametrize("work", STORING)
def test_a_response_that_the_attempt_stores(work: Callable[[str], None]) -> None:
    """A response that the attempt puts into an object, a list or a global of outside was sent in it all the same."""
    assert attempts(work, 200) == 1


def test_what_an_argument_has_held_before() -> None:
    """A response that an argument holds counts only if the failed functions store such an attribute."""
    shop = Shop()
    with Wire(reply(200)) as wire, virtual_time():
        shop.last = httpx.post(wire.url)
        with pytest.raises(ShopError) as caught:
            POLICY.call(shop.ask, wire.url)
    assert "limit of 3 attempts" in caught.value.__notes__[-1]


def create(url: str) -> Any:
    """Send an order, without a variable for its response."""
    return requests.post(url, timeout=5)


def by_any_name(url: str) -> None:
    """Use a response by a name that tells nothing."""
    order = create(url)
    order.json()["id"]


def in_a_list(url: str) -> None:
    """Send two orders, and hold both."""
    both = [requests.post(url, timeout=5), create(url)]
    raise ShopError(len(both))


def deep_in_lists(url: str) -> None:
    """Send orders of two shops, and hold what they answered by shop."""
    by_shop = {"here": [(1, requests.post(url, timeout=5))], "there": [(2, create(url))]}
    raise ShopError(len(by_shop))


class Pair(NamedTuple):
    """A name, and the response."""

    name: str
    answer: Any


def in_an_object(url: str) -> None:
    """Hold a response in an object that the attempt makes."""
    order = Order(requests.post(url, timeout=5))
    raise ShopError(repr(order))


def beside_much(url: str) -> None:
    """Hold a response beside a long list."""
    got, numbers = create(url), list(range(5000))
    raise ShopError(got.text, numbers)


def in_named_tuples(url: str) -> None:
    """Hold responses in tuples whose fields have names."""
    orders = [Pair("first", requests.post(url, timeout=5))]
    raise ShopError(len(orders))


class Receipt(requests.Response):
    """A response by another name."""


def by_another_name(url: str) -> None:
    """Hold a response of a class of one's own."""
    got = create(url)
    got.__class__ = Receipt
    got.json()["id"]


def in_a_cell(url: str) -> None:
    """Hold a response in a cell of a function within."""
    resp = create(url)
    later = lambda: resp  # noqa: E731
    raise ShopError(str(later))


def by_http_client(url: str) -> None:
    """Send over a connection of outside, which holds its response, too."""
    host, _, path = url.removeprefix("http://").partition("/")
    with closing(http.client.HTTPConnection(host)) as connection:
        connection.request("POST", f"/{path}")
        got = connection.getresponse()
        got.read()
        raise ShopError(got.status)


HOLDING = [
    by_any_name, beside_much, in_a_list, deep_in_lists, in_an_object, in_named_tuples,
    by_another_name, in_a_cell, by_http_client,
]  # fmt: skip


@pytest.mark.parametrize("work", HOLDING)
def test_where_a_response_is_held(work: Callable[[str], None]) -> None:
    """A variable of any name counts if the function uses it as a response; so does a list, an object or a cell."""
    assert attempts(work, 200) == 1


BLOCK = """
{before}
for attempt in policy:
    with attempt:
        count()
        {within}
"""
HELPER = "def send():\n    global response\n    response = create(url)\n"


@pytest.mark.parametrize(
    ("before", "within", "calls"),
    [
        ("", "response = create(url); 1 / 0", 1),
        ("response = create(url)", "1 / 0", 3),
        ("response = None", "response = create(url)\n        for _ in 'a': 1 / 0", 1),
        ("response = create(url)", "response = create(url); 1 / 0", 1),
        (f"response = None\n{HELPER}", "send(); 1 / 0", 1),
    ],
)
@pytest.mark.parametrize("in_function", [False, True])
def test_a_block(before: str, within: str, calls: int, in_function: bool) -> None:
    """In a script, too, a response counts unless its variable is set only before the loop."""
    counted = list[int]()
    code = BLOCK.format(before=before, within=within)
    if in_function:
        code = f"def main():\n{indent(code, '    ')}\nmain()".replace("global", "nonlocal")
    with Wire(*[reply(200, b"{}")] * 4) as wire, virtual_time():
        names = {"create": create, "policy": POLICY, "url": wire.url, "count": lambda: counted.append(1)}
        with pytest.raises(ZeroDivisionError):
            exec(code, names)
    assert len(counted) == calls


def test_an_error_of_ones_own_that_holds_an_argument() -> None:
    """The response in an error of the user's counts, unless it is an argument."""
    calls = list[int]()

    def check(response: Any, *, as_attribute: bool = False) -> None:
        calls.append(1)
        error = ShopError(response)
        if as_attribute:
            error = ShopError()
            error.response = response  # type: ignore[attr-defined]
        raise error

    for as_attribute in (False, True):
        work = partial(check, as_attribute=as_attribute)
        with Wire(reply(200)) as wire, virtual_time(), pytest.raises(ShopError):
            POLICY.call(work, httpx.post(wire.url))
        assert len(calls) == 3
        assert attempts(lambda url, work=work: work(create(url)), 200) == 1  # type: ignore[misc]
        calls.clear()


class Telling:
    """An object whose attributes are code that tells that it ran."""

    ran: ClassVar[list[str]] = []

    def __getattribute__(self, name: str) -> Any:
        """Tell, and block nobody."""
        Telling.ran.append(name)
        return super().__getattribute__(name)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """Tell, and lie."""
        Telling.ran.append("__dict__")
        return {"response": httpx.Response(200)}


@pytest.mark.parametrize("status", [200, 404])
def test_no_code_of_the_user_runs(status: int) -> None:
    """Neither a property called `__dict__` nor any other attribute is asked, of a variable, an error or an argument."""

    def work(_: object, url: str) -> None:
        response = create(url)
        telling = Telling()
        error = ShopError(response, telling, [telling])
        error.thing = telling  # type: ignore[attr-defined]
        raise error

    Telling.ran.clear()
    assert attempts(partial(work, Telling()), status) == (1 if status == 200 else 3)
    assert Telling.ran == []

"""Arguments of the run: the values that are equal in each attempt, and names that look drawn."""

import asyncio
import os
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import requests

import forbear
from forbear.judges.arguments import Arguments
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply

LOST, OK = Answer(end="close"), reply(200, b"{}")
KEY = "order-4711-2026"
UUID = uuid.UUID("0f8fad5b-d9cb-469f-a165-70867728950e")


@pytest.mark.parametrize("value", [KEY, KEY.encode(), UUID, 1_700_000_000_000_001], ids=type)
def test_k8_what_is_long_enough_is_kept(value: object) -> None:
    """K8: texts, bytes, UUIDs and large numbers, by their text, by position or by name, and of a partial."""
    text = value.decode() if isinstance(value, bytes) else str(value)
    assert Arguments(None, (value,), {}).keep(text)
    assert Arguments(None, (), {"key": value}).keep(text)
    assert Arguments(partial(print, value), (), {}).keep(text)


@pytest.mark.parametrize("value", ["short", "*", "", 1, True, 999_999_999, None, ["order-4711-2026"]], ids=repr)
def test_k8_what_may_be_equal_by_chance_is_not(value: Any) -> None:
    """K8: `by=1` and metageneration 1 are equal by chance; an item of a list may change in each attempt."""
    assert not Arguments(None, (value,), {}).keep(value if not isinstance(value, list) else value[0])


def test_k8_no_code_of_the_user_runs() -> None:
    """K8: a class of the user's own is never compared."""

    class Lying(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        __hash__ = str.__hash__

    assert not Arguments(None, (Lying(KEY),), {}).keep(KEY)


def make_reader() -> Callable[[], str]:
    """Return a function that reads a cell whose owner has ended."""
    key = KEY
    return lambda: key


def test_k8_cells() -> None:
    """K8: a cell counts if its owner waits, and neither the function nor another one within the owner stores to it."""
    fixed, changing, drawn = KEY, "changing-0001", "drawn-0000001"

    def reads() -> str:
        return fixed

    def rebinds() -> str:
        nonlocal changing
        changing = "changing-0002"
        return changing

    def draws() -> None:
        def draw() -> None:
            nonlocal drawn
            drawn = "drawn-0000002"

        draw()

    def calls() -> str:
        draws()
        return drawn

    def shadows() -> Callable[[], None]:
        fixed = ""

        def stores() -> None:
            nonlocal fixed
            fixed += "another variable"

        return stores

    assert Arguments(reads, (), {}).keep(KEY)
    assert not Arguments(rebinds, (), {}).keep("changing-0001")
    assert not Arguments(calls, (), {}).keep("drawn-0000001")
    assert not Arguments(make_reader(), (), {}).keep(KEY)
    assert callable(shadows)


def test_k8_a_key_of_the_function_around() -> None:
    """K8: a variable of a function that waits is the same in each attempt, unless a helper there stores to it."""
    fixed, drawn = "charge-4711", ""

    def draw() -> None:
        nonlocal drawn
        drawn = os.urandom(8).hex()

    def pay_drawn() -> object:
        draw()
        return post(wire, drawn)

    async def pay() -> object:
        return post(wire, fixed)

    def post(wire: Wire, key: str) -> object:
        return requests.post(wire.url, headers={"Idempotency-Key": key}, timeout=5)

    with Wire(LOST, OK, LOST, OK, LOST) as wire, virtual_time():
        api = forbear.Api(wire.url, key=forbear.IdempotencyKey("Idempotency-Key", hours=24))
        policy = forbear.retry(on=OSError, apis=[api])
        policy.call(lambda: post(wire, fixed))
        asyncio.run(policy.acall(pay))
        assert {seen.header("idempotency-key") for seen in wire.seen} == {fixed}
        assert len(wire.seen) == 4
        with pytest.raises(requests.ConnectionError):
            policy.call(pay_drawn)
        assert len(wire.seen) == 5


class Order:
    """An argument that holds an id."""

    def __init__(self) -> None:
        self.id = str(UUID)

    def work(self) -> None:
        """Do nothing."""

    def draw(self) -> None:
        """Draw another id."""
        self.id = str(uuid.uuid4())


def draw_item(order: dict[str, str]) -> None:
    """Draw another id."""
    order["id"] = str(uuid.uuid4())


def test_k9_drawn_names() -> None:
    """K9: a UUID, 16 hexadecimal or 10 decimal digits look drawn, unless the arguments hold them, one level deep."""
    for name in (f"/secrets/s-{UUID}", "/jobs/0123456789abcdef", "/jobs/1700000000"):
        assert Arguments(None, (), {}).lack_drawn(name)
    assert not Arguments(None, (), {}).lack_drawn("/secrets/database-password")
    for arguments in (
        Arguments(None, (str(UUID),), {}),
        Arguments(None, ({"id": str(UUID)},), {}),
        Arguments(None, (Order(),), {}),
        Arguments(Order().work, (), {}),
    ):
        assert not arguments.lack_drawn(f"/secrets/s-{UUID}")
    for arguments in (Arguments(Order().draw, (), {}), Arguments(draw_item, ({"id": str(UUID)},), {})):
        assert arguments.lack_drawn(f"/secrets/s-{UUID}")  # the function stores there what it draws
    assert not Arguments(draw_item, (Order(),), {}).lack_drawn(f"/secrets/s-{UUID}")


CONNECTION = object()


def test_objects() -> None:
    """A connection is known as an argument, as an attribute of one, and as a global variable of the function."""
    here = object()
    order: Any = Order()
    order.connection = here
    assert Arguments(None, (here,), {}).reach_object({id(here)}, ())
    assert Arguments(order.work, (), {}).reach_object({id(here)}, ())
    assert Arguments(test_objects, (), {}).reach_object({id(CONNECTION)}, ())
    assert not Arguments(None, (), {}).reach_object({id(here)}, ())


def test_objects_in_cells() -> None:
    """A connection in a cell may be older than the function, also if some function stores to the cell."""
    connection: object = object()

    def reconnects() -> object:
        nonlocal connection
        connection = connection or object()
        return connection

    assert Arguments(reconnects, (), {}).reach_object({id(connection)}, ())

"""Objects that code can reach: by items, attributes, slots, cells, modules, threads and contexts."""

import threading
from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.orm import scoped_session, sessionmaker

from forbear.evidence.objects import MOST_OBJECTS, find_roots, reach

WANTED = object()
CURRENT: ContextVar[Any] = ContextVar("current")
SHARED: dict[str, Any] = {}


class Slotted:
    """An object without a dict."""

    __slots__ = ("empty", "held")

    def __init__(self, held: object) -> None:
        self.held = held

    def show(self) -> object:
        """Return what it holds."""
        return self.held


class Lying:
    """An object whose attributes and items must not be asked for."""

    held: Any

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)

    def __iter__(self) -> Any:
        raise AssertionError


class Named:
    """A class that keeps something for all its instances."""

    held = WANTED


def find_shared() -> object:
    """Return what a global of this module holds."""
    return SHARED["wanted"]


def holding(value: object) -> Callable[[], object]:
    """Return a function with the value in a cell, and an empty cell."""

    def held() -> object:
        return value, empty

    if value is None:
        empty = value
    return held


def keep_for_thread() -> threading.local:
    """Return an object that keeps something for this thread."""
    kept = threading.local()
    kept.value = WANTED
    return kept


def in_module() -> ModuleType:
    """Return a module that keeps something under a name."""
    module = ModuleType("shop")
    module.held = WANTED  # type: ignore[attr-defined]
    return module


def lying() -> Lying:
    """Return an object that holds something, and lies about it."""
    made = Lying()
    object.__getattribute__(made, "__dict__")["kept"] = WANTED
    return made


HOLDERS: dict[str, Callable[[], Any]] = {
    "itself": lambda: WANTED,
    "items": lambda: [{"a": (WANTED,)}],
    "attributes": lambda: SimpleNamespace(a=SimpleNamespace(b=WANTED)),
    "slots": lambda: Slotted(WANTED),
    "an object that lies": lying,
    "an instance's class": Named,
    "a class": lambda: Named,
    "a cell": lambda: Slotted(holding(WANTED)),
    "a helper": lambda: find_shared,
    "a thread": keep_for_thread,
    "a module": in_module,
    "a method": lambda: Slotted(WANTED).show,
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_is_reached(name: str) -> None:
    """An object is found in containers, attributes, slots, cells, modules, and in the globals of a helper."""
    SHARED["wanted"] = WANTED
    made = HOLDERS[name]()
    assert any(each is WANTED for each in reach([made], {"held"}))
    assert not any(each is WANTED for each in reach([1, "a", None, reach], ()))


def test_what_is_not_looked_into() -> None:
    """A pool holds what has begun in the attempt; a scoped session holds what outlives it."""
    engine = sqlalchemy.create_engine("sqlite://")
    scoped = scoped_session(sessionmaker(engine))
    session = scoped()
    found = list(reach([scoped, engine], ()))
    assert any(each is session for each in found)
    assert not any(each is engine.pool for each in found)
    session.close()
    engine.dispose()


def test_globals_and_contexts() -> None:
    """The roots of a traceback are the globals that its code names, and the values of the context."""
    CURRENT.set(WANTED)
    SHARED.clear()
    with pytest.raises(KeyError) as caught:
        find_shared()
    values, names = find_roots(caught.value.__traceback__)
    assert any(each is SHARED for each in values)
    assert any(each is WANTED for each in values)
    assert "find_shared" in names


def test_the_bound() -> None:
    """A search ends, and goes no deeper than four steps."""
    wide: Any = [[[] for _ in range(100)] for _ in range(100)]
    assert len(list(reach([wide], ()))) == MOST_OBJECTS
    deep: Any = WANTED
    for _ in range(5):
        deep = [deep]
    assert not any(each is WANTED for each in reach([deep], ()))
    assert any(each is WANTED for each in reach(deep, ()))

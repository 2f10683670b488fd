"""With the garbage collector off, no error of ours outlives its caller: nothing is kept in a cycle."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from forbear_testkit.clients.redis.flavours import FLAVOURS, Flavour, Session
from forbear_testkit.clients.redis.proxy import LOSE, in_turn, proxy
from forbear_testkit.clients.redis.watched import add_one
from forbear_testkit.plugin import collect_leftovers


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    collect_leftovers()
    gc.disable()
    yield
    gc.enable()


def failing(session: Session, errors: Any, steps: Any) -> "weakref.ref[BaseException]":
    """Return a weak reference to the error that `steps` ends with."""
    try:
        steps(session)
    except errors.ConnectionError as error:
        return weakref.ref(error)
    raise AssertionError("it worked")


def single(session: Session) -> Any:
    """One command."""
    return session("incr", "k")


def together(session: Session) -> Any:
    """A pipeline."""
    return session.execute([("INCRBY", "k", 1)])


@pytest.mark.parametrize("steps", [single, together])
def test_no_error_is_kept(flavour: Flavour, path: str, steps: Any) -> None:
    """Once the caller has handled it, it is gone, unless the library keeps it: valkey-py and asyncio clients do."""
    with proxy(path, in_turn(INCRBY=[LOSE, LOSE])) as seen:
        with flavour.connect_stock(seen.port, retry=flavour.no_retry()) as session:
            kept = failing(session, flavour.errors, steps)() is not None
        with flavour.connect(seen.port) as session:
            left = failing(session, flavour.errors, steps)
            assert kept or left() is None


def test_no_lost_exec_is_kept(path: str) -> None:
    """The error behind the library's WatchError is not kept either."""
    flavour = FLAVOURS[0]
    with proxy(path, in_turn(EXEC=[LOSE])) as seen, flavour.connect(seen.port) as session:
        left = failing(session, flavour.errors, add_one)
        assert left() is None

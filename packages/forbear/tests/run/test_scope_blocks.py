"""Scopes of plain blocks: which are open for whom, in which order, and whose block one covers."""

import sys
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from contextvars import copy_context
from types import FrameType
from typing import Any

import pytest

from forbear.run.scope import OwnWrites, Scope, find_opener, has_open_scopes, open_scopes


class Other(Scope):
    """Another kind of scope."""

    __slots__ = ()


def kinds(kind: type[Scope] = Scope) -> list[Scope]:
    """Return the open scopes of a class."""
    return list(open_scopes(kind))


def test_open_scopes_are_in_their_order() -> None:
    """The outermost comes first, and each class has its own; a scope can be opened again after its end."""
    outer, inner = OwnWrites(), Other()
    assert not has_open_scopes()
    assert kinds() == []
    for _ in range(2):
        with outer as opened, inner:
            assert opened is outer
            assert kinds() == [outer, inner]
            assert (kinds(OwnWrites), kinds(Other)) == ([outer], [inner])
            assert has_open_scopes()
        assert (kinds(), has_open_scopes()) == ([], False)


def test_a_scope_that_is_open_cannot_be_opened() -> None:
    """The text names its class; the scope stays open until its own end."""
    scope = Other()
    with scope:
        with pytest.raises(RuntimeError) as caught:
            scope.__enter__()
        assert str(caught.value) == "a Other is open already; make one for each block"
        assert kinds() == [scope]


def test_scopes_end_in_any_order() -> None:
    """The end of one leaves those that were opened since."""
    first, second = Scope(), Scope()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert kinds() == [second]
    second.__exit__(None, None, None)
    assert kinds() == []


def test_a_scope_ends_for_those_that_have_its_context() -> None:
    """A copy of the context, as a task or a thread has it, is covered until the block ends; a plain thread is not."""
    seen = list[Any]()
    scope = Scope()
    with scope:
        context = copy_context()
        assert context.run(kinds) == [scope]
        thread = threading.Thread(target=lambda: seen.append(kinds()))
        thread.start()
        thread.join()
    assert context.run(kinds) == []
    assert context.run(has_open_scopes)
    assert seen == [[]]


def opener_here() -> FrameType | None:
    """Return the frame whose block a scope covers that this function opens."""
    return find_opener(sys._getframe())


class Opened:
    """A context manager that looks for the block that it covers."""

    def __enter__(self) -> FrameType | None:
        return find_opener(sys._getframe())

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    async def __aenter__(self) -> FrameType | None:
        return find_opener(sys._getframe())

    async def __aexit__(self, *_: object) -> None:
        """Do nothing."""


@contextmanager
def opened() -> Generator[FrameType | None]:
    """Do the same in a generator that contextlib makes a context manager."""
    yield find_opener(sys._getframe())


@asynccontextmanager
async def aopened() -> AsyncGenerator[FrameType | None]:
    """Do the same in an async one."""
    yield find_opener(sys._getframe())


def generate() -> Generator[FrameType | None]:
    """Do the same in a generator that is none."""
    yield find_opener(sys._getframe())


def test_whose_block_a_scope_covers() -> None:
    """The first frame that is no part of a context manager: a generator's own, or that with the `with`."""
    here = sys._getframe()
    found = opener_here()
    assert found is not None
    assert found.f_code is opener_here.__code__
    with Opened() as found:
        assert found is here
    with opened() as found:
        assert found is here
    with ExitStack() as stack:
        assert stack.enter_context(opened()) is here
    found = next(generate())
    assert found is not None
    assert found.f_code is generate.__code__
    assert find_opener(None) is None


async def in_coroutine() -> None:
    """Open async ones."""
    here = sys._getframe()
    async with Opened() as found:
        assert found is here
    async with aopened() as found:
        assert found is here


def test_whose_block_an_async_scope_covers() -> None:
    """The coroutine's with the `async with`."""
    with pytest.raises(StopIteration):
        in_coroutine().send(None)

"""`safe_to_repeat`: what its scope covers, and that it leaks nowhere."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import anyio.lowlevel
import pytest

from forbear.http.request import Request
from forbear.run.vouching import is_vouched, safe_to_repeat

PATTERN = "POST https://a.example/search"
REQUEST = Request("POST", "a.example", "/search")
OTHER = Request("POST", "b.example", "/search")


def seen() -> bool:
    """Return whether the request is vouched for where this is called."""
    return is_vouched(REQUEST)


async def aseen() -> bool:
    """Return the same in async code, after a turn of the loop."""
    await anyio.lowlevel.checkpoint()
    return seen()


def test_the_block() -> None:
    """The scope covers its own block and what that calls, nested scopes add up, and other origins stay out."""
    assert not seen()
    with safe_to_repeat(PATTERN):
        assert seen()
        assert not is_vouched(OTHER)
        with safe_to_repeat("POST https://b.example/search", "PUT https://b.example/"):
            assert seen()
            assert is_vouched(OTHER)
        assert not is_vouched(OTHER)
    assert not seen()


def test_at_least_one_pattern() -> None:
    """A scope for everything does not exist, and a pattern must be right."""
    with pytest.raises(TypeError, match="at least one pattern"):
        safe_to_repeat()
    with pytest.raises(ValueError, match="`safe_to_repeat` must hold patterns of a method"):
        safe_to_repeat("*")


def test_one_block_at_a_time() -> None:
    """A scope that is open cannot be opened again, but it may be used once more after its end."""
    scope = safe_to_repeat(PATTERN)
    with scope:
        with pytest.raises(RuntimeError, match="open already"):
            scope.__enter__()
        assert seen()
    with scope:
        assert seen()
    assert not seen()


def test_it_ends_for_tasks_too() -> None:
    """A task that is started inside is covered until the block ends, not after it."""

    async def main() -> tuple[bool, bool]:
        inside, outside = asyncio.Event(), asyncio.Event()
        answers = []

        async def background() -> None:
            for event in (inside, outside):
                await event.wait()
                answers.append(await aseen())

        with safe_to_repeat(PATTERN):
            task = asyncio.create_task(background())
            inside.set()
            while not answers:
                await anyio.lowlevel.checkpoint()
        outside.set()
        await task
        return answers[0], answers[1]

    assert asyncio.run(main()) == (True, False)


def test_it_ends_for_threads_too() -> None:
    """A thread that runs in a copy of the context is covered until the block ends; one without is never covered."""
    answers: list[bool] = []
    with safe_to_repeat(PATTERN):
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: answers.append(seen()))
        thread.start()
        thread.join()
        answers.append(context.run(seen))
    answers.append(context.run(seen))
    assert answers == [False, True, False]


def test_tasks_beside_it_are_not_covered() -> None:
    """A task that was started before sees nothing of the scope."""

    async def main() -> bool:
        opened = asyncio.Event()

        async def beside() -> bool:
            await opened.wait()
            return await aseen()

        task = asyncio.create_task(beside())
        with safe_to_repeat(PATTERN):
            opened.set()
            return await task

    assert asyncio.run(main()) is False


def test_consumers_of_generators_are_not_covered() -> None:
    """In a generator the scope covers what the generator calls, not the loop that consumes it."""

    def inner() -> Iterator[bool]:
        with safe_to_repeat(PATTERN):
            yield seen()
            yield seen()

    assert [(own, seen()) for own in inner()] == [(True, False)] * 2
    assert not seen()


def test_consumers_of_async_generators_are_not_covered() -> None:
    """The same in async code, where the generator and its consumer share one context; nor are the consumer's tasks."""

    async def inner() -> AsyncIterator[bool]:
        with safe_to_repeat(PATTERN):
            yield await aseen()
            yield await aseen()

    async def main() -> list[tuple[bool, bool, bool]]:
        return [(own, await aseen(), await asyncio.create_task(aseen())) async for own in inner()]

    assert asyncio.run(main()) == [(True, False, False)] * 2


def test_an_abandoned_generator() -> None:
    """A generator that is never finished leaves nothing behind that covers its consumer."""

    def inner() -> Iterator[None]:
        with safe_to_repeat(PATTERN):
            yield

    generator = inner()
    next(generator)
    assert not seen()
    del generator
    assert not seen()


def test_a_generator_closed_in_another_context() -> None:
    """Its scope ends without an error, as the loop's own clean-up of async generators needs."""

    def inner() -> Iterator[None]:
        with safe_to_repeat(PATTERN):
            yield

    generator = inner()
    contextvars.copy_context().run(next, generator)
    generator.close()  # type: ignore[attr-defined]
    assert not seen()


def test_context_managers_of_generators() -> None:
    """A scope inside `@contextmanager` covers the block of that context manager, by whatever way it is entered."""

    @contextmanager
    def scope() -> Generator[None]:
        with safe_to_repeat(PATTERN):
            yield

    @contextmanager
    def outer() -> Generator[None]:
        with scope():
            yield

    @scope()
    def decorated() -> bool:
        return seen()

    with scope():
        assert seen()
    with outer():
        assert seen()
    with ExitStack() as stack:
        stack.enter_context(outer())
        assert seen()
    with ExitStack() as stack:
        stack.enter_context(safe_to_repeat(PATTERN))
        assert seen()
    assert decorated()
    assert not seen()


def test_context_managers_of_async_generators() -> None:
    """The same for `@asynccontextmanager`, also inside an async generator whose consumer stays uncovered."""

    @asynccontextmanager
    async def scope() -> AsyncGenerator[None]:
        with safe_to_repeat(PATTERN):
            yield

    async def inner() -> AsyncGenerator[bool]:
        async with scope():
            yield await aseen()

    async def main() -> list[bool]:
        async with scope():
            own = await aseen()
        return [own, await aseen(), *[flag async for each in inner() for flag in (each, await aseen())]]

    assert asyncio.run(main()) == [True, False, True, False]

"""`promised`: which commands its block covers, and that it leaks nowhere."""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager

import anyio.lowlevel
import pytest

from forbear.exchange.redis.work import promised, single


def seen(command: str = "EVALSHA abc 0") -> bool:
    """Return whether a command may be repeated where this is called."""
    return single(command.split()).repeatable


async def aseen() -> bool:
    """Return the same in async code, after a turn of the loop."""
    await anyio.lowlevel.checkpoint()
    return seen()


def test_the_block() -> None:
    """It covers its own block, and nested blocks add up."""
    assert not seen()
    with promised("idempotent"):
        assert seen()
        assert not seen("EXPIRE k 60")
        with promised("drift"):
            assert seen()
            assert seen("EXPIRE k 60")
        assert not seen("EXPIRE k 60")
    assert not seen()


def test_one_block_at_a_time() -> None:
    """A block that is open cannot be opened again, but it may be used once more after its end."""
    block = promised("idempotent")
    with block:
        with pytest.raises(RuntimeError, match="a promised is open already"):
            block.__enter__()
        assert seen()
    with block:
        assert seen()
    assert not seen()


def test_it_ends_for_tasks_too() -> None:
    """A task that is started inside is covered until the block ends, not after it."""

    async def main() -> list[bool]:
        inside, outside = asyncio.Event(), asyncio.Event()
        answers: list[bool] = []

        async def background() -> None:
            for event in (inside, outside):
                await event.wait()
                answers.append(await aseen())

        with promised("idempotent"):
            task = asyncio.create_task(background())
            inside.set()
            while not answers:
                await anyio.lowlevel.checkpoint()
        outside.set()
        await task
        return answers

    assert asyncio.run(main()) == [True, False]


def test_it_ends_for_copies_of_its_context() -> None:
    """Code that runs in a copy of the context, as `asyncio.to_thread` does, is covered until the block ends."""
    with promised("idempotent"):
        context = contextvars.copy_context()
        assert context.run(seen)
    assert not context.run(seen)


def test_consumers_of_generators_are_not_covered() -> None:
    """In a generator it covers what the generator calls, not the loop that consumes it."""

    def inner() -> Iterator[bool]:
        with promised("idempotent"):
            yield seen()
            yield seen()

    assert [(own, seen()) for own in inner()] == [(True, False)] * 2
    assert not seen()


def test_consumers_of_async_generators_are_not_covered() -> None:
    """The same in async code, where the generator and its consumer share one context; nor are the consumer's tasks."""

    async def inner() -> AsyncIterator[bool]:
        with promised("idempotent"):
            yield await aseen()
            yield await aseen()

    async def main() -> list[tuple[bool, bool, bool]]:
        return [(own, await aseen(), await asyncio.create_task(aseen())) async for own in inner()]

    assert asyncio.run(main()) == [(True, False, False)] * 2


def test_a_generator_closed_in_another_context() -> None:
    """Its block ends without an error, as the loop's own clean-up of async generators needs."""

    def inner() -> Generator[None]:
        with promised("idempotent"):
            yield

    generator = inner()
    contextvars.copy_context().run(next, generator)
    generator.close()
    assert not seen()


def test_context_managers_of_generators() -> None:
    """A block inside `@contextmanager` covers the block of that context manager."""

    @contextmanager
    def block() -> Generator[None]:
        with promised("idempotent"):
            yield

    with block():
        assert seen()
    assert not seen()

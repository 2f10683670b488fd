"""`Scope`: what a block of `safe_to_repeat` or `promised` covers, and that it leaks nowhere."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import NamedTuple

import anyio.lowlevel
import pytest

from forbear.exchange.redis.descriptions import describe_command, promised
from forbear.http.request import Request
from forbear.run.scope import Scope
from forbear.run.vouching import is_vouched, safe_to_repeat

REQUEST = Request("POST", "a.example", "/search")


class Kind(NamedTuple):
    """A kind of scope: `opened` makes one, and `seen` returns whether one covers the code that calls it."""

    opened: Callable[[], Scope]
    seen: Callable[[], bool]

    async def aseen(self) -> bool:
        """Return the same in async code, after a turn of the loop."""
        await anyio.lowlevel.checkpoint()
        return self.seen()


KINDS = {
    "safe_to_repeat": Kind(lambda: safe_to_repeat("POST https://a.example/search"), lambda: is_vouched(REQUEST)),
    "promised": Kind(lambda: promised("idempotent"), lambda: describe_command(["EVALSHA", "abc", "0"]).repeatable),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of scope."""
    return KINDS[request.param]


@pytest.fixture
def covered(kind: Kind) -> Iterator[Kind]:
    """A scope that is open for a test."""
    with kind.opened():
        assert kind.seen()
        yield kind
    assert not kind.seen()


@contextmanager
def _opened(kind: Kind) -> Generator[None]:
    with kind.opened():
        yield


@pytest.fixture
async def acovered(kind: Kind, anyio_backend: str) -> AsyncIterator[Kind]:
    """The same in async code, through a context manager of the user's own."""
    with _opened(kind):
        assert await kind.aseen()
        yield kind
    assert not kind.seen()


def test_a_fixture_covers_its_tests(covered: Kind) -> None:
    """A fixture is a generator, but its consumer is the test, with all threads and contexts that it has."""
    seen = [covered.seen(), contextvars.Context().run(covered.seen)]
    thread = threading.Thread(target=lambda: seen.append(covered.seen()))
    thread.start()
    thread.join()
    assert seen == [True] * 3


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_an_async_fixture_covers_its_tests(acovered: Kind, anyio_backend: str) -> None:
    """The same in async code, on both loops."""
    assert await acovered.aseen()


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_fixture_covers_async_tests(covered: Kind, anyio_backend: str) -> None:
    """The fixture covers the test whether the loop runs already when it begins, or not."""
    assert await covered.aseen()


def test_one_block_at_a_time(kind: Kind) -> None:
    """A scope that is open cannot be opened again, but it may be used once more after its end."""
    scope = kind.opened()
    with scope:
        with pytest.raises(RuntimeError, match="open already"):
            scope.__enter__()
        assert kind.seen()
    with scope:
        assert kind.seen()
    assert not kind.seen()


def test_it_ends_for_tasks_too(kind: Kind) -> None:
    """A task that is started inside is covered until the block ends, not after it."""

    async def main() -> tuple[bool, bool]:
        inside, outside = asyncio.Event(), asyncio.Event()
        answers = []

        async def background() -> None:
            for event in (inside, outside):
                await event.wait()
                answers.append(await kind.aseen())

        with kind.opened():
            task = asyncio.create_task(background())
            inside.set()
            while not answers:
                await anyio.lowlevel.checkpoint()
        outside.set()
        await task
        return answers[0], answers[1]

    assert asyncio.run(main()) == (True, False)


def test_it_ends_for_threads_too(kind: Kind) -> None:
    """A thread that runs in a copy of the context is covered until the block ends; one without is never covered."""
    answers: list[bool] = []
    with kind.opened():
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: answers.append(kind.seen()))
        thread.start()
        thread.join()
        answers.append(context.run(kind.seen))
    answers.append(context.run(kind.seen))
    assert answers == [False, True, False]


def test_tasks_beside_it_are_not_covered(kind: Kind) -> None:
    """A task that was started before sees nothing of the scope."""

    async def main() -> bool:
        opened = asyncio.Event()

        async def beside() -> bool:
            await opened.wait()
            return await kind.aseen()

        task = asyncio.create_task(beside())
        with kind.opened():
            opened.set()
            return await task

    assert asyncio.run(main()) is False


def test_consumers_of_generators_are_not_covered(kind: Kind) -> None:
    """In a generator the scope covers what the generator calls, not the loop that consumes it."""

    def inner() -> Iterator[bool]:
        with kind.opened():
            yield kind.seen()
            yield kind.seen()

    assert [(own, kind.seen()) for own in inner()] == [(True, False)] * 2
    assert not kind.seen()


def test_consumers_of_async_generators_are_not_covered(kind: Kind) -> None:
    """The same in async code, where the generator and its consumer share one context; nor are the consumer's tasks."""

    async def inner() -> AsyncIterator[bool]:
        with kind.opened():
            yield await kind.aseen()
            yield await kind.aseen()

    async def main() -> list[tuple[bool, bool, bool]]:
        return [(own, await kind.aseen(), await asyncio.create_task(kind.aseen())) async for own in inner()]

    assert asyncio.run(main()) == [(True, False, False)] * 2


def test_an_abandoned_generator(kind: Kind) -> None:
    """A generator that is never finished leaves nothing behind that covers its consumer."""

    def inner() -> Iterator[None]:
        with kind.opened():
            yield

    generator = inner()
    next(generator)
    assert not kind.seen()
    del generator
    assert not kind.seen()


def test_a_generator_closed_in_another_context(kind: Kind) -> None:
    """Its scope ends without an error, as the loop's own clean-up of async generators needs."""

    def inner() -> Iterator[None]:
        with kind.opened():
            yield

    generator = inner()
    contextvars.copy_context().run(next, generator)
    generator.close()  # type: ignore[attr-defined]
    assert not kind.seen()


def test_context_managers_of_generators(kind: Kind) -> None:
    """A scope inside `@contextmanager` covers the block of that context manager, by whatever way it is entered."""

    @contextmanager
    def scope() -> Generator[None]:
        with kind.opened():
            yield

    @contextmanager
    def outer() -> Generator[None]:
        with scope():
            yield

    @scope()
    def decorated() -> bool:
        return kind.seen()

    with scope():
        assert kind.seen()
    with outer():
        assert kind.seen()
    with ExitStack() as stack:
        stack.enter_context(outer())
        assert kind.seen()
    with ExitStack() as stack:
        stack.enter_context(kind.opened())
        assert kind.seen()
    assert decorated()
    assert not kind.seen()


def test_context_managers_of_async_generators(kind: Kind) -> None:
    """The same for `@asynccontextmanager`, also inside an async generator whose consumer stays uncovered."""

    @asynccontextmanager
    async def scope() -> AsyncGenerator[None]:
        with kind.opened():
            yield

    async def inner() -> AsyncGenerator[bool]:
        async with scope():
            yield await kind.aseen()

    async def main() -> list[bool]:
        async with scope():
            own = await kind.aseen()
        return [own, await kind.aseen(), *[flag async for each in inner() for flag in (each, await kind.aseen())]]

    assert asyncio.run(main()) == [True, False, True, False]


class Holder:
    """A context manager of the user's own that opens a scope, for sync and async code."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def __enter__(self) -> None:
        self.scope.__enter__()

    def __exit__(self, *_: object) -> None:
        self.scope.__exit__(None, None, None)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


def test_context_managers_of_classes(kind: Kind) -> None:
    """A scope that a class opens as it is entered covers no consumer of a generator either."""

    def inner() -> Iterator[bool]:
        with Holder(kind.opened()):
            yield kind.seen()

    async def ainner() -> AsyncIterator[bool]:
        async with Holder(kind.opened()):
            yield kind.seen()

    async def main() -> list[tuple[bool, bool]]:
        return [(own, kind.seen()) async for own in ainner()]

    assert [(own, kind.seen()) for own in inner()] == asyncio.run(main()) == [(True, False)]
    with Holder(kind.opened()):
        assert kind.seen()
    assert not kind.seen()

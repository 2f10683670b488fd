"""What cannot be retried says why, and what to do instead."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from forbear.run.functions import check_retryable
from forbear.testing.virtual_time import virtual_time
from tests.run.callables import coroutine, flaky, policy


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    flaky.calls = 0
    with virtual_time():
        yield


async def agenerator() -> AsyncIterator[int]:
    """Yield, asynchronously."""
    yield 1


def generator() -> Iterator[int]:
    """Yield."""
    yield 1


class Generators:
    """Generators of all kinds."""

    def method(self) -> Iterator[int]:
        """Yield."""
        yield 1

    def __call__(self) -> Iterator[int]:
        """Yield."""
        yield 1


def acall(function: Any) -> object:
    """Call it as a coroutine function."""
    return asyncio.run(policy.acall(function))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (generator, "generator"),
        (agenerator, "agenerator"),
        (partial(generator), "generator"),
        (Generators().method, "Generators.method"),
        (Generators(), "Generators"),
    ],
)
def test_generators_are_refused(function: Any, name: str) -> None:
    """Decorated or called, the text says what to do instead."""
    text = (
        f"{__name__}.{name} is a generator function: repeating it would yield items twice; "
        "retry the call that fetches one item or page inside it, or a function that returns a list"
    )
    for refuse in (policy, policy.call, check_retryable, acall):
        with pytest.raises(TypeError) as caught:
            refuse(function)
        assert str(caught.value) == text


@pytest.mark.parametrize("thing", [None, 5, "text", OSError("lost")])
def test_what_is_not_callable_is_refused(thing: Any) -> None:
    """Such as the forgotten brackets around arguments."""
    for refuse in (policy, policy.call, acall):
        with pytest.raises(TypeError) as caught:
            refuse(thing)
        assert str(caught.value) == f"only a callable can be retried, got {thing!r}"


class Awaitable_:  # noqa: N801 - as an awaitable object
    """Can be awaited, cannot be closed."""

    def __await__(self) -> Iterator[None]:
        """Await nothing."""
        return iter(())


@pytest.mark.parametrize("fails_first", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("make", [partial(coroutine, 1), Awaitable_], ids=["coroutine", "object"])
def test_a_sync_function_that_returns_an_awaitable_is_refused(make: Callable[[], object], fails_first: bool) -> None:
    """Nothing would be retried; the coroutine is closed, so that nobody is told it was never awaited."""

    def sync() -> object:
        flaky.calls += 1
        if fails_first and flaky.calls % 2:
            raise OSError("lost")
        return make()

    for run in (policy(sync), partial(policy.call, sync)):
        with pytest.raises(TypeError) as caught:
            run()
        assert str(caught.value) == (
            f"{__name__}.test_a_sync_function_that_returns_an_awaitable_is_refused.<locals>.sync was called as a sync "
            "function, but returned an awaitable, which would go unretried; call it with `policy.acall`, or make it "
            "`async def` if it is decorated"
        )


def test_a_sync_function_that_returns_a_coroutine_can_be_called_async() -> None:
    """The cure that the text names: `acall` awaits whatever it is handed."""
    assert asyncio.run(policy.acall(lambda: coroutine(1))) == (1, ("key", 1))
    assert flaky.calls == 2

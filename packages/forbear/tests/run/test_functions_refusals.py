"""Functions that cannot be retried are refused, with the reason and what to do instead."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache, cached_property, lru_cache, partial, partialmethod, update_wrapper
from typing import Any

import pytest

from forbear.run.functions import check_retryable, refuse_awaitable
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.callables import coroutine, flaky, policy


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    flaky.calls = 0
    with virtual_time():
        yield


async def agenerator() -> AsyncGenerator[int]:
    """Yield, asynchronously."""
    yield 1


def generator() -> Generator[int]:
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


def test_context_managers_are_refused() -> None:
    """Their body runs after the call; a function that one surrounds is retried."""
    for make in (contextmanager(generator), partial(asynccontextmanager(agenerator))):
        for refuse in (policy, policy.call, check_retryable):
            with pytest.raises(TypeError, match=r"generator makes a context manager, .* retry the calls within it"):
                refuse(make)
    assert policy(contextmanager(generator)()(len))("ab") == 2


@pytest.mark.parametrize("thing", [None, 5, "text", OSError("lost")])
def test_what_is_not_callable_is_refused(thing: Any) -> None:
    """Such as the forgotten brackets around arguments."""
    for refuse in (policy, policy.call, acall):
        with pytest.raises(TypeError) as caught:
            refuse(thing)
        assert str(caught.value) == (
            f"only a callable can be retried, got {thing!r}; pass the function itself, not what it returns"
        )


def test_what_stands_for_a_function_is_refused_with_the_cure() -> None:
    """A property is decorated below it, and a coroutine is a call that was written in the place of its function."""
    call = coroutine(1)
    for thing, cure in (
        (property(len), "@forbear.retry(...) belongs below @property"),
        (cached_property(len), "@forbear.retry(...) belongs below @cached_property"),
        (partialmethod(len), "@forbear.retry(...) belongs below @partialmethod"),
        (call, "pass the function and its arguments: policy.acall(function, 1)"),
    ):
        with pytest.raises(TypeError, match=re.escape(cure)):
            check_retryable(thing)
    call.close()


class Task:
    """The result of a decorator of a queue: it knows its function by `__wrapped__`."""

    def __init__(self, function: Callable[..., object]) -> None:
        update_wrapper(self, function)

    def __call__(self) -> object:
        """Answer."""
        return "done"

    def delay(self) -> None:
        """Run it elsewhere."""


class Actor:
    """Another one, which knows its function by an attribute."""

    __call__, send = Task.__call__, Task.delay

    def __init__(self, function: Callable[..., object]) -> None:
        self.fn = function


class Lazy:
    """A proxy of a task, as Celery has."""

    def __init__(self, task: Task) -> None:
        self.__wrapped__ = task.__wrapped__  # type: ignore[attr-defined]

    __class__ = Task  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    __call__ = Task.__call__


class Plain:
    """The result of a decorator, without methods."""

    def __init__(self, function: Callable[..., object]) -> None:
        update_wrapper(self, function)

    def __call__(self) -> object:
        """Answer."""
        return "done"


class Threaded:
    """An async one with a method that nobody calls, as asgiref's."""

    def __init__(self, function: Callable[..., object]) -> None:
        update_wrapper(self, function)

    async def __call__(self) -> object:
        """Answer."""
        return "done"

    def handle(self) -> None:
        """Do nothing."""


def work() -> str:
    """Work that other decorators surround."""
    return "done"


@pytest.mark.parametrize(
    "thing",
    [
        Task(work),
        Actor(work),
        Lazy(Task(work)),
        Task(Task(work).__call__),
        pytest.fixture(work),
        staticmethod(Task(work)),
    ],
    ids=["task", "actor", "proxy", "bound", "fixture", "static"],
)
def test_what_another_decorator_made_is_refused(thing: Any) -> None:
    """It has methods that call the function without a retry, and they would get lost."""
    with pytest.raises(TypeError) as caught:
        policy(thing)
    assert re.search(
        r"got an object of the type \S+, which another decorator made of \S+(work|__call__): ", str(caught.value)
    )
    assert str(caught.value).endswith("put @forbear.retry(...) below that decorator, next to the function")


def test_what_loses_nothing_is_decorated() -> None:
    """Objects without methods, async ones, and calls through the policy, which leave the object alone."""
    assert policy(Plain(work))() == "done"
    assert asyncio.run(policy(Threaded(work))()) == "done"
    assert policy.call(Task(work)) == "done"


def test_a_cache_keeps_its_methods() -> None:
    """Above or below the cache, the policy retries, and a success is kept."""
    for made in (policy(lru_cache(flaky.answer)), cache(policy(flaky.answer))):
        flaky.calls = 0
        untyped: Any = made
        assert (made(3), made(3), flaky.calls) == ((3,), (3,), 2)
        assert untyped.cache_info().hits == 1
        untyped.cache_clear()
        assert untyped.cache_info().currsize == 0


class Compiled(Coroutine[object, object, object]):
    """A coroutine of another make, as compiled code has."""

    closed = False

    def send(self, value: object) -> object:
        """Fail: a coroutine that is refused is never started."""
        raise AssertionError

    def throw(self, *_: object) -> object:
        """Fail: a coroutine that is refused is never started."""
        raise AssertionError

    def close(self) -> None:
        """Note it."""
        self.closed = True

    def __await__(self) -> Generator[object, object, object]:
        """Await nothing."""
        yield None
        return None


@pytest.mark.parametrize("fails_first", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("make", [partial(coroutine, 1), Compiled], ids=["coroutine", "compiled"])
def test_a_sync_function_that_returns_a_coroutine_is_refused(make: Callable[[], Any], fails_first: bool) -> None:
    """Nothing would be retried; the coroutine is closed, so that Python does not warn that it was never awaited."""
    made: list[Any] = []

    def sync() -> object:
        flaky.calls += 1
        if fails_first and flaky.calls % 2:
            raise OSError("lost")
        made.append(make())
        return made[-1]

    for run in (policy(sync), partial(policy.call, sync)):
        with pytest.raises(TypeError) as caught:
            run()
        assert str(caught.value) == (
            f"{__name__}.test_a_sync_function_that_returns_a_coroutine_is_refused.<locals>.sync was called as a sync "
            "function, but returned a coroutine, which would go unretried; call it with `policy.acall`, or make it "
            "`async def` if it is decorated"
        )
        assert isinstance(made[-1], Coroutine)
        last: Any = made[-1]
        assert last.closed if isinstance(last, Compiled) else last.cr_frame is None
    assert len(made) == 2


class Client:
    """Can be awaited until it is connected, and closed in a coroutine, as redis.asyncio.Redis and Dask's clients."""

    def __await__(self) -> Iterator[None]:
        """Await nothing."""
        return iter(())

    async def close(self) -> None:
        """Close it: whoever calls this must await it."""


@pytest.mark.parametrize("fails_first", [False, True], ids=["first", "second"])
def test_other_awaitables_are_values(fails_first: bool) -> None:
    """Work that has begun, or a client: the function has done its part, and calling it again would do it twice."""
    client = Client()

    def connect() -> Client:
        flaky.calls += 1
        if fails_first and flaky.calls % 2:
            raise OSError("lost")
        return client

    for run in (policy(connect), partial(policy.call, connect)):
        assert run() is client
    assert flaky.calls == (4 if fails_first else 2)


def test_tasks_are_values() -> None:
    """A sync function may begin a task or make a future for others to await."""

    async def main() -> object:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = policy.call(loop.create_future)
        task = policy(lambda: loop.create_task(coroutine(1)))()
        future.set_result("done")
        with pytest.raises(OSError, match="lost"):
            await task
        return await future

    assert asyncio.run(main()) == "done"


def test_a_sync_function_that_returns_a_coroutine_can_be_called_async() -> None:
    """The cure that the text names: `acall` awaits whatever it is handed."""
    assert asyncio.run(policy.acall(lambda: coroutine(1))) == (1, ("key", 1))
    assert flaky.calls == 2


def test_an_awaitable_where_a_value_is_needed() -> None:
    """The text says what it is, and a coroutine is closed."""
    made = Compiled()
    for value, kind, shown in ((made, ("a coroutine",), "a coroutine"), (Client(), (), "an awaitable")):
        with pytest.raises(TypeError) as caught:
            refuse_awaitable(value, "`read`", *kind)
        assert str(caught.value) == (
            f"`read` was called as a sync function, but returned {shown}, which would go unretried; call it with "
            "`policy.acall`, or make it `async def` if it is decorated"
        )
    assert made.closed

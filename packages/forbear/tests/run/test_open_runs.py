"""The outermost run is found in every form, in tasks and threads of an attempt, and not after its end."""

import asyncio
import contextvars
import gc
import weakref
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trio

import forbear
from forbear.run.open_runs import blocks, is_earlier, path_of_runs
from forbear.testing import virtual_time
from forbear_testkit.evidence.forms import AFORMS, FORMS
from forbear_testkit.plugin import collect_leftovers

POLICY = forbear.retry(on=OSError, attempts=3, timeout=None)
EAGER = forbear.retry(on=OSError, attempts=3, timeout=None, on_success=lambda event: None)


Path = tuple[tuple[float, int], ...]


def key() -> str:
    """Return a key of the run."""
    return forbear.run_key("k")


async def in_itself() -> str:
    """Take the key in the attempt's own task."""
    return key()


async def in_a_task() -> str:
    """Take it in a task."""
    return await asyncio.create_task(in_itself())


async def in_tasks() -> str:
    """Take it in two tasks at once."""
    first, second = await asyncio.gather(in_itself(), in_a_task())
    assert first == second
    return first


async def in_a_thread() -> str:
    """Take it in a thread with the task's context."""
    return await asyncio.to_thread(key)


async def in_an_inner_run() -> str:
    """Take it in a run in a task."""
    return await asyncio.create_task(POLICY(in_itself)())


async def in_a_sync_run() -> str:
    """Take it in the run of a sync function in a task."""

    async def child() -> str:
        return POLICY(key)()

    return await asyncio.create_task(child())


WAYS = [in_itself, in_a_task, in_tasks, in_a_thread, in_an_inner_run, in_a_sync_run]


def twice(made: list[str], take: Callable[[], str]) -> Callable[[], None]:
    """Return a function that takes a key and fails once."""

    def work() -> None:
        made.append(take())
        if len(made) == 1:
            raise OSError

    return work


def atwice(made: list[str], take: Callable[[], Awaitable[str]]) -> Callable[[], Awaitable[None]]:
    """Return an async function that takes a key and fails once."""

    async def work() -> None:
        made.append(await take())
        if len(made) == 1:
            raise OSError

    return work


def assert_same(made: list[str]) -> None:
    """Check that both attempts had the same key."""
    assert len(made) == 2
    assert len(set(made)) == 1


@pytest.mark.unmutated
@pytest.mark.parametrize("policy", [POLICY, EAGER], ids=["plain", "eager"])
@pytest.mark.parametrize("form", FORMS)
def test_sync_forms(form: str, policy: forbear.Policy) -> None:
    """Both attempts have the same key, alone and in an outer run whose own attempts do."""
    with virtual_time():
        made = list[str]()
        FORMS[form](policy, twice(made, key))
        assert_same(made)
        made.clear()
        FORMS[form](policy, twice(made, lambda: str(FORMS[form](policy, key))))
        assert_same(made)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("form", AFORMS)
def test_async_forms(form: str, way: Callable[[], Awaitable[str]]) -> None:
    """Both attempts have the same key, alone, in an outer async run, and in an outer sync run around the event loop."""
    made = list[str]()

    async def main() -> None:
        await AFORMS[form](POLICY, atwice(made, way))

    async def nested() -> None:
        await AFORMS[form](POLICY, atwice(made, lambda: AFORMS[form](POLICY, way)))

    def in_loop() -> str:
        async def inner() -> str:
            return str(await AFORMS[form](POLICY, way))

        return asyncio.run(inner())

    with virtual_time():
        asyncio.run(main())
        assert_same(made)
        made.clear()
        asyncio.run(nested())
        assert_same(made)
        made.clear()
        POLICY(twice(made, in_loop))()
        assert_same(made)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_task_group_of_anyio(backend: str) -> None:
    """A task of a group belongs to the run that has opened it, also in trio."""
    made = list[str]()

    async def grouped() -> str:
        found = list[str]()

        async def take() -> None:
            found.append(key())

        async with anyio.create_task_group() as group:
            group.start_soon(take)
        return found[0]

    async def main() -> None:
        await POLICY(atwice(made, grouped))()

    policy = forbear.retry(on=OSError, attempts=3, timeout=None, backoff=forbear.Constant(0))
    anyio.run(main, backend=backend)
    assert_same(made)
    made.clear()
    policy(twice(made, lambda: trio.run(POLICY(grouped))))()
    assert_same(made)


def is_conflict(error: Exception) -> bool:
    """Return whether a write was in conflict."""
    return isinstance(error, ValueError)


def read() -> int:
    """Return a value."""
    return 1


def test_update() -> None:
    """All cycles of `update` and `aupdate` are one run."""
    for is_async in (False, True):
        made = list[str]()

        def write(value: int, made: list[str] = made) -> int:
            made.append(key())
            if len(made) == 1:
                raise ValueError("conflict")
            return value

        async def awrite(value: int, write: Callable[[int], int] = write) -> int:
            return await asyncio.create_task(asyncio.to_thread(write, value))

        async def aread() -> int:
            return 1

        rest: dict[str, Any] = {"modify": abs, "conflict": is_conflict}
        with virtual_time():
            if is_async:
                asyncio.run(forbear.aupdate(read=aread, write=awrite, **rest))
            else:
                forbear.update(read=read, write=write, **rest)
        assert_same(made)


def test_after_the_end() -> None:
    """A task that outlives its run finds no run, and neither does a context that does."""

    async def main() -> None:
        gate = asyncio.Event()

        async def late() -> str:
            await gate.wait()
            return key()

        async def attempt() -> tuple[asyncio.Task[str], contextvars.Context]:
            key()
            return asyncio.create_task(late()), contextvars.copy_context()

        task, context = await POLICY(attempt)()
        gate.set()
        with pytest.raises(RuntimeError, match="needs a run"):
            await task
        with pytest.raises(RuntimeError, match="needs a run"):
            context.run(key)

    asyncio.run(main())


@pytest.mark.unmutated
def test_blocks() -> None:
    """Nested blocks of one function count as the outer one, a generator's block is its own, and none is left over.

    A block that an ExitStack holds is that of the function with the stack.
    """
    made = list[str]()
    with virtual_time():
        for outer in POLICY:
            with outer:
                for inner in POLICY:
                    with inner:
                        made.append(key())
                made.append(key())
                if len(made) == 2:
                    raise OSError
    assert len(made) == 4
    assert len(set(made)) == 1

    def generate() -> Generator[str]:
        for attempt in POLICY:
            with attempt:
                yield key()

    generator = generate()
    assert next(generator)
    with pytest.raises(RuntimeError, match="needs a run"):
        key()
    generator.close()
    with ExitStack() as stack:
        stack.enter_context(next(iter(POLICY)))
        assert key() == key(), "the block is that of the function with the stack"
    assert not blocks


def in_block(attempt: Callable[["Argument"], None], argument: "Argument") -> None:
    """Make the attempt in a block."""
    for block in POLICY:
        with block:
            attempt(argument)


class Argument:
    """An argument that a weak reference can watch."""


@pytest.mark.unmutated
@pytest.mark.parametrize("form", ["decorated", "called", "block", "async"])
def test_nothing_is_kept(form: str) -> None:
    """E6: the search keeps no variables of the frames that it passes alive."""

    def attempt(argument: Argument) -> None:
        key()

    async def aattempt(argument: Argument) -> None:
        key()

    argument = Argument()
    watched = weakref.ref(argument)
    collect_leftovers()
    gc.disable()
    try:
        if form == "decorated":
            POLICY(attempt)(argument)
        elif form == "called":
            POLICY.call(attempt, argument)
        elif form == "async":
            asyncio.run(POLICY(aattempt)(argument))
        else:
            in_block(attempt, argument)
        del argument
        assert watched() is None
    finally:
        gc.enable()


def test_many_runs_at_once() -> None:
    """Concurrent runs have keys of their own, also under a clock that stands still."""
    made = list[str]()

    async def one() -> None:
        first = key()
        await anyio.lowlevel.checkpoint()
        assert await asyncio.create_task(in_itself()) == first
        made.append(first)

    async def main() -> None:
        await asyncio.gather(*(POLICY(one)() for _ in range(20)))

    with virtual_time():
        asyncio.run(main())
    assert len(set(made)) == 20


def test_the_path_of_nested_runs() -> None:
    """All runs are in it, the outermost first. Another run is no earlier attempt of one of them."""
    paths: list[Path] = []

    def look() -> None:
        paths.append(path_of_runs())
        raise OSError

    def twice() -> None:
        for _ in range(2):
            with suppress(OSError):
                inner.call(look)
        raise OSError

    inner = forbear.retry(OSError, attempts=2, backoff=forbear.Constant(0))
    with virtual_time(), suppress(OSError):
        forbear.retry(OSError, attempts=2, backoff=forbear.Constant(0), retry_exhausted=True).call(twice)
    assert path_of_runs() == ()
    assert [[attempt for _, attempt in path] for path in paths] == [
        [1, 1], [1, 2], [1, 1], [1, 2], [2, 1], [2, 2], [2, 1], [2, 2],
    ]  # fmt: skip
    first, again, other, _, later, *_ = paths
    assert is_earlier(first, again)
    assert is_earlier(first, later)
    assert is_earlier(again, later)
    assert not is_earlier(first, first)
    assert not is_earlier(again, first)
    assert not is_earlier(first, other)  # another run within the same attempt
    assert not is_earlier((), first)


def test_the_path_of_a_task() -> None:
    """A task of an attempt has the runs of its context."""

    async def look() -> Path:
        return path_of_runs()

    async def work() -> list[Path]:
        return [path_of_runs(), *await asyncio.gather(look(), look())]

    async def main() -> list[Path]:
        return await forbear.retry(OSError).acall(work)

    own, *tasks = asyncio.run(main())
    assert [attempt for _, attempt in own] == [1]
    assert tasks == [own, own]

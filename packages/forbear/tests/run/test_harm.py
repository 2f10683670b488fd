"""An unsafe request that was given up in another task or thread of an attempt: the outer run stops."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import anyio
import anyio.lowlevel
import pytest

from forbear.core.backoff import Constant
from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.policy import retry
from forbear.read_modify_write import aupdate, update
from forbear.run import harm
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import BUSY, Busy
from forbear_testkit.run.shapes import INNER, OUTER, Failed

Pay = Callable[[], Awaitable[object]]


class Payment:
    """A payment whose response is lost; forbear gives it up, because a repeat could do harm."""

    def __init__(self) -> None:
        self.made = 0

    async def __call__(self) -> object:
        await anyio.lowlevel.checkpoint()
        return INNER.call(self.make)

    def make(self) -> object:
        """Make the payment, and lose the response."""
        self.made += 1
        raise Busy


async def gathered(pay: Payment) -> bool:
    """Errors come as values."""
    return isinstance((await asyncio.gather(pay(), return_exceptions=True))[0], Busy)


async def waited_for(pay: Payment) -> bool:
    """Nobody takes the error out of the task that has ended."""
    done, _ = await asyncio.wait([asyncio.ensure_future(pay())])
    return done.pop().exception() is not None


async def started(pay: Payment) -> bool:
    """The task's own result says that it failed."""
    task = asyncio.create_task(_flagged(pay))
    return await task


async def grouped(pay: Payment) -> bool:
    """The task of a group handles the error, and notes that there was one."""
    flags: list[bool] = []

    async def note() -> None:
        flags.append(await _flagged(pay))

    async with asyncio.TaskGroup() as group:
        group.create_task(note())
    return flags[0]


async def two_deep(pay: Payment) -> bool:
    """A task of a task."""
    return await asyncio.create_task(started(pay))


async def under_another_policy(pay: Payment) -> bool:
    """A function with a policy of its own handles the error, and returns."""
    return bool(await asyncio.create_task(BUSY.acall(_flagged, pay)))


async def in_a_thread(pay: Payment) -> bool:
    """A thread that has the context of the task."""
    return await asyncio.to_thread(_flagged_sync, pay)


async def _flagged(pay: Pay) -> bool:
    with contextlib.suppress(Busy):
        await pay()
        return False
    return True


def _flagged_sync(pay: Payment) -> bool:
    with contextlib.suppress(Busy):
        INNER.call(pay.make)
        return False
    return True


ELSEWHERE = [gathered, waited_for, started, grouped, two_deep, under_another_policy, in_a_thread]


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    """As in a process that has loaded an adapter."""
    before = harm.is_watched.now
    harm.watch()
    yield
    harm.is_watched.now = before


async def by_call(function: Callable[[], Awaitable[object]]) -> object:
    """Call it under the policy."""
    return await OUTER.acall(function)


async def by_decorator(function: Callable[[], Awaitable[object]]) -> object:
    """Decorate a function that calls it."""

    async def decorated() -> object:
        return await function()

    return await OUTER(decorated)()


async def by_block(function: Callable[[], Awaitable[object]]) -> object:
    """Call it in a block."""
    async for attempt in OUTER:
        async with attempt:
            return await function()
    raise AssertionError


@pytest.mark.parametrize("elsewhere", ELSEWHERE, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("form", [by_call, by_decorator, by_block], ids=lambda form: form.__name__)
def test_a_payment_in_another_task_is_made_once(
    form: Callable[[Callable[[], Awaitable[object]]], Awaitable[object]],
    elsewhere: Callable[[Payment], Awaitable[bool]],
) -> None:
    """The function raises an error that has nothing of the payment's; it carries the report all the same."""
    pay = Payment()

    async def order() -> None:
        if await elsewhere(pay):
            raise Failed("no order")

    async def main() -> None:
        await form(order)

    with virtual_time(), pytest.raises(Failed) as caught:
        asyncio.run(main())
    assert pay.made == 1
    found = report(caught.value)
    assert found is not None
    assert found.reason is Reason.UNSAFE


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_payment_in_a_task_group_of_anyio_is_made_once(backend: str) -> None:
    """The tasks of trio inherit the context as those of asyncio do."""
    pay = Payment()

    async def order() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(_flagged, pay)
        raise Failed("no order")

    async def main() -> None:
        await OUTER.acall(order)

    with virtual_time(), pytest.raises(Failed):
        anyio.run(main, backend=backend)
    assert pay.made == 1


def test_a_payment_in_an_event_loop_of_a_sync_function_is_made_once() -> None:
    """The loop's tasks have a context of their own, but they run in the thread of the function."""
    pay = Payment()

    def order() -> None:
        if asyncio.run(gathered(pay)):
            raise Failed("no order")

    with virtual_time(), pytest.raises(Failed):
        OUTER.call(order)
    assert pay.made == 1


def test_a_first_call_that_loads_the_adapter_itself() -> None:
    """It has begun before anything could do harm, so everything in its thread counts."""
    harm.is_watched.now = False
    pay = Payment()

    @OUTER
    async def order() -> None:
        harm.watch()
        if await gathered(pay):
            raise Failed("no order")

    with virtual_time(), pytest.raises(Failed):
        asyncio.run(order())
    assert pay.made == 1


def test_what_a_sibling_gave_up_stops_nobody_else() -> None:
    """Two orders at once, in one loop: the one that paid stops, and the other one is repeated."""
    pay, calls, paid = Payment(), 0, asyncio.Event()

    @OUTER
    async def order() -> None:
        failed = await gathered(pay)
        paid.set()
        if failed:
            raise Failed("no order")

    @retry(Failed, attempts=3, backoff=Constant(1))
    async def look() -> str:
        nonlocal calls
        calls += 1
        await paid.wait()
        if calls < 3:
            raise Failed("no answer")
        return "found"

    async def main() -> tuple[object, object]:
        return await asyncio.gather(order(), look(), return_exceptions=True)

    with virtual_time():
        failed, found = asyncio.run(main())
    assert isinstance(failed, Failed)
    assert (found, calls, pay.made) == ("found", 3, 1)


def test_a_task_of_an_earlier_attempt_stops_no_later_one() -> None:
    """A request that was given up before the attempt began does not stop the run."""
    pay, calls = Payment(), 0

    @retry(Failed, attempts=3, backoff=Constant(1), retry_exhausted=True)
    async def order() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            await gathered(pay)
        if calls < 3:
            raise Failed("no order")
        return "done"

    with virtual_time():
        assert asyncio.run(order()) == "done"


def test_an_update_that_found_its_write_forgets_the_doubt() -> None:
    """`mine` shows that the lost write was applied: the function that goes on to fail is repeated."""
    values, calls = [0], 0

    async def read() -> int:
        return values[0]

    async def write(value: int) -> None:
        values[0] = value
        await asyncio.create_task(_lose())

    async def _lose() -> None:
        await anyio.lowlevel.checkpoint()
        INNER.call(_busy)

    @retry(Failed, attempts=2, backoff=Constant(1))
    async def change() -> None:
        nonlocal calls
        calls += 1
        await aupdate(
            read=read, modify=lambda value: value + 1, write=write, conflict=_never, mine=lambda value: value > 0,
            policy=BUSY,
        )  # fmt: skip
        raise Failed("later")

    with virtual_time(), pytest.raises(Failed):
        asyncio.run(change())
    assert calls == 2


def test_an_update_in_sync_code_forgets_the_doubt() -> None:
    """The same in a thread."""
    values, calls = [0], 0

    def write(value: int) -> None:
        values[0] = value
        INNER.call(_busy)

    @retry(Failed, attempts=2, backoff=Constant(1))
    def change() -> None:
        nonlocal calls
        calls += 1
        update(
            read=lambda: values[0], modify=lambda value: value + 1, write=write, conflict=_never,
            mine=lambda value: value > 0, policy=BUSY,
        )  # fmt: skip
        raise Failed("later")

    with virtual_time(), pytest.raises(Failed):
        change()
    assert calls == 2


def test_memory_is_bounded() -> None:
    """Of very many harms in one call the last ones are kept, and of very many threads those that came last."""

    async def main() -> int:
        log = harm.HarmLog(0.0)
        for _ in range(500):
            await _flagged(Payment())
        kept = len(log.harms)
        log.close()
        return kept

    assert asyncio.run(main()) == harm._MOST
    with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(harm, "_MOST_THREADS", 1)
        patch.setattr(harm, "_of_threads", {-1: []})
        pool.submit(_flagged_sync, Payment()).result()
        assert len(harm._of_threads) == 1
        assert -1 not in harm._of_threads


def test_a_log_is_closed_in_any_context() -> None:
    """A coroutine that nobody finished is closed by the garbage collector, anywhere."""
    import contextvars

    log = contextvars.copy_context().run(harm.HarmLog, 0.0)
    log.close()
    assert harm.harms(shared=True) is harm.harms(shared=False) or harm.harms(shared=True) == []


def _busy() -> None:
    raise Busy


def _never(error: Exception) -> bool:
    return False

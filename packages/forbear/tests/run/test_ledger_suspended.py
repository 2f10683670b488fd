"""The ledger and the keys of runs that are not on the stack: suspended blocks, tasks whose outer run has ended."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import httpx
import pytest

import forbear
from forbear.clients.httpx import AsyncRetryTransport, RetryTransport
from forbear.run import harm, ledger
from forbear.testing import virtual_time

POLICY = forbear.retry(on=ValueError, attempts=3, timeout=None)
NOISE = 2 * ledger._SWEPT


class Shop:
    """A transport that counts the charges, and answers everything."""

    def __init__(self) -> None:
        self.charges = 0
        self.client = httpx.Client(transport=RetryTransport(transport=httpx.MockTransport(self.answer)))
        self.aclient = httpx.AsyncClient(transport=AsyncRetryTransport(transport=httpx.MockTransport(self.answer)))

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Count a charge."""
        self.charges += request.url.path == "/charge"
        return httpx.Response(200)

    def charge(self) -> None:
        """Charge once more."""
        self.client.post("https://shop.example/charge")

    def write(self, count: int) -> None:
        """Make other writes, each of which may be repeated."""
        for number in range(count):
            self.client.put(f"https://shop.example/state/{number}")


def consume(shop: Shop, noise: int) -> None:
    """Let a generator charge in a block, write something else while it is suspended, and let it fail."""

    def generate() -> Generator[None]:
        for attempt in POLICY:
            with attempt:
                shop.charge()
                yield
                raise ValueError

    for _ in generate():
        shop.write(noise)


def stack(shop: Shop, noise: int) -> None:
    """Enter the block through an ExitStack."""
    for attempt in POLICY:
        with ExitStack() as opened:
            opened.enter_context(attempt)
            shop.charge()
            shop.write(noise)
            raise ValueError


def wrap(shop: Shop, noise: int) -> None:
    """Enter the block in a context manager that a generator makes."""

    @contextmanager
    def entered(attempt: Any) -> Generator[None]:
        with attempt:
            yield

    for attempt in POLICY:
        with entered(attempt):
            shop.charge()
            shop.write(noise)
            raise ValueError


@pytest.mark.parametrize("noise", [0, NOISE])
@pytest.mark.parametrize("work", [consume, stack, wrap])
def test_a_charge_is_not_forgotten(work: Callable[[Shop, int], None], noise: int) -> None:
    """However much else the thread writes before the block fails, and wherever its frame is, it charges once."""
    shop = Shop()
    with virtual_time(), suppress(ValueError):
        work(shop, noise)
    assert shop.charges == 1


@pytest.mark.parametrize("noise", [0, NOISE])
def test_a_plain_block_in_an_async_loop(noise: int) -> None:
    """Its task is suspended while others write: it charges once, and a block that only reads goes on."""
    shop, reads, written = Shop(), list[int](), asyncio.Event()

    async def pay() -> None:
        async for attempt in POLICY:
            with attempt:
                await shop.aclient.post("https://shop.example/charge")
                await written.wait()
                raise ValueError

    async def read() -> None:
        async for attempt in POLICY:
            with attempt:
                reads.append(attempt.number)
                await shop.aclient.get("https://shop.example/price")
                await written.wait()
                raise ValueError

    async def write() -> None:
        for number in range(noise):
            await shop.aclient.put(f"https://shop.example/state/{number}")
        written.set()

    async def main() -> None:
        await asyncio.gather(pay(), read(), write(), return_exceptions=True)

    with virtual_time():
        asyncio.run(main())
    assert shop.charges == 1
    assert reads == [1, 2, 3]


@pytest.mark.parametrize("between", [0, 3 * ledger._MOST])
def test_a_write_of_what_was_read_long_before(between: int) -> None:
    """However many reads come between, a PUT of what the attempt has read before is not repeated."""
    shop, puts = Shop(), list[int]()

    def count() -> None:
        shop.client.get("https://shop.example/counter")
        for number in range(between):
            shop.client.get(f"https://shop.example/{number}")
        puts.append(1)
        shop.client.put("https://shop.example/counter")
        raise ValueError

    with virtual_time(), pytest.raises(ValueError):  # noqa: PT011 - it has no text
        POLICY.call(count)
    assert len(puts) == 1


def test_a_key_outlives_the_outer_run() -> None:
    """A task that goes on after the run around it has given up keeps the key of its first attempt."""
    made, begun, failed = list[str](), asyncio.Event(), asyncio.Event()

    @POLICY
    async def pay() -> None:
        made.append(forbear.run_key("charge", 1))
        begun.set()
        await failed.wait()
        if len(made) < 3:
            raise ValueError

    async def refuse() -> None:
        raise LookupError

    @forbear.retry(OSError)
    async def both(tasks: list[asyncio.Task[None]]) -> None:
        tasks.append(asyncio.ensure_future(pay()))
        await begun.wait()
        await refuse()

    async def main() -> None:
        tasks = list[asyncio.Task[None]]()
        with suppress(LookupError):
            await both(tasks)
        failed.set()
        await tasks[0]

    with virtual_time():
        asyncio.run(main())
    assert len(made) == 3
    assert len(set(made)) == 1


def test_logs_of_calls_that_have_ended_are_dropped() -> None:
    """A task that begins its successor for ever keeps no log of its predecessors."""
    harm.watch()
    logs = list[weakref.ref[Any]]()

    class Log(harm.HarmLog):
        __slots__ = ("__weakref__",)

    async def tick(left: int, done: asyncio.Event) -> None:
        log = Log(float(left))
        logs.append(weakref.ref(log))
        if left:
            task = asyncio.ensure_future(tick(left - 1, done))
            task.add_done_callback(lambda each: each.result())
        else:
            done.set()
        log.close()

    async def main() -> int:
        done = asyncio.Event()
        await tick(50, done)
        await done.wait()
        gc.collect()
        return sum(each() is not None for each in logs)

    assert asyncio.run(main()) <= 3


def test_threads_that_have_ended_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks for the requests of threads that have ended; the entries of threads that go on stay."""
    monkeypatch.setattr(ledger, "_of_threads", dict[int, ledger.Entries]())
    monkeypatch.setattr(ledger, "_swept", [4])
    monkeypatch.setattr(ledger, "_FEW_THREADS", 4)
    ledger.note_read("here")
    began, go_on = threading.Barrier(4), threading.Event()

    def wait() -> None:
        ledger.note_read("waiting")
        began.wait()
        go_on.wait()

    waiting = [threading.Thread(target=wait) for _ in range(3)]
    for thread in waiting:
        thread.start()
    began.wait()
    for _ in range(30):
        ended = threading.Thread(target=ledger.note_read, args=("ended",))
        ended.start()
        ended.join()
    alive = {threading.get_ident(), *(thread.ident for thread in waiting)}
    kept = set(ledger._of_threads)
    go_on.set()
    for thread in waiting:
        thread.join()
    assert alive <= kept
    assert len(kept) <= 2 * len(alive) + 1

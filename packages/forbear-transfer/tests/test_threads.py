"""Work in threads, and what a cancelled task does with it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_transfer.threads import in_thread, run_steps, to_the_end, write_behind

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that have ended before anything waits for them: since Python 3.14 their futures are done then."""

    def finish(result: object) -> asyncio.Future[object]:
        future = asyncio.get_running_loop().create_future()
        future.set_result(result)
        return future

    def run(_loop: object, _executor: object, function: Callable[[], object]) -> asyncio.Future[object]:
        return finish(function())

    def wrap(outcome: Future[object]) -> asyncio.Future[object]:
        return finish(outcome.result())

    monkeypatch.setattr(asyncio.BaseEventLoop, "run_in_executor", run)
    monkeypatch.setattr(asyncio, "wrap_future", wrap)


@pytest.mark.parametrize("call", [to_the_end, in_thread])
async def test_a_cancelled_task_goes_no_further(call: Callable[..., Any]) -> None:
    """The function has run, and nothing after it."""
    done: list[str] = []

    async def work() -> None:
        task.cancel()
        await call(done.append, "function")
        done.append("next step")

    task = asyncio.ensure_future(work())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["function"]


async def test_others_run_between_steps() -> None:
    """Many steps do not keep the other tasks waiting."""
    taken: list[int] = []
    seen: list[int] = []

    def take() -> Iterator[None]:
        for number in range(200):
            taken.append(number)
            yield

    async def look() -> None:
        while len(taken) < 200:
            seen.append(len(taken))
            await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop

    await asyncio.gather(run_steps(take()), look())
    assert seen == [64, 128, 192]


@given(st.lists(st.sampled_from([1, 1000, 100_000, 262_144, 300_000]), max_size=40))
def test_bytes_are_written_in_their_order(sizes: list[int]) -> None:
    """All bytes are written when the block ends, those of small pieces together, and by another thread."""
    written: list[bytes] = []
    threads: set[int] = set()

    def write(data: bytes) -> None:
        threads.add(threading.get_ident())
        written.append(data)

    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    with write_behind(write) as take:
        for piece in pieces:
            take(piece)
    assert b"".join(written) == b"".join(pieces)
    assert all(len(data) >= 262_144 for data in written[:-1])
    assert threading.get_ident() not in threads


def test_a_slow_disk_lets_the_sender_wait() -> None:
    """No more than 8 calls wait for the thread, so memory has a bound."""
    goes_on, begun = threading.Event(), threading.Event()
    taken: list[int] = []

    def write(_: bytes) -> None:
        begun.set()
        goes_on.wait()

    def send() -> None:
        with write_behind(write) as take:
            for number in range(40):
                take(b"x" * 262_144)
                taken.append(number)

    sender = threading.Thread(target=send)
    sender.start()
    begun.wait()
    while len(taken) < 8:
        sender.join(0.001)
    sender.join(0.05)
    assert len(taken) == 8
    goes_on.set()
    sender.join()
    assert len(taken) == 40


@pytest.mark.parametrize("pieces", [1, 3, 100])
def test_nothing_is_written_after_an_error(pieces: int) -> None:
    """The error of a full disk arrives by the next piece or at the end, and no byte leaves a hole behind it."""
    calls: list[int] = []

    def write(data: bytes) -> None:
        calls.append(len(data))
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"), write_behind(write) as take:  # noqa: PT012
        for _ in range(pieces):
            take(b"x" * 262_144)
    assert calls == [262_144]


def test_what_has_arrived_is_written_before_another_error_goes_on() -> None:
    """A connection that breaks takes nothing back: the next request continues behind all bytes."""
    written: list[bytes] = []
    with pytest.raises(ConnectionError), write_behind(written.append) as take:  # noqa: PT012
        take(b"a" * 300_000)
        take(b"b")
        raise ConnectionError("lost")
    assert b"".join(written) == b"a" * 300_000 + b"b"


def test_an_interrupt_waits_for_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the last bytes are written leaves no thread that writes to a closed file."""
    written: list[bytes] = []
    join = threading.Thread.join
    interrupts = iter([KeyboardInterrupt()])

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        for interrupt in interrupts:
            raise interrupt
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt), write_behind(written.append) as take:
        take(b"x")
    assert written == [b"x"]
    assert not any(thread.name == "forbear-writer" for thread in threading.enumerate())

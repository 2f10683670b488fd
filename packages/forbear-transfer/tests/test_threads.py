"""Work in threads, and what a cancelled task does with it."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from forbear_transfer.threads import in_thread, run_steps, to_the_end

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

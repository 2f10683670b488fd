"""One exception instance for several waiters: each run has its own attempts, and the report of its own."""

from concurrent.futures import Future, ThreadPoolExecutor

import anyio
import pytest
from anyio.lowlevel import checkpoint

from forbear.core.backoff import Constant
from forbear.core.report import Report, report
from forbear_testkit.run.cases import BUSY, Busy


async def _others_go_on() -> None:
    for _ in range(20):
        await checkpoint()


def shared(patience: dict[str, int], order: list[str], backend: str) -> dict[str, int]:
    """Return how often each waiter called, if each failure is one and the same exception for all that wait for it.

    They wake in the order of the second argument, whatever the order in which they began.
    """
    calls = dict.fromkeys(patience, 0)
    reports: dict[str, Report | None] = {}

    async def main() -> None:
        waiting: dict[str, anyio.Event] = {}
        errors: list[Busy] = []

        async def load(who: str) -> None:
            calls[who] += 1
            event = waiting[who] = anyio.Event()
            await event.wait()
            raise errors[-1].with_traceback(None)  # as asyncio's futures do

        async def wait(who: str, attempts: int) -> None:
            policy = BUSY.with_attempts(attempts).with_backoff(Constant(0))
            with pytest.raises(Busy) as caught:
                await policy.with_name(who).acall(load, who)
            reports[who] = report(caught.value)

        async with anyio.create_task_group() as group:
            for who, attempts in patience.items():
                group.start_soon(wait, who, attempts)
            for _ in range(max(patience.values())):
                await _others_go_on()
                errors.append(Busy("the batch failed"))
                for who in order:
                    if who in waiting:
                        waiting.pop(who).set()
                        await _others_go_on()

    anyio.run(main, backend=backend)
    assert {who: found and (found.operation, found.count) for who, found in reports.items()} == {
        who: (who, attempts) for who, attempts in patience.items()
    }
    return calls


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("patience", [{"a": 2, "b": 5}, {"b": 5, "a": 2}, {"b": 4, "a": 1}, {"a": 1, "b": 4}], ids=str)
@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]], ids=str)
def test_a_shared_error_stops_only_whose_limits_are_reached(
    backend: str, patience: dict[str, int], order: list[str]
) -> None:
    """One instance for several waiters: each has its own attempts, and the report of its own run."""
    assert shared(patience, order, backend) == patience


def test_a_shared_error_in_threads() -> None:
    """The futures of threads hand out one instance, too, whose traceback grows with each waiter."""
    failing: Future[None] = Future()
    failing.set_exception(Busy("once for all"))
    calls: list[str] = []

    def load(who: str) -> None:
        calls.append(who)
        failing.result()

    with pytest.raises(Busy):
        BUSY.with_attempts(2).with_backoff(Constant(0)).call(load, "a")
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(BUSY.with_attempts(3).with_backoff(Constant(0)).call, load, "b")
        assert isinstance(task.exception(), Busy)
    assert calls == ["a", "a", "b", "b", "b"]

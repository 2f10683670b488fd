"""Budgets whose answer may come late: what becomes of it when the run is cancelled, interrupted or stopped."""

import threading

import anyio
import pytest

from forbear.core.backoff import Constant
from forbear.core.report import report
from forbear.run.budget import Budget
from forbear.run.late_grant import AGAIN, LateGrant
from forbear.run.stopping import stop_on
from forbear.testing.virtual_clock import VirtualRuntime, clock, virtual_time
from forbear_testkit.run.cases import BUSY, Busy
from forbear_testkit.run.drivers import ASYNC, SYNC, Driver


class Late(Budget):
    """A budget that answers at a virtual time after each ask (None: never); `log` has what a run does with it."""

    open_grant = LateGrant

    def __init__(self, answer: bool, after: float | None) -> None:
        super().__init__()
        self.answer, self.after = answer, after
        self.due = 0.0
        self.log: list[str] = []

    def ask(self) -> "Late":
        """Begin an ask."""
        self.log.append("ask")
        self.due = float("inf") if self.after is None else clock().elapsed + self.after
        return self

    def look(self) -> bool | None:
        """Return the answer once it is due."""
        return self.answer if clock().elapsed >= self.due else None

    def wait(self, seconds: float) -> bool | None:
        """Do not wait: virtual time stands still."""
        return self.look()

    def end(self) -> bool:
        """Return the answer at the end of the backoff."""
        self.log.append("end")
        return self.look() is True

    def give_up(self) -> None:
        """Note that the run has ended."""
        self.log.append("give up")


DRIVERS = pytest.mark.parametrize("drive", [*SYNC, *ASYNC], ids=lambda driver: driver.name)


@DRIVERS
@pytest.mark.parametrize(
    ("answer", "after", "starts", "elapsed", "log"),
    [
        (True, 0, [0, 1], 1, ["ask"]),
        (False, 0, [0], 0, ["ask"]),
        (True, 0.1, [0, 1], 1, ["ask", "end"]),
        (False, 0.1, [0], AGAIN, ["ask", "end"]),
        (True, 0.9, [0, 1], 1, ["ask", "end"]),
        (False, 0.9, [0], 1, ["ask", "end"]),
        (True, None, [0], 1, ["ask", "end"]),
    ],
)
def test_when_the_answer_comes(
    drive: Driver, answer: bool, after: float | None, starts: list[float], elapsed: float, log: list[str]
) -> None:
    """A retry begins when its backoff ends, however late the grant; a refusal ends the run at the next look."""
    budget = Late(answer, after)
    outcome = drive(BUSY.with_budget(budget), Busy, "done")
    assert (outcome.starts, outcome.elapsed, budget.log) == (starts, elapsed, log)
    assert outcome.value == ("done" if len(starts) == 2 else None)
    if outcome.error is not None:
        given_up = report(outcome.error)
        assert given_up is not None
        assert (given_up.count, given_up.text) == (1, "the retry budget is used up")


class Slow(Late):
    """A budget whose first look takes 4 ms, as that at a server does."""

    def look(self) -> bool | None:
        """Let the time pass once, then look."""
        if self.log == ["ask"]:
            self.log.append("look")
            clock().advance(0.004)
        return super().look()


@DRIVERS
@pytest.mark.parametrize(
    ("answer", "after", "starts", "elapsed"),
    [(True, 0, [0, 1], 1), (True, 0.5, [0, 1], 1), (False, 0, [0], 0.004), (False, 0.9, [0], 1), (True, None, [0], 1)],
)
def test_the_look_is_a_part_of_the_backoff(
    drive: Driver, answer: bool, after: float | None, starts: list[float], elapsed: float
) -> None:
    """The retry begins when its backoff ends, not later by the time of the look."""
    budget = Slow(answer, after)
    outcome = drive(BUSY.with_budget(budget), Busy, "done")
    assert outcome.starts == pytest.approx(starts, abs=1e-9)
    assert outcome.elapsed == pytest.approx(elapsed, abs=1e-9)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancelled_wait_gives_the_answer_up(backend: str) -> None:
    """A task that is cancelled in its backoff does not take the token with it."""
    budget = Late(True, None)

    async def main() -> None:
        with virtual_time():
            with anyio.CancelScope() as scope:
                policy = BUSY.with_budget(budget).with_on_event(lambda _: scope.cancel())

                @policy
                async def call() -> None:
                    raise Busy

                await call()
            assert scope.cancelled_caught

    anyio.run(main, backend=backend)
    assert budget.log == ["ask", "give up"]


def test_an_interrupted_sleep_gives_the_answer_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during the backoff passes through, and the budget knows."""

    def interrupted(self: VirtualRuntime, seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(VirtualRuntime, "sleep", interrupted)
    budget = Late(True, None)

    def busy() -> None:
        raise Busy

    with virtual_time(), pytest.raises(KeyboardInterrupt):
        BUSY.with_budget(budget).call(busy)
    assert budget.log == ["ask", "give up"]


@pytest.mark.parametrize("stops", [False, True])
def test_within_stop_on(stops: bool) -> None:
    """The wait ends when the event is set, and the answer is given up; without it the run looks after the wait."""
    event = threading.Event()
    budget = Late(True, 0.9)

    def busy() -> None:
        raise Busy

    policy = BUSY.with_budget(budget).with_attempts(2).with_on_event(lambda _: event.set() if stops else None)
    with virtual_time(), stop_on(event), pytest.raises(Busy) as caught:
        policy.call(busy)
    given_up = report(caught.value)
    assert given_up is not None
    if stops:
        assert (budget.log, given_up.count, given_up.text) == (["ask", "give up"], 1, "the event of stop_on is set")
    else:
        assert (budget.log, given_up.count) == (["ask", "end"], 2)


@DRIVERS
@pytest.mark.parametrize(("delay", "sync_look"), [(1, 0.005), (0.001, 0.001)], ids=["a long wait", "a short wait"])
def test_a_look_is_no_longer_than_the_wait(drive: Driver, delay: float, sync_look: float) -> None:
    """Sync code waits for the answer within its backoff, and async code only looks for it."""
    waits: list[float] = []

    class Watched(Late):
        def wait(self, seconds: float) -> bool | None:
            waits.append(seconds)
            return super().wait(seconds)

    outcome = drive(BUSY.with_backoff(Constant(delay)).with_budget(Watched(True, delay)), Busy, "done")
    assert outcome.value == "done"
    assert waits == [0 if drive.backend else sync_look]

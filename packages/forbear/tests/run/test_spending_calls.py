"""The rule of a budget: every call of its methods in a run, with its time and its argument."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import forbear
from forbear.core.verdict import TRANSIENT, Verdict
from forbear.events import Reason
from forbear.run.budget import Budget
from forbear.run.runtime import current
from forbear.run.spending import Spending, Throttled, admit, succeeded
from forbear.run.state import Run
from forbear.testing import virtual_time
from forbear.testing.virtual_clock import VirtualTime
from forbear_testkit.run.remote_budget import Remote

THROTTLED = (
    "the retry budget refused the first attempt, because the service refuses too many requests; nothing was sent"
)


class Rule:
    """A rule that grants retries at a price, and notes each call: its method, the seconds so far, the argument."""

    def __init__(self, price: int | None = 7) -> None:
        self.price = price
        self.calls: list[tuple[str, float, Any]] = []
        self.began = current.get().monotonic()

    def start(self) -> list[int]:
        """Begin without counters."""
        return []

    def take(self, state: list[int], now: float, verdict: Verdict) -> int | None:
        """Grant the retry, if it has a price."""
        self.calls.append(("take", now - self.began, verdict))
        return self.price

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        """Note a success."""
        self.calls.append(("succeeded", now - self.began, cost))


class Counting(Rule):
    """One that counts first attempts, too, and failures and waits."""

    admits = True

    def admit(self, state: list[int], now: float, u: float) -> bool:
        """Admit a first attempt."""
        assert 0 <= u < 1
        self.calls.append(("admit", now - self.began, None))
        return self.admits

    def failed(self, state: list[int], now: float, verdict: Verdict) -> None:
        """Note a failure."""
        self.calls.append(("failed", now - self.began, verdict))

    def release(self, state: list[int], now: float, cost: int) -> None:
        """Note the end of an attempt."""
        self.calls.append(("release", now - self.began, cost))

    def wait(self, state: list[int], now: float, delay: float) -> None:
        """Note a wait."""
        self.calls.append(("wait", now - self.began, delay))


@pytest.fixture(name="time", autouse=True)
def _time() -> Iterator[VirtualTime]:
    with virtual_time() as time:
        time.advance(50)  # so that no run begins at zero
        yield time


class PoolTimeout(OSError):
    """An error whose name says that the client's own timeout ended the attempt."""


class Inner(PoolTimeout):
    """An error whose base class has such a name."""


LATE = TRANSIENT.replace(timed_out=True)
ERRORS: list[tuple[type[Exception], Verdict]] = [
    (OSError, TRANSIENT), (TimeoutError, LATE), (PoolTimeout, LATE), (Inner, LATE),
]  # fmt: skip


@pytest.mark.parametrize(("error", "verdict"), ERRORS, ids=lambda value: getattr(value, "__name__", ""))
def test_all_that_a_rule_is_told(error: type[Exception], verdict: Verdict, time: VirtualTime) -> None:
    """Attempts, failures, retries with their waits and prices, and the success, in their order and at their time."""
    rule = Counting()
    outcomes = iter([error, error])

    def work() -> str:
        time.advance(1)
        for outcome in outcomes:
            raise outcome
        return "done"

    policy = forbear.retry(OSError, backoff=forbear.Constant(5), budget=Budget(rule))
    assert policy.call(work) == "done"

    def failure(at: float, cost: int) -> list[tuple[str, float, object]]:
        return [("release", at, cost), ("failed", at, verdict), ("take", at, verdict), ("wait", at, 5.0)]

    assert rule.calls == [
        ("admit", 0.0, None), *failure(1.0, 0), *failure(7.0, 7), ("release", 13.0, 7), ("succeeded", 13.0, 7),
    ]  # fmt: skip


def test_what_a_rule_is_told_that_counts_only_retries(time: VirtualTime) -> None:
    """The price is that of the last retry, and 0 for a success at the first attempt."""
    rule = Rule()
    policy = forbear.retry(OSError, backoff=forbear.Constant(5), budget=Budget(rule))
    outcomes = [OSError, OSError]

    def work() -> None:
        if outcomes:
            raise outcomes.pop()

    for _ in range(2):
        policy(work)()
    assert rule.calls == [
        ("take", 0.0, TRANSIENT), ("take", 5.0, TRANSIENT), ("succeeded", 10.0, 7), ("succeeded", 10.0, 0),
    ]  # fmt: skip
    rule.calls.clear()
    with forbear.disabled():
        policy.call(work)
    assert rule.calls == [("succeeded", 10.0, 0)]


def test_a_retry_that_is_refused() -> None:
    """It has no wait, and the attempt ends once."""
    rule = Counting(price=None)
    policy = forbear.retry(OSError, budget=Budget(rule))

    def work() -> None:
        raise OSError

    with pytest.raises(OSError) as caught:  # noqa: PT011 - it has no text
        policy.call(work)
    assert [call[0] for call in rule.calls] == ["admit", "release", "failed", "take"]
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.reason, report.text) == (Reason.BUDGET, "the retry budget is used up")


@pytest.mark.parametrize("form", ["call", "async", "client"])
def test_a_first_attempt_that_is_refused(form: str, time: VirtualTime) -> None:
    """Nothing is sent; the error and its report say why, and nothing else is counted."""
    rule = Counting()
    rule.admits = False
    policy = forbear.retry(OSError, budget=Budget(rule))
    runtime, began = current.get(), current.get().monotonic()
    events = list[Any]()
    policy = policy.with_changes(on_event=events.append, name="load")
    spending = Spending(Budget(rule))

    async def work() -> None:
        raise AssertionError

    calls: dict[str, Any] = {
        "call": lambda: policy.call(len, "abc"),
        "async": lambda: asyncio.run(policy.acall(work)),
        "client": lambda: admit(spending, runtime, lambda: Run(policy, "load", runtime, began)),
    }
    time.advance(2)
    with pytest.raises(Throttled) as caught:
        calls[form]()
    assert str(caught.value) == THROTTLED
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.reason, report.text) == (Reason.BUDGET, "the retry budget refused the first attempt")
    assert (report.operation, report.count, report.elapsed) == ("load", 1, 2.0 if form == "client" else 0.0)
    assert [type(event).__name__ for event in events] == ["Failed", "GaveUp"]
    assert rule.calls == [("admit", 2.0, None)]
    if form == "client":
        assert spending.refused


def test_the_part_of_one_run() -> None:
    """An attempt ends once, however often that is said, and a new one begins with each grant."""
    rule = Counting()
    spending = Spending(Budget(rule))
    assert not spending.refused
    spending.end()
    assert spending.begin(0.5)
    assert not spending.refused
    for _ in range(2):
        spending.end()
    assert spending.failed(TRANSIENT, None) is TRANSIENT
    assert spending.take(TRANSIENT)
    spending.succeeded(retried=True)
    spending.succeeded(retried=False)
    assert [(call[0], call[2]) for call in rule.calls] == [
        ("admit", None), ("release", 0), ("failed", TRANSIENT), ("take", TRANSIENT), ("wait", 0.0), ("release", 7),
        ("succeeded", 7), ("succeeded", 0),
    ]  # fmt: skip
    rule.calls.clear()
    spending.take(TRANSIENT, 3.0)
    del spending
    assert [(call[0], call[2]) for call in rule.calls] == [("take", TRANSIENT), ("wait", 3.0), ("release", 7)]


def test_a_success_without_a_run() -> None:
    """The run's part counts it, or else the budget of the policy, if there is one."""
    rule = Rule()
    budget = Budget(rule)
    policy = forbear.retry(OSError, budget=budget)
    succeeded(None, policy)
    succeeded(None, policy, Spending(budget))
    succeeded(None, forbear.retry(OSError))
    assert [(call[0], call[2]) for call in rule.calls] == [("succeeded", 0), ("succeeded", 0)]
    run = Run(policy, "load", current.get(), 0.0)
    assert run.spending is not None
    run.spending.take(TRANSIENT)
    succeeded(run, policy, Spending(budget))
    assert [(call[0], call[2]) for call in rule.calls[2:]] == [("take", TRANSIENT), ("succeeded", 7)]


def test_a_budget_with_its_own_methods() -> None:
    """They are called in place of the rule's, with what they need to know."""
    told = list[object]()

    class Own(Budget):
        def take(self) -> bool:
            told.append("take")
            return len(told) < 3

        def put(self, *, retried: bool) -> None:
            told.append(retried)

    budget = Own()
    policy = forbear.retry(OSError, budget=budget)
    spending = Spending(budget)
    assert spending.take(TRANSIENT)
    spending.succeeded(retried=True)
    succeeded(None, policy, Spending(budget))
    succeeded(None, policy)
    assert not spending.take(TRANSIENT)
    assert told == ["take", True, False, False, "take"]
    assert Remote.is_custom


def test_the_budget_by_itself(time: VirtualTime) -> None:
    """`take` counts a failure before it asks, and `put` counts what a retry would cost now."""
    rule = Counting()
    budget = Budget(rule)
    time.advance(3)
    assert budget.take()
    budget.put(retried=False)
    budget.put(retried=True)
    assert rule.calls == [
        ("failed", 3.0, TRANSIENT), ("take", 3.0, TRANSIENT), ("succeeded", 3.0, 0), ("take", 3.0, TRANSIENT),
        ("succeeded", 3.0, 7),
    ]  # fmt: skip
    assert budget.counts_first_attempts
    assert not Budget(Rule()).counts_first_attempts
    rule.price = None
    assert not budget.take()
    rule.calls.clear()
    budget.put(retried=True)
    assert rule.calls[-1] == ("succeeded", 3.0, 0)
    assert asyncio.run(Budget(Rule()).atake())

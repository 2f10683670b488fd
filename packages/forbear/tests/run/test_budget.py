"""Budgets: the one thing that policies share, between threads, tasks and copies."""

import copy
import gc
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from forbear.core.admission import ActiveShare, ClientThrottle, RequestRatio
from forbear.core.backoff import Constant
from forbear.core.budget import Ratio, Throttle, TokenBucket
from forbear.core.decide import Reason
from forbear.core.report import report
from forbear.core.verdict import Verdict
from forbear.policy import retry
from forbear.run.budget import Budget, HostBudgets
from forbear.run.grant import OpenGrant
from forbear.testing.script import Script
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.cases import BUSY, JUDGING, Broken, Busy
from forbear_testkit.run.remote_budget import Remote

THREADS = 8


@pytest.fixture
def _switching() -> Iterator[None]:
    """Have threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_what_a_budget_counts_by() -> None:
    """Its rule is public, and whether it counts by methods of its own."""
    rule = Throttle()
    assert Budget(rule).rule is rule
    assert Budget.per_host(rule).of("a.example").rule is rule
    assert Budget().rule == TokenBucket()
    assert [kind.is_custom for kind in (Budget, HostBudgets, Remote)] == [False, False, True]


PUBLISHED: list[tuple[Callable[[], Budget], object]] = [
    (Budget, TokenBucket(capacity=10, deposit=0.1, cost=1)),
    (Budget.brooker, TokenBucket(capacity=10, deposit=0.1, cost=1)),
    (lambda: Budget.brooker(100, 0.5), TokenBucket(capacity=100, deposit=0.5, cost=1)),
    (Budget.aws, TokenBucket(capacity=500, deposit=1, cost=14, refund=True, throttled_cost=5)),
    (Budget.aws_until_2026, TokenBucket(capacity=500, deposit=1, cost=5, refund=True, timeout_cost=10)),
    (Budget.finagle, RequestRatio(ratio=0.2, window=10, floor=10)),
    (lambda: Budget.finagle(0.1, 20, 5), RequestRatio(ratio=0.1, window=20, floor=5)),
    (Budget.envoy, ActiveShare(share=0.2, least=3)),
    (lambda: Budget.envoy(0.5, 4), ActiveShare(share=0.5, least=4)),
    (Budget.google_sre, ClientThrottle(k=2, window=120, least=10)),
    (lambda: Budget.google_sre(3, 60, 5), ClientThrottle(k=3, window=60, least=5)),
    (Budget.grpc, Throttle(max_tokens=10, token_ratio=0.1)),
    (lambda: Budget.grpc(4, 0.5), Throttle(max_tokens=4, token_ratio=0.5)),
    (Budget.ratio, Ratio(ratio=0.2, window=10, floor=0)),
    (lambda: Budget.ratio(0.1, 60, 1), Ratio(ratio=0.1, window=60, floor=1)),
]


@pytest.mark.parametrize(("make", "rule"), PUBLISHED, ids=map(str, range(len(PUBLISHED))))
def test_published_budgets_have_their_numbers(make: Callable[[], Budget], rule: object) -> None:
    """The published budgets, by their published numbers."""
    assert make().rule == rule
    assert repr(make()) == f"Budget({rule!r})"


def granted(budget: Budget) -> int:
    """Return how many retries are left."""
    count = 0
    while budget.take():
        count += 1
    return count


def test_aws_figures() -> None:
    """A hundred retries; a success after one gives back its price, one at the first attempt a fifth of it."""
    budget = Budget.aws_until_2026()
    assert granted(budget) == 100
    budget.put(retried=True)
    assert granted(budget) == 1
    for _ in range(5):
        budget.put(retried=False)
    assert granted(budget) == 1


def test_the_window_goes_by_the_runs_clock() -> None:
    """In virtual time the window moves as the clock does."""
    with virtual_time() as time:
        budget = Budget.ratio(1)
        for _ in range(3):
            budget.put(retried=False)
        time.advance(9)
        assert granted(budget) == 3
        time.advance(11)
        assert granted(budget) == 0
        budget.put(retried=False)
        assert granted(budget) == 1


def test_copies_are_the_same_budget() -> None:
    """A policy that was copied still shares it."""
    budget = Budget()
    assert copy.copy(budget) is copy.deepcopy(budget) is budget
    assert copy.deepcopy({"policy": BUSY.with_budget(budget)})["policy"].budget is budget


def test_pickled_budgets_are_new_and_full() -> None:
    """Another process cannot share it, so it starts with one of its own, by the same rule."""
    budget = Budget.brooker(3)
    assert granted(budget) == 3
    other = pickle.loads(pickle.dumps(budget))
    assert repr(other) == repr(budget)
    assert granted(other) == 3
    assert granted(budget) == 0


def test_policies_share_it() -> None:
    """Retries of one leave fewer for the other; successes of either earn new ones."""
    budget = Budget(TokenBucket(2, deposit=1))
    one, other = BUSY.with_budget(budget), JUDGING.with_budget(budget)
    with virtual_time():
        assert one.call(Script(Busy, "done")) == "done"  # takes one, earns one
        with pytest.raises(Busy) as caught:
            one.call(Script(Busy, Busy, Busy))
        found = report(caught.value)
        assert found is not None
        assert found.reason is Reason.BUDGET
        assert other.call(Script("bad")) == "bad"
        assert other.call(Script("done")) == "done"
        assert other.call(Script("bad", "done")) == "done"


@pytest.mark.parametrize("judging", [False, True])
def test_first_successes_earn_retries_in_every_form(judging: bool) -> None:
    """Decorated, called or in a block."""
    budget = Budget(TokenBucket(10, deposit=1))
    policy = (JUDGING if judging else BUSY).with_budget(budget)
    assert granted(budget) == 10
    policy(Script("done"))()
    policy.call(Script("done"))
    assert granted(budget) == 2
    if not judging:
        for attempt in policy:
            with attempt:
                pass
        assert granted(budget) == 1


def test_what_would_not_be_retried_takes_nothing() -> None:
    """Only a retry that the decision allows asks the budget."""
    budget = Budget(TokenBucket(1, deposit=0))
    policy = BUSY.with_budget(budget)
    with virtual_time():
        for stopped, error in (
            (policy, Broken),
            (policy.with_attempts(1), Busy),
            (policy.replace(repeatable=False), Busy),
            (policy.with_timeout(0.5), Busy),
        ):
            with pytest.raises(error):
                stopped.call(Script(error))
    assert granted(budget) == 1


def in_threads(work: Callable[[], object]) -> None:
    """Run the same in eight threads at once."""
    barrier = threading.Barrier(THREADS)

    def start() -> None:
        barrier.wait()
        work()

    threads = [threading.Thread(target=start) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.usefixtures("_switching")
def test_threads_take_no_token_twice() -> None:
    """Eight threads get exactly what is there, and put back exactly what they put."""
    budget = Budget(TokenBucket(1000, deposit=1))
    counts: list[int] = []
    in_threads(lambda: counts.append(granted(budget)))
    assert sum(counts) == 1000

    def put() -> None:
        for _ in range(100):
            budget.put(retried=False)

    in_threads(put)
    assert granted(budget) == 800


@pytest.mark.usefixtures("_switching")
def test_threads_share_it_through_policies() -> None:
    """Under eight threads of failing calls, not one retry too many is made."""
    policy = retry(on=Busy, attempts=None, backoff=Constant(0), budget=Budget(TokenBucket(400, deposit=0)))
    calls: list[int] = []

    def fail() -> None:
        calls.append(1)
        raise Busy

    def work() -> None:
        for _ in range(10):
            with pytest.raises(Busy):
                policy.call(fail)

    in_threads(work)
    assert len(calls) == 400 + 10 * THREADS


class Interrupted(TokenBucket):
    """A bucket that is interrupted in the middle of counting, once for each of `interruptions`."""

    __slots__ = ()
    interruptions: ClassVar[list[Callable[[], object]]] = []

    def succeeded(self, state: list[int], now: float, cost: int) -> None:
        """Enter a success, with an interruption on the way."""
        before = list(state)
        if self.interruptions:
            self.interruptions.pop()()
        assert state == before  # nobody counts in a state that is being counted in
        super().succeeded(state, now, cost)

    def take(self, state: list[int], now: float, verdict: Verdict) -> int | None:
        """Enter a wish to retry, with an interruption on the way."""
        if self.interruptions:
            self.interruptions.pop()()
        return super().take(state, now, verdict)


def _by_signal(work: Callable[[], object]) -> None:
    def handle(number: int, frame: object) -> None:
        work()

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


class Closing:
    """Something that counts when it is thrown away, as a decorated `close()` would."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.me = self
        self.work = work

    def __del__(self) -> None:
        self.work()


def _by_finalizer(work: Callable[[], object]) -> None:
    Closing(work)
    gc.collect()


@pytest.mark.parametrize("interrupt", [_by_signal, _by_finalizer], ids=["signal", "finalizer"])
@pytest.mark.parametrize("depth", [1, 3])
def test_counting_may_be_interrupted_by_counting(interrupt: Callable[[Callable[[], object]], None], depth: int) -> None:
    """No deadlock, and neither the step that was interrupted nor the one in between is lost."""
    budget = Budget(Interrupted(capacity=20, deposit=1))
    assert granted(budget) == 20
    for work, gain in ((lambda: budget.put(retried=False), 1), (budget.take, -1)):
        for outer, also in ((lambda: budget.put(retried=False), 1), (budget.take, -1)):
            for _ in range(8):
                budget.put(retried=False)
            Interrupted.interruptions[:] = [lambda work=work: interrupt(work)] * depth  # type: ignore[misc]
            outer()
            assert Interrupted.interruptions == []
            assert granted(budget) == 8 + depth * gain + also


@pytest.mark.usefixtures("_switching")
def test_threads_and_interruptions_together() -> None:
    """Eight threads that each interrupt themselves lose no count."""
    budget = Budget(Interrupted(capacity=1000, deposit=1))
    assert granted(budget) == 1000

    def put() -> None:
        for _ in range(20):
            Interrupted.interruptions.append(lambda: _by_finalizer_of_thread(lambda: budget.put(retried=False)))
            budget.put(retried=False)

    in_threads(put)
    assert granted(budget) == THREADS * 20 * 2 - len(Interrupted.interruptions)
    Interrupted.interruptions.clear()


def _by_finalizer_of_thread(work: Callable[[], object]) -> None:
    closing = Closing(work)
    closing.me = None  # type: ignore[assignment]
    del closing


@pytest.mark.parametrize(
    ("rule", "puts", "retries"),
    [
        (TokenBucket(capacity=10, cost=0.0004, deposit=0), 0, 25_000),
        (TokenBucket(capacity=1, deposit=0.0004, cost=1), 2500, 1),
        (TokenBucket(capacity=1, deposit=0.0004, cost=1), 2499, 0),
        (TokenBucket(capacity=1e-5, deposit=1e-6, cost=1e-5), 10, 1),
        (Throttle(max_tokens=4, token_ratio=0.0003), 10_001, 1),
        (Throttle(max_tokens=4, token_ratio=0.0003), 10_000, 0),
    ],
)
def test_small_shares_are_counted(rule: TokenBucket | Throttle, puts: int, retries: int) -> None:
    """A share of a thousandth is no nothing: so many successes earn a retry, not one fewer."""
    budget = Budget(rule)
    if puts:
        while budget.take():
            pass
        for _ in range(20):
            budget.take()
    for _ in range(puts):
        budget.put(retried=False)
    assert granted(budget) == retries


def test_the_class_of_a_rule_is_refused() -> None:
    """The forgotten brackets are found when the budget is made."""
    with pytest.raises(TypeError, match=r"`rule` must be a rule such as forbear.budgets.TokenBucket\(\)"):
        Budget(TokenBucket)  # type: ignore[arg-type]


def test_budgets_with_methods_of_their_own() -> None:
    """One method is enough for a run to call them, and an async one is awaited."""

    class Takes(Budget):
        def take(self) -> bool:
            return True

    class Awaits(Budget):
        async def atake(self) -> bool:
            return True

    class Puts(Budget):
        def put(self, *, retried: bool) -> None:
            """Count nothing."""

    class Grants(Awaits):
        open_grant = None

    class Plain(Budget):
        """One without."""

    kinds = (Takes, Awaits, Puts, Grants, Plain)
    assert [kind.is_custom for kind in kinds] == [True, True, True, True, False]
    assert [kind.open_grant for kind in kinds] == [None, OpenGrant, None, OpenGrant, None]

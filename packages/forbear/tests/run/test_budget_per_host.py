"""`Budget.per_host`: one budget for each host and service, bounded in number, shared like any other."""

import asyncio
import copy
import gc
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import forbear
from forbear.core.budget import MICRO
from forbear.policy import retry
from forbear.run.budget import Budget, HostBudgets
from forbear.run.spending import Spending
from forbear_testkit.run.cases import BUSY, Busy

NO_HOST = "`budget` must not be one per host where no host is known"


def test_each_host_and_service_has_its_own() -> None:
    """A host in any case is the same host; another service on it is not the same."""
    budgets = Budget.per_host()
    one = budgets.of("api.example.com")
    assert budgets.of("API.Example.com") is one
    assert budgets.of("api.example.com", "redis") is not one
    while one.take():
        pass
    assert budgets.of("other.example.com").take()
    assert not budgets.of("api.example.com").take()


class TakenByAnotherThread(list[Budget]):
    """A list whose only item another thread takes between a look at it and `pop`."""

    def __bool__(self) -> bool:
        return True


def test_two_threads_may_want_the_first_budget() -> None:
    """The budget that was made to check the arguments goes to one host; a thread that comes too late makes another."""
    budgets = Budget.per_host()
    assert isinstance(budgets, HostBudgets)
    budgets._spare = TakenByAnotherThread()
    assert budgets.of("api.example.com").take()


@pytest.mark.unmutated
@pytest.mark.parametrize(
    ("make_or_rule", "shown"),
    [
        (None, "Budget(TokenBucket())"),
        (forbear.budgets.TokenBucket(3), "Budget(TokenBucket(capacity=3))"),
        (Budget.envoy, "Budget(ActiveShare())"),
        (lambda: Budget.finagle(0.1), "Budget(RequestRatio(ratio=0.1))"),
    ],
)
def test_what_it_makes(make_or_rule: Any, shown: str) -> None:
    """A rule, a function that makes budgets, or nothing for the default rule."""
    budgets = Budget.per_host(make_or_rule)
    assert repr(budgets.of("a")).startswith(shown)
    assert budgets.of("a") is not budgets.of("b")
    assert budgets.counts_first_attempts is budgets.of("a").counts_first_attempts
    assert repr(budgets).startswith("Budget.per_host(")


def test_the_least_recently_used_goes() -> None:
    """Of three hosts with room for two, the one not used for longest starts anew."""
    budgets = Budget.per_host(most=2)
    for host in ("a", "b"):
        assert budgets.of(host).take()
    budgets.of("a")
    budgets.of("c")
    gc.collect()
    assert [budgets.of(host)._state[0] // MICRO for host in ("a", "b")] == [9, 10]


def test_one_in_use_keeps_its_counters() -> None:
    """While a run or a client has it, its host keeps the same budget, however many others come."""
    budgets = Budget.per_host(Budget.envoy, most=2)
    spending = Spending(budgets.of("a"))
    assert spending.begin(0.5)
    for number in range(50):
        budgets.of(f"host{number}")
    assert budgets.of("a") is spending.budget
    assert budgets.of("a")._state == [1, 0]
    assert len(budgets._kept) == 2
    del spending
    for number in range(2):
        budgets.of(f"host{number}")
    gc.collect()
    assert len(budgets._live) == 2


def test_threads_share_them() -> None:
    """Threads that meet a host for the first time at the same time get one budget."""
    budgets = Budget.per_host(most=5)
    with ThreadPoolExecutor(8) as pool:
        for round_ in range(40):
            made = set(pool.map(budgets.of, [f"host{round_}"] * 8))
            assert len(made) == 1


def test_copies_are_the_same_and_pickles_are_new() -> None:
    """As for any budget."""
    budgets = Budget.per_host(forbear.budgets.TokenBucket(3), most=7)
    assert copy.copy(budgets) is budgets
    assert copy.deepcopy(budgets) is budgets
    assert budgets.of("a").take()
    other: HostBudgets = pickle.loads(pickle.dumps(budgets))
    assert repr(other) == repr(budgets) == f"Budget.per_host({forbear.budgets.TokenBucket(3)!r}, most=7)"
    assert other.of("a")._state[0] == 3 * MICRO
    policy = pickle.loads(pickle.dumps(BUSY.with_budget(Budget.per_host(Budget.envoy))))
    assert repr(policy.budget.of("a")) == repr(Budget.envoy())


def test_a_forked_child_has_no_active_attempts() -> None:
    """Buckets are inherited, and counts of active attempts begin anew."""
    envoy, bucket = Budget.per_host(Budget.envoy), Budget.per_host()
    spending = Spending(envoy.of("a"))
    assert spending.begin(0.5)
    assert bucket.of("a").take()
    child = os.fork()
    if child == 0:
        envoy.of("a").put(retried=False)
        fine = envoy.of("a")._state == [0, 0] and bucket.of("a")._state[0] == 9 * MICRO
        os._exit(0 if fine else 1)
    assert os.waitpid(child, 0) == (child, 0)
    assert envoy.of("a")._state == [1, 0]


def _call() -> None:
    BUSY.with_budget(Budget.per_host()).call(print)


def _acall() -> None:
    async def work() -> None:
        """Do nothing."""

    asyncio.run(BUSY.with_budget(Budget.per_host()).acall(work))


def _decorate() -> None:
    retry(Busy, budget=Budget.per_host())(print)


def _decorate_async() -> None:
    @retry(Busy, budget=Budget.per_host())
    async def work() -> None:
        """Do nothing."""


def _block() -> None:
    for attempt in BUSY.with_budget(Budget.per_host()):
        with attempt:
            pass


def _number() -> int:
    return 1


def _same(value: int) -> int:
    return value


def _update() -> None:
    policy = BUSY.with_budget(Budget.per_host())
    forbear.update(read=_number, modify=_same, write=_same, conflict=lambda error: False, policy=policy)


@pytest.mark.parametrize("use", [_call, _acall, _decorate, _decorate_async, _block, _update])
def test_functions_have_no_host(use: Callable[[], None]) -> None:
    """A function is refused when it is decorated, a call and a block at once; the text says what to do."""
    with pytest.raises(TypeError, match=NO_HOST):
        use()


def test_it_has_no_tokens_itself() -> None:
    """`take` and `put` of the whole are refused, and a function uses the budget of its host."""
    budgets = Budget.per_host()
    for use in (budgets.take, lambda: budgets.put(retried=False), lambda: asyncio.run(budgets.atake())):
        with pytest.raises(TypeError, match=NO_HOST):
            use()
    policy = BUSY.with_budget(budgets.of("api.example.com"))
    assert policy.call(lambda: "done") == "done"


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"most": 0}, ValueError, "`most` must be 1 or more, got 0"),
        ({"most": 1.5}, TypeError, "`most` must be a whole number of budgets, got 1.5"),
        ({"make_or_rule": object()}, TypeError, "`rule` must be a rule such as forbear.budgets.TokenBucket"),
        (
            {"make_or_rule": forbear.budgets.TokenBucket},
            TypeError,
            "`make_or_rule` must be a rule, or a function that makes",
        ),
        ({"make_or_rule": Budget.per_host}, TypeError, "such as forbear.budgets.Budget.envoy; got one that makes"),
        (
            {"make_or_rule": lambda: forbear.budgets.SharedBudget("redis://h", "x")},
            TypeError,
            "`make_or_rule` must not make a SharedBudget, which would be one bucket for all hosts",
        ),
    ],
)
def test_bad_values_are_refused(options: dict[str, Any], error: type[Exception], text: str) -> None:
    """When it is made, not at the first request."""
    with pytest.raises(error, match=text):
        Budget.per_host(**options)


def make_none() -> Any:
    """Make nothing."""


SHARED = forbear.budgets.SharedBudget("redis://h", "x")
TEXTS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: Budget.per_host(make_none),
        (
            "`make_or_rule` must be a rule, or a function that makes a forbear.budgets.Budget, such as "
            "forbear.budgets.Budget.envoy; got one that makes None"
        ),
    ),
    (
        lambda: Budget.per_host(lambda: SHARED),
        (
            "`make_or_rule` must not make a SharedBudget, which would be one bucket for all hosts: the name is that of "
            f"the bucket; pass one by the name of the service to each client, got {SHARED!r}"
        ),
    ),
    (
        lambda: Budget.per_host().put(retried=True),
        (
            "`budget` must not be one per host where no host is known, as in a function, a block or urllib3's Retry; "
            'take one of its budgets, budget.of("api.example.com"), or another budget'
        ),
    ),
]


@pytest.mark.parametrize(("use", "text"), TEXTS, ids=map(str, range(len(TEXTS))))
def test_the_texts_of_refusals(use: Callable[[], object], text: str) -> None:
    """They say what to pass instead, and what was got."""
    with pytest.raises(TypeError) as caught:
        use()
    assert str(caught.value) == text


def test_how_it_is_shown_and_counted() -> None:
    """By the call that makes it; by default it has room for 1000 hosts."""
    assert repr(Budget.per_host()) == f"Budget.per_host({forbear.budgets.TokenBucket()!r}, most=1000)"
    rule = forbear.budgets.TokenBucket(3)
    budgets = Budget.per_host(rule, 2)
    assert repr(budgets) == f"Budget.per_host({rule!r}, most=2)"
    assert repr(Budget.per_host(Budget.envoy)).startswith("Budget.per_host(<bound method")
    assert (budgets.rule, budgets.by_host, budgets.is_shared) == (rule, True, False)
    first = budgets.of("A.example", "redis")
    assert budgets.of("a.example", "redis") is first
    assert budgets.of("a.example") is not first
    assert [budgets.of(host) for host in "ab"] == [budgets.of(host) for host in "ab"]
    assert len(budgets._kept) == 2

"""Policies joined by `|`: each error has the limits and the backoff of its own policy."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from forbear.core.backoff import Constant, Sequence
from forbear.core.decide import Reason
from forbear.core.limits import Limits
from forbear.core.report import report
from forbear.core.verdict import NOT_EXECUTED, TRANSIENT
from forbear.policy import Policy, retry
from forbear.run.answers import TryAgain, rule_of
from forbear.run.budget import Budget
from forbear_testkit.run.cases import Broken, Busy
from forbear_testkit.run.drivers import DRIVERS, WITH_VALUES, Driver


def joined(left: Any, right: Any) -> object:
    """Join anything."""
    return left | right


class Lost(Exception):
    """Another error than Busy."""


BUSY = retry(Busy, attempts=4, timeout=100, backoff=Constant(1))
LOST = retry(Lost, attempts=2, timeout=20, backoff=Sequence([5, 6]))
BOTH = BUSY | LOST
THIRD = retry(Broken, attempts=2, backoff=Constant(9))
FEW = BUSY | retry(on=lambda error: NOT_EXECUTED if isinstance(error, Lost) else False, attempts=2, backoff=Constant(5))

CASES: list[tuple[str, Policy, tuple[object, ...], object, list[float], str]] = [
    ("both succeed", BOTH, (Busy, Lost, Busy, "done"), "done", [1, 5, 1], ""),
    ("each counts its own", BOTH, (Busy, Busy, Lost, Busy, "done"), "done", [1, 1, 5, 1], ""),
    ("the limit of the left", BOTH, (Busy, Busy, Lost, Busy, Busy), Busy, [1, 1, 5, 1], "limit of 4 attempts reached"),
    ("the limit of the right", BOTH, (Lost, Busy, Lost), Lost, [5, 1], "limit of 2 attempts reached"),
    ("neither", BOTH, (Busy, Broken), Broken, [1], "the error is permanent"),
    ("neither at once", BOTH, (Broken,), Broken, [], ""),
    ("the other order", LOST | BUSY, (Busy, Busy, Lost, Busy, "done"), "done", [1, 1, 5, 1], ""),
    ("a judge on the right", FEW, (Lost, Busy, "done"), "done", [5, 1], ""),
    ("its limit", FEW, (Lost, Busy, Lost), Lost, [5, 1], "limit of 2 attempts reached"),
    (
        "three",
        BOTH | retry(Broken, attempts=2, backoff=Constant(9)),
        (Lost, Broken, Busy, "done"),
        "done",
        [5, 9, 1],
        "",
    ),
    ("try again", BOTH, (Lost, TryAgain, "done"), "done", [5, 1], ""),
    ("an own wait", BUSY | LOST.with_changes(delay=lambda error: 3), (Busy, Lost, "done"), "done", [1, 3], ""),
    ("an own stop", BUSY | LOST.with_changes(stop=lambda failed: "no"), (Busy, Lost), Lost, [1], "no"),
    ("an own doubt", BUSY | LOST.with_repeatable(False), (Busy, Lost), Lost, [1], "attempt may have been executed"),
    ("the waits of each", BOTH.with_attempts(None) | LOST, (Lost, Busy, "done"), "done", [5, 1], ""),
]


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
@pytest.mark.parametrize(
    ("policy", "outcomes", "end", "slept", "text"), [pytest.param(*row[1:], id=row[0]) for row in CASES]
)
def test_each_error_has_its_own_limits(
    driver: Driver, policy: Policy, outcomes: tuple[object, ...], end: object, slept: list[float], text: str
) -> None:
    """In every form."""
    outcome = driver(policy, *outcomes)
    assert outcome.slept == slept
    if isinstance(end, type):
        assert isinstance(outcome.error, end)
        made = report(outcome.error)
        assert text in ("" if made is None else made.text)
        assert bool(text) is (made is not None)
    else:
        assert outcome.value == end


def test_time_counts_from_the_start_for_all() -> None:
    """The timeout of the right policy is asked after its errors only."""
    outcome = DRIVERS[0](BUSY.with_backoff(Constant(16)) | LOST, Busy, Lost)
    made = report(outcome.error)
    assert made is not None
    assert (made.reason, made.text) == (Reason.TIMEOUT, "timeout of 20 s would be passed by the next wait of 5 s")


@pytest.mark.parametrize("driver", WITH_VALUES, ids=lambda driver: driver.name)
def test_values_count_for_the_left_policy(driver: Driver) -> None:
    """Its limits hold for them, with its errors."""
    policy = BUSY.with_on_result(lambda value: value == "pending") | LOST
    outcome = driver(policy, "pending", Busy, Lost, "pending", "pending", "done")
    assert (outcome.value, outcome.slept) == ("pending", [1, 1, 5, 1])


def test_a_budget_is_shared() -> None:
    """That of the left policy serves all retries."""
    budget = Budget.aws()
    both = BUSY.with_budget(budget) | LOST.with_budget(budget)
    assert both.budget is budget
    assert DRIVERS[0](both, Lost, Busy, "done").value == "done"


def test_joined_policies_are_values() -> None:
    """They pickle, compare, print and derive as any policy."""
    assert pickle.loads(pickle.dumps(BOTH)) == BOTH != BUSY
    assert BOTH.others == (LOST,)
    assert (BUSY | LOST | BUSY).others == (BUSY | (LOST | BUSY)).others == (LOST, BUSY)
    assert BOTH.verdict_of_error(Lost()) == TRANSIENT
    assert rule_of(BOTH, Lost()) == LOST
    assert rule_of(BOTH, Broken()) is BOTH
    assert repr(BOTH).endswith(f" | {LOST!r}")


def wait_one(error: Exception) -> float:
    """Wait a second after each error."""
    return 1.0


CHANGES: dict[str, Callable[[Policy], Policy]] = {
    "attempts": lambda policy: policy.with_attempts(1),
    "timeout": lambda policy: policy.with_timeout(7),
    "limits": lambda policy: policy.with_limits(Limits(attempts=2)),
    "preset": lambda policy: policy.with_preset("ci"),
    "backoff": lambda policy: policy.with_backoff(Constant(3)),
    "repeatable": lambda policy: policy.with_repeatable(False),
    "several": lambda policy: policy.with_changes(attempts=3, clamp=True, delay=wait_one),
    "stop": lambda policy: policy.with_changes(stop=bool),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_reach_all_joined_policies(change: Callable[[Policy], Policy]) -> None:
    """A shorter deadline that held for some errors only would surprise."""
    changed = change(BOTH)
    expected = [change(BUSY), change(LOST)]
    for field in ("limits", "backoff", "repeatable", "delay", "stop"):
        assert [getattr(policy, field) for policy in (changed, *changed.others)] == [
            getattr(policy, field) for policy in expected
        ]


def test_what_belongs_to_the_left_policy_changes_there() -> None:
    """The right one has no name, budget or listener of its own."""
    changed = BOTH.with_name("x").with_changes(name="y", attempts=3)
    assert (changed.name, changed.limits.attempts) == ("y", 3)
    assert [(policy.name, policy.limits.attempts) for policy in changed.others] == [(None, 3)]


def test_another_on_of_joined_policies_is_refused() -> None:
    """Nobody can know for which of them it is meant."""
    with pytest.raises(ValueError, match=r"`on` of policies joined by \| must be set before they are joined"):
        BOTH.with_on(OSError)
    with pytest.raises(ValueError, match=r"`on` of policies joined by \| must be set before they are joined"):
        BOTH.with_changes(on=OSError)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"attempt_timeout": 5}, "attempt_timeout"),
        ({"on_result": bool}, "on_result"),
        ({"on_event": print}, "on_event"),
        ({"budget": Budget()}, "budget"),
        ({"retry_exhausted": True}, "retry_exhausted"),
        ({"name": "x"}, "name"),
        ({"on_give_up": None}, "on_give_up"),
        ({"on_success": print}, "on_success"),
    ],
)
def test_what_the_right_policy_cannot_bring(changes: dict[str, Any], name: str) -> None:
    """It would be ignored, so it is refused; the left one may have it, and both may have the same."""
    right = LOST.with_changes(**changes)
    with pytest.raises(ValueError, match=f"`{name}` of policies joined by | must be set in the left one, got "):
        joined(BUSY, right)
    assert (BUSY.with_changes(**changes) | right).others == (right,)
    assert (right | BUSY).others == (BUSY,)


def test_only_policies_join() -> None:
    """As Python says it."""
    wrong: Any = OSError
    with pytest.raises(TypeError, match="unsupported operand"):
        joined(BUSY, wrong)

"""Decorated functions know their policy, and can be had under another one."""

import functools
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from forbear.core.backoff import Constant
from forbear.policy import Policy, policy_of, retry, with_policy
from forbear.testing import virtual_time
from forbear_testkit.run.cases import Busy

POLICY = retry(Busy, attempts=3, backoff=Constant(1))
OTHER = POLICY.with_attempts(2)
CALLS: list[object] = []


@POLICY
def fail(*args: object) -> None:
    """Fail always, and count."""
    CALLS.append(args)
    raise Busy


@POLICY
async def afail(*args: object) -> None:
    """Fail always, and count."""
    CALLS.append(args)
    raise Busy


class Client:
    """Methods of all kinds."""

    @POLICY
    def method(self) -> None:
        """Fail always, and count."""
        CALLS.append(self)
        raise Busy

    @classmethod
    @POLICY
    def of_class(cls) -> None:
        """Fail always, and count."""
        CALLS.append(cls)
        raise Busy

    @POLICY
    @classmethod
    def around(cls) -> None:
        """Fail always, and count."""
        CALLS.append(cls)
        raise Busy

    @staticmethod
    @POLICY
    def static() -> None:
        """Fail always, and count."""
        CALLS.append(None)
        raise Busy


client = Client()
FORMS: list[Callable[..., Any]] = [fail, client.method, Client.of_class, Client.around, Client.static]


def attempts(function: Callable[..., Any]) -> int:
    """Return how often a call runs the function."""
    CALLS.clear()
    with virtual_time(), pytest.raises(Busy):
        function()
    return len(CALLS)


@pytest.mark.parametrize("function", FORMS, ids=lambda function: function.__qualname__)
def test_every_form(function: Callable[..., Any]) -> None:
    """The policy is at hand, and another one or changes give another function, bound as before."""
    untyped: Any = function
    assert policy_of(function) is untyped.policy is POLICY
    for other in (with_policy(function, OTHER), with_policy(function, attempts=2)):
        assert attempts(other) == 2
        assert policy_of(other) == OTHER
        assert inspect.signature(other) == inspect.signature(function)
    assert attempts(with_policy(function, OTHER, timeout=0.5)) == 1
    assert attempts(function) == 3


async def test_async() -> None:
    """A coroutine function stays one."""
    untyped: Any = afail
    for other in (with_policy(afail, OTHER), untyped.with_policy(OTHER), untyped.with_policy(attempts=2)):
        assert inspect.iscoroutinefunction(other)
        CALLS.clear()
        with virtual_time(), pytest.raises(Busy):
            await other("a")
        assert CALLS == [("a",)] * 2


def test_attributes() -> None:
    """They serve code without a type checker."""
    untyped: Any = fail
    assert attempts(untyped.with_policy(OTHER)) == attempts(untyped.with_policy(attempts=2)) == 2
    assert attempts(lambda: untyped.with_policy(OTHER)("a")) == 2
    assert CALLS == [("a",)] * 2


def test_the_outermost_policy_counts() -> None:
    """Of two policies, the outer one is replaced."""
    outer = retry(KeyError, attempts=7)
    both = outer(fail)
    assert policy_of(both) is outer
    assert policy_of(with_policy(both, attempts=2)).limits.attempts == 2
    assert attempts(with_policy(both, attempts=2)) == 3


def test_pickled() -> None:
    """By its name, as any function."""
    assert pickle.loads(pickle.dumps(fail)) is fail


def plain() -> None:
    """A function without a policy."""


@functools.wraps(fail)
def logged() -> None:
    """A decorator around the policy."""


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: policy_of(plain),
            "test_policy_decorated.plain is not decorated by a policy; decorate it: @forbear.retry(OS",
        ),
        (lambda: with_policy(plain, OTHER), "test_policy_decorated.plain is not decorated by a policy"),
        (lambda: with_policy(len, OTHER), "builtins.len is not decorated by a policy"),
        (lambda: with_policy(logged, OTHER), "test_policy_decorated.fail has another decorator around its policy"),
        (lambda: with_policy(fail), "`with_policy` needs a policy or changes, such as timeout=5"),
        (
            lambda: with_policy(fail, cast_any(5)),
            "`policy` must be a forbear.Policy or None (the func",
        ),
        (lambda: cast_any(with_policy)(fail, tries=5), "`retry` takes no `tries`: write `attempts`"),
    ],
)
def test_misuse(call: Callable[[], object], text: str) -> None:
    """Each error says what is wrong."""
    with pytest.raises(TypeError) as caught:
        call()
    assert text in str(caught.value)


def cast_any(value: object) -> Any:
    """Return the value without its type."""
    return value


def test_changes_are_checked() -> None:
    """As those of any policy."""
    with pytest.raises(ValueError, match="`attempts` must be 1 or more"):
        with_policy(fail, attempts=0)
    policy: Policy = POLICY.with_changes()
    assert policy == POLICY


SYNC_TIMEOUT = (
    "`attempt_timeout` cannot be enforced on {}, which is sync: a thread cannot be stopped; "
    "give the client that it calls a timeout of its own, or make it async"
)


def test_attempt_timeouts_are_refused_for_sync_code() -> None:
    """A thread cannot be stopped, and leaking one is worse."""
    limited = POLICY.with_attempt_timeout(3)
    uses: list[Callable[[Any], object]] = [limited, limited.call]
    for use in uses:
        with pytest.raises(TypeError) as caught:
            use(plain)
        assert str(caught.value) == SYNC_TIMEOUT.format(f"{__name__}.plain")
    with pytest.raises(TypeError) as caught:
        iter(limited)
    assert str(caught.value) == SYNC_TIMEOUT.format("a block")

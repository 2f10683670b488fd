"""Functions that can be retried: every kind of callable, which keeps its identity."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from forbear.policy import Policy
from forbear.run.functions import name_of
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.callables import coroutine, finish, flaky, plain, policy


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    flaky.calls = 0
    with virtual_time():
        yield


class Methods:
    """Methods of all kinds, decorated above and below."""

    factor = 2

    @policy
    def method(self, a: int) -> tuple[object, ...]:
        """A method."""
        return flaky.answer(a * self.factor)

    @policy
    async def amethod(self, a: int) -> tuple[object, ...]:
        """An async method."""
        return flaky.answer(a * self.factor)

    @policy
    @classmethod
    def class_above(cls, a: int) -> tuple[object, ...]:
        """Decorated above @classmethod."""
        return flaky.answer(a * cls.factor)

    @classmethod
    @policy
    def class_below(cls, a: int) -> tuple[object, ...]:
        """Decorated below @classmethod."""
        return flaky.answer(a * cls.factor)

    @policy
    @staticmethod
    def static_above(a: int) -> tuple[object, ...]:
        """Decorated above @staticmethod."""
        return flaky.answer(a)

    @staticmethod
    @policy
    def static_below(a: int) -> tuple[object, ...]:
        """Decorated below @staticmethod."""
        return flaky.answer(a)

    @policy
    @staticmethod
    async def astatic(a: int) -> tuple[object, ...]:
        """Async and static."""
        return flaky.answer(a)

    @property
    @policy
    def value(self) -> tuple[object, ...]:
        """A property."""
        return flaky.answer(self.factor)


class Callable_:  # noqa: N801 - as a callable object
    """A callable object."""

    def __call__(self, a: int) -> tuple[object, ...]:
        """Answer."""
        return flaky.answer(a)


class AsyncCallable:
    """An async callable object."""

    async def __call__(self, a: int) -> tuple[object, ...]:
        """Answer."""
        return flaky.answer(a)


class Undecorated:
    """Methods to be decorated when bound."""

    def bound(self, a: int) -> tuple[object, ...]:
        """Answer."""
        return flaky.answer(a)

    async def abound(self, a: int) -> tuple[object, ...]:
        """Answer."""
        return flaky.answer(a)


@pytest.mark.parametrize(
    ("function", "arguments", "keywords", "answer"),
    [
        (policy(plain), (1,), {"key": 0.5}, (1, "b", ("key", 0.5))),
        (policy(plain), (1, "x", 3), {"key": 0.5, "more": b""}, (1, "x", ("key", 0.5))),
        (policy(coroutine), (1,), {"key": 2}, (1, ("key", 2))),
        (Methods().method, (3,), {}, (6,)),
        (Methods().amethod, (3,), {}, (6,)),
        (Methods.class_above, (3,), {}, (6,)),
        (Methods().class_above, (3,), {}, (6,)),
        (Methods.class_below, (3,), {}, (6,)),
        (Methods.static_above, (3,), {}, (3,)),
        (Methods().static_above, (3,), {}, (3,)),
        (Methods.static_below, (3,), {}, (3,)),
        (Methods.astatic, (3,), {}, (3,)),
        (policy(Undecorated().bound), (3,), {}, (3,)),
        (policy(Undecorated().abound), (3,), {}, (3,)),
        (policy(Callable_()), (3,), {}, (3,)),
        (policy(AsyncCallable()), (3,), {}, (3,)),
        (policy(Callable_().__call__), (3,), {}, (3,)),
        (policy(partial(plain, 1, key=2)), ("x",), {}, (1, "x", ("key", 2))),
        (policy(partial(partial(coroutine, 1), key=2)), (), {}, (1, ("key", 2))),
        (policy(partial(Undecorated().abound, 3)), (), {}, (3,)),
        (policy(partial(AsyncCallable(), 3)), (), {}, (3,)),
        (policy(lambda: flaky.answer(3)), (), {}, (3,)),
        (policy(flaky.answer), (3,), {}, (3,)),
    ],
)
def test_every_kind_of_callable(
    function: Callable[..., object], arguments: tuple[object, ...], keywords: dict[str, object], answer: object
) -> None:
    """Decorated, it takes the same arguments, is retried, and is async if it was."""
    assert finish(function(*arguments, **keywords)) == answer
    assert flaky.calls == 2


def test_a_property() -> None:
    """A decorated getter is retried, too."""
    assert Methods().value == (2,)
    assert flaky.calls == 2


def test_builtins_and_classes_are_called_as_sync_functions() -> None:
    """A callable without code to look at is called as a sync function."""
    assert policy(len)("four") == 4
    assert policy.call(int, "12", base=3) == 5
    assert policy([1].count)(1) == 1


def test_a_class_is_not_decorated() -> None:
    """It would become a function, of which nothing is an instance."""
    with pytest.raises(TypeError, match="dict is a class, and would become a function; decorate its methods"):
        policy(dict)


@pytest.mark.parametrize(
    ("policy", "function"),
    [(policy, plain), (policy, coroutine), (policy.with_attempt_timeout(5), coroutine)],
    ids=["sync", "async", "attempt-timeout"],
)
def test_a_decorated_function_keeps_its_identity(policy: Policy, function: Callable[..., object]) -> None:
    """Name, documentation, module, signature and annotations stay; the original is at hand."""
    decorated: Any = policy(function)
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__"):
        assert getattr(decorated, name) == getattr(function, name)
    assert inspect.signature(decorated) == inspect.signature(function)
    assert decorated.__wrapped__ is function
    assert inspect.iscoroutinefunction(decorated) == inspect.iscoroutinefunction(function)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        pytest.param(plain, "forbear_testkit.run.callables.plain", id="function"),
        pytest.param(partial(partial(plain, 1), "b"), "forbear_testkit.run.callables.plain", id="partial"),
        pytest.param(Undecorated().bound, f"{__name__}.Undecorated.bound", id="method"),
        pytest.param(Undecorated.bound, f"{__name__}.Undecorated.bound", id="unbound"),
        pytest.param(Callable_(), f"{__name__}.Callable_", id="object"),
        pytest.param(Undecorated, f"{__name__}.Undecorated", id="class"),
    ],
)
def test_reports_name_the_function(function: object, name: str) -> None:
    """Reports call an operation by module and qualified name."""
    assert name_of(function) == name


def test_the_name_of_a_callable_without_a_module() -> None:
    """A callable without a module goes by its name, and one without a name by its type."""
    assert name_of(len) == "builtins.len"
    assert name_of([].append) == "list.append"
    assert name_of(Mock()) == "unittest.mock.Mock"

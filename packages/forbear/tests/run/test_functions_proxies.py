"""Proxies and mocks, which seem to be whatever they are asked about."""

from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any
from unittest.mock import AsyncMock, MagicMock, Mock, create_autospec
from xmlrpc.client import ServerProxy

import pytest

from forbear.run.functions import is_async, name_of
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.run.callables import coroutine, finish, flaky, plain, policy


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    flaky.calls = 0
    with virtual_time():
        yield


class Yes:
    """A proxy that answers to any name with another one."""

    def __getattr__(self, name: str) -> "Yes":
        return Yes()

    def __call__(self) -> "Yes":
        """Answer yes."""
        return Yes()


def test_a_proxy_may_be_returned() -> None:
    """It seems to be awaitable, but is not."""
    for judged in (policy, policy.with_on_result(lambda value: not isinstance(value, Yes))):
        assert isinstance(judged(Yes().any)(), Yes)
        assert isinstance(judged.call(Yes), Yes)


class Lazy:
    """A proxy that does its work when it is asked for anything, and cannot."""

    def __getattr__(self, name: str) -> object:
        raise LookupError


def test_a_lazy_value_is_left_alone() -> None:
    """It may be loaded by whoever uses it, not by the retry around the function that made it."""
    lazy = Lazy()
    assert policy(lambda: lazy)() is lazy
    assert policy.call(lambda: lazy) is lazy


def test_a_proxy_may_be_retried() -> None:
    """It seems to be a method, a function and a partial, but is a callable object."""
    assert isinstance(policy(Yes())(), Yes)
    assert isinstance(policy.call(Yes()), Yes)
    assert name_of(Yes()) == f"{__name__}.Yes"
    remote = ServerProxy("http://127.0.0.1:1").list
    assert not is_async(remote)
    assert name_of(remote) == "xmlrpc.client._Method"
    with pytest.raises(ConnectionRefusedError):
        policy.with_attempts(2)(remote)()


OUTCOMES = [OSError, 5]


@pytest.mark.parametrize(
    ("make", "asynchronous"),
    [
        pytest.param(Mock, False, id="mock"),
        pytest.param(MagicMock, False, id="magic"),
        pytest.param(partial(Mock, spec=plain), False, id="spec"),
        pytest.param(partial(create_autospec, plain), False, id="autospec"),
        pytest.param(AsyncMock, True, id="async"),
        pytest.param(partial(MagicMock, spec=coroutine), True, id="async-spec"),
        pytest.param(partial(create_autospec, coroutine), True, id="async-autospec"),
    ],
)
def test_mocks_can_be_decorated(make: Callable[..., Any], asynchronous: bool) -> None:
    """Tests of retried code hand in mocks; async ones are awaited."""
    mock = make(side_effect=OUTCOMES)
    assert is_async(mock) == asynchronous
    assert finish(policy(mock)(1, key=1)) == 5
    assert mock.call_count == 2


def test_functions_marked_as_coroutine_functions() -> None:
    """Compiled and wrapped functions say by a mark what their code does not show."""

    @wraps(coroutine)
    def marked(a: int) -> Any:
        return coroutine(a)

    assert not is_async(marked)
    marked._is_coroutine_mark = object()  # type: ignore[attr-defined]
    assert is_async(marked)
    assert finish(policy(marked)(1)) == (1, ("key", 1))

"""Types that checkers see: a policy changes no type. mypy and basedpyright check these files, pytest runs them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar, assert_type

import pytest

import forbear
from forbear.run.iterate import AsyncAttempts, Attempts
from forbear.testing import AsyncScript, Call, Script, VirtualTime, virtual_time

T = TypeVar("T")

policy = forbear.retry(on=OSError)


@policy
def fetch(key: str, /, size: int = 0, *, strict: bool = False) -> bytes:
    """A sync function."""
    return key.encode()


@policy
async def afetch(key: str, *, strict: bool = False) -> bytes:
    """A coroutine function."""
    return key.encode()


@forbear.retry(on=forbear.transient.transaction)
def transaction(amount: int) -> bool:
    """A function that a ready-made judge judges."""
    return amount > 0


NUMBER: int = 5  # checkers differ in the type of a literal


@forbear.retry(on=(OSError, LookupError), attempts=3)
def generic(value: T) -> T:
    """A generic function."""
    return value


class Client:
    """Methods of all kinds."""

    @policy
    def method(self, key: str) -> bytes:
        """A method."""
        return key.encode()

    @policy
    async def amethod(self, key: str) -> bytes:
        """An async method."""
        return key.encode()

    @classmethod
    @policy
    def of_class(cls, key: str) -> "Client":
        """A class method."""
        return cls()

    @staticmethod
    @policy
    def of_none(key: str) -> int:
        """A static method."""
        return len(key)

    @property
    @policy
    def size(self) -> int:
        """A property."""
        return 5


def plain(key: str, *, strict: bool = False) -> bytes:
    """A function to be called through a policy."""
    return key.encode()


async def aplain(key: str, *, strict: bool = False) -> bytes:
    """A coroutine function to be called through a policy."""
    return key.encode()


def test_policies() -> None:
    """Making and deriving gives policies."""
    assert_type(policy, forbear.Policy)
    assert_type(policy.with_timeout(5).with_backoff(forbear.Constant(0.1)), forbear.Policy)
    assert_type(policy.with_attempts(None).replace(repeatable=False), forbear.Policy)
    assert_type(policy.limits, forbear.Limits)
    assert_type(policy.limits.replace(timeout=None), forbear.Limits)


def test_decorated_functions() -> None:
    """Parameters and results stay as they were, positional-only and keyword-only ones included."""
    assert_type(fetch("a", 5, strict=True), bytes)
    assert_type(transaction(1), bool)
    assert_type(forbear.transient(OSError()), forbear.verdicts.Verdict)
    assert_type(generic(NUMBER), int)
    wanted: Callable[[str, int], bytes] = fetch
    assert wanted("a", 5) == b"a"


def test_wrong_calls_are_refused() -> None:
    """By the type checker: each line here needs its excuse, or mypy complains that it needs none."""
    with pytest.raises(TypeError):
        fetch(key="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError):
        fetch("a", 5, True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError):
        policy.call(plain)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError):
        policy.call(plain, "a", string=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError):
        forbear.retry(5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(TypeError):
        forbear.retry(plain)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(TypeError):
        forbear.with_policy(fetch, tries=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError):
        forbear.retry(on=5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]


async def test_decorated_coroutine_functions() -> None:
    """They still give coroutines."""
    coroutine: Coroutine[Any, Any, bytes] = afetch("a", strict=True)
    assert_type(await coroutine, bytes)


async def test_decorated_methods() -> None:
    """Bound as before."""
    client = Client()
    assert_type(client.method("a"), bytes)
    assert_type(await client.amethod("a"), bytes)
    assert_type(Client.of_class("a"), Client)
    assert_type(client.of_none("a"), int)
    assert_type(client.size, int)


async def test_functions_under_another_policy() -> None:
    """`with_policy` keeps the type, also of generic functions, coroutine functions and methods."""
    client = Client()
    assert_type(forbear.policy_of(fetch), forbear.Policy)
    assert_type(forbear.policy_of(client.method), forbear.Policy)
    assert_type(forbear.with_policy(fetch, policy)("a", 5, strict=True), bytes)
    assert_type(forbear.with_policy(generic, attempts=5)(NUMBER), int)
    assert_type(await forbear.with_policy(afetch, timeout=timedelta(minutes=1))("a"), bytes)
    assert_type(forbear.with_policy(client.method, policy, timeout=5)("a"), bytes)
    assert_type(await forbear.with_policy(client.amethod, policy)("a"), bytes)
    assert_type(forbear.with_policy(Client.of_class, policy)("a"), Client)
    assert_type(forbear.with_policy(client.of_none, policy)("a"), int)
    assert_type(forbear.retry(OSError, LookupError, timeout=timedelta(minutes=1)), forbear.Policy)


async def test_calls() -> None:
    """`call` and `acall` take the function's arguments and give its result."""
    assert_type(policy.call(plain, "a", strict=True), bytes)
    assert_type(policy.call(Client().method, "a"), bytes)
    assert_type(policy.call(len, "abc"), int)
    assert_type(policy.call(partial(plain, "a")), bytes)
    assert_type(policy.call(lambda: NUMBER), int)
    assert_type(await policy.acall(aplain, "a", strict=True), bytes)
    assert_type(await policy.acall(Client().amethod, "a"), bytes)
    assert_type(await policy.acall(lambda: aplain("a")), bytes)
    assert_type(await policy.acall(awaitable, "a"), bytes)


def awaitable(key: str) -> Awaitable[bytes]:
    """A sync function that gives an awaitable, to be called with `acall`."""
    return aplain(key)


def test_blocks() -> None:
    """Loops give attempts, and so do their `with` statements."""
    for attempt in policy:
        assert_type(attempt, Attempts)
        with attempt as same:
            assert_type(same, Attempts)
            assert_type(same.number, int)


async def test_async_blocks() -> None:
    """Async loops give attempts of their own type."""
    async for aattempt in policy:
        assert_type(aattempt, AsyncAttempts)
        async with aattempt as asame:
            assert_type(asame, AsyncAttempts)
    async for aattempt in policy:
        with aattempt as asame:
            assert_type(asame, AsyncAttempts)


def test_predicates_and_listeners() -> None:
    """`on` answers with a bool, seconds or a verdict; listeners may return anything."""
    told: list[forbear.events.Event] = []
    forbear.retry(on=lambda error: isinstance(error, OSError))
    forbear.retry(on=lambda error: 0.5)
    forbear.retry(on=lambda error: forbear.verdicts.NOT_EXECUTED)
    forbear.retry(on=(OSError, LookupError), on_result=lambda value: value is None, on_event=told.append)
    forbear.retry(on=OSError, backoff=forbear.Sequence([1, 2.5]), budget=forbear.budgets.Budget.aws())


class Patient:
    """A backoff of one's own, without defaults and with names of its own."""

    def delay(self, n: int, u: float, previous: float | None) -> float:
        """Return the last wait and one second more."""
        return (previous or 0) + 1


class Impatient:
    """No backoff: it returns a text."""

    def delay(self, n: int, u: float, previous: float | None) -> str:
        """Return what is no number."""
        return "soon"


def backed_off(backoff: forbear.policies.Backoff, on: forbear.policies.On) -> forbear.Policy:
    """A policy, from parameters with public types."""
    return forbear.retry(on=on, backoff=backoff)


def test_backoffs_and_judges_have_public_types() -> None:
    """A user's class satisfies the protocol, and so do those of forbear."""
    assert_type(backed_off(Patient(), OSError), forbear.Policy)
    backed_off(forbear.Exponential(), (OSError, LookupError))
    backed_off(forbear.Constant(1), lambda error: timedelta(seconds=1))
    backoffs: list[forbear.policies.Backoff] = [Patient(), forbear.Sequence([1])]
    assert [backoff.delay(0, 0.5, None) for backoff in backoffs] == [1, 1]
    backed_off(Impatient(), OSError)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    for attempt in policy:
        with attempt:
            number = number_of(attempt)
            assert number == 1


def number_of(attempt: forbear.policies.Attempts | forbear.policies.AsyncAttempts) -> int:
    """The number of an attempt, whose type is public."""
    return attempt.number


def test_options_have_types() -> None:
    """Functions that judge, delay, stop and replace are inferred."""
    typed = forbear.retry(
        OSError,
        stop=lambda failed: failed.attempt > 2,
        delay=lambda error: timedelta(seconds=1),
        on_give_up=str,
        on_success=lambda event: event.attempt,
    )
    policy: forbear.Policy = typed.with_changes(stop=None, timeout=timedelta(minutes=1))
    assert policy.stop is None
    assert_type(forbear.Unsatisfied(5, "").value, Any)


def len_of(error: Exception) -> int:
    """The number of arguments of an error."""
    return len(error.args)


def test_what_replaces_an_error_has_a_type() -> None:
    """`on_give_up` is part of what a function returns, for a value, a function, and async code."""

    @forbear.retry(OSError, attempts=1, on_give_up=None)
    def look_up(key: str) -> str:
        raise OSError(key)

    @forbear.retry(OSError, attempts=1, on_give_up=len_of)
    async def alook_up(key: str) -> str:
        raise OSError(key)

    assert_type(look_up("a"), str | None)
    assert look_up("a") is None
    assert_type(asyncio.run(alook_up("a")), str | int)


def test_the_type_of_reports() -> None:
    """Check the types of what an error carries."""
    found = forbear.report(OSError())
    assert_type(found, forbear.events.Report | None)
    assert found is None


async def test_testing() -> None:
    """Scripts stay scripts when decorated, and give what cannot be known."""
    with virtual_time(seed=1) as time:
        assert_type(time, VirtualTime)
        script = Script("done")
        assert_type(policy(script), Script)
        assert_type(policy.call(script), object)
        assert_type(script.calls, list[Call])
        assert_type(await policy.acall(AsyncScript("done")), object)
        assert_type(time.slept, list[float])

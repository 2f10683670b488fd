"""`Policy`, the frozen value that users hold and share, and `retry()`, which makes one."""

import sys
from types import MethodType

from forbear.core.check import refuse_unknown
from forbear.core.lazy import late
from forbear.core.limits import DEFAULT, DEFAULT_MAX_RETRY_AFTER, Limits
from forbear.run.derive import SHOWN, Derivable, check_joined
from forbear.run.functions import MARK, check_key, check_retryable, is_async, name_of, refuse_made, refuse_plain_loop
from forbear.run.judges import RAISE, types_of
from forbear.run.loops import acall, awrap, call, wrap
from forbear.run.plan import DEFAULT_BACKOFF, OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, Unpack, overload

    from forbear.core.limits import Default
    from forbear.core.protocols import Backoff, On
    from forbear.core.record import Record
    from forbear.run.derive import Changes, RetryOptions, Seconds
    from forbear.run.iterate import AsyncAttempts, Attempts

    F = TypeVar("F", bound=Callable[..., Any])
    G = TypeVar("G")
    P = ParamSpec("P")
    T = TypeVar("T")
    OneOf: TypeAlias = type[Exception] | Record
else:
    Attempts, AsyncAttempts = (late(globals(), name, "forbear.run.iterate") for name in ("Attempts", "AsyncAttempts"))


class Policy(Derivable):
    """A frozen policy: which errors to retry, how long to wait and when to stop.

    It is picklable (if its functions are) and may be shared between threads and tasks. Make one with `forbear.retry()`,
    which describes the options, and derive others with the `with_…` methods. The state of a run lives in the call;
    calls share nothing but the budget.

    >>> forbear.retry(OSError, attempts=3).with_timeout(5)
    retry(OSError, attempts=3, timeout=5)
    """

    __slots__ = ()

    # Run something under the policy.

    def __call__(self, function: "F") -> "F":
        """Decorate a function or method, sync or async; it keeps its signature, name and type.

        Raises TypeError for what cannot be retried: a class, a generator function, an object that is not callable, and
        a sync function if the policy has an attempt timeout.
        """
        if isinstance(function, staticmethod | classmethod):
            method: Any = function  # pyright: ignore[reportUnknownVariableType]
            return type(method)(self(method.__func__))  # type: ignore[no-any-return]
        refuse_made(function)
        check_retryable(function)
        name = name_of(function)
        if self.key is not None:
            check_key(self.key, function)
        if self.budget is not None and self.budget.by_host:
            self.budget.take()  # raises TypeError: a function has no host
        if is_async(function):
            return _mark(awrap(self, self.name or name, function), self, function)  # type: ignore[no-any-return]
        self._refuse_async_parts(name)
        return _mark(wrap(self, self.name or name, function), self, function)  # type: ignore[no-any-return]

    def call(self, function: "Callable[P, T]", *args: "P.args", **kwargs: "P.kwargs") -> "T":
        """Call a sync function as often as the policy allows and return its value.

        On giving up, it raises the last error, or returns the last value that `on_result` refused. Raises TypeError if
        the policy has an attempt timeout, and for async and generator functions.
        """
        check_retryable(function)
        name = name_of(function)
        self._refuse_async_parts(name)
        value: T = call(self, self.name or name, function, args, kwargs)
        return value

    async def acall(self, function: "Callable[P, Awaitable[T]]", *args: "P.args", **kwargs: "P.kwargs") -> "T":
        """Await an async function as often as the policy allows and return its value.

        On giving up, it raises the last error, or returns the last value that `on_result` refused. Raises TypeError for
        a function that returns no awaitable.
        """
        check_retryable(function)
        value: T = await acall(self, self.name or name_of(function), function, args, kwargs)
        return value

    def __iter__(self) -> "Iterator[Attempts]":
        """Return the iterator of `for attempt in policy: with attempt: ...`, which runs the block as often as allowed.

        Raises TypeError if the policy has an attempt timeout or `on_result`, and in async code, whose event loop the
        waits would block.
        """
        refuse_plain_loop(sys._getframe(1))
        if self.attempt_timeout is not None or self.on_give_up is not RAISE:
            self._refuse_async_parts("a block")
        return iter(Attempts(self, self.name or "block"))

    def __aiter__(self) -> "AsyncAttempts":
        """Return the iterator of `async for attempt in policy: with attempt: ...`.

        It runs the block as often as the policy allows. An attempt timeout needs `async with attempt`. Raises TypeError
        if the policy has `on_result`.
        """
        return AsyncAttempts(self, self.name or "block")

    def __or__(self, other: "Policy") -> "Policy":
        """Return a policy that retries the errors of both, each under the limits and the backoff of its own policy.

        An error that both retry counts for the left one. Each policy counts its own failures and knows its own waits;
        every timeout counts from the start of the run. `on`, limits, `backoff`, `repeatable`, `stop` and `delay` are
        those of each policy. All else is that of the left one: ValueError if the right one sets any of it.
        """
        if not isinstance(other, Policy):
            return NotImplemented
        check_joined(self, other)
        return self.replace(others=(*self.others, other.replace(others=()) if other.others else other, *other.others))

    def _refuse_async_parts(self, what: str) -> None:
        if self.on_give_up is not RAISE and is_async(self.on_give_up):
            raise TypeError(f"`on_give_up` must not be async on {what}, which is sync, got {name_of(self.on_give_up)}")
        if self.attempt_timeout is not None:
            raise TypeError(
                f"`attempt_timeout` cannot be enforced on {what}, which is sync: a thread cannot be stopped; "
                "give the client that it calls a timeout of its own, or make it async"
            )


def _retry(
    *types: "OneOf",
    on: "On | None" = None,
    attempts: "int | Default | None" = DEFAULT,
    timeout: "Seconds | Default | None" = DEFAULT,
    clamp: bool = False,
    max_retry_after: "Seconds" = DEFAULT_MAX_RETRY_AFTER,
    unlimited: bool = False,
    backoff: "Backoff" = DEFAULT_BACKOFF,
    **options: "Any",
) -> Policy:
    """Make a policy, to decorate a function with (`@forbear.retry(OSError)`), to call through, or to loop over.

    Times are numbers of seconds or timedeltas.

    Which failures are retried:

    - `types` or `on`: exception types, functions that judge an error, or both in a tuple. You must pass one of the two.
      `forbear.transient` judges the errors of any client. A function returns a bool, a Verdict, or a float or
      timedelta: retry after exactly that time, 0.0 at once.
    - `on_result`: judges returned values as `on` judges errors. On giving up, the last value is returned, or with
      `raise_unsatisfied=True`, `Unsatisfied` is raised.
    - `repeatable`: whether a call that may have been executed is repeated; by default a function is, unless its error
      shows a request that must not be executed twice, and a request as its table says.
    - `safe`: what may be executed twice, although the tables do not say so: patterns of requests
      ("POST https://api.example.com/search*"), names of commands, RPCs and operations ("INCR", "dynamodb.UpdateItem").
    - `apis`: what is known of the APIs at some origins (`forbear.Api`): their tables, keys and refusals.
    - `key`: is called once for each run, before its first attempt, with the arguments of the function. It returns the
      idempotency key that the function sends, or another value that is the same in all attempts (`lambda order:
      order.key`); an argument itself needs no `key`. See also `forbear.run_key`.
    - `unknown`: what follows an error that shows nothing of what was sent: "repeat" (default) or "stop".
    - `enforce`: what follows an error that shows a request which must not be executed twice: "stop" (default), or
      "warn", which repeats it and notifies the listeners (`WouldStop`).
    - `retry_exhausted`: also retry errors on which an inner policy reached its limits, or that it found unsafe to
      repeat.

    When it stops:

    - `attempts`: the most attempts, the first call included; `timeout`: the seconds from before the first attempt.
      Without both, 5 attempts and 60 s. The one that you choose is the only limit; None lifts one default. A running
      attempt is not interrupted, so a run may last longer by one attempt.
    - `attempt_timeout`: the seconds after which an attempt is stopped, in async code only; no limit by default. It is
      cut to what is left of `timeout`, except for the final attempt of `clamp`.
    - `clamp`: shorten a last wait that would pass the deadline, for one final attempt. It never shortens a wait that
      the server asks for.
    - `max_retry_after`: without a timeout, a server that asks for a longer wait ends the run (900 s by default).
    - `stop`: is called before each retry with the failed attempt (`Failed`: attempt, elapsed, error ...). True, or a
      string that says why, ends the run.
    - `budget`: a retry budget, which several policies may share.
    - `unlimited`: permit both limits to be None.

    How long it waits:

    - `backoff`: by default full jitter under 1, 2, 4 … 64 s.
    - `delay`: is called with each error (or refused value) that is retried, and returns the exact wait before the retry
      in seconds, or None for the backoff. A delay that `on` returned counts instead.

    What you see:

    - `on_event`: is called with every failure, wait and end. A run has no events if its first attempt succeeds or fails
      for good, or if an inner policy gave up.
    - `on_success`: is called with a `Succeeded` event after every success, at the first attempt too.
    - `on_give_up`: a value that a function returns instead of raising, or a function of the last error whose value is
      returned. It is used where a transient error is not retried any more, not for permanent errors and conflicts.
    - `name`: the name for reports and events, by default that of the function.

    On giving up, the last error itself is raised, with a note and a report (`forbear.report(error)`). A permanent error
    of the first attempt is raised without them. If a function of the policy raises while it judges an error, the run
    ends, and the note on that error says so. Raises TypeError or ValueError for invalid arguments.

    >>> @forbear.retry(on=forbear.transient, attempts=5, timeout=60)
    ... def load(key):
    ...     return key.upper()
    >>> load("a")
    'A'
    """
    if options:
        refuse_unknown("retry", [name for name in options if name not in OPTIONS], SHOWN)
    limits = Limits(attempts, timeout, clamp, max_retry_after, unlimited)
    return Policy(types_of(types, on), limits, backoff, **options)


if TYPE_CHECKING:

    class ReplacingPolicy(Policy, Generic[G]):
        """A policy with `on_give_up`, for type checkers: what it runs may return that value, too."""

        @overload  # type: ignore[override]
        def __call__(
            self, function: Callable[P, Coroutine[Any, Any, T]]
        ) -> Callable[P, Coroutine[Any, Any, T | G]]: ...
        @overload
        def __call__(self, function: Callable[P, T]) -> Callable[P, T | G]: ...
        def __call__(self, function: Any) -> Any:
            """Decorate a function, as `Policy` does."""

        def call(  # type: ignore[override]
            self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
        ) -> T | G:
            """Call a sync function, as `Policy.call` does."""
            ...

        async def acall(  # type: ignore[override]
            self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
        ) -> T | G:
            """Await an async function, as `Policy.acall` does."""
            ...

    @overload
    def retry(
        *types: OneOf, on_give_up: Callable[[Exception], G], **options: Unpack[RetryOptions]
    ) -> ReplacingPolicy[G]: ...
    @overload
    def retry(*types: OneOf, on_give_up: G, **options: Unpack[RetryOptions]) -> ReplacingPolicy[G]: ...
    @overload
    def retry(*types: OneOf, **options: Unpack[RetryOptions]) -> Policy: ...
    def retry(*types: Any, **options: Any) -> Any:
        """Make a policy, as `_retry` does; the overloads know that `on_give_up` changes what a function returns."""

else:
    retry = _retry
    retry.__name__ = retry.__qualname__ = "retry"


def _mark(wrapper: "Any", policy: "Policy", function: "Callable[..., Any]") -> "Any":
    """Return `wrapper`, the decorated `function`, with the attributes `policy` and `with_policy`."""

    def with_policy(other: "Policy | None" = None, /, **changes: "Unpack[Changes]") -> "Any":
        """Return the function under another policy, or under its own one with `changes`."""
        return _choose(policy, other, changes)(function)

    wrapper.policy = policy
    wrapper.with_policy = with_policy
    setattr(wrapper, MARK, wrapper.__code__)
    return wrapper


def _choose(own: "Policy", other: "Policy | None", changes: "Any") -> "Policy":
    """Return `other`, or the `own` policy, with `changes`; TypeError if there is neither a policy nor a change."""
    if other is not None and not isinstance(other, Policy):
        raise TypeError(f"`policy` must be a forbear.Policy or None (the function's own), got {other!r}")
    if other is None and not changes:
        raise TypeError("`with_policy` needs a policy or changes, such as timeout=5")
    policy = own if other is None else other
    return policy.with_changes(**changes) if changes else policy


def policy_of(function: "Callable[..., Any]") -> "Policy":
    """Return the policy of a decorated function or method, the outermost one of several.

    Raises TypeError for a function that no policy decorates. `function.policy` is the same for code without a type
    checker.

    >>> forbear.policy_of(forbear.retry(OSError, attempts=3)(len))
    retry(OSError, attempts=3)
    """
    policy: Policy = _find_marked(function).policy
    return policy


def with_policy(function: "F", policy: "Policy | None" = None, /, **changes: "Unpack[Changes]") -> "F":
    """Return a decorated function under another policy, with the same signature and type.

    `policy` replaces the function's own one. The `changes` are keywords of `forbear.retry`, such as `timeout=5`: they
    change `policy`, or else the own one. A bound method stays bound. The function itself stays as it is. Raises
    TypeError for a function that no policy decorates, and if another decorator is around the policy.

    >>> forbear.with_policy(forbear.retry(OSError)(len), attempts=2)("abc")
    3
    """
    changed = _find_marked(function).with_policy(policy, **changes)
    bound: object = getattr(function, "__self__", None)
    return changed if bound is None else MethodType(changed, bound)  # type: ignore[return-value]


def _find_marked(function: "Any") -> "Any":
    inner: Any = getattr(function, "__func__", function)
    code: object = getattr(inner, MARK, None)
    if code is None:
        raise TypeError(f"{name_of(function)} is not decorated by a policy; decorate it: @forbear.retry(OSError)")
    if code is not getattr(inner, "__code__", None):
        raise TypeError(
            f"{name_of(function)} has another decorator around its policy, which would get lost; "
            "make the policy its outermost decorator"
        )
    return inner

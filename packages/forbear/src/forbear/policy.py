"""`Policy`, the frozen value that users hold and share, and `retry()`, which makes one."""

from forbear.core import check
from forbear.core.backoff import Exponential
from forbear.core.decide import DEFAULT_ATTEMPTS, DEFAULT_MAX_RETRY_AFTER, DEFAULT_TIMEOUT, Limits
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.run.budget import Budget
from forbear.run.derive import Derivable
from forbear.run.endings import RAISE, TryAgain
from forbear.run.functions import MARK, check_retryable, is_async, name_of
from forbear.run.iterate import AsyncAttempts, Attempts
from forbear.run.judges import (
    TYPES,
    check_callable,
    check_joined,
    check_listener,
    check_on,
    retries,
    types_of,
    verdict_of,
)
from forbear.run.loops import acall, awrap, call, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from typing import Any, ParamSpec, TypeVar, Unpack

    from forbear.core.events import Event, Failed, Succeeded
    from forbear.core.protocols import Answer, Backoff, On
    from forbear.http.request import HttpService
    from forbear.run.derive import Changes, Seconds

    F = TypeVar("F", bound=Callable[..., Any])
    P = ParamSpec("P")
    T = TypeVar("T")

_DEFAULT_BACKOFF = Exponential()


class Policy(Derivable):
    """A frozen policy: which errors to retry, how long to wait and when to stop.

    It is picklable (if its functions are) and may be shared between threads and tasks. Make one with `forbear.retry()`,
    which describes the options, and derive others with the `with_…` methods. The state of a run lives in the call;
    calls share nothing but the budget.
    """

    __slots__ = (
        "on", "limits", "backoff", "attempt_timeout", "on_result", "on_event", "budget", "repeatable",
        "retry_exhausted", "name", "service", "stop", "delay",
        "on_give_up", "raise_unsatisfied", "on_success", "others", "repeats_calls",
    )  # fmt: skip

    on: "On"
    limits: Limits
    backoff: "Backoff"
    attempt_timeout: float | None
    on_result: "Callable[[Any], Answer] | None"
    on_event: "Callable[[Event], object] | None"
    budget: Budget | None
    repeatable: bool | None
    retry_exhausted: bool
    name: str | None
    service: "HttpService | None"
    stop: "Callable[[Failed], bool | str | None] | None"
    delay: "Callable[[Any], Seconds | None] | None"
    on_give_up: "Any"
    raise_unsatisfied: bool
    on_success: "Callable[[Succeeded], object] | None"
    others: "tuple[Policy, ...]"
    repeats_calls: bool
    """True if a function or block is repeated although its outcome is unknown: what `repeatable` comes to.

    If that is None, it is True unless the policy is that of a service.
    """

    def __init__(
        self,
        on: "On",
        limits: Limits | None = None,
        backoff: "Backoff" = _DEFAULT_BACKOFF,
        attempt_timeout: "Seconds | None" = None,
        on_result: "Callable[[Any], Answer] | None" = None,
        on_event: "Callable[[Event], object] | None" = None,
        budget: Budget | None = None,
        repeatable: bool | None = None,
        retry_exhausted: bool = False,
        name: str | None = None,
        service: "HttpService | None" = None,
        stop: "Callable[[Failed], bool | str | None] | None" = None,
        delay: "Callable[[Any], Seconds | None] | None" = None,
        on_give_up: "Any" = RAISE,
        raise_unsatisfied: bool = False,
        on_success: "Callable[[Succeeded], object] | None" = None,
        others: "tuple[Policy, ...]" = (),
    ) -> None:
        check_on(on)
        if limits is not None and not isinstance(limits, Limits):
            raise TypeError(f"`limits` must be a forbear.Limits or None (the defaults), got {limits!r}")
        if isinstance(backoff, type) or not callable(getattr(backoff, "delay", None)):
            raise TypeError(
                f"`backoff` must have a delay(n, u, previous) method, such as forbear.Exponential(), got {backoff!r}"
            )
        attempt_timeout = check.in_seconds(attempt_timeout)
        check.positive_seconds("attempt_timeout", attempt_timeout, none="no limit")
        check_callable("on_result", on_result)
        check_callable("stop", stop, "decide by what the failure shows, or set an event for forbear.stop_on")
        check_callable("delay", delay, "return the seconds at once")
        check_listener("on_event", on_event)
        check_listener("on_success", on_success)
        check.flag("raise_unsatisfied", raise_unsatisfied)
        if raise_unsatisfied and on_result is None:
            raise ValueError("`raise_unsatisfied` needs `on_result`, which refuses values")
        if budget is not None and not isinstance(budget, Budget):
            raise TypeError(f"`budget` must be a forbear.Budget or None, got {budget!r}")
        check.flag("repeatable", repeatable, none="functions yes, requests by their tables")
        check.flag("retry_exhausted", retry_exhausted)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be a string or None (the function's name), got {name!r}")
        store = object.__setattr__  # one by one: policies are also made for single calls
        store(self, "on", on)
        store(self, "limits", Limits() if limits is None else limits)
        store(self, "backoff", backoff)
        store(self, "attempt_timeout", attempt_timeout)
        store(self, "on_result", on_result)
        store(self, "on_event", on_event)
        store(self, "budget", budget)
        store(self, "repeatable", repeatable)
        store(self, "retry_exhausted", retry_exhausted)
        store(self, "name", name)
        store(self, "service", service)
        store(self, "stop", stop)
        store(self, "delay", delay)
        store(self, "on_give_up", on_give_up)
        store(self, "raise_unsatisfied", raise_unsatisfied)
        store(self, "on_success", on_success)
        store(self, "others", others)
        if repeatable is None:
            repeatable = service is None and not getattr(on, "is_of_service", False)
        store(self, "repeats_calls", repeatable)

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return super()._fields()[:-1]  # without `repeats_calls`, which follows from the others

    # Run something under the policy.

    def __call__(self, function: "F") -> "F":
        """Decorate a function or method, sync or async; it keeps its signature, name and type.

        Raises TypeError for what cannot be retried: a class, a generator function, an object that is not callable, and
        a sync function if the policy has an attempt timeout.
        """
        if isinstance(function, staticmethod | classmethod):
            method: Any = function  # pyright: ignore[reportUnknownVariableType]
            return type(method)(self(method.__func__))  # type: ignore[no-any-return]
        if isinstance(function, type):
            raise TypeError(f"{function.__name__} is a class, and would become a function; decorate its methods")
        check_retryable(function)
        name = name_of(function)
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

        Raises TypeError if the policy has an attempt timeout or `on_result`.
        """
        if self.attempt_timeout is not None or self.on_give_up is not RAISE:
            self._refuse_async_parts("a block")
        return iter(Attempts(self, self.name or "block"))

    def __aiter__(self) -> AsyncAttempts:
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

    # Judge outcomes, for a run.

    @property
    def checks_values(self) -> bool:
        """True if the policy judges returned values, because it has an `on_result`."""
        return self.on_result is not None

    def verdict_of_error(self, error: Exception) -> Verdict:
        """Return the verdict on an error, by `on`: TRANSIENT for an instance of its types, PERMANENT for any other.

        If `on` is a callable, its answer counts: True is TRANSIENT, False PERMANENT, a number TRANSIENT with that
        delay, and a Verdict itself. Any other answer raises TypeError.
        """
        if isinstance(error, TryAgain):
            return error.verdict
        on = self.on if not self.others else self.rule_of(error).on
        if isinstance(on, TYPES):
            return TRANSIENT if isinstance(error, on) else PERMANENT
        return verdict_of("on", on(error))

    def rule_of(self, error: Exception) -> "Policy":
        """Return the policy whose limits count for `error`: the first that retries it, of this one and the `others`.

        It is this one for an error that none retries.
        """
        return next((policy for policy in (self, *self.others) if retries(policy.on, error)), self)

    def verdict_of_value(self, value: object) -> Verdict | None:
        """Return the verdict on a returned value, by `on_result`; None for a value that is accepted.

        A value is accepted if there is no `on_result`, or it returns False or a permanent verdict.
        """
        if self.on_result is None:
            return None
        verdict = verdict_of("on_result", self.on_result(value))
        return None if verdict.kind is Kind.PERMANENT else verdict

    def verdict_of_failed_value(self, value: object) -> Verdict | None:
        """Return the verdict that `on_result` returns for a value that is a failure already, such as a response 503.

        None if there is no `on_result`, if it returns anything but a Verdict, or if it raises. It is written for
        successes, so only an answer that cannot be meant for one counts.
        """
        if self.on_result is None:
            return None
        try:
            answer = self.on_result(value)
        except Exception:
            return None
        return answer if isinstance(answer, Verdict) else None

    def _refuse_async_parts(self, what: str) -> None:
        if self.on_give_up is not RAISE and is_async(self.on_give_up):
            raise TypeError(f"`on_give_up` must not be async on {what}, which is sync, got {name_of(self.on_give_up)}")
        if self.attempt_timeout is not None:
            raise TypeError(
                f"`attempt_timeout` cannot be enforced on {what}, which is sync: a thread cannot be stopped; "
                "give the client that it calls a timeout of its own, or make it async"
            )


def retry(
    *types: type[Exception],
    on: "On | None" = None,
    attempts: int | None = DEFAULT_ATTEMPTS,
    timeout: "Seconds | None" = DEFAULT_TIMEOUT,
    attempt_timeout: "Seconds | None" = None,
    backoff: "Backoff" = _DEFAULT_BACKOFF,
    on_result: "Callable[[Any], Answer] | None" = None,
    on_event: "Callable[[Event], object] | None" = None,
    budget: Budget | None = None,
    clamp: bool = False,
    max_retry_after: "Seconds" = DEFAULT_MAX_RETRY_AFTER,
    repeatable: bool | None = None,
    retry_exhausted: bool = False,
    unlimited: bool = False,
    name: str | None = None,
    stop: "Callable[[Failed], bool | str | None] | None" = None,
    delay: "Callable[[Any], Seconds | None] | None" = None,
    on_give_up: "Any" = RAISE,
    raise_unsatisfied: bool = False,
    on_success: "Callable[[Succeeded], object] | None" = None,
) -> Policy:
    """Make a policy, to decorate a function with (`@forbear.retry(OSError)`), to call through, or to loop over.

    Times are numbers of seconds or timedeltas.

    - `types`: the exception types to retry, or instead of them
    - `on`: exception types in a tuple, or a callable that judges an error. It returns a bool, a Verdict, or a float or
      timedelta: retry after exactly that time, 0.0 at once. You must pass one of both.
    - `attempts`: the most attempts, 5 by default, the first call included.
    - `timeout`: the seconds for the whole run, 60 by default, from before the first attempt. It does not interrupt a
      running attempt, so a run may last longer by one attempt.
    - `attempt_timeout`: the seconds after which an attempt is stopped, in async code only; no limit by default. It is
      cut to what is left of `timeout`, except for the final attempt of `clamp`.
    - `backoff`: the waits, by default full jitter under 1, 2, 4 … 64 s.
    - `on_result`: judges returned values as `on` judges errors. On giving up, the last value is returned.
    - `on_event`: is called with every failure, wait and end. A run has no events if its first attempt succeeds or fails
      for good, or if an inner policy gave up.
    - `budget`: a retry budget, which several policies may share.
    - `clamp`: shorten a last wait that would pass the deadline, for one final attempt. It never shortens a wait that
      the server asks for.
    - `max_retry_after`: without a timeout, a server that asks for a longer wait ends the run (900 s by default).
    - `repeatable`: whether a call is repeated although it may have been executed. None (default): functions and blocks
      are; in adapters of clients, the table of the service decides for each request. False: nothing is, in adapters
      neither; only a verdict of NOT_EXECUTED is retried then. True: functions and blocks are, also under the policy of
      a service; adapters refuse such a policy.
    - `retry_exhausted`: also retry errors on which an inner policy reached its limits, or that it found unsafe to
      repeat.
    - `unlimited`: permit both limits to be None.
    - `name`: the name for reports and events, by default that of the function.
    - `delay`: is called with each error (or refused value) that is retried, and returns the exact wait before the retry
      in seconds, or None for the backoff. A delay that `on` returned counts instead.
    - `on_give_up`: a value that a function returns instead of raising, or a function of the last error whose value is
      returned. It is used where a transient error is not retried any more, not for permanent errors and conflicts.
    - `raise_unsatisfied`: on giving up on a value that `on_result` refused, raise `Unsatisfied`.
    - `on_success`: is called with a `Succeeded` event after every success, at the first attempt too.
    - `stop`: is called before each retry with the failed attempt (`Failed`: attempt, elapsed, error ...). True, or a
      string that says why, ends the run. If it raises, its error is raised.

    On giving up, the last error itself is raised, with a note and a report (`forbear.report(error)`). A permanent error
    of the first attempt is raised without them. Raises TypeError or ValueError for invalid arguments.
    """
    judge: On = types_of(types, on)
    limits = Limits(attempts, timeout, clamp, max_retry_after, unlimited)
    return Policy(
        judge, limits, backoff, attempt_timeout, on_result, on_event, budget, repeatable, retry_exhausted, name,
        stop=stop, delay=delay, on_give_up=on_give_up, raise_unsatisfied=raise_unsatisfied, on_success=on_success,
    )  # fmt: skip


def _mark(wrapper: "Any", policy: "Policy", function: "Callable[..., Any]") -> "Any":
    """Return `wrapper`, the decorated `function`, with the attributes `policy` and `with_policy`."""

    def with_policy(other: "Policy | None" = None, /, **changes: "Unpack[Changes]") -> "Any":
        """Return the function under another policy, or under its own one with `changes`."""
        return _chosen(policy, other, changes)(function)

    wrapper.policy = policy
    wrapper.with_policy = with_policy
    setattr(wrapper, MARK, wrapper.__code__)
    return wrapper


def _chosen(own: "Policy", other: "Policy | None", changes: "Any") -> "Policy":
    """Return `other`, or the `own` policy, with `changes`; TypeError if there is neither a policy nor a change."""
    if other is not None and not isinstance(other, Policy):
        raise TypeError(f"`policy` must be a forbear.Policy or None (the function's own), got {other!r}")
    if other is None and not changes:
        raise TypeError("`with_policy` needs a policy or changes, such as timeout=5")
    policy = own if other is None else other
    return policy.with_changes(**changes) if changes else policy

"""`Policy`, the frozen value that users hold and share, and `retry()`, which makes one."""

from forbear.core import check, presets
from forbear.core.backoff import Exponential
from forbear.core.decide import DEFAULT_ATTEMPTS, DEFAULT_MAX_RETRY_AFTER, DEFAULT_TIMEOUT, Limits
from forbear.core.record import Record
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.run import listeners
from forbear.run.budget import Budget
from forbear.run.decorated import mark
from forbear.run.functions import check_retryable, is_async, name_of
from forbear.run.iterate import AsyncAttempts, Attempts
from forbear.run.judges import TYPES, check_callable, check_on, types_of, verdict_of
from forbear.run.loops import acall, awrap, call, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from datetime import timedelta
    from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack

    from forbear.core.backoff import Backoff
    from forbear.core.events import Event, Failed
    from forbear.http.request import HttpService

    F = TypeVar("F", bound=Callable[..., Any])
    P = ParamSpec("P")
    T = TypeVar("T")

    Answer = bool | float | timedelta | Verdict
    Seconds = float | timedelta
    On = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], Answer]

    class Changes(TypedDict, total=False):
        """The keywords of `retry()`."""

        on: On
        attempts: int | None
        timeout: Seconds | None
        attempt_timeout: Seconds | None
        backoff: Backoff
        on_result: Callable[[Any], Answer] | None
        on_event: Callable[[Event], object] | None
        budget: Budget | None
        clamp: bool
        max_retry_after: Seconds
        repeatable: bool | None
        retry_exhausted: bool
        unlimited: bool
        name: str | None
        stop: Callable[[Failed], bool | str | None] | None


_DEFAULT_BACKOFF = Exponential()


class Policy(Record):
    """A frozen policy: which errors to retry, how long to wait and when to stop.

    It is picklable (if its functions are) and may be shared between threads and tasks. Make one with `forbear.retry()`,
    and derive others with the `with_…` methods. The state of a run lives in the call; calls share nothing but the
    budget.
    """

    __slots__ = (
        "on", "limits", "backoff", "attempt_timeout", "on_result", "on_event", "budget", "repeatable",
        "retry_exhausted", "name", "service", "stop",
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
        if on_event is not None:
            if not callable(on_event):
                raise TypeError(f"`on_event` must be callable or None, got {on_event!r}")
            listeners.check("`on_event`", on_event)
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
            return mark(awrap(self, self.name or name, function), self, function)  # type: ignore[no-any-return]
        self._refuse_attempt_timeout(name)
        return mark(wrap(self, self.name or name, function), self, function)  # type: ignore[no-any-return]

    def call(self, function: "Callable[P, T]", *args: "P.args", **kwargs: "P.kwargs") -> "T":
        """Call a sync function as often as the policy allows and return its value.

        On giving up, it raises the last error, or returns the last value that `on_result` refused. Raises TypeError if
        the policy has an attempt timeout, and for async and generator functions.
        """
        check_retryable(function)
        self._refuse_attempt_timeout(name_of(function))
        value: T = call(self, self.name or name_of(function), function, args, kwargs)
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
        self._refuse_attempt_timeout("a block")
        return iter(Attempts(self, self.name or "block"))

    def __aiter__(self) -> AsyncAttempts:
        """Return the iterator of `async for attempt in policy: with attempt: ...`.

        It runs the block as often as the policy allows. An attempt timeout needs `async with attempt`. Raises TypeError
        if the policy has `on_result`.
        """
        return AsyncAttempts(self, self.name or "block")

    # Derive other policies.

    def with_changes(self, **changes: "Unpack[Changes]") -> "Policy":
        """Return a copy with `changes`, which are keywords of `forbear.retry`, such as `attempts=3, timeout=5`."""
        fields: dict[str, Any] = dict(changes)
        limits = {name: fields.pop(name) for name in Limits.__slots__ if name in fields}
        return self.replace(limits=self.limits.replace(**limits), **fields) if limits else self.replace(**fields)

    def with_on(self, on: "On") -> "Policy":
        """Return a copy that retries the errors that `on` accepts; `on` as for `forbear.retry`."""
        return self.replace(on=on)

    def with_attempts(self, attempts: int | None) -> "Policy":
        """Return a copy with another limit of attempts, the first call included; None for no limit.

        Raises ValueError if there is then no timeout either, unless the policy is `unlimited`.
        """
        return self.replace(limits=self.limits.replace(attempts=attempts))

    def with_timeout(self, timeout: "Seconds | None") -> "Policy":
        """Return a copy with another timeout for the whole run, in seconds; None for no limit.

        Raises ValueError if there is then no limit of attempts either, unless the policy is `unlimited`.
        """
        return self.replace(limits=self.limits.replace(timeout=timeout))

    def with_limits(self, limits: Limits) -> "Policy":
        """Return a copy with `limits` in place of all its limits: attempts, timeout, clamp and the others."""
        return self.replace(limits=limits)

    def with_preset(self, name: str) -> "Policy":
        """Return a copy with the attempts, the timeout and the backoff of a preset.

        The presets are "interactive", "mobile", "ci" and "batch"; `forbear.PRESETS` has their figures and reasons.
        Raises ValueError for any other name.
        """
        chosen = presets.preset(name)
        limits = self.limits.replace(attempts=chosen.limits.attempts, timeout=chosen.limits.timeout)
        return self.replace(limits=limits, backoff=chosen.backoff)

    def with_attempt_timeout(self, attempt_timeout: "Seconds | None") -> "Policy":
        """Return a copy with another timeout for one attempt, in seconds; None for no limit.

        Only async code can be run with one.
        """
        return self.replace(attempt_timeout=attempt_timeout)

    def with_backoff(self, backoff: "Backoff") -> "Policy":
        """Return a copy with another backoff, an object whose `delay` method returns the seconds before each retry."""
        return self.replace(backoff=backoff)

    def with_on_result(self, on_result: "Callable[[Any], Answer] | None") -> "Policy":
        """Return a copy with another judge of returned values: `on_result` as for `forbear.retry`, None for none."""
        return self.replace(on_result=on_result)

    def with_on_event(self, on_event: "Callable[[Event], object] | None") -> "Policy":
        """Return a copy that notifies another listener; None for no listener of its own."""
        return self.replace(on_event=on_event)

    def with_repeatable(self, repeatable: bool | None) -> "Policy":
        """Return a copy with another `repeatable`, as for `forbear.retry`: True, False or None.

        The policies of services have None, and do not repeat a function whose outcome is unknown: they cannot see its
        operation. With True they repeat it, too.
        """
        return self.replace(repeatable=repeatable)

    def with_retry_not_found(self, retry_not_found: bool = True) -> "Policy":
        """Return a copy that does or does not retry 404 and NOT_FOUND, an option of IAM's retry page.

        Reads of IAM and Resource Manager are eventually consistent, so a new resource may not be found yet. A 404 that
        may mean that an earlier attempt worked, as for a delete, stays permanent. Raises TypeError for a policy of
        another service, or of none.
        """
        check.flag("retry_not_found", retry_not_found)
        service: Any = self.service
        if not hasattr(service, "retry_not_found"):
            owner = "no service" if service is None else service.name
            raise TypeError(
                f"the policy must be one of IAM or Resource Manager, such as iam.policy, got one of {owner}"
            )
        changed = service.replace(retry_not_found=retry_not_found)
        on: Any = self.on
        if getattr(on, "service", None) == service:  # it judges the errors of functions
            on = on.replace(service=changed)
        return self.replace(on=on, service=changed)

    def with_budget(self, budget: Budget | None) -> "Policy":
        """Return a copy that shares another retry budget; None for no budget."""
        return self.replace(budget=budget)

    def with_name(self, name: str | None) -> "Policy":
        """Return a copy with another name for reports and events; None for the function's own name."""
        return self.replace(name=name)

    # Judge outcomes, for a run.

    @property
    def repeats_calls(self) -> bool:
        """True if a function or block is repeated although its outcome is unknown.

        It is `repeatable`; if that is None, it is True unless the policy is that of a service.
        """
        repeatable = self.repeatable
        if repeatable is None:
            return self.service is None and not getattr(self.on, "is_of_service", False)
        return repeatable

    @property
    def checks_values(self) -> bool:
        """True if the policy judges returned values, because it has an `on_result`."""
        return self.on_result is not None

    def verdict_of_error(self, error: Exception) -> Verdict:
        """Return the verdict on an error, by `on`: TRANSIENT for an instance of its types, PERMANENT for any other.

        If `on` is a callable, its answer counts: True is TRANSIENT, False PERMANENT, a number TRANSIENT with that
        delay, and a Verdict itself. Any other answer raises TypeError.
        """
        on = self.on
        if isinstance(on, TYPES):
            return TRANSIENT if isinstance(error, on) else PERMANENT
        return verdict_of("on", on(error))

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

    def _refuse_attempt_timeout(self, what: str) -> None:
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
    - `stop`: is called before each retry with the failed attempt (`Failed`: attempt, elapsed, error ...). True, or a
      string that says why, ends the run. If it raises, its error is raised.

    On giving up, the last error itself is raised, with a note and a report (`forbear.report(error)`). A permanent error
    of the first attempt is raised without them. Raises TypeError or ValueError for invalid arguments.
    """
    judge: On = types_of(types, on)
    limits = Limits(attempts, timeout, clamp, max_retry_after, unlimited)
    return Policy(
        judge, limits, backoff, attempt_timeout, on_result, on_event, budget, repeatable, retry_exhausted, name,
        stop=stop,
    )  # fmt: skip

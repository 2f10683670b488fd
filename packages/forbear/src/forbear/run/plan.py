"""`RetryPlan`, what a run reads of a policy, and `OPTIONS`, the one table of its options, their defaults and checks."""

from functools import partial
from itertools import repeat
from operator import attrgetter, call
from types import FunctionType

from forbear.core import check
from forbear.core.backoff import Exponential
from forbear.core.limits import Limits
from forbear.core.record import Record, UserRecord
from forbear.run.functions import check_takes
from forbear.run.harm import is_used, watch
from forbear.run.judges import (
    RAISE,
    check_callable,
    check_choice,
    check_known_apis,
    check_listener,
    check_on_give_up,
    check_on_result,
    check_safe,
    make_judge,
    refuse_foreign,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import timedelta
    from typing import Any, Self, TypedDict, Unpack
    from uuid import UUID

    from forbear.core.events import Event, Failed, Succeeded
    from forbear.core.protocols import Answer, Backoff, On
    from forbear.core.verdict import Verdict
    from forbear.http.api import Api
    from forbear.http.request import HttpService
    from forbear.run.budget import Budget

    Seconds = float | timedelta

    class SharedOptions(TypedDict, total=False):
        """The options in `OPTIONS` that functions and adapters take."""

        attempt_timeout: Seconds | None
        on_result: Callable[[Any], Answer] | None
        on_event: Callable[[Event], object] | None
        budget: Budget | None
        repeatable: bool | None
        retry_exhausted: bool
        name: str | None
        stop: Callable[[Failed], bool | str | None] | None
        delay: Callable[[Any], Seconds | None] | None

    class NamedOptions(SharedOptions, total=False):
        """The options in `OPTIONS` that users pass by name, but `on_give_up`."""

        raise_unsatisfied: bool
        on_success: Callable[[Succeeded], object] | None
        key: Callable[..., str | bytes | int | UUID] | None
        safe: str | Iterable[str]
        apis: Api | Iterable[Api]
        unknown: str | None
        enforce: str | None

    class PlanOptions(NamedOptions, total=False):
        """All options in `OPTIONS`."""

        on_give_up: Any
        service: HttpService | None
        others: tuple[Any, ...]


class Option(Record):
    """One option: its `default`, and a `check`, which returns the value to keep, or raises TypeError or ValueError.

    Of policies joined by `|`, each keeps its own value if `of_each`; else the left one has it for all. Only functions
    have the option if `of_functions`: an adapter of a client refuses it.
    """

    __slots__ = ("default", "check", "of_each", "of_functions")

    default: "Any"
    check: "Callable[[str, Any], Any]"
    of_each: bool
    of_functions: bool

    def __init__(
        self,
        default: "Any",
        check: "Callable[[str, Any], Any]",
        *,
        of_each: bool = False,
        of_functions: bool = False,
    ) -> None:
        self._set(default=default, check=check, of_each=of_each, of_functions=of_functions)


def _keep(name: str, value: "Any") -> "Any":
    return value


def _check_attempt_timeout(name: str, value: "Any") -> "Any":
    value = check.in_seconds(value)
    check.positive_seconds(name, value, none="no limit")
    return value


def _check_budget(name: str, value: "Any") -> "Any":
    if value is not None:
        from forbear.run.budget import Budget  # few policies have one

        if not isinstance(value, Budget):
            raise TypeError(f"`{name}` must be a forbear.budgets.Budget or None, got {value!r}")
    return value


def _check_name(name: str, value: "Any") -> "Any":
    if value is not None and not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string or None (the function's name), got {value!r}")
    return value


def _check_limits(name: str, value: "Any") -> "Any":
    if not isinstance(value, Limits):
        raise TypeError(f"`{name}` must be a forbear.Limits or None (the defaults), got {value!r}")
    return value


def _check_backoff(name: str, value: "Any") -> "Any":
    if isinstance(value, type) or not callable(getattr(value, "delay", None)):
        refuse_foreign(name, value)
        wait = 0 if value is None else check.in_seconds(value)
        cure = f"; write forbear.Constant({wait!r})" if type(wait) in (int, float) else ""
        cure = "; a function of the error is passed as delay=" if isinstance(value, FunctionType) else cure
        cure = f"; write forbear.Sequence({value!r})" if isinstance(value, list | tuple) else cure
        cure = f"; write {value.__name__}(...)" if isinstance(value, type) else cure
        raise TypeError(
            f"`{name}` must have a delay(n, u, previous) method, such as forbear.Exponential(), got {value!r}{cure}"
        )
    if not isinstance(value, UserRecord):  # one of forbear's own
        check_takes(f"`delay` of `{name}`", value.delay, "n", "u", "previous")
    return value


_STOP_ASYNC = "judge by the failure, or set an event for forbear.stop_on"

OPTIONS: "Mapping[str, Option]" = {
    "attempt_timeout": Option(None, _check_attempt_timeout),
    "on_result": Option(None, check_on_result),
    "on_event": Option(None, check_listener),
    "budget": Option(None, _check_budget),
    "repeatable": Option(None, partial(check.flag, none="functions yes, requests by their tables"), of_each=True),
    "retry_exhausted": Option(False, check.flag),
    "name": Option(None, _check_name),
    "service": Option(None, _keep),
    "stop": Option(None, partial(check_callable, cure=_STOP_ASYNC, argument="failed"), of_each=True),
    "delay": Option(None, partial(check_callable, cure="return the seconds at once", argument="error"), of_each=True),
    "on_give_up": Option(RAISE, check_on_give_up, of_functions=True),
    "raise_unsatisfied": Option(False, check.flag, of_functions=True),
    "on_success": Option(None, check_listener, of_functions=True),
    "key": Option(None, partial(check_callable, cure="return the key at once"), of_functions=True),
    "safe": Option((), check_safe, of_functions=True),
    "apis": Option((), check_known_apis, of_functions=True),
    "unknown": Option(None, check_choice, of_functions=True),
    "enforce": Option(None, check_choice, of_functions=True),
    "others": Option((), _keep, of_each=True),
}
"""Every option of a policy but `on`, the limits and the backoff, by name. `forbear.retry` describes them."""

DEFAULT_BACKOFF = Exponential()


class RetryPlan(Record):
    """The options of a policy, checked, and the verdicts on outcomes. `Policy` adds the ways to run it."""

    __slots__ = ("on", "limits", "backoff", *OPTIONS, "repeats_calls")

    on: "On"
    limits: Limits
    backoff: "Backoff"
    attempt_timeout: float | None
    on_result: "Callable[[Any], Answer] | None"
    on_event: "Callable[[Event], object] | None"
    budget: "Budget | None"
    repeatable: bool | None
    retry_exhausted: bool
    name: str | None
    service: "HttpService | None"
    stop: "Callable[[Failed], bool | str | None] | None"
    delay: "Callable[[Any], Seconds | None] | None"
    on_give_up: "Any"
    raise_unsatisfied: bool
    on_success: "Callable[[Succeeded], object] | None"
    key: "Callable[..., str | bytes | int | UUID] | None"
    safe: tuple[str, ...]
    apis: "tuple[Api, ...]"
    unknown: str | None
    enforce: str | None
    others: "tuple[Self, ...]"
    repeats_calls: bool
    """True if a function or block is repeated although its outcome is unknown: what `repeatable` comes to.

    If that is None, it is True unless the policy is that of a service.
    """

    def __init__(
        self,
        on: "On",
        limits: Limits | None = None,
        backoff: "Backoff" = DEFAULT_BACKOFF,
        **options: "Unpack[PlanOptions]",
    ) -> None:
        list(map(_call, _DEFAULT_STORES, repeat(self), _DEFAULTS))
        self._store(on=on, limits=Limits() if limits is None else limits, backoff=backoff, **options)

    def _store(self, **given: "Any") -> None:
        """Check and store some fields; the others are stored already."""
        store = object.__setattr__
        for name, value in given.items():
            check_it = _CHECKS.get(name)
            if check_it is None:
                raise TypeError(f"`Policy` takes no `{name}`: make it by forbear.retry(..., {name}=...)")
            store(self, name, check_it(name, value))
        if self.raise_unsatisfied and self.on_result is None:
            raise ValueError("`raise_unsatisfied` needs `on_result`, which refuses values")
        repeats = self.repeatable
        if repeats is None:
            repeats = self.service is None and not getattr(self.on, "is_of_service", False)
        store(self, "repeats_calls", repeats)

    def replace(self, **changes: "Any") -> "Self":
        """Return a new policy with the fields in `changes` changed, and checked; the others were checked before."""
        made = object.__new__(type(self))
        list(map(_call, _STORES, repeat(made), _values(self)))
        made._store(**changes)
        return made

    def __reduce__(self) -> "tuple[Any, ...]":
        return _rebuild, (type(self), self._arguments())

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return super()._fields()[:-1]  # without `repeats_calls`, which follows from the others

    @property
    def checks_values(self) -> bool:
        """True if the policy judges returned values, because it has an `on_result`."""
        return self.on_result is not None

    def verdict_of_error(self, error: Exception) -> "Verdict":
        """Return the verdict on an error, by `on`: TRANSIENT for an instance of its types, PERMANENT for any other.

        If `on` is a callable, its answer counts: True is TRANSIENT, False PERMANENT, a number TRANSIENT with that
        delay, and a Verdict itself. For any other answer, and if the callable raises, the verdict is `answers.Broken`.
        """
        from forbear.run.answers import verdict_of_error  # few calls fail

        return verdict_of_error(self, error)

    def verdict_of_value(self, value: object) -> "Verdict | None":
        """Return the verdict on a returned value, by `on_result`; None for a value that is accepted.

        A value is accepted if there is no `on_result`, or it returns False or a permanent verdict.
        """
        if self.on_result is None:
            return None
        from forbear.run.answers import verdict_of_value

        return verdict_of_value(self.on_result, value)

    def verdict_of_failed_value(self, value: object) -> "Verdict | None":
        """Return the verdict of `on_result` on a value that is a failure already, such as a response 503.

        None if there is no `on_result`, if it returns False, and if it raises or returns no answer: it may be written
        for successes alone.
        """
        if self.on_result is None:
            return None
        from forbear.run.answers import verdict_of

        try:
            answer = self.on_result(value)
            return None if answer is False else verdict_of("on_result", answer)
        except Exception:
            return None


def _rebuild(cls: type[RetryPlan], fields: "dict[str, Any]") -> RetryPlan:
    """Make a policy in another process, where functions may be copied that it has decorated, as cloudpickle does."""
    is_used[0] = True
    if fields["repeatable"] is False:
        watch()
    return cls(**fields)


_CHECKS: "dict[str, Callable[[str, Any], Any]]" = {
    "on": lambda name, value: make_judge(value),
    "limits": _check_limits,
    "backoff": _check_backoff,
    **{name: option.check for name, option in OPTIONS.items()},
}
_STORES = [RetryPlan.__dict__[name].__set__ for name in RetryPlan.__slots__]
"""The functions that store a field each. They are quicker than `object.__setattr__`, and `map` than a loop."""
_DEFAULT_STORES = [RetryPlan.__dict__[name].__set__ for name in OPTIONS]
_DEFAULTS = [option.default for option in OPTIONS.values()]
_values = attrgetter(*RetryPlan.__slots__)
_call: "Callable[..., object]" = call

"""The sync and async loops: call the function, get a grant from the run, wait as it says, call again.

`call` and `acall` make one run. `wrap` and `awrap` return a decorated function, whose first attempt needs no `Run`,
unless the plan has a budget, `on_result`, `on_success`, `key` or an attempt timeout. So the modules of a run are loaded
at the first failure. `run/open_runs.py` finds the runs in the frames of this module, by the variables `run` and
`started`.
"""

import os
from sys import exception

from forbear.core.record import reports_made
from forbear.run import judges
from forbear.run.functions import copy_metadata, refuse_coroutine
from forbear.run.harm import HarmLog, is_used, is_watched, watch
from forbear.run.runtime import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from forbear.run.plan import RetryPlan
    from forbear.run.state import Run

    Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
else:

    def Run(plan, operation, runtime, started, reports=None, **options):  # noqa: N802
        """Load the modules of a run, and make one; from then on the name is that of the class.

        They cannot be loaded while the interpreter ends, in a signal handler that interrupts their loading, or without
        a free file descriptor. After a first attempt, before which `reports` were made, its error is raised then.
        """
        error = exception()
        try:
            make = _load()
        except Exception as failure:
            if reports is None:
                raise
            try:  # noqa: SIM105 - suppress would need contextlib, which may be impossible to load, too
                error.add_note(f"forbear: not retried, because its modules cannot be loaded: {failure}")
            except Exception:  # noqa: S110 - an error may refuse notes
                pass
        else:
            return make(plan, operation, runtime, started, reports, **options)
        try:
            raise error
        finally:
            del error  # otherwise the error's traceback would refer to the error itself


def _load() -> "type[Run]":
    from forbear.run import state

    globals()["Run"] = state.Run
    return state.Run


def _load_for_fork() -> None:
    """Load what the first failure of a function loads before a fork.

    The child shares it. What another thread is loading meanwhile, the child could never load: it would wait for ever.
    """
    if is_used[0]:
        try:
            _load()
            judges.load_judge[0]()
            judges.listeners[0]()
            _ = current.get().random
        except Exception:  # the next failure says why
            return


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_load_for_fork)


def call(
    plan: "RetryPlan", operation: str, function: "Callable[..., Any]", args: "tuple[Any, ...]", kwargs: "dict[str, Any]"
) -> "Any":
    """Call `function(*args, **kwargs)` as often as the plan (a policy) allows and return its value.

    On giving up, it raises the last error, or returns the last value that `on_result` refused. Raises TypeError if the
    function returns a coroutine. `operation` is the name for reports.
    """
    is_used[0] = True
    runtime = current.get()
    run = Run(plan, operation, runtime, runtime.monotonic())
    if plan.key is not None:
        _declare(run, plan.key(*args, **kwargs))
    if run.spending is None:
        return _repeat(run, (function, args, kwargs))
    try:
        return _repeat(run, (run.gate(function), args, kwargs))
    finally:  # a judge or a listener may raise, too; its error may be kept, and keeps the run
        run.end()


async def acall(
    plan: "RetryPlan",
    operation: str,
    function: "Callable[..., Awaitable[Any]]",
    args: "tuple[Any, ...]",
    kwargs: "dict[str, Any]",
) -> "Any":
    """Await `function(*args, **kwargs)` as often as the plan (a policy) allows and return its value.

    Attempt timeouts are enforced. On giving up, it raises the last error, or returns the last value that `on_result`
    refused. Raises TypeError if the function returns no awaitable. `operation` is the name for reports.
    """
    is_used[0] = True
    runtime = current.get()
    run = Run(plan, operation, runtime, runtime.monotonic(), awaits=True)
    if plan.key is not None:
        _declare(run, plan.key(*args, **kwargs))
    log = HarmLog(run.started, run) if is_watched.now else None
    last: Exception | None = None  # for an attempt whose tasks may still send something
    try:
        if run.spending is not None:
            function = run.gate(function)
        while True:
            try:
                limit = None if plan.attempt_timeout is None else run.attempt_limit()
                pending = function(*args, **kwargs)
                if not hasattr(type(pending), "__await__"):
                    break  # the function has run to its end; its return value is no reason to run it again
                if limit is None:
                    value = await pending
                else:
                    async with runtime.within(limit):
                        value = await pending
            except Exception as error:
                last = None if log is None else error
                grant = run.failed(error, (function, args, kwargs))
                if grant is None or not await grant.aask():
                    if not run.replaces(error):
                        raise
                    return await _areplace(run, error)
            else:
                grant = run.returned(value, (function, args, kwargs))
                if grant is None or not await grant.aask():
                    return await _alast(run, value) if run.refused else value
            await grant.asleep()
            if last is not None and _gives_up_late(run, last, (function, args, kwargs), log):
                if not run.replaces(last):
                    raise last
                return await _areplace(run, last)
    finally:  # after a cancellation, too
        last = None
        run.end()
        if log is not None:
            log.close()
    text = f"{operation} was called as an async function, but returned no awaitable; call it with `policy.call`"
    raise TypeError(text)


def wrap(plan: "RetryPlan", operation: str, function: "Callable[..., Any]") -> "Callable[..., Any]":
    """Return a function that calls `function` as often as the plan (a policy) allows, as `call` does.

    It has the metadata of `function`. `operation` is the name for reports.
    """
    is_used[0] = True
    if plan.repeatable is False:
        watch()
    if plan.budget is not None or plan.checks_values or plan.on_success is not None or plan.key is not None:

        def call_in_run(*args: "Any", **kwargs: "Any") -> "Any":
            return call(plan, operation, function, args, kwargs)

        return copy_metadata(call_in_run, function)

    harmless: type[object] = type(None)  # the type of the last value: known to be no coroutine

    def retried(*args: "Any", **kwargs: "Any") -> "Any":
        nonlocal harmless
        started, reports = current.clock(), reports_made.now
        try:
            value: object = function(*args, **kwargs)
        except Exception as error:
            run = Run(plan, operation, current.get(), started, reports)
            call = function, args, kwargs
            grant = run.failed(error, call)
            if grant is None or (grant.is_open and not grant.ask()):
                if not run.replaces(error):
                    raise
                return _replace(run, error)
        else:  # nearly every call ends here, without a `Run`
            if type(value) is not harmless:
                refuse_coroutine(value, operation)
                harmless = type(value)
            return value
        grant.sleep()
        return _repeat(run, call)

    return copy_metadata(retried, function)


def awrap(
    plan: "RetryPlan", operation: str, function: "Callable[..., Awaitable[Any]]"
) -> "Callable[..., Awaitable[Any]]":
    """Return a coroutine function that awaits `function` as often as the plan (a policy) allows, as `acall` does.

    It has the metadata of `function`. `operation` is the name for reports.
    """
    is_used[0] = True
    if plan.repeatable is False:
        watch()
    eager = (plan.budget, plan.on_result, plan.attempt_timeout, plan.on_success, plan.key)
    if any(option is not None for option in eager):

        async def call_in_run(*args: "Any", **kwargs: "Any") -> "Any":
            return await acall(plan, operation, function, args, kwargs)

        return copy_metadata(call_in_run, function)

    async def retried(*args: "Any", **kwargs: "Any") -> "Any":
        started, reports = current.clock(), reports_made.now
        run = None  # nearly every call ends without one
        log = HarmLog(started) if is_watched.now else None
        last: Exception | None = None  # for an attempt whose tasks may still send something
        try:
            while True:
                try:
                    value = await function(*args, **kwargs)
                except Exception as error:
                    last = None if log is None else error
                    if run is None:
                        run = Run(plan, operation, current.get(), started, reports, awaits=True)
                        if log is not None:
                            log.run = run
                    grant = run.failed(error, (function, args, kwargs))
                    if grant is None:
                        if not run.replaces(error):
                            raise
                        return await _areplace(run, error)
                else:
                    if run is not None:
                        run.succeeded()
                    return value
                await grant.asleep()
                if last is not None and _gives_up_late(run, last, (function, args, kwargs), log):
                    if not run.replaces(last):
                        raise last
                    return await _areplace(run, last)
        finally:  # after a cancellation, too
            last = None
            if log is not None:
                log.close()

    return copy_metadata(retried, function)


def _declare(run: "Run", key: object) -> None:
    """Note the value of the policy's `key` as one that is the same in all attempts."""
    from forbear.run.keys import declare  # only for those who have one

    declare(run, key)


def _repeat(run: "Run", call: "Call") -> "Any":
    """Call a function with its arguments, and sleep between the calls, until the run ends.

    Returns the value, or the last one if `on_result` refused it; raises the last error, or TypeError for a coroutine.
    """
    function, args, kwargs = call
    while True:
        try:
            value: object = function(*args, **kwargs)
        except Exception as error:
            grant = run.failed(error, call)
            if grant is None or (grant.is_open and not grant.ask()):
                if not run.replaces(error):
                    raise
                return _replace(run, error)
        else:
            refuse_coroutine(value, run.operation)
            grant = run.returned(value, call)
            if grant is None or (grant.is_open and not grant.ask()):
                return _last(run, value) if run.refused else value
        grant.sleep()


def _gives_up_late(run: "Run", error: Exception, call: "Call", log: "HarmLog | None") -> bool:
    from forbear.run.ledger import gives_up_late  # only a failure needs it

    return gives_up_late(run, error, call, log)


def _replace(run: "Run", error: Exception) -> "Any":
    """Return the value that `on_give_up` has for `error`, or that it returns for it; TypeError for a coroutine."""
    replacement: Any = run.plan.on_give_up
    value = replacement(error) if callable(replacement) else replacement
    refuse_coroutine(value, "`on_give_up`")
    return value


async def _areplace(run: "Run", error: Exception) -> "Any":
    """Return the value that `on_give_up` has for `error`, or that it returns for it, awaited if it is awaitable."""
    replacement: Any = run.plan.on_give_up
    if not callable(replacement):
        return replacement
    value: Any = replacement(error)
    return await value if hasattr(type(value), "__await__") else value  # pyright: ignore[reportUnknownArgumentType]


def _last(run: "Run", value: object) -> "Any":
    """Return the last value, which `on_result` refused, or what replaces it; raise Unsatisfied if the plan does."""
    error = run.refuse_last(value)
    return value if error is None else _replace(run, error)


async def _alast(run: "Run", value: object) -> "Any":
    """Return the last value, which `on_result` refused, as `_last` does."""
    error = run.refuse_last(value)
    return value if error is None else await _areplace(run, error)

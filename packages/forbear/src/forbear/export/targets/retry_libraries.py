"""Export a policy as a retry object for Python functions: tenacity's `Retrying` and google-api-core's `Retry`.

These objects never see a request.
"""

from typing import TYPE_CHECKING, Any

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.dataclass import replace
from forbear.export.outline import Exported, Outline, assignments
from forbear.export.python import Retryable, importing, source_errors, warn_about_safety
from forbear.export.waits import Waits
from forbear.policy import Policy
from forbear.text.duration import show

if TYPE_CHECKING:
    from google.api_core.retry import Retry
    from tenacity import RetryCallState, Retrying

_API_CORE_SOURCE = "google-api-core, retry/retry_base.py: `yield random.uniform(0.0, max_delay)`"
_REQUESTS_ERRORS = tuple(
    f"requests.exceptions.{name}" for name in ("ChunkedEncodingError", "ConnectionError", "Timeout")
)


def tenacity(policy: Policy) -> "Exported[Retrying]":
    """Return a `tenacity.Retrying` with the policy's own judges, backoff and limits; it raises the original error.

    >>> tenacity(forbear.retry(OSError, attempts=3)).value(str.upper, "done")
    'DONE'
    """
    from random import random

    with importing("tenacity", "tenacity"):
        from tenacity import (
            Retrying,
            retry_base,
            retry_if_exception,
            retry_if_result,
            stop_after_attempt,
            stop_any,
            stop_before_delay,
            stop_never,
        )

    outline = Outline(policy)
    warn_about_safety(outline, reads_errors=True)
    outline.says("errors", "attempts", "timeout", "backoff", "jitter", "shape", "on_result")
    enough = stop_never if outline.attempts is None else stop_after_attempt(outline.attempts)
    late = stop_never if outline.timeout is None else stop_before_delay(outline.timeout)
    retry: retry_base = retry_if_exception(Retryable(policy))
    if policy.on_result is not None:
        retry = retry | retry_if_result(
            lambda value: policy.repeats_calls and policy.verdict_of_value(value) is not None
        )

    def wait(state: "RetryCallState") -> float:
        previous = state.upcoming_sleep if state.attempt_number > 1 else None
        return policy.backoff.delay(state.attempt_number - 1, random(), previous)

    def result(state: "RetryCallState") -> object:
        return None if state.outcome is None else state.outcome.result()  # never None once an attempt has ended

    retrying = Retrying(stop=stop_any(enough, late), wait=wait, retry=retry, retry_error_callback=result)
    return Exported(retrying, outline.losses)


def tenacity_source(policy: Policy) -> Exported[str]:
    """Return Python code that makes a `tenacity.Retrying` called RETRYING; TypeError for a user's function in `on`."""
    outline = Outline(policy)
    errors = source_errors(outline)
    warn_about_safety(outline)
    outline.says("attempts", "timeout")
    stops = [] if outline.attempts is None else [f"tenacity.stop_after_attempt({outline.attempts})"]
    stops += [] if outline.timeout is None else [f"tenacity.stop_before_delay({outline.timeout!r})"]
    lines = [*errors.imports, "import tenacity", "", ""]
    retry = f"tenacity.retry_if_exception_type({errors.text})" if errors.types else "tenacity.retry_never"
    if errors.statuses:
        lines += [
            "def is_transient(error: BaseException) -> bool:",
            '    status = getattr(getattr(error, "response", error), "status_code", getattr(error, "code", None))',
            f"    return isinstance(error, {errors.text}) or status in {set(errors.statuses)}",
            "",
            "",
        ]
        retry = "tenacity.retry_if_exception(is_transient)"
    return outline.text(
        *lines,
        "RETRYING = tenacity.Retrying(",
        f"    stop={' | '.join(stops) or 'tenacity.stop_never'},",
        f"    wait={_tenacity_wait(outline)},",
        f"    retry={retry},",
        "    reraise=True,",
        ")",
    )


def _tenacity_wait(outline: Outline) -> str:
    """Return Python code of the backoff in tenacity's parts, exponential with full jitter where it lacks one."""
    backoff, waits = outline.policy.backoff, outline.waits
    outline.says("backoff", "jitter")
    if isinstance(backoff, Constant | Sequence):
        outline.says("shape")
        delays = [backoff.seconds] if isinstance(backoff, Constant) else backoff.delays
        fixed = [f"tenacity.wait_fixed({delay!r})" for delay in delays]
        wait = fixed[0] if isinstance(backoff, Constant) else f"tenacity.wait_chain({', '.join(fixed)})"
        return f"{wait} + tenacity.wait_random(0, {backoff.spread!r})" if backoff.spread else wait
    if isinstance(backoff, Exponential):
        if backoff.jitter == "documented":
            return f"tenacity.wait_exponential_jitter({_numbers(waits, 1)}, jitter={waits.spread!r})"
        if backoff.jitter == "none":
            return f"tenacity.wait_exponential({_numbers(waits, 1)})"
        if backoff.jitter == "equal":
            half = _numbers(waits, 0.5)
            return f"tenacity.wait_exponential({half}) + tenacity.wait_random_exponential({half})"
    if waits.jitter != "full":
        outline.warns(f"jitter={waits.jitter}", "full instead")
    return f"tenacity.wait_random_exponential({_numbers(waits, 1)})"


def _numbers(waits: Waits, factor: float) -> str:
    return f"multiplier={waits.initial * factor!r}, max={waits.maximum * factor!r}, exp_base={waits.multiplier!r}"


def google_api_core(policy: Policy) -> "Exported[Retry]":
    """Return a `google.api_core.retry.Retry` that asks the policy which errors to repeat.

    It has exponential waits with full jitter. Without a timeout, a limit on attempts becomes one in time.

    >>> exported = google_api_core(forbear.retry(OSError, timeout=30))
    >>> exported.value(str.upper)("done")
    'DONE'
    """
    with importing("google_api_core", "google-api-core"):
        from google.api_core.retry import Retry

    outline = Outline(policy)
    warn_about_safety(outline, reads_errors=True)
    outline.says("errors")
    parameters = _api_core_parameters(outline)
    return Exported(Retry(predicate=Retryable(policy), **parameters), outline.losses)


def google_api_core_source(policy: Policy) -> Exported[str]:
    """Return Python code that makes a `google.api_core.retry.Retry` called RETRY; TypeError for a function in `on`."""
    outline = Outline(policy)
    errors = source_errors(outline)
    warn_about_safety(outline)
    parameters = assignments(_api_core_parameters(outline))
    names, by_status = "retry", list[str]()
    if errors.statuses:
        names = "exceptions, retry"
        by_status = [
            "    if isinstance(error, exceptions.GoogleAPICallError):",
            f"        return error.code in {errors.statuses}",
        ]
        errors = replace(errors, types=(*errors.types, *_REQUESTS_ERRORS))
    return outline.text(
        *errors.imports,
        f"from google.api_core import {names}",
        "",
        "",
        "def is_transient(error: Exception) -> bool:",
        *by_status,
        f"    return isinstance(error, {errors.text})",
        "",
        "",
        "RETRY = retry.Retry(",
        "    predicate=is_transient,",
        *parameters,
        ")",
    )


def _api_core_parameters(outline: Outline) -> dict[str, Any]:
    waits, timeout = outline.takes_full_waits(_API_CORE_SOURCE), outline.timeout
    outline.says("timeout")
    if timeout is None and outline.longest is not None:
        timeout = outline.longest
        outline.differs("attempts", f"{show(timeout)} in time instead, the sum of its longest waits")
    outline.warns("giving up", "on a timeout it raises RetryError, with the original error as its cause")
    return {"initial": waits.initial, "maximum": waits.maximum, "multiplier": waits.multiplier, "timeout": timeout}

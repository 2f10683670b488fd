"""tenacity: a `Retrying`, whose parts say nearly all of a policy."""

from typing import TYPE_CHECKING

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.export import errors
from forbear.export.exported import Exported
from forbear.export.library import needed
from forbear.export.outline import Outline
from forbear.export.waits import Waits
from forbear.policy import Policy

if TYPE_CHECKING:
    from tenacity import RetryCallState, Retrying


def tenacity(policy: Policy) -> "Exported[Retrying]":
    """A `tenacity.Retrying` with the policy's own judge and backoff; on giving up the original error comes out."""
    from random import random

    with needed("tenacity", "tenacity"):
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
    errors.tell_safety(outline)
    outline.says("errors", "attempts", "timeout", "backoff", "jitter", "shape", "on_result")
    enough = stop_never if outline.attempts is None else stop_after_attempt(outline.attempts)
    late = stop_never if outline.timeout is None else stop_before_delay(outline.timeout)
    retry: retry_base = retry_if_exception(errors.Retryable(policy))
    if policy.on_result is not None:
        retry = retry | retry_if_result(lambda value: policy.repeatable and policy.judge_value(value) is not None)

    def wait(state: "RetryCallState") -> float:
        previous = state.upcoming_sleep if state.attempt_number > 1 else None
        return policy.backoff.delay(state.attempt_number - 1, random(), previous)

    def result(state: "RetryCallState") -> object:
        return None if state.outcome is None else state.outcome.result()  # it has one once an attempt has ended

    retrying = Retrying(stop=stop_any(enough, late), wait=wait, retry=retry, retry_error_callback=result)
    return Exported(retrying, outline.losses)


def source(policy: Policy) -> Exported[str]:
    """The same as source text that stands alone, with the parts of tenacity in the place of judge and backoff."""
    outline = Outline(policy)
    found = errors.of(outline)
    errors.tell_safety(outline)
    outline.says("attempts", "timeout")
    stops = [] if outline.attempts is None else [f"tenacity.stop_after_attempt({outline.attempts})"]
    stops += [] if outline.timeout is None else [f"tenacity.stop_before_delay({outline.timeout!r})"]
    lines = [*(f"import {module}" for module in found.imports), "", "import tenacity", "", ""]
    retry = f"tenacity.retry_if_exception_type({found.text})" if found.types else "tenacity.retry_never"
    if found.statuses:
        lines += [
            "def is_transient(error: BaseException) -> bool:",
            '    status = getattr(getattr(error, "response", error), "status_code", getattr(error, "code", None))',
            f"    return isinstance(error, {found.text}) or status in {set(found.statuses)}",
            "",
            "",
        ]
        retry = "tenacity.retry_if_exception(is_transient)"
    lines += [
        "RETRYING = tenacity.Retrying(",
        f"    stop={' | '.join(stops) or 'tenacity.stop_never'},",
        f"    wait={_wait(outline)},",
        f"    retry={retry},",
        "    reraise=True,",
        ")",
    ]
    return Exported("\n".join(lines).lstrip() + "\n", outline.losses)


def _wait(outline: Outline) -> str:
    """The backoff in tenacity's own parts, exact except for backoffs of the user's own and "decorrelated"."""
    backoff, waits = outline.policy.backoff, outline.waits
    outline.says("backoff", "jitter")
    if isinstance(backoff, Constant):
        added = f" + tenacity.wait_random(0, {backoff.spread!r})" if backoff.spread else ""
        return f"tenacity.wait_fixed({backoff.seconds!r}){added}"
    if isinstance(backoff, Sequence):
        outline.says("shape")
        added = f" + tenacity.wait_random(0, {backoff.spread!r})" if backoff.spread else ""
        return f"tenacity.wait_chain({', '.join(f'tenacity.wait_fixed({delay!r})' for delay in backoff.delays)}){added}"
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

"""Temporal: the options of an activity, retried by the server. It repeats every error that is not declared final."""

from datetime import timedelta
from typing import Any

from forbear.core.decide import show
from forbear.export import errors
from forbear.export.exported import Exported
from forbear.export.library import needed
from forbear.export.outline import Outline
from forbear.policy import Policy

Options = dict[str, Any]


def temporal(policy: Policy) -> Exported[Options]:
    """Keywords for `workflow.execute_activity`: a `retry_policy` (`temporalio.common.RetryPolicy`) and timeouts."""
    with needed("temporal", "temporalio"):
        from temporalio.common import RetryPolicy

    outline = Outline(policy)
    retry, timeouts = _options(outline)
    timed: Options = {name: timedelta(seconds=value) for name, value in retry.items() if name.endswith("interval")}
    options = {name: timedelta(seconds=value) for name, value in timeouts.items()}
    return Exported({"retry_policy": RetryPolicy(**(retry | timed)), **options}, outline.losses)


def source(policy: Policy) -> Exported[str]:
    """The same as source text."""
    outline = Outline(policy)
    retry, timeouts = _options(outline)
    lines = [
        "from datetime import timedelta",
        "",
        "from temporalio.common import RetryPolicy",
        "",
        "ACTIVITY_OPTIONS = {",
        '    "retry_policy": RetryPolicy(',
    ]
    for name, value in retry.items():
        lines.append(f"        {name}={f'timedelta(seconds={value!r})' if name.endswith('interval') else repr(value)},")
    lines.append("    ),")
    lines += [f'    "{name}": timedelta(seconds={value!r}),' for name, value in timeouts.items()]
    return Exported("\n".join([*lines, "}", ""]), outline.losses)


def _options(outline: Outline) -> tuple[Options, dict[str, float]]:
    policy, waits = outline.policy, outline.waits.mean
    outline.differs(
        "errors", "errors: all are repeated; raise ApplicationError(..., non_retryable=True) for final ones"
    )
    outline.says("backoff")
    outline.differs("jitter", f"jitter={outline.waits.jitter}: each wait is the mean one, and not spread out")
    outline.differs("retry_after", "Retry-After: raise ApplicationError(..., next_retry_delay=...) to obey it")
    outline.says("attempts")
    attempts = outline.attempts or 0
    if not policy.repeatable:
        attempts = 1
        outline.says("safety")
        outline.warns("safety", "an activity is not repeated, for nobody tells which errors came before execution")
    else:
        errors.tell_safety(outline)
    retry: Options = {
        "initial_interval": max(waits.initial, 0.001),
        "backoff_coefficient": waits.multiplier,
        "maximum_interval": max(waits.maximum, 0.001),
        "maximum_attempts": attempts,
    }
    timeouts: dict[str, float] = {}
    if outline.timeout is not None:
        timeouts["schedule_to_close_timeout"] = outline.timeout
        outline.differs(
            "timeout",
            f"timeout of {show(outline.timeout)}: schedule_to_close_timeout, which ends a running attempt, too",
        )
    if outline.attempt_timeout is not None:
        timeouts["start_to_close_timeout"] = outline.attempt_timeout
        outline.says("attempt_timeout")
    if not timeouts:
        outline.warns("timeouts", "the policy has none, but Temporal demands one of them for each activity")
    return retry, timeouts

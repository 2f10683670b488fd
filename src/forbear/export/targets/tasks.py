"""Export a policy to task queues and workflow engines: options of a Celery task and of a Temporal activity."""

from datetime import timedelta
from math import ceil
from typing import Any

from forbear.core.decide import show
from forbear.export.outline import Exported, Outline
from forbear.export.python import error_types, needed, source_errors, warn_about_safety
from forbear.policy import Policy

Options = dict[str, Any]


def celery(policy: Policy) -> Exported[Options]:
    """Return a dict of keywords for `app.task` of Celery: `@app.task(**celery(policy).value)`.

    A retry is a new message to a worker, after a wait in whole seconds. The result is an `Exported`, which also lists
    what is lost. Raises TypeError for a user's function in `on`.
    """
    outline = Outline(policy)
    types = error_types(outline)
    return Exported({"autoretry_for": types, **_celery_options(outline)}, outline.losses)


def celery_source(policy: Policy) -> Exported[str]:
    """Return Python code of a dict TASK_OPTIONS with the keywords for `app.task` of Celery.

    The result is an `Exported`, which also lists what is lost. Raises TypeError for a user's function in `on`.
    """
    outline = Outline(policy)
    errors = source_errors(outline)
    options = [f'    "{name}": {value!r},' for name, value in _celery_options(outline).items()]
    return outline.text(
        *errors.imports,
        *[""] * bool(errors.imports),
        "TASK_OPTIONS = {",
        f'    "autoretry_for": {errors.text},',
        *options,
        "}",
    )


def _celery_options(outline: Outline) -> Options:
    waits = outline.waits
    warn_about_safety(outline)
    retries = None if outline.retries is None else outline.count_retries()
    if waits.multiplier == 1:
        seconds = max(ceil(waits.initial), 1)
        if seconds == waits.initial:
            outline.says("backoff")
        outline.differs("backoff", f"waits of {waits}: {seconds} s, because Celery waits whole seconds")
        return {"max_retries": retries, "default_retry_delay": seconds}
    initial, maximum = max(ceil(waits.initial), 1), max(ceil(waits.maximum), 1)
    if (initial, 2, maximum) == (waits.initial, waits.multiplier, waits.maximum):
        outline.says("backoff")
    outline.differs("backoff", f"waits of {waits}: whole seconds from {initial} s, doubled up to {maximum} s")
    outline.differs("jitter", f"jitter={waits.jitter}: full, in whole seconds, so a wait may be zero")
    return {
        "max_retries": retries,
        "retry_backoff": initial,
        "retry_backoff_max": maximum,
        "retry_jitter": waits.jitter != "none",
    }


def temporal(policy: Policy) -> Exported[Options]:
    """Return a dict of keywords for `workflow.execute_activity`: a `temporalio.common.RetryPolicy` and timeouts.

    The server repeats every error of the activity that is not marked as non-retryable. If the policy is not repeatable,
    there is one attempt only. The result is an `Exported`, which also lists what is lost. Raises ImportError without
    temporalio.
    """
    with needed("temporal", "temporalio"):
        from temporalio.common import RetryPolicy

    outline = Outline(policy)
    retry, timeouts = _temporal_options(outline)
    intervals: Options = {name: timedelta(seconds=value) for name, value in retry.items() if name.endswith("interval")}
    options = {name: timedelta(seconds=value) for name, value in timeouts.items()}
    return Exported({"retry_policy": RetryPolicy(**(retry | intervals)), **options}, outline.losses)


def temporal_source(policy: Policy) -> Exported[str]:
    """Return Python code of a dict ACTIVITY_OPTIONS with the keywords for `workflow.execute_activity` of Temporal.

    The result is an `Exported`, which also lists what is lost.
    """
    outline = Outline(policy)
    retry, timeouts = _temporal_options(outline)
    return outline.text(
        "from datetime import timedelta",
        "",
        "from temporalio.common import RetryPolicy",
        "",
        "ACTIVITY_OPTIONS = {",
        '    "retry_policy": RetryPolicy(',
        *(
            f"        {name}={f'timedelta(seconds={value!r})' if name.endswith('interval') else repr(value)},"
            for name, value in retry.items()
        ),
        "    ),",
        *(f'    "{name}": timedelta(seconds={value!r}),' for name, value in timeouts.items()),
        "}",
    )


def _temporal_options(outline: Outline) -> tuple[Options, dict[str, float]]:
    waits = outline.waits.mean
    outline.differs(
        "errors", "errors: all are repeated; raise ApplicationError(..., non_retryable=True) for permanent ones"
    )
    outline.says("backoff", "attempts")
    outline.has_no_jitter()
    outline.differs("retry_after", "Retry-After: raise ApplicationError(..., next_retry_delay=...) to obey it")
    attempts = outline.attempts or 0
    if not outline.policy.repeats_calls:
        attempts = 1
        outline.warns(
            "safety", "an activity is not repeated, because Temporal cannot tell errors before execution from others"
        )
    else:
        warn_about_safety(outline)
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
            f"timeout of {show(outline.timeout)}: schedule_to_close_timeout, which also ends a running attempt",
        )
    if outline.attempt_timeout is not None:
        timeouts["start_to_close_timeout"] = outline.attempt_timeout
        outline.says("attempt_timeout")
    if not timeouts:
        outline.warns("timeouts", "the policy has none, but Temporal requires one for each activity")
    return retry, timeouts

"""Export a policy to task queues and workflow engines: options of a Celery task and of a Temporal activity."""

from datetime import timedelta
from math import ceil
from typing import Any

from forbear.export.outline import Exported, Outline
from forbear.export.python import error_types, importing, source_errors, warn_about_safety
from forbear.export.waits import difference
from forbear.policy import Policy

Options = dict[str, Any]

_CELERY_SOURCE = "celery, utils/time.py: `countdown = min(maximum, factor * (2 ** retries))`"
_CELERY_JITTER = "celery, utils/time.py: `countdown = random.randrange(countdown + 1)`"
_TEMPORAL_SOURCE = (
    "temporal, workflow/retry.go: `interval := intervalCalculator(initInterval, backoffCoefficient, currentAttempt)`"
)


def celery(policy: Policy) -> Exported[Options]:
    """Return keywords for `app.task` of Celery, which waits whole seconds; TypeError for a user's function in `on`.

    >>> celery(forbear.retry(OSError, attempts=3)).value["max_retries"]
    2
    """
    outline = Outline(policy)
    types = error_types(outline)
    return Exported({"autoretry_for": types, **_celery_options(outline)}, outline.losses)


def celery_source(policy: Policy) -> Exported[str]:
    """Return Python code of a dict TASK_OPTIONS with keywords for `app.task` of Celery, as `celery` makes them."""
    outline = Outline(policy)
    errors = source_errors(outline)
    options = [f'    "{name}": {value!r},' for name, value in _celery_options(outline).items()]
    return outline.text(
        *errors.imports,
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
        seconds = max(round(outline.mean_waits.initial), 1)
        outline.waits_become([seconds] * outline.shown_waits, "Celery waits whole seconds")
        return {"max_retries": retries, "default_retry_delay": seconds}
    share = 1 if waits.jitter == "none" else 0.5
    maximum = max(ceil(waits.longest), 1)
    factor = _celery_factor(outline.means, share, maximum)
    outline.waits_become([share * min(factor * 2**n, maximum) for n in range(outline.shown_waits)], _CELERY_SOURCE)
    if waits.jitter == "full" and waits.initial == factor and waits.maximum == maximum:
        outline.warns("whole seconds", f"waits are whole seconds, so a wait may be zero ({_CELERY_JITTER})")
        outline.says("jitter")
    outline.differs("jitter", f"full, in whole seconds, so a wait may be zero ({_CELERY_JITTER})")
    return {
        "max_retries": retries,
        "retry_backoff": factor,
        "retry_backoff_max": maximum,
        "retry_jitter": waits.jitter != "none",
    }


def _celery_factor(means: list[float], share: float, maximum: int) -> int:
    """Return the whole number of seconds, doubled before each retry, whose mean waits differ least from `means`."""

    def error(factor: int) -> float:
        waits = (share * min(factor * 2**n, maximum) for n in range(len(means)))
        return sum(difference(one, other) for one, other in zip(waits, means, strict=True))

    return min(range(1, max(ceil(2 * means[0] / share), 1) + 1), key=error)


def temporal(policy: Policy) -> Exported[Options]:
    """Return a dict of keywords for `workflow.execute_activity`: a `temporalio.common.RetryPolicy` and timeouts.

    The server repeats every error of the activity that is not marked as non-retryable. If the policy is not repeatable,
    there is one attempt only. Example: see `source`.
    """
    with importing("temporal", "temporalio"):
        from temporalio.common import RetryPolicy

    outline = Outline(policy)
    retry, timeouts = _temporal_options(outline)
    intervals: Options = {name: timedelta(seconds=value) for name, value in retry.items() if name.endswith("interval")}
    options = {name: timedelta(seconds=value) for name, value in timeouts.items()}
    return Exported({"retry_policy": RetryPolicy(**(retry | intervals)), **options}, outline.losses)


def temporal_source(policy: Policy) -> Exported[str]:
    """Return Python code of a dict ACTIVITY_OPTIONS with the keywords for `workflow.execute_activity` of Temporal."""
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
    waits = outline.takes_mean_waits(_TEMPORAL_SOURCE)
    outline.differs("errors", "all are repeated; raise ApplicationError(..., non_retryable=True) for permanent ones")
    outline.says("attempts")
    outline.differs("retry_after", "raise ApplicationError(..., next_retry_delay=...) to obey it")
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
    outline.differs("timeout", "schedule_to_close_timeout, which also ends a running attempt")
    if outline.attempt_timeout is not None:
        timeouts["start_to_close_timeout"] = outline.attempt_timeout
        outline.says("attempt_timeout")
    if not timeouts:
        outline.warns("timeouts", "the policy has none, but Temporal requires one for each activity")
    return retry, timeouts

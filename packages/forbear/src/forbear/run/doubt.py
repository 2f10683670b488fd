"""Errors that end an attempt that must not be repeated, before a run could give it up.

A function of the user raised the error while it judged the attempt, or a cancellation cut the attempt off. Without a
report, an outer run could execute the request again.

Requests with an unknown outcome are kept here, too, for a later attempt of the run around them.
"""

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason
from forbear.core.report import Report, attach, text_of
from forbear.run.nesting import inherit, record_report
from forbear.run.open_runs import outermost_run, run_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.run.protocols import RunState, Subject
    from forbear.run.runtime import Runtime

UNSAFE_CALL = f"{Reason.UNSAFE.value}; if it does none, say so with policy.with_repeatable(True)"
"""The reason why a function is not called again."""


def leave_in_doubt(
    error: BaseException,
    operation: str,
    unsafe: str,
    runtime: "Runtime",
    started: float,
    subject: "Subject | None" = None,
    number: int = 1,
) -> None:
    """Attach a report to `error`, which stops every outer run; the attempt that it ended must not be repeated.

    `unsafe` says why not. `started` is the time before the first attempt. `subject` is the request, None if it is not
    known. `number` is that of the attempt.
    """
    elapsed = runtime.monotonic() - started
    failure = Attempt(number, type(error).__qualname__, text_of(error), elapsed, None, runtime.now())
    report = Report(
        operation,
        (failure,),
        elapsed,
        Reason.UNSAFE,
        unsafe,
        omitted=number - 1,
        method=None if subject is None else subject.method,
        resource=None if subject is None else subject.resource,
    )
    record_report(report, error)
    attach(error, report)


def leave_call_in_doubt(error: Exception, run: "RunState") -> None:
    """Let `error`, raised while `run` judged an attempt of a function, carry what must not be repeated of that attempt.

    That is the function itself if the policy does not repeat it, else what an inner run gave up.
    """
    inherit(error, run)
    if not run.plan.repeats_calls:
        leave_in_doubt(error, run.operation, UNSAFE_CALL, run.runtime, run.started, number=run.attempt)


_MOST = 1000
"""The unknown requests that are remembered of one run."""


def leave_same_unknown(same: object) -> None:
    """Note for the outermost run around the caller that the outcome of a request is unknown.

    `same` is equal for equal requests, and None for one that is equal to no other.
    """
    found = outermost_run()
    if found is None or same is None:
        return
    from forbear.run.keys import keys_at  # few runs get here

    requests = keys_at(found).unknown
    if len(requests) < _MOST:
        requests.add(same)


def was_left_unknown(same: object) -> bool:
    """Return whether an earlier attempt of the outermost run around the caller sent the same request."""
    found = outermost_run() if run_keys else None
    known = None if found is None else run_keys.get(id(found))
    return known is not None and same in known.unknown

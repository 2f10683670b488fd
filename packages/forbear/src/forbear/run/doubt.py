"""Errors that end an attempt that must not be repeated, before a run could give it up.

A function of the user raised the error while it judged the attempt, or a cancellation cut the attempt off. Without a
report, an outer run could execute the request again.

Requests with an unknown outcome are kept here, too, for a later attempt of the run around them.
"""

from sys import getrefcount

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason
from forbear.core.report import Report, attach, text_of
from forbear.run.nesting import inherit, record_report
from forbear.run.open_runs import outermost_run

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
"""The runs whose unknown requests are remembered, and the requests of one run."""


class UnknownRequests:
    """The requests with an unknown outcome that adapters sent in a run, which began at `started`."""

    __slots__ = ("_started", "requests")

    def __init__(self, started: float) -> None:
        self._started = started  # kept, so that no other object gets its id
        self.requests: set[object] = set()

    @property
    def has_ended(self) -> bool:
        """True if nobody but this object knows the run any more."""
        return getrefcount(self._started) <= 2  # that of this object, and that of the argument


_unknown: dict[int, UnknownRequests] = {}
"""The requests of runs, by the id of the time when the run began, which is the run's identity."""


def leave_same_unknown(same: object) -> None:
    """Note for the outermost run around the caller that the outcome of a request is unknown.

    `same` is equal for equal requests, and None for one that is equal to no other.
    """
    found = outermost_run()
    if found is None or same is None:
        return
    if id(found.started) not in _unknown and len(_unknown) >= _MOST:
        for number, each in list(_unknown.items()):
            if each.has_ended or len(_unknown) >= _MOST:
                _unknown.pop(number, None)
    requests = _unknown.setdefault(id(found.started), UnknownRequests(found.started)).requests
    if len(requests) < _MOST:
        requests.add(same)


def was_left_unknown(same: object) -> bool:
    """Return whether an earlier attempt of the outermost run around the caller sent the same request."""
    found = outermost_run() if _unknown else None
    known = None if found is None else _unknown.get(id(found.started))
    return known is not None and same in known.requests

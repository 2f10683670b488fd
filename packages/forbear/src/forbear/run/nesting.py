"""Detect whether an inner run gave up on an outcome, so that the outer run does not repeat it.

Several runs may raise the same exception: a pool or a batch loader raises one error in all tasks that wait for it. So
a report on an exception stops a run only if an inner run made it during the attempt under way. That is so if the report
was made in the same thread or task, or if the error reached the attempt through the run that reported it.

An inner run that gave up because a repeat could do harm stops a function's run, whatever the function makes of that:
`inherit` lets the error that the function raises carry the inner report.
"""

import sys
from contextvars import ContextVar

from forbear.core.chain import cause_of, context_of, entries_of, traceback_of
from forbear.core.decide import Reason
from forbear.core.record import reports_made
from forbear.core.report import (
    PREFIX,
    Report,
    attach,
    carry,
    find_carried,
    report_on,
)
from forbear.run.harm import harms, remember
from forbear.run.listeners import is_notified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from forbear.run.protocols import RunState

    Entry = tuple[int, int, int]


_FINAL = (
    Reason.ATTEMPTS, Reason.TIMEOUT, Reason.RETRY_AFTER, Reason.BUDGET, Reason.UNSAFE, Reason.BODY, Reason.EXHAUSTED,
    Reason.STOPPED,
)  # fmt: skip
"""Reasons for which the outer run stops, too: the inner run reached a limit, or a repeat could do harm. For any other
reason the inner run only left the failure to its caller."""

_HARMFUL = (Reason.UNSAFE, Reason.BODY)
_REMOTE_TRACEBACKS = ("_RemoteTraceback", "RemoteTraceback")
"""The names of the classes whose `tb` is the text of a worker's traceback."""

_HARMFUL_ENDS = tuple(f" [{reason.code}]" for reason in _HARMFUL)
"""The ends of notes on what must not be repeated."""

_newest: "ContextVar[tuple[Report | None, int]]" = ContextVar("forbear_newest_report", default=(None, 0))
"""The newest report of this thread or task, and the id of its outcome."""


class RunOrigin:
    """The run that made a report: when it `began`, the id of its `clock`, and the traceback `entry` of its error.

    `began` is monotonic time before its first attempt, `clock` the id of its runtime, and `entry` a key of the first
    traceback entry, None without an error.
    """

    __slots__ = ("began", "clock", "entry")

    def __init__(self, began: float, runtime: object, error: BaseException | None) -> None:
        self.began = began
        self.clock = id(runtime)
        traceback: TracebackType | None = None if error is None else traceback_of(error)
        self.entry = None if traceback is None else _entry(traceback)


def is_final(report: "Report") -> bool:
    """Return whether an outer run stops, too: the run reached a limit, or a repeat could do harm."""
    return report.reason in _FINAL


def record_report(report: "Report", outcome: object) -> None:
    """Record `report` as the newest of this thread or task, with the id of the `outcome` that it is about.

    The id is needed for a returned value that was refused, which cannot carry its report itself. A report on what must
    not be repeated is recorded for all calls around, too, unless a listener caused it.
    """
    _newest.set((report, id(outcome)))
    if report.reason in _HARMFUL and not is_notified():
        remember(report)


def inherit(error: BaseException, run: "RunState") -> None:
    """Let `error`, which a function raised, carry the report of what must not be repeated in its attempt, if any.

    An inner run made that report during the current attempt of `run`. It was made in a thread or task of this attempt
    (`run/harm.py`), whatever became of its error. Or it was made in another one, or in another process, and its error
    is in a group or in the chain of `error`: causes and contexts, even suppressed ones. Older reports do not count,
    because the run may have begun in an `except` block. The report comes with its note, unless `report(error)` finds it
    anyway.
    """
    if reports_made.now == run.reports and context_of(error) is None and cause_of(error) is None:
        return
    shown = _harm_in(error, run)
    if shown is not None:
        carry(error, _with_doubt(shown, error, run))
        return
    hidden = harm_within(run) or _harm_in(error, run, behind=True)
    if hidden is not None:
        attach(error, _with_doubt(hidden, error, run))


def _with_doubt(harm: "Report", error: BaseException, run: "RunState") -> "Report":
    """Return the report `harm`, with `maybe_done` if the report that it replaces on `error` has that."""
    own = report_on(error)
    if own is None or harm.maybe_done or not own.maybe_done or not _is_within(error, own, run):
        return harm
    return harm.replace(maybe_done=True, origin=harm.origin)


def harm_within(run: "RunState") -> "Report | None":
    """Return the newest report on what must not be repeated that was made within the current attempt of `run`."""
    within = (harm.report for harm in reversed(harms(shared=run.awaits)) if not harm.is_settled)
    return next((report for report in within if _is_within(None, report, run)), None)


def _harm_in(error: BaseException, run: "RunState", *, behind: bool = False) -> "Report | None":
    """Return the first report that `error` holds on what must not be repeated in the current attempt of `run`.

    With `behind`, the contexts of errors are searched, too.
    """

    def find(carrier: object) -> "Report | None":
        report = report_on(carrier)
        return _remote_report(carrier, error) if report is None else report

    for carrier, report in find_carried(error, behind=behind, find=find):
        if report.reason in _HARMFUL and _is_within(carrier, report, run):
            return report
    return None


def is_ended_within(outcome: object, run: "RunState") -> bool:
    """Return whether an inner run gave up on `outcome` for a final reason during the current attempt of `run`.

    Final are a limit that it reached, and a repeat that could do harm (`_FINAL`).
    """
    newest, identity = _newest.get()
    if identity == id(outcome) and newest is not None and not isinstance(outcome, BaseException):
        return newest.number > run.reports and newest.reason in _FINAL
    return any(
        report.reason in _FINAL and _is_within(carrier, report, run) for carrier, report in find_carried(outcome)
    )


def inner_report(outcome: object, run: "RunState") -> "Report | None":
    """Return the report of an inner run that `outcome` carries, whatever its reason; None if there is none.

    The report must be of the current attempt of `run`.
    """
    if reports_made.now == run.reports:
        return None
    return next((report for carrier, report in find_carried(outcome) if _is_within(carrier, report, run)), None)


def _is_within(carrier: object, report: "Report", run: "RunState") -> bool:
    """Return whether `report`, which is on `carrier`, was made during the current attempt of `run`.

    It must be newer than the start of that attempt. If it was made in this thread or task, or in another process, it
    counts. Otherwise its run must not have begun before the attempt, on the same clock. And `carrier` must have passed
    through that run, except where no traceback is known or a repeat could do harm.
    """
    if report.number <= run.reports:
        return False
    origin = report.origin
    if not isinstance(origin, RunOrigin) or report is _newest.get()[0]:  # from another process; or made right here
        return True
    if origin.clock == id(run.runtime) and origin.began < run.began:
        return False
    # Where a repeat could do harm, a doubt counts as a yes.
    return report.reason in _HARMFUL or origin.entry is None or _has_passed(carrier, origin.entry)


def _has_passed(carrier: object, entry: "Entry") -> bool:
    """Return whether the traceback of the error `carrier`, of its cause or of its context contains `entry`.

    False if `carrier` is no exception.
    """
    if not isinstance(carrier, BaseException):
        return False
    for error in (carrier, cause_of(carrier), context_of(carrier)):  # a library may have wrapped the error
        if error is not None and any(_entry(each) == entry for each in entries_of(traceback_of(error))):
            return True
    return False


def _entry(traceback: "TracebackType") -> "Entry":
    """Return a key of one traceback entry that does not keep its frame alive."""
    return id(traceback), id(traceback.tb_frame.f_code), traceback.tb_lasti


def _remote_report(carrier: object, outcome: BaseException) -> Report | None:
    """Return a report on what must not be repeated, as the text of a worker's traceback says; None without one.

    Pickling drops the causes and contexts of an error, and some errors drop their attributes. But the executors of
    concurrent.futures, multiprocessing and loky bring the worker's traceback as a text, which shows the notes.

    `carrier` is the error that came from the worker, or any other object. None also if it is not `outcome`, and a
    function still under way handles it: it is older than what that function has called since.
    """
    cause = cause_of(carrier) if isinstance(carrier, BaseException) else None
    text: object = getattr(cause, "tb", None) if type(cause).__name__ in _REMOTE_TRACEBACKS else None
    if not isinstance(text, str) or PREFIX not in text or (carrier is not outcome and _is_being_handled(carrier)):
        return None
    for line in text.splitlines():
        note = line.strip(" |")
        if note.startswith(f"{PREFIX}gave up after ") and note.endswith(_HARMFUL_ENDS):
            reason = note.partition(" s: ")[2].rpartition(" [")[0]
            return Report("a call in another process", (), 0.0, Reason.UNSAFE, reason)
    return None


def _is_being_handled(error: object) -> bool:
    """Return whether a frame of the current stack has caught `error`, whose traceback begins with that frame."""
    traceback: TracebackType | None = traceback_of(error)
    frame: FrameType | None = None if traceback is None else sys._getframe()
    while frame is not None and traceback is not None:
        if frame is traceback.tb_frame:
            return True
        frame = frame.f_back
    return False

"""Nesting: whether an inner run gave up on an outcome, so that the outer run must not repeat it.

An exception may be shared: a pool or a batch loader raises the same one in all tasks that wait. So a report on it tells
of an inner run only if it was made while the attempt was under way, and in it: in the same thread or task, or where the
error has come to the attempt through the run that reported on it.
"""

from contextvars import ContextVar

from forbear.core.decide import Reason
from forbear.core.report import carried, cause_of, context_of, traceback_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from forbear.core.report import Report
    from forbear.run.state import Run

    Place = tuple[int, int, int]

_FINAL = (
    Reason.ATTEMPTS, Reason.TIMEOUT, Reason.RETRY_AFTER, Reason.BUDGET, Reason.UNSAFE, Reason.BODY,
)  # fmt: skip
"""Reasons by which an inner run ends the matter: its limits, or a repeat that could do harm. By any other it only says
that the failure is none of its own, and leaves the next step to whoever is around it."""

_HARMFUL = (Reason.UNSAFE, Reason.BODY)

_newest: "ContextVar[tuple[Report | None, int]]" = ContextVar("forbear_newest_report", default=(None, 0))
"""The newest report of this thread or task, and the identity of the outcome that it is about."""


class Origin:
    """The run that made a report: when it `began` and by which `clock`, and the `place` where its error left it."""

    __slots__ = ("began", "clock", "place")

    def __init__(self, run: "Run", error: BaseException | None) -> None:
        self.began = run.started
        self.clock = id(run.runtime)
        traceback: TracebackType | None = None if error is None else traceback_of(error)
        self.place = None if traceback is None else _place(traceback)


def gave_up(report: "Report", outcome: object) -> None:
    """Note in this thread or task that a run gave up on an outcome: a plain value cannot carry its report itself."""
    _newest.set((report, id(outcome)))


def ended_within(outcome: object, run: "Run") -> bool:
    """Return whether a run within the attempt of `run` that is under way has ended the matter."""
    newest, identity = _newest.get()
    if identity == id(outcome) and newest is not None and not isinstance(outcome, BaseException):
        return newest.number > run.reports and newest.reason in _FINAL
    return any(found.reason in _FINAL and _is_within(carrier, found, run) for carrier, found in carried(outcome))


def inner_report(outcome: object, run: "Run") -> "Report | None":
    """Return the report of a run within the attempt of `run` that is under way, whatever ended that inner run."""
    for carrier, found in carried(outcome):
        if _is_within(carrier, found, run):
            return found
    return None


def _is_within(carrier: object, found: "Report", run: "Run") -> bool:
    if found.number <= run.reports:
        return False
    origin = found.origin
    if not isinstance(origin, Origin) or found is _newest.get()[0]:  # came from another process; or made right here
        return True
    if origin.clock == id(run.runtime) and origin.began < run.began:
        return False
    # Where a repeat could do harm, a doubt counts as a yes.
    return found.reason in _HARMFUL or origin.place is None or _passed(carrier, origin.place)


def _passed(carrier: object, place: "Place") -> bool:
    """Return whether an error has come through a place: it is an entry of its traceback, which grows on the way."""
    if not isinstance(carrier, BaseException):
        return False
    for error in (carrier, cause_of(carrier), context_of(carrier)):  # a library may have made a new one of it
        traceback: TracebackType | None = None if error is None else traceback_of(error)
        while traceback is not None:
            if _place(traceback) == place:
                return True
            traceback = traceback.tb_next
    return False


def _place(traceback: "TracebackType") -> "Place":
    """Return what tells an entry of a traceback from all others, without keeping its frame alive."""
    return id(traceback), id(traceback.tb_frame.f_code), traceback.tb_lasti

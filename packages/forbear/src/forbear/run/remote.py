"""Read from an error of another process that forbear gave up there on what must not be repeated.

Pickling drops the causes and contexts of an error, and some errors drop their attributes. But the executors of
concurrent.futures, multiprocessing and loky bring the worker's traceback as a text, which shows the notes.
"""

import sys

from forbear.core.chain import cause_of, traceback_of
from forbear.core.decide import Reason
from forbear.core.report import PREFIX, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType

_CLASSES = ("_RemoteTraceback", "RemoteTraceback")
"""The names of the classes whose `tb` is the text of a worker's traceback."""

_HARMFUL = tuple(f" [{reason.code}]" for reason in (Reason.UNSAFE, Reason.BODY))
"""The ends of notes on what must not be repeated."""


def remote_report(carrier: object, outcome: BaseException) -> Report | None:
    """Return a report on what must not be repeated, as the text of a worker's traceback says; None without one.

    `carrier` is the error that came from the worker, or any other object. None also if it is not `outcome`, and a
    function still under way handles it: it is older than what that function has called since.
    """
    cause = cause_of(carrier) if isinstance(carrier, BaseException) else None
    text: object = getattr(cause, "tb", None) if type(cause).__name__ in _CLASSES else None
    if not isinstance(text, str) or PREFIX not in text or (carrier is not outcome and _is_being_handled(carrier)):
        return None
    for line in text.splitlines():
        note = line.strip(" |")
        if note.startswith(f"{PREFIX}gave up after ") and note.endswith(_HARMFUL):
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

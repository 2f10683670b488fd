"""Walk over all errors that one holds, and over their frames, and let the readers of the clients say what was sent.

A reader is found by the names of a function and its module, so no library is imported. The walk runs no user code, and
keeps no reference to frames or their variables.
"""

from forbear.core.chain import attributes_of, traceback_of, walk_errors
from forbear.evidence.look import Look
from forbear.evidence.sent import Evidence, Sent, package
from forbear.evidence.table import ATTRIBUTES, FRAMES, reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType

MOST_ERRORS = 50
MOST_FRAMES = 200


def read(error: BaseException, handled: BaseException | None = None) -> Evidence | None:
    """Return the requests that an error shows, None if it shows none.

    All errors of its chain count: causes, contexts (also suppressed ones), members of groups and what libraries wrap,
    up to `handled`, the exception that was being handled when the work began. Of each traceback the innermost 200
    frames are read. What lies beyond a bound, and what a reader fails on, is a request that could not be read.
    """
    look: Look | None = None
    functions = FRAMES
    for number, each in enumerate(walk_errors(error, handled, MOST_ERRORS + 1)):
        if number == MOST_ERRORS:
            look = look or Look()
            look.add(0, Sent("", "", "", unread=f"the error holds more than {MOST_ERRORS} others"))
            break
        look = _read_attributes(each, look) if attributes_of(each) else look
        trace = traceback_of(each)
        while trace is not None:
            if trace.tb_frame.f_code.co_name in functions and _is_of_client(trace.tb_frame):
                look = look or Look()
                _read_frames(traceback_of(each), look)
                break
            trace = trace.tb_next
    if look is None:
        return None
    look.close()
    return Evidence(tuple(look.sent.values())) if look.sent else None


def _is_of_client(frame: "FrameType") -> bool:
    return frame.f_globals.get("__name__") in FRAMES[frame.f_code.co_name]


def _read_frames(trace: "TracebackType | None", look: Look) -> None:
    """Let the readers read the frames of one traceback, the outermost first."""
    look.current = look.outer = None
    left, entry = 0, trace
    while entry is not None:
        left, entry = left + 1, entry.tb_next
    while trace is not None:
        frame = trace.tb_frame
        modules = FRAMES.get(frame.f_code.co_name)
        name = None if modules is None else modules.get(frame.f_globals.get("__name__"))  # type: ignore[arg-type]
        if name is not None:
            linked = look.links.get(id(frame))
            look.current = linked if look.current is None else look.current
            client = str(frame.f_globals.get("__name__")).partition(".")[0]
            if left > MOST_FRAMES:
                look.add(id(frame), Sent(client, "", "", unread="its traceback is too long"))
            else:
                try:
                    reader(name)(look, trace, look.names(frame))
                except Exception as broken:
                    look.add(id(frame), Sent(client, "", "", unread=f"{type(broken).__name__} in its reader"))
        if look.current is not None:
            look.links.setdefault(id(frame), look.current)
        left -= 1
        look.outer, trace = frame, trace.tb_next
    look.outer = None


def _read_attributes(error: BaseException, look: Look | None) -> Look | None:
    """Let the readers read what an error keeps, by the class of what it keeps."""
    for name, value in list(attributes_of(error).items()):
        readers = ATTRIBUTES.get(name)
        found = None if readers is None else readers.get("*") or readers.get(package(value))
        if found is None:
            continue
        look = look or Look()
        try:
            reader(found)(look, error, value)
        except Exception as broken:
            client = package(error)
            look.add(id(value), Sent(client, "", "", unread=f"{type(broken).__name__} in its reader"))
    return look

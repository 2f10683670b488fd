"""Walk over all errors that one holds, and over their frames, and let the readers of the clients say what was sent.

A reader is found by the names of a function and its module, so no library is imported. The walk runs no user code, and
keeps no reference to frames or their variables.
"""

import builtins

from forbear.core.chain import attributes_of, list_errors, traceback_of
from forbear.evidence.look import IS_FUNCTION, Look, client_of
from forbear.evidence.sent import Evidence, Sent, package
from forbear.evidence.table import ATTRIBUTES, FRAMES, SENDERS, reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType

_PLAIN = frozenset(
    kind
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(kind, BaseExceptionGroup)
)
"""Python's own classes of errors: reading an attribute of such an error runs no user code."""
_TEXTS = frozenset((str, int))
_ATTRIBUTES = ATTRIBUTES.keys()

MOST_ERRORS = 50
MOST_FRAMES = 200
MOST_READERS = 10
"""The frames of clients that are read in one traceback, however far out they are."""


def is_bare(error: BaseException) -> bool:
    """Return whether a quick look proves that an error shows nothing, as for most failures of a function.

    It is one of Python's own that holds no other, and no reader knows a frame of its traceback.
    """
    if type(error) not in _PLAIN or error.__cause__ is not None or error.__context__ is not None or error.__dict__:
        return False
    for argument in error.args:
        if type(argument) not in _TEXTS:
            return False
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_name in FRAMES:
            return False
        trace = trace.tb_next
    return True


def find(error: BaseException, handled: BaseException | None) -> Evidence | None:
    """Return the requests that the error of a failed function shows, as `read` does.

    If it shows none although it comes from a known client, warn once.
    """
    evidence = read(error, handled)
    if evidence is None and type(error).__module__ != "builtins":
        _warn_of_unread(error)
    return evidence


def read(error: BaseException, handled: BaseException | None = None) -> Evidence | None:
    """Return the requests that an error shows, None if it shows none.

    All errors of its chain count: causes, contexts (also suppressed ones), members of groups and what libraries wrap,
    up to `handled`, the exception that was being handled when the work began. Of each traceback the first 10 frames of
    clients are read, and all among its innermost 200. What lies beyond a bound, and what a reader fails on, is a
    request that could not be read.
    """
    look = Look()
    errors = list_errors(error, handled, MOST_ERRORS + 1)
    if len(errors) > MOST_ERRORS:
        errors = errors[:MOST_ERRORS]
        look.add(0, Sent("", "", "", unread=f"the error holds more than {MOST_ERRORS} others"))
    for each in errors:
        kept = attributes_of(each)
        if kept and not _ATTRIBUTES.isdisjoint(kept):
            _read_attributes(each, kept, look)
        trace = traceback_of(each)
        if trace not in look.entries:
            look.error = each
            _read_frames(trace, look)
    look.close()
    return Evidence(tuple(look.sent.values()), errors) if look.sent else None


def _read_frames(entry: "TracebackType | None", look: Look) -> None:
    """Let the readers read the frames of a traceback, the outermost first.

    A frame that stands there twice, because it raised an error again, is read once.
    """
    functions, entries, above = FRAMES, look.entries, None
    frames: set[FrameType] = set()
    look.current = None
    while entry is not None:
        frame = entry.tb_frame
        function = frame.f_code.co_name
        if function in functions:
            name = functions[function].get(frame.f_globals.get("__name__", ""))
            if name is not None:
                if entry in entries:
                    break  # it was read with another error, and so was all that follows
                entries.add(entry)
                if frame not in frames:
                    frames.add(frame)
                    look.above = above
                    _read_frame(entry, frame, look, name, len(frames))
        above, entry = entry, entry.tb_next
    look.serves, look.service = False, None


def _read_frame(entry: "TracebackType", frame: "FrameType", look: Look, name: str, number: int) -> None:
    """Let the reader called `name` read a frame. What it fails on, or is too far out, could not be read.

    The frames of an error that another process has raised may be built anew, by tblib. They have no variables, so what
    the error itself keeps counts.
    """
    known = look.links.get(frame)
    if known is not None:
        if SENDERS.get(name):
            look.current = known
            return
        if look.current is None:
            look.current = known
    elif look.sent and not frame.f_code.co_flags & IS_FUNCTION:
        return
    try:
        if number <= MOST_READERS or not _is_far(entry):
            reader(name)(look, entry)
        else:
            look.add(id(frame), Sent(client_of(frame), "", "", unread="its traceback is too long"))
    except Exception as broken:
        look.add(id(frame), Sent(client_of(frame), "", "", unread=f"{type(broken).__name__} in its reader"))
    if known is None and look.current is not None:
        look.links[frame] = look.current
        if name in SENDERS:
            look.note_sender(frame.f_code)


def _is_far(trace: "TracebackType") -> bool:
    """Return whether an entry is not among the innermost ones that are read."""
    entry: TracebackType | None = trace
    for _ in range(MOST_FRAMES):
        if entry is None:
            return False
        entry = entry.tb_next
    return entry is not None


def _read_attributes(error: BaseException, kept: "dict[str, object]", look: Look) -> None:
    """Let the readers read what an error keeps, by the class of what it keeps."""
    for name, value in list(kept.items()):
        if name in ATTRIBUTES and value is not None:
            readers = ATTRIBUTES[name]
            found = readers.get("*") or readers.get(package(value))
            if found is not None:
                try:
                    reader(found)(look, error, value)
                except Exception as broken:
                    look.add(id(value), Sent(package(error), "", "", unread=f"{type(broken).__name__} in its reader"))


_KNOWN = frozenset(
    {"aiohttp", "botocore", "grpc", "httpx", "httpx2", "niquests", "redis", "requests", "urllib3", "valkey"}
)
_warned = set[str]()


def _warn_of_unread(error: BaseException) -> None:
    """Warn once for each client whose error passed through its own code, and shows no request all the same.

    A new version of the client may have other names. Errors of wrong arguments (ValueError) do not count.
    """
    client = package(error)
    if client not in _KNOWN or client in _warned or isinstance(error, ValueError):
        return
    trace = traceback_of(error)
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__")).startswith(f"{client}."):
            import sys
            import warnings

            _warned.add(client)
            version = getattr(sys.modules.get(client), "__version__", "of an unknown version")
            text = f"forbear found no request in {type(error).__name__} of {client} {version}, and repeats the function"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            return
        trace = trace.tb_next

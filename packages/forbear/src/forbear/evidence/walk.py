"""Walk over all errors that one holds, and over their frames, and let the readers of the clients say what was sent.

A reader is found by the names of a function and its module, so no library is imported. The walk runs no user code, and
keeps no reference to frames or their variables.
"""

import builtins
import re
from itertools import islice

from forbear.core.chain import arguments_of, attributes_of, list_errors, traceback_of
from forbear.core.report import ATTRIBUTE, EXTENSION
from forbear.evidence.look import IS_FUNCTION, Look, client_of
from forbear.evidence.sent import MOST_BODY, Evidence, Sent, get_own, package, top_of
from forbear.evidence.table import ANSWERS, ATTRIBUTES, CLIENTS, FRAMES, SENDERS, reader
from forbear.http.request import READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType, TracebackType

_PLAIN = frozenset(
    kind
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(kind, BaseExceptionGroup)
)
"""Python's own classes of errors: reading an attribute of such an error runs no user code."""
_TEXTS = frozenset((str, int))
_ATTRIBUTES = ATTRIBUTES.keys()

_LOOKS = frozenset({"status_code", "status", "ok", "is_success", "is_error", "is_server_error", "json"})
"""The names in the code of a function that looks at a response before it raises an error of its own."""
_REMOTE = frozenset({"_RemoteTraceback", "RemoteTraceback"})
"""The causes that pools of processes give to the errors of their workers, with the traceback as a text."""

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
    trace, code = error.__traceback__, None
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_name in FRAMES:
            return False
        trace = trace.tb_next
    return code is None or _LOOKS.isdisjoint(code.co_names)


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
        args = arguments_of(each)
        if kept or len(args) > 1 or (args and type(args[0]) not in _TEXTS):
            _read_kept(each, (*args[:10], *islice(kept.values(), 20)), look)
        trace = traceback_of(each)
        if trace not in look.entries:
            look.error = each
            _read_frames(trace, look)
    if len(errors) > 1:
        for each in errors[1:]:
            if type(each).__name__ in _REMOTE:
                _read_remote(each, look)
    look.close()
    return Evidence(tuple(look.sent.values()), errors) if look.sent else None


def _read_frames(entry: "TracebackType | None", look: Look) -> None:
    """Let the readers read the frames of a traceback, the outermost first.

    A frame that stands there twice, because it raised an error again, is read once.
    """
    functions, entries, above = FRAMES, look.entries, None
    frames: set[FrameType] = set()
    look.current = None
    look.traces.append(entry)
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
    if entry is None and above is not None and not _LOOKS.isdisjoint(above.tb_frame.f_code.co_names):
        _read_looked_at(above, look)


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


def _read_kept(error: BaseException, values: "Iterable[object]", look: Look) -> None:
    """Let the readers read the responses among what an error holds: its arguments, and attributes of any name."""
    for value in values:
        kind = type(value)
        if kind.__name__ in ANSWERS and (found := ANSWERS[kind.__name__].get(kind.__module__)) is not None:
            if top_of(str(type(error).__module__)) in CLIENTS or _is_ours(value):
                continue  # the frames show more, or our adapter has judged it
            try:
                reader(found)(look, error, value)
            except Exception as broken:
                look.add(id(value), Sent(package(value), "", "", unread=f"{type(broken).__name__} in its reader"))


def _read_looked_at(entry: "TracebackType", look: Look) -> None:
    """Read the responses with an error status that a function had as variables when it raised an error of its own.

    They only ever stop, so reads do not count: nobody knows what else the function has sent.
    """
    if client_of(entry.tb_frame) in CLIENTS:
        return
    known, look.current = set(look.sent), None
    answers = [value for value in look.names(entry).values() if type(value).__name__ in ANSWERS]
    _read_kept(BaseException(), filter(_is_error, answers), look)
    found = look.sent.keys() - known
    if all(look.sent[key].method in READS for key in found):
        for key in found:
            del look.sent[key]


def _is_ours(response: object) -> bool:
    """Return whether an adapter of forbear has sent the request: it reported on the response."""
    extensions = get_own(response, "extensions")
    if type(extensions) is dict and EXTENSION in extensions:
        return True
    return any(get_own(each, ATTRIBUTE) is not None for each in (response, get_own(response, "raw")))


def _is_error(response: object) -> bool:
    status = get_own(response, "status_code") or get_own(response, "status")
    return type(status) is int and status >= 400


def _read_remote(error: BaseException, look: Look) -> None:
    """Read the text of a traceback of another process: if a client stands in it, it has sent a request.

    What the error itself keeps is enough, unless a redirect came before.
    """
    text = get_own(error, "tb")
    for path, function in _LINE.findall(text[-MOST_BODY:]) if type(text) is str else ():
        name = path.replace("\\", "/")
        for module, found in FRAMES.get(function, {}).items():
            if name.endswith("/" + module.replace(".", "/")) and (not look.sent or found == "requests:redirects"):
                client = module if module == "http.client" else top_of(module)
                sent = Sent(client, "", "", unread="its traceback is in another process")
                sent.cure = "decorate the function that runs in the other process"
                look.add(id(error), sent)
                return


_LINE = re.compile(r'File "([^"\n]+)\.py", line \d+, in (\w+)')

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

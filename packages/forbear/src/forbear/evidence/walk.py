"""Walk over all errors that one holds, and over their frames, and let the readers of the clients say what was sent.

A reader is found by the names of a function and its module, so no library is imported. The walk runs no user code, and
keeps no reference to frames or their variables.
"""

import builtins
import re
from itertools import islice

from forbear.core.chain import (
    arguments_of,
    attributes_of,
    cause_of,
    context_of,
    entries_of,
    list_errors,
    traceback_of,
)
from forbear.evidence.look import Look, client_of
from forbear.evidence.objects import IS_FUNCTION
from forbear.evidence.sent import MOST_BODY, Sent, get_own, package, top_of
from forbear.evidence.table import ATTRIBUTES, CLIENTS, FRAMES, SENDERS, reader
from forbear.evidence.variables import OF_CLIENT, codes, learn, read_kept, read_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

_PLAIN = frozenset(
    kind
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(kind, BaseExceptionGroup)
)
"""Python's own classes of errors: reading an attribute of such an error runs no user code."""
_TEXTS = frozenset((str, int, float, bool, type(None)))
_ATTRIBUTES = ATTRIBUTES.keys()

_REMOTE = frozenset({"_RemoteTraceback", "RemoteTraceback"})
"""The causes that pools of processes give to the errors of their workers, with the traceback as a text."""

MOST_ERRORS = 50
MOST_FRAMES = 200
MOST_READERS = 10
"""The frames of clients that are read in one traceback, however far out they are."""


class Evidence:
    """The requests that an error shows, the outermost error's first, and the `errors` that it holds.

    `has_responses` is True if a response shows one of them, and `is_of_variables` if responses in variables show all.
    """

    __slots__ = ("errors", "has_responses", "is_of_variables", "requests")

    def __init__(self, requests: "tuple[Sent, ...]", errors: "tuple[BaseException, ...]" = ()) -> None:
        self.requests = requests
        self.errors = errors
        self.has_responses = any(each.holders is not None for each in requests)
        self.is_of_variables = all(each.is_variable for each in requests)

    def __repr__(self) -> str:
        return f"Evidence({self.requests!r})"

    def leave_out(self, test: "Callable[[int], bool]") -> "Evidence":
        """Return the evidence without the requests whose response is held only by what passes a test by its id."""
        kept = tuple(each for each in self.requests if each.holders is None or not all(map(test, each.holders)))
        return Evidence(kept, self.errors)


def is_bare(error: BaseException) -> bool:
    """Return whether a quick look proves that an error shows nothing, as for most failures of a function.

    It holds no other error and nothing but texts, and no frame of its traceback has anything to read.
    """
    kind = type(error)
    if kind not in _PLAIN:
        may_show_nothing = _kinds.get(kind)  # one look: another thread may clear them
        if not (_learn_kind(kind) if may_show_nothing is None else may_show_nothing):
            return False
    kept = attributes_of(error)
    if cause_of(error) is not None or context_of(error) is not None or (kept and not _is_plain(kept)):
        return False
    for argument in arguments_of(error):
        if type(argument) not in _TEXTS:
            return False
    trace, known, identity = traceback_of(error), codes.get, id
    while trace is not None:
        if known(identity(trace.tb_frame.f_code), True) and learn(trace.tb_frame):
            return False
        trace = trace.tb_next
    return True


def _is_plain(kept: "dict[str, object]") -> bool:
    """Return whether an error keeps only texts and numbers, and none by which a library shows something."""
    return _ATTRIBUTES.isdisjoint(kept) and _TEXTS.issuperset(map(type, kept.values()))


_kinds: "dict[type, bool]" = {}
_MOST_KINDS = 1000


def _learn_kind(kind: "type[BaseException]") -> bool:
    """Find out whether an error of a class may show nothing: it is no group, and of no client; remember it."""
    if len(_kinds) >= _MOST_KINDS:
        _kinds.clear()
    tops = {top_of(str(each.__module__)) for each in kind.__mro__}
    found = _kinds[kind] = not issubclass(kind, BaseExceptionGroup) and tops.isdisjoint(CLIENTS)
    return found


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
    _read_errors(look, errors)
    if len(errors) > 1:
        for each in errors[1:]:
            if type(each).__name__ in _REMOTE:
                _read_remote(each, look)
    if look.frames:
        read_variables(look, lambda held: _read_held(look, held, errors, handled))
    look.close()
    return Evidence(tuple(look.sent.values()), errors) if look.sent else None


def _read_errors(look: Look, errors: "tuple[BaseException, ...]") -> None:
    """Read what errors keep, and the frames of their tracebacks."""
    for each in errors:
        look.error = each
        kept = attributes_of(each)
        args = arguments_of(each)
        if kept or len(args) > 1 or (args and type(args[0]) not in _TEXTS):
            read_kept(look, each)
        if kept and not _ATTRIBUTES.isdisjoint(kept):
            _read_attributes(each, kept, look)
        trace = traceback_of(each)
        if trace not in look.entries:
            _read_frames(trace, look)


def _read_held(
    look: Look, held: BaseException, errors: "tuple[BaseException, ...]", handled: BaseException | None
) -> None:
    """Read an error that was caught, and that a variable holds, unless it counts anyway or is of before."""
    around = () if handled is None else list_errors(handled, None, MOST_ERRORS)
    if all(held is not each for each in (*errors, *around)):
        _read_errors(look, list_errors(held, handled, MOST_ERRORS))


def _read_frames(entry: "TracebackType | None", look: Look) -> None:
    """Let the readers read the frames of a traceback, the outermost first.

    A frame that stands there twice, because it raised an error again, is read once.
    """
    known, identity, entries, above = codes.get, id, look.entries, None
    frames: set[FrameType] = set()
    look.current = None
    look.traces.append(entry)
    while entry is not None:
        frame = entry.tb_frame
        kind = known(identity(frame.f_code))
        if kind is None:
            kind = learn(frame)
        if kind:
            if kind & OF_CLIENT:
                name = FRAMES[frame.f_code.co_name].get(frame.f_globals.get("__name__", ""))
                if name is not None:
                    if entry in entries:
                        break  # it was read with another error, and so was all that follows
                    entries.add(entry)
                    if frame not in frames:
                        frames.add(frame)
                        look.above = above
                        _read_frame(entry, frame, look, name, len(frames))
            if kind > OF_CLIENT:
                look.frames[frame] = kind
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
    return next(islice(entries_of(trace), MOST_FRAMES, None), None) is not None


def _read_attributes(error: BaseException, kept: "dict[str, object]", look: Look) -> None:
    """Let the readers read what an error keeps, by the class of what it keeps."""
    for name, value in list(kept.items()):
        if name in ATTRIBUTES and value is not None:
            readers = ATTRIBUTES[name]
            found = readers.get("*") or readers.get(package(value))
            if found is not None:
                try:
                    reader(found)(look, value)
                    for kept_as in ("_request", "request") if name == "response" else ():
                        if (sent := look.sent.get(id(get_own(value, kept_as)))) is not None:
                            sent.holders = {id(value)}
                except Exception as broken:
                    look.add(id(value), Sent(package(error), "", "", unread=f"{type(broken).__name__} in its reader"))


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
                cure = "decorate the function that runs in the other process"
                look.add(id(error), Sent(client, "", "", unread="its traceback is in another process", cure=cure))
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
    modules = (str(entry.tb_frame.f_globals.get("__name__")) for entry in entries_of(traceback_of(error)))
    if any(module.startswith(f"{client}.") for module in modules):
        import sys
        import warnings

        _warned.add(client)
        version = getattr(sys.modules.get(client), "__version__", "of an unknown version")
        text = f"forbear found no request in {type(error).__name__} of {client} {version}, and repeats the function"
        warnings.warn(text, RuntimeWarning, stacklevel=2)

"""`Look`, what the readers of one error share: the requests so far, and the frame or error that is read now."""

import sys
from io import BufferedWriter, TextIOWrapper
from itertools import islice, takewhile
from opcode import opmap

from forbear.core.chain import entries_of
from forbear.core.report import report_on
from forbear.evidence.objects import IS_FUNCTION, list_near
from forbear.evidence.sent import GENERATORS, SOURCES, NamedCall, Sent, is_helper, top_of
from forbear.evidence.table import CLIENTS
from forbear.http.request import READS, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType, TracebackType
    from typing import Any

_OWN_REFERENCES = 4
"""The references to the dict of a frame's variables: of the frame, of the look, of a loop and of a call."""

_KEEPS_LOCALS = sys.version_info < (3, 13)
"""True where a frame keeps the dict of its variables once it was read, and so all that they refer to."""

NO_CALLERS = CLIENTS | {"contextlib", "forbear", "httpcore", "httpcore2"}
"""The packages whose functions hold nothing that a user has sent: clients, and what is below them."""
_MOST_CALLERS = 20
_LEVELS_OF_NAMES = 2
_WITH_BODIES = frozenset({"http", "aws"})


class Look:
    """One look at an error.

    - `sent` has the requests by a key, the id of an object that stands for the request. The object lives as long as the
      error.
    - `current` is the key of the request within whose frames the traceback is now, None outside of any.
    - `frames` has the frames of functions whose variables are read in the end, with what is to be read.
    - `links` maps frames to the key of the request that they serve: the traceback of a wrapped error begins in
      the middle.
    - `operations` has what SDKs of language models called: the address of the server, the name, and the parameters that
      decide; without a name, path and body of the request decide.
    - `above` is the entry of the traceback before the one that is read, that of its caller; None without one.
    - `error` is the error that is read: first what it keeps, then its traceback.
    - `entries` has the entries that were read: an error that is raised with the traceback of another one goes on
      with its entries.
    - `traces` has the first entry of each traceback.
    - `serves` is True within the frames that send the current request: what they send over HTTP is that request.
    - `service` is the service whose client sends what is found in this traceback, None if no such client does.
    """

    above: "TracebackType | None" = None
    current: int | None = None
    error: BaseException | None = None
    service: str | None = None
    serves = False

    def __init__(self) -> None:
        self.sent: dict[int, Sent] = {}
        self.entries: set[TracebackType] = set()
        self.frames: dict[FrameType, int] = {}
        self.links: dict[FrameType, int] = {}
        self.traces: list[TracebackType | None] = []
        self.operations: list[tuple[str, str, dict[str, Any]]] = []
        self._opened: dict[FrameType, dict[str, Any]] = {}
        self._senders: set[tuple[int | None, int]] = set()

    def knows(self, key: int, hop: bool = False, unsent: bool | None = None, status: int | None = None) -> bool:
        """Return whether a request was read already; then note what this error says more, and enter it if it is no hop.

        The first error that says whether it was sent decides.
        """
        known = self.sent.get(key)
        if known is None:
            return False
        if hop:
            known.hop = True
        else:
            self.current = key
        if known.unsent is None or (status is not None and not hop):  # what was answered was sent
            known.unsent = unsent
        if known.status is None:
            known.status = status
        if known.service is None:
            known.service = self.service
        return known.unread is None

    def add(self, key: int, sent: Sent, *, enter: bool = True) -> None:
        """Add a request, unless it is known; `enter` makes it the current one.

        What could be read replaces what could not.
        """
        if self.serves and sent.protocol == "http":
            self.prove(sent.unsent)
            return
        if sent.service is None:
            sent.service = self.service
        known = self.sent.get(key)
        if known is None:
            self.sent[key] = sent
        elif not self.knows(key, sent.hop, sent.unsent, sent.status) and sent.unread is None:
            sent.unsent, sent.status, sent.hop = known.unsent, known.status, known.hop
            self.sent[key] = sent
        if enter:
            self.current = key

    def add_named(
        self, trace: "TracebackType", client: str, name: str, parameters: "dict[str, Any]", unsent: bool | None = None
    ) -> None:
        """Add a call that is known by its name, and that a function makes."""
        self.add(id(trace.tb_frame), Sent(client, "named", name, NamedCall(name, parameters), unsent=unsent))

    def prove(self, unsent: bool | None) -> None:
        """Say whether the current request was sent, if no error further out has said it; None for no opinion."""
        if self.current is not None and unsent is not None:
            sent = self.sent[self.current]
            if sent.unsent is None:
                sent.unsent = unsent

    def note_sender(self, code: "CodeType") -> None:
        """Note a function that sends the current request object. If it does so twice, nothing proves both unsent."""
        sender = self.current, id(code)
        if sender in self._senders and self.current is not None:
            self.sent[self.current].unsent = False
        self._senders.add(sender)

    def names(self, trace: "TracebackType") -> "dict[str, Any]":
        """Return the local variables of a function's frame; they cost more than all else about it."""
        return self.open(trace.tb_frame)

    def open(self, frame: "FrameType") -> "dict[str, Any]":
        """Return the local variables of a frame."""
        names = self._opened.get(frame)
        if names is None:
            names = self._opened[frame] = frame.f_locals if frame.f_code.co_flags & IS_FUNCTION else {}
        return names

    @property
    def names_above(self) -> "dict[str, Any]":
        """The local variables of the frame that called the one that is read, {} without one."""
        return {} if self.above is None else self.names(self.above)

    def list_callers(self, trace: "TracebackType") -> "list[TracebackType]":
        """Return the entries before one of the current traceback, the nearest first."""
        callers = list(takewhile(lambda entry: entry is not trace, entries_of(self.traces[-1])))
        return callers[: -_MOST_CALLERS - 1 : -1]

    def find_above(self, trace: "TracebackType", test: "Callable[[object], object]") -> "Any":
        """Return the variable that passes a test, of the callers of an entry, the nearest first; None without one."""
        values = (value for each in self.list_callers(trace) for value in self.names(each).values())
        return next(filter(test, values), None)

    def is_called_by(self, client: str) -> bool:
        """Return whether a function of `client` called the one that is read."""
        return self.above is not None and client_of(self.above.tb_frame) == client

    def is_within(self, *clients: str) -> bool:
        """Return whether the current request is one of these clients, and not one around, whose hook calls them."""
        return self.current is not None and self.sent[self.current].client in clients

    def serves_current(self, method: object, host: object = None) -> bool:
        """Return whether a request over HTTP is a part of the current one; one that a hook of it sends is not.

        It is one if what is known of it is the same: the method, and the host without its port.
        """
        if self.current is None:
            return False
        sent = self.sent[self.current]
        if not isinstance(sent.subject, Request):
            return sent.protocol in ("http", "aws")
        return method in (None, sent.subject.method) and (host is None or host == sent.subject.origin[1])

    def close(self) -> None:
        """Give requests the operation that they are sent for, if there is just one, and let go of all variables.

        What the functions around the clients may have read counts for each write.
        """
        if len(self.operations) == 1:
            ((base, name, parameters),) = self.operations
            for sent in self.sent.values():
                if sent.method == "POST" and sent.resource and sent.resource.startswith(base):
                    if name:
                        sent.operation = name, parameters
                    else:
                        sent.service = "llm"
        with_bodies = [each for each in self.sent.values() if each.protocol in _WITH_BODIES]
        writes = [each for each in with_bodies if each.method not in READS and each.method != "DELETE"]
        if writes:
            files, seeks = self._list_files()
            for sent in writes:
                found = () if sent.rewound else (*sent.streams, *files)
                sent.streams = tuple(each for each in found if type(each) in GENERATORS) if seeks else found
        if _KEEPS_LOCALS:
            for names in self._opened.values():
                if sys.getrefcount(names) <= _OWN_REFERENCES:  # the user may have got it from `locals()`, and keep it
                    names.clear()

    def _list_files(self) -> "tuple[list[object], bool]":
        """Return what the functions around the clients may have read, and whether one names `seek`, to begin anew."""
        found: list[object] = []
        seeks = False
        for first in self.traces:
            own = (entry for entry in entries_of(first) if client_of(entry.tb_frame) not in NO_CALLERS)
            for entry in islice(own, _MOST_CALLERS):
                code = entry.tb_frame.f_code
                seeks = seeks or "seek" in code.co_names
                found += list_files(self.names(entry), code) if _reads(code) else ()
        return found, seeks


def list_files(names: "dict[str, Any]", code: "CodeType") -> "list[object]":
    """Return the files and generators that a function may have read: its variables, and what it names of them."""
    used = {*code.co_names, *(each for each in code.co_consts if type(each) is str)}
    found = list_near(list(names.values()), used, _LEVELS_OF_NAMES)
    return [each for each in found if (type(each) in SOURCES and not _is_written(each)) or is_helper(each)]


def _is_written(thing: "Any") -> bool:
    """Return whether a file of text is open for writing, such as a log."""
    return type(thing) is TextIOWrapper and type(thing.buffer) is BufferedWriter


def _reads(code: "CodeType") -> bool:
    """Return whether a function reads from a file, loops over one, or has a client read it: `files=`."""
    if not _READING.isdisjoint(code.co_names) or not _ITERATING.isdisjoint(code.co_code[::2]):
        return True
    return any(type(each) is tuple and "files" in each for each in code.co_consts)


_READING = frozenset({
    "DictReader", "load", "next", "read", "read1", "read_csv", "readall", "reader", "readinto", "readline", "readlines",
})  # fmt: skip
_ITERATING = frozenset({opmap["GET_ITER"], opmap["GET_AITER"]})


def space_of(frame: "FrameType") -> "dict[str, Any]":
    """Return the globals of a function; of a script or the body of a class its own variables, if they are a dict."""
    space: Any = frame.f_globals if frame.f_code.co_flags & IS_FUNCTION else frame.f_locals
    return space if type(space) is dict else {}  # pyright: ignore[reportUnknownVariableType]


def client_of(frame: "FrameType") -> str:
    """Return the top package of the module of a frame."""
    return top_of(str(frame.f_globals.get("__name__")))


def find_below(trace: "TracebackType", functions: tuple[str, ...], *modules: str) -> str:
    """Return the first function below `trace` that is among those of the modules, by default of any; "" if none is."""
    for entry in entries_of(trace.tb_next):
        name = entry.tb_frame.f_code.co_name
        if name in functions and (not modules or entry.tb_frame.f_globals.get("__name__") in modules):
            return name
    return ""


def is_among(trace: "TracebackType", *clients: str) -> bool:
    """Return whether all frames below `trace` are those of clients: nobody else, who may have tried, is between."""
    return all(client_of(entry.tb_frame) in clients for entry in entries_of(trace.tb_next))


def is_first_try(error: BaseException) -> bool:
    """Return whether no adapter of forbear has tried before: it would have reported its attempts."""
    report = report_on(error)
    return report is None or report.count == 1

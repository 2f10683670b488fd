"""`Look`, what the readers of one error share: the requests so far, and the frame or error that is read now."""

import sys

from forbear.evidence.sent import Sent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any

_KEEPS_LOCALS = sys.version_info < (3, 13)
"""True where a frame keeps the dict of its variables once it was read, and so all that they refer to."""

_IS_FUNCTION = 1  # CO_OPTIMIZED: the variables of a module or a class are the real ones, and must not be cleared


class Look:
    """One look at an error.

    - `sent` has the requests by a key, the id of an object that stands for the request. The object lives as long as the
      error.
    - `current` is the key of the request within whose frames the traceback is now, None outside of any.
    - `links` maps ids of frames to the key of the request that they serve: the traceback of a wrapped error begins in
      the middle.
    - `outer` is the frame above the one that is read, None for the outermost.
    """

    __slots__ = ("_opened", "current", "links", "outer", "sent")

    def __init__(self) -> None:
        self.sent: dict[int, Sent] = {}
        self.current: int | None = None
        self.links: dict[int, int] = {}
        self.outer: FrameType | None = None
        self._opened: list[dict[str, Any]] = []

    def knows(self, key: int, *, hop: bool = False, unsent: bool | None = None, enter: bool = True) -> bool:
        """Return whether a request was read already; then note what this error says more, and `enter` it if that is so.

        The first error that says whether it was sent decides.
        """
        known = self.sent.get(key)
        if known is None:
            return False
        known.hop = known.hop or hop
        known.unsent = unsent if known.unsent is None else known.unsent
        if enter:
            self.current = key
        return known.unread is None

    def add(self, key: int, sent: Sent, *, enter: bool = True) -> None:
        """Add a request, unless it is known; `enter` makes it the current one.

        What could be read replaces what could not.
        """
        known = self.sent.get(key)
        if not self.knows(key, hop=sent.hop, unsent=sent.unsent, enter=enter) and (known is None or not sent.unread):
            sent.unsent = sent.unsent if known is None else known.unsent
            self.sent[key] = sent
        if enter:
            self.current = key

    def prove(self, unsent: bool | None) -> None:
        """Say whether the current request was sent, if no error further out has said it; None for no opinion."""
        if self.current is not None and unsent is not None:
            sent = self.sent[self.current]
            if sent.unsent is None:
                sent.unsent = unsent

    def names(self, frame: "FrameType") -> "dict[str, Any]":
        """Return the local variables of a function's frame."""
        if not frame.f_code.co_flags & _IS_FUNCTION:
            return {}
        names: dict[str, Any] = frame.f_locals
        if _KEEPS_LOCALS:
            self._opened.append(names)
        return names

    def close(self) -> None:
        """Let go of all local variables."""
        for names in self._opened:
            names.clear()


def frames_below(trace: "TracebackType") -> "list[tuple[str, str]]":
    """Return module and function of the frames below that of `trace`, the outer ones first; at most 100."""
    path: list[tuple[str, str]] = []
    following = trace.tb_next
    while following is not None and len(path) < 100:
        frame = following.tb_frame
        path.append((str(frame.f_globals.get("__name__")), frame.f_code.co_name))
        following = following.tb_next
    return path


def is_within(path: "list[tuple[str, str]]", *packages: str) -> bool:
    """Return whether all frames of a path belong to packages: nobody else, who may have tried before, is between."""
    return all(module.partition(".")[0] in packages for module, _ in path)

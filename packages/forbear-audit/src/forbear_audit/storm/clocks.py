"""Put the shifted time of a run in the place of the real one, for all code of this process.

Each function is replaced by one that is made once. It asks for the clock of the current run, and is the real function
where there is none. So a stale one, which a test has kept or restored, does no harm.
"""

import selectors
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from forbear.adapters import Runtime, runtime_context
from forbear_audit.storm.dates import shift_dates
from forbear_audit.storm.patching import replace, sweep, wrap
from forbear_audit.storm.shifted_time import KEEP, REAL, ShiftedTime

_NO_TIMER = 80_000  # seconds: trio waits a day at most where it has no timer
_clocks: list[ShiftedTime] = []


def clock_here() -> ShiftedTime | None:
    """Return the clock of the current run, None outside of one and in threads that keep real time."""
    return _clocks[-1] if _clocks and _clocks[-1].serves() else None


def _shift_here() -> float:
    clock = clock_here()
    return 0.0 if clock is None else clock.shift


@contextmanager
def shift_time(clock: ShiftedTime) -> Generator[ShiftedTime]:
    """Let `clock` be the time of this process within the block, for the threads that see it.

    A function that a fixture has replaced before stays as it is.
    """
    with ExitStack() as undo:
        _shift_functions(undo)
        replace(undo, threading.Condition, "wait", _permanent(threading.Condition, "wait", _wait))
        for name in ("EpollSelector", "KqueueSelector", "PollSelector", "SelectSelector"):
            kind = getattr(selectors, name, None)
            if kind is not None and "select" in vars(kind):
                replace(undo, kind, "select", _permanent(kind, "select", _select))
        if "trio" in sys.modules:
            from trio._core import _run

            # The clock of trio reads perf_counter, which is shifted where trio imported it.
            manager: Any = getattr(_run, "TheIOManager", None)
            if manager is not None:
                replace(undo, manager, "get_events", _permanent(manager, "get_events", _get_events))
        shift_dates(undo, _shift_here)
        _clocks.append(clock)
        undo.callback(_clocks.remove, clock)
        yield clock


def restore_lost() -> None:
    """Remove what is left of earlier runs because a test has put it back; call it before a run."""
    if not _clocks:
        sweep()


_made: dict[tuple[object, str], Callable[..., Any]] = {}


def _permanent(owner: object, name: str, handle: Callable[..., Any]) -> Any:
    """Return the function that stands for this one in all runs; a patch that a fixture has made is wrapped anew."""
    real = vars(owner)[name]
    if (real, name) not in _made:
        _made[real, name] = wrap(real, handle)
    return _made[real, name]


def _sleep(seconds: float, /) -> None:
    clock = clock_here()
    if clock is None:
        REAL["sleep"](seconds)
    else:
        clock.sleep(float(seconds), sys._getframe(1))


def _shifting(name: str) -> Callable[[], float]:
    real, factor = REAL[name], 1_000_000_000 if name.endswith("_ns") else 1
    kind = int if name.endswith("_ns") else float

    def now() -> float:
        clock = clock_here()
        return kind(real()) if clock is None else kind(real() + kind(clock.shift * factor))

    return now


FAKES: dict[str, Callable[..., Any]] = {name: _sleep if name == "sleep" else _shifting(name) for name in REAL}
"""The functions that stand for those of `time`."""

_runtime_fakes = {"now": staticmethod(FAKES["time"]), "monotonic": staticmethod(FAKES["monotonic"])}


def _shift_functions(undo: ExitStack) -> None:
    undo.callback(_restore_imported, dict(sys.modules))
    for module, attribute, name in [*((time, name, name) for name in REAL), *_find_imported_names()]:
        if vars(module).get(attribute) is REAL[name]:
            replace(undo, module, attribute, FAKES[name])
    for attribute, fake in _runtime_fakes.items():
        replace(undo, Runtime, attribute, fake)
    undo.callback(setattr, runtime_context, "clock", runtime_context.clock)
    if runtime_context.clock is REAL["monotonic"]:
        runtime_context.clock = FAKES["monotonic"]


def _restore_imported(before: dict[str, ModuleType]) -> None:
    """Give modules that were imported during a run the real functions that they asked for."""
    by_id = {id(fake): REAL[name] for name, fake in FAKES.items()}
    for module in [module for name, module in sys.modules.items() if before.get(name) is not module]:
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in by_id:
                setattr(module, attribute, by_id[id(value)])


_seen_modules: set[str] = set()
_names: list[tuple[ModuleType, str, str]] = []


def _find_imported_names() -> list[tuple[ModuleType, str, str]]:
    """Return where modules hold functions of `time` under a name of their own: module, attribute and function.

    Each module is searched once in the process.
    """
    by_id = {id(real): name for name, real in REAL.items()}
    for module_name in sys.modules.keys() - _seen_modules:
        _seen_modules.add(module_name)
        if (
            module_name.startswith(("_", "forbear.testing", "forbear_audit.storm", "forbear_cloud"))
            or module_name.partition(".")[0] in KEEP
        ):
            continue
        module = sys.modules[module_name]
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in by_id:
                _names.append((module, attribute, by_id[id(value)]))
    return _names


def _wait(real: Callable[..., bool], self: threading.Condition, timeout: float | None = None) -> bool:
    clock = clock_here()
    if clock is None or (timeout is not None and timeout <= 0):
        return real(self, timeout)
    return clock.wait_for_notice(lambda seconds: real(self, seconds), timeout)


def _select(real: Callable[..., Any], selector: selectors.BaseSelector, timeout: float | None = None) -> Any:
    asyncio = sys.modules.get("asyncio")
    loop = None if asyncio is None else asyncio._get_running_loop()
    clock = clock_here()
    if clock is None or getattr(loop, "_selector", None) is not selector:
        return real(selector, timeout)
    if timeout is None:
        return clock.wait_for_event(lambda seconds: real(selector, seconds))
    if timeout <= 0:
        return real(selector, timeout)
    clock.look(selector)
    return clock.wait(lambda seconds: real(selector, seconds), timeout)


def _get_events(real: Callable[..., Any], self: Any, timeout: float) -> Any:
    clock = _clocks[-1] if _clocks else None
    if clock is not None and clock.serves():
        clock.guests.add(id(self))
    if clock is None or timeout <= 0 or timeout >= _NO_TIMER or id(self) not in clock.guests:
        return real(self, timeout)
    return clock.wait(lambda seconds: real(self, seconds), timeout)

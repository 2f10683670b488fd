"""Find the outermost run around the caller: by the frames of the loops, by open blocks, and by the logs of tasks.

A decorated function keeps nothing in its first attempt but a number, the time when it began. That object is its run's
identity: it lives as long as the run, and no other run has it. It is looked for only when somebody needs a key.
"""

import os
import sys
from _thread import get_ident

from forbear.core.check import INFINITY
from forbear.core.dataclass import dataclass
from forbear.run.harm import open_logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any, Protocol

    from forbear.run.key_uses import KeyUse, Path
    from forbear.run.protocols import RunState

    class Keys(Protocol):
        """The protocol of the keys of one run."""

        uses: dict[str, "KeyUse"]
        automatic: dict[str, Any]
        unknown: set[object]

        @property
        def root(self) -> "Keys | None": ...
        @property
        def texts(self) -> tuple[str, ...]: ...
        @property
        def has_ended(self) -> bool: ...


_LOOPS = ("forbear.run.loops", "forbear.read_modify_write")
"""The modules whose frames have a run, or the time when it began, as a variable."""

_EVENT_LOOPS = {
    ("asyncio.runners", "run"), ("asyncio.base_events", "run_forever"), ("trio._core._run", "run"),
}  # fmt: skip
"""Functions, by module and name, that run tasks until they end."""

_MOST_WALKS = 20
_KEEPS_LOCALS = sys.version_info < (3, 13)
"""True where a frame keeps the dict of its variables once it was read."""

blocks: "dict[FrameType, RunState]" = {}
"""The runs of blocks, by the frame that has entered one; of nested ones, the outer."""

run_keys: "dict[int, Keys]" = {}
"""The keys of runs, by the id of the time when the run began. They hold that object, so no other one has the id."""

_inherited: list[float] = []
"""The runs of the process that this one was forked from; its attempts end there."""


@dataclass(slots=True)
class OpenRun:
    """A run around the caller.

    `started` is when it began, which is its identity, `attempt` the number of its attempt, and `reports` the number of
    reports and entries before that. `is_beyond` is True for a run beyond an event loop, outside of all contexts.
    """

    started: float
    attempt: int
    reports: int
    is_beyond: bool = False


def outermost_run() -> float | None:
    """Return when the outermost run around the caller began, which is its identity; None without a run.

    A task or a thread with the context of an attempt belongs to its run until that ends. A forked child belongs to none
    of its parent's runs.
    """
    path = path_of_runs()
    return path[0][0] if path else None


def marks_of_stack() -> "Iterator[int]":
    """Yield the numbers of reports and entries before the attempts of the runs in the caller's stack."""
    return (run.reports for run in _walk(sys._getframe(1)))


def keys_of(started: float | None) -> tuple[str, ...]:
    """Return the keys of the run that began at `started`, and of the outermost run around the caller."""
    if not run_keys:
        return ()
    known = (run_keys.get(id(each)) for each in (started, outermost_run()))
    return tuple(text for keys in known if keys is not None for text in keys.texts)


def expiry(run: "RunState") -> float | None:
    """Return the seconds of `run` after which a key that it has used must not be sent again, None without one."""
    found = outermost_run() if run_keys else None
    keys = None if found is None else run_keys.get(id(found))
    root = None if keys is None else keys.root or keys
    ends = [] if root is None else [use.until for use in root.uses.values() if use.last >= run.started]
    first = min(ends, default=INFINITY)
    return None if first == INFINITY else first - run.started


def _open_runs() -> "tuple[list[OpenRun], list[OpenRun]]":
    """Return the runs in the caller's stack, and those of its context, each the innermost first.

    In another thread than the event loop's, those beyond the loop are in the loop's stack.
    """
    logs = [log for log in open_logs() if log.started is not None and not _is_inherited(log.started)]
    frames = list(_walk(sys._getframe(1)))
    if logs and logs[-1].thread != get_ident():
        frames += _runs_beyond(logs[-1].thread)
    attempts = [(log.started, 1 if log.run is None else log.run.attempt) for log in logs]
    return frames, [OpenRun(started, attempt, 0) for started, attempt in attempts if started is not None]


def _runs_beyond(thread: int) -> "list[OpenRun]":
    """Return the runs beyond the event loop of another thread, the innermost first.

    The thread goes on: a frame that ends during the walk has no caller any more. Then the walk misses the loop, which
    stays where it is, and begins again.
    """
    for _ in range(_MOST_WALKS):
        frame = sys._current_frames().get(thread)
        while frame is not None and not _is_event_loop(frame):
            frame = frame.f_back
        if frame is not None:
            return list(_walk(frame))
    return []


def _is_event_loop(frame: "FrameType") -> bool:
    return (frame.f_globals.get("__name__"), frame.f_code.co_name) in _EVENT_LOOPS


def _walk(frame: "FrameType | None") -> "Iterator[OpenRun]":
    """Yield the runs of a frame and its callers, the innermost first."""
    is_beyond = False
    while frame is not None:
        run = _run_in(frame)
        if run is not None and not _is_inherited(run.started):
            run.is_beyond = is_beyond
            yield run
        is_beyond = is_beyond or _is_event_loop(frame)
        frame = frame.f_back


def _run_in(frame: "FrameType") -> OpenRun | None:
    """Return the run that a frame has entered or that it repeats, None without one."""
    run: Any = blocks.get(frame)
    if run is None:
        if frame.f_globals.get("__name__") not in _LOOPS:
            return None
        names: dict[str, Any] = frame.f_locals
        run = names.get("run") or getattr(names.get("cycle"), "run", None)
        started, reports = names.get("started"), names.get("reports", 0)
        if _KEEPS_LOCALS:
            names.clear()
        if run is None:
            return None if started is None else OpenRun(started, 1, reports)
    return OpenRun(run.started, run.attempt, run.reports)


def _is_inherited(started: float) -> bool:
    return any(started is each for each in _inherited)


def _leave_runs() -> None:
    """Note in a forked child which runs are its parent's."""
    frames, logs = _open_runs()
    _inherited.extend(run.started for run in (*frames, *logs))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_runs)


def path_of_runs() -> "Path":
    """Return all runs around the caller, the outermost first, each with the number of its attempt."""
    frames, logs = _open_runs()
    beyond = [run for run in frames if run.is_beyond]
    within = [run for run in frames if not run.is_beyond]
    path: list[tuple[float, int]] = []
    for run in sorted([*beyond[::-1], *logs[::-1], *within[::-1]], key=lambda run: run.started):
        if all(run.started is not started for started, _ in path):
            path.append((run.started, run.attempt))
    return tuple(path)


def is_earlier(path: "Path", now: "Path") -> bool:
    """Return whether `path` was that of an earlier attempt of a run around the caller, whose path is `now`."""
    for (started, attempt), (current, number) in zip(path, now, strict=False):
        if started is not current:
            return False  # another run within the same attempt
        if attempt != number:
            return attempt < number
    return False

"""Python processes that import nothing from the folder in which they start: it may hold code of others."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Literal, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_NAME = "PYTHONSAFEPATH"
_PATIENCE = 5.0  # seconds in which the thread of a pool sees that its processes have ended
_locks: dict[str, threading.Lock] = {}


def can_be_safe() -> bool:
    """Return whether `safe_path` works: `python -E` ignores the environment, also in the processes that it starts."""
    return bool(sys.flags.safe_path or not sys.flags.ignore_environment)


@contextmanager
def safe_path() -> Generator[None]:
    """Keep the current folder out of `sys.path` of Python processes that start within: `python -c` puts it first."""
    # Made at the first use, since gevent replaces locks after the import; setdefault lets one of two threads win.
    with _locks.setdefault(_NAME, threading.Lock()):
        before = os.environ.get(_NAME)
        os.environ[_NAME] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_NAME]
            else:
                os.environ[_NAME] = before


def worker_pool(processes: int, start: Literal["fork", "spawn"]) -> ProcessPoolExecutor:
    """Return a pool for `submit_to`. Unlike multiprocessing's, it never starts a process later, after one died."""
    with safe_path():  # it starts the process that tracks resources
        context = multiprocessing.get_context(start)
        return ProcessPoolExecutor(processes, mp_context=context, initializer=_leave_interrupts)


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one: it ends its workers without a traceback of each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def submit_to(pool: ProcessPoolExecutor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Submit a call; a process that starts for it never sees Ctrl-C, not even before `_leave_interrupts`."""
    with safe_path():
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            return pool.submit(function, *args, **kwargs)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return pool.submit(function, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end(pool: ProcessPoolExecutor) -> None:
    """End a pool and its processes at once: nothing that they still do is needed."""
    processes = [*(pool._processes or {}).values()]  # Python 3.14 has a method for this
    manager: threading.Thread | None = getattr(pool, "_executor_manager_thread", None)
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    if manager is not None:  # it could close its pipe just when the interpreter, at its end, writes to that
        manager.join(_PATIENCE)

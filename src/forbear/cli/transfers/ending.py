"""SIGTERM and SIGHUP end transfers as Ctrl-C does: nothing is left behind but what the next run goes on from."""

import asyncio
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ending:
    """A context manager that cancels a task at the first signal; the second one ends the process at once.

    `signum` is the number of the signal that came, SIGINT where none did. Only the main thread is sent signals; those
    that are ignored, as by nohup, stay ignored.
    """

    def __init__(self) -> None:
        self.signum: int = signal.SIGINT
        self._previous: dict[int, Any] = {}
        self._terminals: list[int] = []
        self._task: asyncio.Task[Any] | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]
            for signum in _SIGNALS:
                if signal.getsignal(signum) is signal.SIG_DFL:
                    self._previous[signum] = signal.signal(signum, self._end)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)

    def cancels(self, task: asyncio.Task[Any] | None) -> None:
        """Have a signal cancel this task, which is the one that runs."""
        self._task = task

    def _end(self, signum: int, frame: FrameType | None) -> None:
        """Let the event loop do it: it may be at work on anything."""
        self.signum = signum
        signal.signal(signum, signal.SIG_DFL)
        self._leave_lost_terminals()
        if self._task is None:
            raise KeyboardInterrupt
        loop = self._task.get_loop()
        loop.call_soon_threadsafe(self._task.cancel)

    def _leave_lost_terminals(self) -> None:
        """Send output to nowhere where the terminal was closed: writing to it would fail, and hide the exit code."""
        for descriptor in self._terminals:
            if not os.isatty(descriptor):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)

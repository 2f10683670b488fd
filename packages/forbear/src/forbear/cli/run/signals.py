"""Waiting for signals, files and the clock together. The signal handler itself does nothing."""

import os
import select
import signal
from collections.abc import Collection
from math import ceil
from types import FrameType, TracebackType
from typing import NamedTuple, Self

PASSED_ON = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM})
"""Signals that end a program. `forbear run` passes them on to the program that it started."""

_OTHERS = frozenset({signal.SIGCHLD, signal.SIGTSTP})

_LONGEST_WAIT = 86_400.0
"""The longest single wait, in seconds; systems refuse very long ones."""


class Woken(NamedTuple):
    """The signals, and the file descriptors that became ready, that ended a wait; all are empty if the time was up."""

    signals: list[signal.Signals]
    readable: list[int]
    writable: list[int]


class Signals:
    """A context that collects signals, for the main thread; those that were ignored, as by nohup, stay ignored."""

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._previous_fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._previous = {
            signum: signal.signal(signum, _note)
            for signum in PASSED_ON | _OTHERS
            if signal.getsignal(signum) is not signal.SIG_IGN or signum is signal.SIGCHLD
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(self._previous_fd)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, seconds: float | None, reading: Collection[int] = (), writing: Collection[int] = ()) -> Woken:
        """Wait for a signal, a ready file, or the end of `seconds` (None: no limit), at most a day."""
        poll = select.poll()  # select() refuses descriptors from 1024 on
        for file in (self._reader, *reading):
            poll.register(file, select.POLLIN)
        for file in writing:
            poll.register(file, select.POLLOUT)
        ready = {file for file, _ in poll.poll(None if seconds is None else ceil(min(seconds, _LONGEST_WAIT) * 1000))}
        signals: list[signal.Signals] = []
        if self._reader in ready:
            signals = [signal.Signals(number) for number in os.read(self._reader, 4096)]
        return Woken(signals, [file for file in reading if file in ready], [file for file in writing if file in ready])


def _note(signum: int, frame: FrameType | None) -> None:
    """Do nothing; Python has written the signal's number to the pipe."""

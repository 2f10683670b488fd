"""One attempt of a program: start it, pass on signals, end it in time. Whether there is another is not known here."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from forbear.cli.signals import PASSED_ON, Signals
from forbear.cli.stdin import Passed, Recorded
from forbear.cli.terminal import Terminal

CANNOT_RUN = 126
NOT_FOUND = 127
TIMED_OUT = 124
"""The exit codes that shells and timeout(1) use."""

_POLL = 0.02  # seconds between looks at processes that are not our own children
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class Outcome(NamedTuple):
    """How an attempt ended: its exit code (128 + n for signal n), and whether a time limit or a signal to us did it."""

    code: int
    timed_out: bool
    interrupted: bool


class Child:
    """A running program with all that it starts: a process group of its own.

    After `limit` seconds (None: no limit) the group is sent SIGTERM, and SIGKILL `grace` seconds later if it is still
    there. Raises OSError where the program cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        number: int,
        *,
        stdin: Passed | Recorded,
        signals: Signals,
        limit: float | None,
        grace: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._stdin = stdin
        self._signals = signals
        self._terminal = Terminal()
        self._monotonic = monotonic
        self._until = None if limit is None else monotonic() + limit
        self._grace = grace
        self._code: int | None = None
        self._timed_out = self._killed = self._interrupted = False
        if not command[0]:
            raise FileNotFoundError  # as the system would say of any other name; of none, Python says ValueError
        source = stdin.start()
        try:
            self._group = os.posix_spawnp(
                command[0],
                tuple(command),
                os.environ | {"FORBEAR_ATTEMPT": str(number)},
                file_actions=[(os.POSIX_SPAWN_DUP2, source, 0)] if source != 0 else [],
                setpgroup=0,
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # Python itself ignores them
            )
        except OSError:
            stdin.stop()
            raise
        stdin.started()

    def wait(self) -> Outcome:
        """Wait until the program is over; after a timeout until its whole group is."""
        try:
            while self._goes_on():
                woken = self._signals.wait(self._left(), self._stdin.reading, self._stdin.writing)
                self._pass_on(woken.signals)
                if woken.readable or woken.writable:
                    self._stdin.pump()
                self._enforce()
        finally:
            if self._code is None:  # its input is broken: it must not take for the end what is none
                self._send(signal.SIGKILL)
            self._stdin.stop()
            self._terminal.close()
        return Outcome(TIMED_OUT if self._timed_out else self._code or 0, self._timed_out, self._interrupted)

    def _goes_on(self) -> bool:
        while self._code is None:
            pid, status = os.waitpid(self._group, os.WNOHANG | os.WUNTRACED)
            if not pid:
                return True
            if os.WIFSTOPPED(status):
                self._stopped(os.WSTOPSIG(status))
            else:
                code = os.waitstatus_to_exitcode(status)
                self._code = code if code >= 0 else 128 - code
        return self._timed_out and not self._killed and self._has_survivors()

    def _has_survivors(self) -> bool:
        with suppress(ChildProcessError):
            while os.waitpid(-self._group, os.WNOHANG)[0]:
                pass
        return self._send(0)

    def _left(self) -> float | None:
        left = None if self._until is None else max(self._until - self._monotonic(), 0)
        return left if self._code is None or left is None else min(left, _POLL)

    def _pass_on(self, signals: Sequence[signal.Signals]) -> None:
        for signum in signals:
            if signum in PASSED_ON:
                self._interrupted = True
                self._send(signum)
            elif signum is signal.SIGTSTP:
                self._send(signum)

    def _enforce(self) -> None:
        if self._until is None or self._monotonic() < self._until:
            return
        if not self._timed_out:
            self._timed_out = True
            self._until += self._grace
            _adopt_orphans()
            self._send(signal.SIGTERM)
            self._send(signal.SIGCONT)  # a stopped process would not notice
        else:
            self._killed = True
            self._until = None
            self._send(signal.SIGKILL)

    def _stopped(self, signum: int) -> None:
        if signum == signal.SIGSTOP:
            return  # not by the terminal; whoever did it will let it go on
        if signum == signal.SIGTSTP or not self._terminal.lend(self._group):
            self._terminal.suspend()
        self._send(signal.SIGCONT)

    def _send(self, signum: int) -> bool:
        """Signal the whole group; False where nobody is left in it."""
        try:
            os.killpg(self._group, signum)
        except ProcessLookupError:
            return False
        except PermissionError:  # macOS says so of a group of zombies; elsewhere, what is left is not ours to end
            return False
        return True


def _adopt_orphans() -> None:
    """Become the parent of processes that lose theirs, where the system can do that.

    Otherwise a slow or negligent init keeps them as zombies, and a group of zombies looks as if it lived.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

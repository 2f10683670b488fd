"""One attempt of a program: start it, pass signals on, lend it the terminal, and end it when its time is up."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from forbear.cli.run.signals import PASSED_ON, Signals
from forbear.cli.run.streams import DirectOutput, DirectStdin, RecordedStdin, WatchedOutput

CANNOT_RUN = 126
NOT_FOUND = 127
TIMED_OUT = 124
"""The exit code of a program that exceeded its time limit, as in timeout(1).

`CANNOT_RUN` and `NOT_FOUND` are those that shells use for a program that cannot be executed or found.
"""

_SILENCE = 1.0  # seconds without output of what the program left behind
_MOST_ROUNDS = 128
_POLL = 0.02  # seconds between looks at processes that are not our own children
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class ChildResult(NamedTuple):
    """The end of an attempt: its exit code, and whether its limit was reached or a signal to end passed on."""

    code: int
    timed_out: bool
    interrupted: bool


class Child:
    """A running program and all processes it starts, in a process group of its own.

    After `limit` seconds (None: no limit) the group gets SIGTERM, and SIGKILL `grace` seconds later. `number` is the
    attempt's number, for FORBEAR_ATTEMPT. The constructor starts the program, and raises OSError if that fails.
    """

    def __init__(
        self,
        command: Sequence[str],
        number: int,
        *,
        stdin: DirectStdin | RecordedStdin,
        output: DirectOutput | WatchedOutput,
        signals: Signals,
        limit: float | None,
        grace: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._stdin = stdin
        self._output = output
        self._signals = signals
        self._terminal = Terminal()
        self._monotonic = monotonic
        self._until = None if limit is None else monotonic() + limit
        self._grace = grace
        self._code: int | None = None
        self._timed_out = self._killed = self._interrupted = False
        if not command[0]:
            raise FileNotFoundError  # Python raises ValueError for an empty name
        source = stdin.start()
        actions = [(os.POSIX_SPAWN_DUP2, source, 0)] if source != 0 else []
        try:
            actions += output.start()
            self._group = os.posix_spawnp(
                command[0],
                tuple(command),
                os.environ | {"FORBEAR_ATTEMPT": str(number)},
                file_actions=actions,
                setpgroup=0,
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # Python itself ignores them
            )
        except OSError:
            stdin.stop()
            output.stop()
            raise
        stdin.started()
        output.started()

    def wait(self) -> ChildResult:
        """Wait until the program has ended, and return the result; meanwhile feed its stdin and pass signals on.

        Watched output is passed on until its end, or until a process that the program left behind is silent. If reading
        stdin or writing output fails, the group gets SIGKILL, and the OSError propagates.
        """
        try:
            while self._is_running():
                self._pump(self._wait_time())
                self._enforce()
            self._drain()
        finally:
            if self._code is None:  # stdin is broken: the program must not mistake this for the end of its input
                self._send(signal.SIGKILL)
            self._stdin.stop()
            self._output.stop()
            self._terminal.close()
        return ChildResult(TIMED_OUT if self._timed_out else self._code or 0, self._timed_out, self._interrupted)

    def _pump(self, seconds: float | None) -> bool:
        """Wait for signals and data, and pass both on; return whether anything arrived before the time was up."""
        stdin, output = self._stdin, self._output
        of_stdin = {*stdin.reading, *stdin.writing}
        woken = self._signals.wait(
            seconds, [*stdin.reading, *output.reading], [*stdin.writing, *output.writing]
        )  # fmt: skip
        self._pass_on(woken.signals)
        ready = {*woken.readable, *woken.writable}
        if ready & of_stdin:
            stdin.pump()
        output.pump(ready)
        return bool(ready) or bool(woken.signals)

    def _drain(self) -> None:
        """Pass on the rest of watched output, until its last writer ends, a silence of `_SILENCE` seconds, or a signal.

        It also ends after `_MOST_ROUNDS` pieces, which are more than a pipe holds.
        """
        self._stdin.stop()
        self._interrupted, interrupted = False, self._interrupted
        for _ in range(_MOST_ROUNDS):
            waits_for_reader = bool(self._output.writing)
            if self._interrupted or not (waits_for_reader or self._output.reading):
                break
            if not self._pump(None if waits_for_reader else _SILENCE):
                break
        self._interrupted |= interrupted

    def _is_running(self) -> bool:
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

    def _wait_time(self) -> float | None:
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
            return  # not from the terminal: the sender of the signal will also send SIGCONT
        if signum == signal.SIGTSTP or not self._terminal.lend(self._group):
            self._terminal.suspend()
        self._send(signal.SIGCONT)

    def _send(self, signum: int) -> bool:
        """Signal the whole group; return False if it has no process left that we may signal."""
        try:
            os.killpg(self._group, signum)
        except ProcessLookupError:
            return False
        except PermissionError:  # on macOS a group of zombies; elsewhere, processes that we may not end
            return False
        return True


def _adopt_orphans() -> None:
    """Become the parent of processes that lose theirs (Linux): as zombies of a slow init, they would look alive."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Terminal:
    """The controlling terminal, lent to a program as a shell does; opened on first use.

    The system stops a program in a group of its own when it reads. Only then it becomes the foreground group, so that a
    pager after us in a pipeline keeps the terminal until then.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        self._borrower: int | None = None

    def close(self) -> None:
        """Take the terminal back if it is lent, and close it if it is open."""
        self.take_back()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def lend(self, group: int) -> bool:
        """Make `group` the foreground group; return False if there is no terminal or another group than ours has it."""
        if self._file is None:
            try:
                self._file = os.open("/dev/tty", os.O_RDWR)
            except OSError:
                return False
        if os.tcgetpgrp(self._file) != os.getpgrp():
            return False
        self._hand_to(self._file, group)
        self._borrower = group
        return True

    def take_back(self) -> None:
        """Make our own group the foreground group again, if the terminal is lent."""
        if self._file is not None and self._borrower is not None:
            self._borrower = None
            self._hand_to(self._file, os.getpgrp())

    def suspend(self) -> None:
        """Stop this process, as Ctrl-Z asks, until the shell continues it; a terminal that is lent is so again then."""
        group = self._borrower
        if group is None:
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        # The terminal has signalled the borrower only; the rest of our job must stop as well.
        self.take_back()
        os.kill(0, signal.SIGSTOP)
        self.lend(group)

    @staticmethod
    def _hand_to(file: int, group: int) -> None:
        # Outside the foreground group, tcsetpgrp would stop this process with SIGTTOU.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        try:
            os.tcsetpgrp(file, group)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

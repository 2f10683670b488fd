"""The controlling terminal, lent to a program that asks for it, as a shell does. It starts and ends no program."""

import os
import signal


class Terminal:
    """The controlling terminal, if there is one; nothing is opened before somebody asks for it.

    A program in a process group of its own may write to the terminal, but is stopped when it reads. Only then does it
    become the foreground, so that a pager after us in a pipeline keeps the terminal as long as nobody else needs it.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        self._borrower: int | None = None

    def close(self) -> None:
        """Take the terminal back and let go of it."""
        self.take_back()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def lend(self, group: int) -> bool:
        """Make `group` the foreground; False where we are not the foreground ourselves."""
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
        """Make ourselves the foreground again, if the terminal is lent."""
        if self._file is not None and self._borrower is not None:
            self._borrower = None
            self._hand_to(self._file, os.getpgrp())

    def suspend(self) -> None:
        """Stop here, as Ctrl-Z asks, until the shell lets us go on."""
        group = self._borrower
        if group is None:
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        # The terminal told the borrower only: the rest of our job must stop as well.
        self.take_back()
        os.kill(0, signal.SIGSTOP)
        self.lend(group)

    @staticmethod
    def _hand_to(file: int, group: int) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})  # it would stop who is not the foreground
        try:
            os.tcsetpgrp(file, group)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

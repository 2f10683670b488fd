"""Run a program on a terminal of its own."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress


def on_a_terminal(command: Sequence[str], env: Mapping[str, str], width: int, *, both: bool) -> tuple[int, str]:
    """Run a program with a terminal of `width` columns for stderr, or for `both` outputs.

    Returns the exit code and what was written to the terminal.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    out = theirs if both else subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=theirs, env=env) as process:
        os.close(theirs)
        written = b""
        with suppress(OSError):  # Linux raises it when the other end is closed
            while piece := os.read(ours, 65_536):
                written += piece
        os.close(ours)
    return process.returncode, written.decode()

"""`forbear run` and signals: they reach the program, end the run, and the terminal goes to who asks for it."""

import os
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forbear_testkit.cli.running import FORBEAR, Start

# A shell is no good here: one that gets a signal to stop or to end just as it starts a command may stay where it is.
MORTAL = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
if "read" in sys.argv:
    input()
print("ready", flush=True)
signal.pause()
"""
STOPPABLE = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
if "read" in sys.argv:
    input()
    signal.sigwait({signal.SIGCONT})
print("ready", flush=True)
signal.sigwait({signal.SIGCONT})
print("went on", flush=True)
sys.exit(3)
"""


def first_line(process: "subprocess.Popen[str]") -> str:
    """Return the first line of a program, which shows that it runs."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_reaches_the_whole_group_and_ends_the_run(signum: signal.Signals, start: Start) -> None:
    """The program and its children get the signal, its exit code is passed on, and no further attempt follows."""
    name = signum.name.removeprefix("SIG")
    worker = f"trap 'echo told; exit 1' {name}; echo ready; for i in $(seq 999); do sleep 0.01; done"
    process = start("run", "--constant", "0", "sh", "-c", f"trap 'exit 9' {name}; sh -c {shlex.quote(worker)}; exit 8")
    assert first_line(process) == "ready"
    process.send_signal(signum)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (9, "told\n")
    assert "forbear" not in err


def test_a_program_that_dies_of_the_signal(start: Start) -> None:
    """The exit code is 128 + n, and nothing is said."""
    process = start("run", sys.executable, "-c", MORTAL)
    assert first_line(process) == "ready"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, "", "")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_wait_between_attempts(signum: signal.Signals, start: Start) -> None:
    """Nobody has to wait for the backoff to be over."""
    process = start("run", "--constant", "1h", "false")
    assert process.stderr is not None
    assert process.stderr.readline() == "forbear: exit code 1; attempt 2 of 5 in 3600 s\n"
    process.send_signal(signum)
    assert process.wait(timeout=20) == 128 + signum
    assert process.stderr.read() == ""


def test_an_ignored_signal_stays_ignored(env: dict[str, str]) -> None:
    """Under nohup a hang-up ends neither the run nor the program."""
    script = "trap '' HUP; exec " + " ".join((*FORBEAR, "run --constant 0 sh -c"))
    script += " 'kill -HUP $PPID $$; test $FORBEAR_ATTEMPT = 2'"
    done = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0


# A shell with job control, reduced to what it does for one job. It reads from stdin what the user types, through the
# terminal that it leads, and continues a job that has stopped.
SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
# Tests that run in the background inherit an ignored SIGINT, which a terminal's job does not.
defaults = [signal.SIGTTOU, signal.SIGINT, signal.SIGQUIT]
job = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, setpgroup=0, setsigdef=defaults)
foreground = "-b" not in os.environ["JOB"]
if foreground:
    os.tcsetpgrp(0, job)
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        print("exit", os.waitstatus_to_exitcode(status), flush=True)
        sys.stdin.read()  # what is on the screen is lost when the shell is gone, so wait for the terminal to hang up
    print("stopped", flush=True)
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
    print("continued", flush=True)
"""


class Session:
    """A terminal with a shell's one job in it, seen from the user's side."""

    def __init__(self, process: "subprocess.Popen[bytes]", master: int) -> None:
        self.process = process
        self._master = master
        self._seen = ""

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def see(self, text: str) -> str:
        """Wait until `text` is on the screen; what was there before it."""
        while text not in self._seen:
            ready, _, _ = select.select([self._master], [], [], 20)
            assert ready, f"no {text!r} after {self._seen!r}"
            try:
                self._seen += os.read(self._master, 4096).decode()
            except OSError:
                raise AssertionError(f"no {text!r} after {self._seen!r}") from None
        before, self._seen = self._seen.split(text, 1)
        return before


@contextmanager
def session(tmp_path: Path, env: dict[str, str], *args: str, background: bool = False) -> Generator[Session]:
    """`forbear` with these arguments, as the job of a shell with job control."""
    master, slave = os.openpty()
    shell = tmp_path / "shell.py"
    # The first to open a terminal after setsid gets it as its controlling terminal.
    shell.write_text(f"import os\nos.close(os.open({os.ttyname(slave)!r}, os.O_RDWR))\n{SHELL}")
    process = subprocess.Popen(
        [sys.executable, shell, *FORBEAR, *args],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=env | {"JOB": "-b" if background else "", "TERM": "dumb"},
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Session(process, master)
    finally:
        os.close(master)  # hangs up on all that is left
        process.kill()
        process.wait()


def test_the_terminal_is_passed_through(tmp_path: Path, env: dict[str, str]) -> None:
    """A program that reads the terminal gets what the user types, one attempt after the other."""
    script = 'read line; echo "got $line"; test "$line" = right'
    with session(tmp_path, env, "run", "--constant", "0", "sh", "-c", script) as user:
        user.type("wrong\n")
        user.see("got wrong")
        user.see("attempt 2 of 5")
        user.type("right\n")
        user.see("got right")
        user.see("attempt 2 worked")
        user.see("exit 0")


@pytest.mark.parametrize("args", [(), ("read",)])
def test_ctrl_c_in_a_terminal(args: tuple[str, ...], tmp_path: Path, env: dict[str, str]) -> None:
    """Ctrl-C ends program and run, whether the program has asked for the terminal or not."""
    with session(tmp_path, env, "run", sys.executable, "-c", MORTAL, *args) as user:
        user.type("\n")
        user.see("ready")
        user.type("\x03")
        assert "forbear" not in user.see("exit 130")


@pytest.mark.parametrize("args", [(), ("read",)])
def test_ctrl_z_in_a_terminal(args: tuple[str, ...], tmp_path: Path, env: dict[str, str]) -> None:
    """Ctrl-Z stops program and run, and both go on when the shell says so."""
    with session(tmp_path, env, "run", "--on", "1", sys.executable, "-c", STOPPABLE, *args) as user:
        user.type("\n")
        user.see("ready")
        user.type("\x1a")
        user.see("stopped")
        user.see("went on")
        user.see("exit 3")


def test_ctrl_z_between_attempts(tmp_path: Path, env: dict[str, str]) -> None:
    """A wait can be stopped and gone on with, too."""
    with session(tmp_path, env, "run", "--constant", "1h", "false") as user:
        user.see("attempt 2 of 5")
        user.type("\x1a")
        user.see("stopped")
        user.see("continued")
        user.type("\x03")
        user.see("exit 130")


def test_a_background_job_that_reads_is_stopped(tmp_path: Path, env: dict[str, str]) -> None:
    """Started with `&`, a program that wants the terminal stops the job, as without us, until it is brought back."""
    script = 'read line; echo "got $line"'
    with session(tmp_path, env, "run", "sh", "-c", script, background=True) as user:
        user.see("stopped")
        user.type("typed\n")
        user.see("got typed")
        user.see("exit 0")

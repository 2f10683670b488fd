"""The loop of `forbear run`: start the program, ask the policy after a failure, wait, and start it again.

`ExitRules` says which attempts are retried, by their exit code and by what they print.
"""

import signal
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forbear.cli.kit.options import open_shared_budget
from forbear.cli.kit.output import EventPrinter, report
from forbear.cli.run.child import CANNOT_RUN, NOT_FOUND, Child, ChildResult
from forbear.cli.run.signals import PASSED_ON, Signals
from forbear.cli.run.streams import DirectOutput, Matches, WatchedOutput, open_stdin
from forbear.core.dataclass import dataclass
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear.run.runtime import AttemptTimeout, Runtime, current
from forbear.run.state import Run
from forbear.text.duration import show

if TYPE_CHECKING:
    from forbear.core.protocols import Backoff


_USAGE = 2
# The user ended the program, or its reader is gone.
_NOT_RETRIED_SIGNALS = frozenset(128 + signum for signum in (*PASSED_ON, signal.SIGPIPE))
TRANSIENT = frozenset(range(1, 256)) - {_USAGE, CANNOT_RUN, NOT_FOUND} - _NOT_RETRIED_SIGNALS
"""The exit codes to retry by default: 1 to 255 but 2 (usage), 126 and 127 (cannot run), and those of some signals.

The signals are SIGHUP, SIGINT, SIGQUIT, SIGTERM and SIGPIPE, each as 128 plus its number.
"""


@dataclass(frozen=True, slots=True)
class ExitRules:
    """The options `--on` (None if unused) and `--stop-on`; `by_output` says that `--on-output` is used.

    What stops comes first. An attempt that its time limit ended is retried then. With `--on-output`, a matching line or
    a code of `on` is needed for a retry; without it, a code of `on` or of the default ones.
    """

    on: frozenset[int] | None = None
    stop_on: frozenset[int] = frozenset()
    by_output: bool = False

    def is_transient(self, result: ChildResult, matches: Matches) -> bool:
        """Return whether a failed attempt is worth another one, by its result and by the patterns that matched."""
        if result.code in self.stop_on or matches.stop is not None:
            return False
        if result.timed_out:
            return True
        if self.by_output:
            listed = self.on is not None and result.code in self.on
            return listed or (matches.on is not None and result.code not in _NOT_RETRIED_SIGNALS)
        return result.code in (TRANSIENT if self.on is None else self.on)


class CommandFailed(Exception):
    """The program failed; `transient` says whether the rules allow another attempt."""

    def __init__(self, text: str, *, transient: bool) -> None:
        super().__init__(text)
        self.transient = transient


def _signal_name(code: int) -> str:
    try:
        return f" ({signal.Signals(code - 128).name})"
    except ValueError:
        return ""


def repeat(
    command: tuple[str, ...],
    limits: Limits,
    backoff: "Backoff",
    *,
    rules: ExitRules,
    output: DirectOutput | WatchedOutput,
    attempt_timeout: float | None,
    grace: float,
    quiet: bool,
    shared: str | None = None,
) -> int:
    """Run `command` until it succeeds, fails for good, or the limits are reached; return the exit code to pass on.

    It is the code of the last attempt, or 128 + n if signal n ended a wait. With `attempt_timeout`, an attempt ends
    after these seconds or at the timeout of `limits`: by SIGTERM, and SIGKILL `grace` seconds later. `shared` is the
    name of a shared budget.
    """
    printer = None if quiet else EventPrinter(limits.attempts)
    policy = Policy(
        lambda error: isinstance(error, CommandFailed) and error.transient,
        limits,
        backoff,
        attempt_timeout=attempt_timeout,
        on_event=printer,
        budget=open_shared_budget(shared, printer),
    )
    runtime = _WakingRuntime()
    run = Run(policy, Path(command[0]).name or command[0], runtime, runtime.monotonic())
    with closing(open_stdin(attempts=limits.attempts)) as stdin, Signals() as signals:
        runtime.signals = signals
        start = partial(
            Child, command, stdin=stdin, output=output, signals=signals, grace=grace, monotonic=runtime.monotonic
        )
        while True:
            limit = run.attempt_limit()
            result = _attempt(partial(start, run.attempt, limit=limit), command[0])
            if result.interrupted:
                return result.code
            if result.code == 0:
                run.succeeded()
                return 0
            try:
                grant = run.failed(_failure(result, rules, output.matches, limit))
                if grant is None or not grant.ask():
                    return result.code
                grant.sleep()
            except _Interrupted as interrupted:
                return 128 + interrupted.signum


def _failure(result: ChildResult, rules: ExitRules, matches: Matches, limit: float | None) -> Exception:
    """Return the failure of an attempt; an AttemptTimeout is retried, others if the rules say so."""
    transient = rules.is_transient(result, matches)
    if result.timed_out:
        text = f"ended after {show(limit or 0)}"
        return AttemptTimeout(text) if transient else CommandFailed(text, transient=False)
    text = f"exit code {result.code}{_signal_name(result.code)}"
    matched = matches.stop if matches.stop is not None else matches.on
    return CommandFailed(text if matched is None else f"{text}, output matched {matched!r}", transient=transient)


def _attempt(start: Callable[[], Child], name: str) -> ChildResult:
    try:
        child = start()
    except FileNotFoundError:
        report(f"command not found: {name or repr('')}", "check its name, and that its folder is in PATH")
        return ChildResult(NOT_FOUND, timed_out=False, interrupted=False)
    except OSError as error:
        report(f"cannot run {name}: {error.strerror}", "check that it is a program that you may execute")
        return ChildResult(CANNOT_RUN, timed_out=False, interrupted=False)
    return child.wait()


class _Interrupted(BaseException):
    """A signal that ends programs has ended the wait."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


class _WakingRuntime(Runtime):
    """The current runtime, with a sleep that `signals` interrupt: a shared budget may sleep within `Run`."""

    signals: Signals

    def __init__(self) -> None:
        runtime = current.get()
        self.monotonic, self.now, self.random = runtime.monotonic, runtime.now, runtime.random

    def sleep(self, seconds: float) -> None:
        """Wait, or raise _Interrupted for the signal that ends the wait; time that Ctrl-Z takes counts for it."""
        until = self.monotonic() + float(seconds)
        while (left := until - self.monotonic()) > 0:
            for signum in self.signals.wait(left).signals:
                if signum in PASSED_ON:
                    raise _Interrupted(signum)
                if signum is signal.SIGTSTP:
                    signal.raise_signal(signal.SIGSTOP)

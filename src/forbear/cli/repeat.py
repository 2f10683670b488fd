"""The driver of a run whose attempts are programs. What follows a failure is the policy's to decide."""

import signal
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from forbear.cli.child import CANNOT_RUN, NOT_FOUND, Child, Outcome
from forbear.cli.output import report, tell
from forbear.cli.signals import PASSED_ON, Signals
from forbear.cli.stdin import Passed, Recorded, replayed
from forbear.core.decide import Limits, show
from forbear.core.events import Event, Failed, GaveUp, Scheduled
from forbear.policy import Policy
from forbear.run.runtime import AttemptTimeout, current
from forbear.run.state import Run

if TYPE_CHECKING:
    from forbear.core.backoff import Backoff

_USAGE = 2
# Ended by the user, or by having nobody left to write for.
_ENDED_BY = frozenset(128 + signum for signum in (*PASSED_ON, signal.SIGPIPE))
TRANSIENT = frozenset(range(1, 256)) - {_USAGE, CANNOT_RUN, NOT_FOUND} - _ENDED_BY
"""The exit codes that are worth another attempt unless the user says otherwise."""


class CommandFailed(Exception):
    """A program ended with an exit code that is not 0."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit code {code}{_signal_name(code)}")
        self.code = code


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
    transient: frozenset[int],
    attempt_timeout: float | None,
    grace: float,
    quiet: bool,
) -> int:
    """Run `command` as often as the limits allow; the exit code to pass on."""
    policy = Policy(
        lambda error: isinstance(error, CommandFailed) and error.code in transient,
        limits,
        backoff,
        attempt_timeout,
        on_event=None if quiet else _Narrator(limits.attempts),
    )
    runtime = current.get()
    run = Run(policy, Path(command[0]).name or command[0], runtime, runtime.monotonic())
    with closing(replayed(attempts=limits.attempts)) as stdin, Signals() as signals:
        while True:
            limit = run.attempt_limit()
            outcome = _attempt(run, command, stdin, signals, limit, grace)
            if outcome.interrupted:
                return outcome.code
            if outcome.code == 0:
                run.succeeded()
                return 0
            failure = (
                AttemptTimeout(f"ended after {show(limit or 0)}") if outcome.timed_out else CommandFailed(outcome.code)
            )
            delay = run.failed(failure)
            if delay is None:
                return outcome.code
            ended_by = _hold_back(signals, delay, run)
            if ended_by is not None:
                return 128 + ended_by


def _attempt(
    run: Run,
    command: tuple[str, ...],
    stdin: Passed | Recorded,
    signals: Signals,
    limit: float | None,
    grace: float,
) -> Outcome:
    clock = run.runtime.monotonic
    try:
        child = Child(command, run.attempt, stdin=stdin, signals=signals, limit=limit, grace=grace, monotonic=clock)
    except FileNotFoundError:
        report(f"command not found: {command[0] or repr('')}", "check its name, and that its folder is in PATH")
        return Outcome(NOT_FOUND, timed_out=False, interrupted=False)
    except OSError as error:
        report(f"cannot run {command[0]}: {error.strerror}", "check that it is a program that you may execute")
        return Outcome(CANNOT_RUN, timed_out=False, interrupted=False)
    return child.wait()


def _hold_back(signals: Signals, delay: float, run: Run) -> int | None:
    """Wait; the signal that ended the wait early, if one did."""
    until = run.runtime.monotonic() + delay
    while (left := until - run.runtime.monotonic()) > 0:
        for signum in signals.wait(left).signals:
            if signum in PASSED_ON:
                return signum
            if signum is signal.SIGTSTP:
                signal.raise_signal(signal.SIGSTOP)
    return None


class _Narrator:
    """Tells on stderr what happens between attempts."""

    def __init__(self, attempts: int | None) -> None:
        self._of = "" if attempts is None else f" of {attempts}"
        self._failure = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Failed):
            self._failure = event.text
        elif isinstance(event, Scheduled):
            tell(f"forbear: {self._failure}; attempt {event.attempt}{self._of} in {show(event.delay)}")
        elif isinstance(event, GaveUp):
            tell(f"{event.report.note}; the last one: {self._failure}")
        else:
            tell(f"forbear: attempt {event.attempt} worked")

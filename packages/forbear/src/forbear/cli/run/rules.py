"""The rules of `forbear run`: which attempts are retried, by their exit code and by what they print."""

import signal
from dataclasses import dataclass

from forbear.cli.run.child import CANNOT_RUN, NOT_FOUND, ChildResult
from forbear.cli.run.output import Matches
from forbear.cli.run.signals import PASSED_ON

_USAGE = 2
# The user ended the program, or its reader is gone.
_NOT_RETRIED_SIGNALS = frozenset(128 + signum for signum in (*PASSED_ON, signal.SIGPIPE))
TRANSIENT = frozenset(range(1, 256)) - {_USAGE, CANNOT_RUN, NOT_FOUND} - _NOT_RETRIED_SIGNALS
"""The exit codes to retry by default: 1 to 255 but 2 (usage), 126 and 127 (cannot run), and those of some signals.

The signals are SIGHUP, SIGINT, SIGQUIT, SIGTERM and SIGPIPE, each as 128 plus its number.
"""


@dataclass(frozen=True)
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

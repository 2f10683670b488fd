"""Remember what forbear gave up because a repeat could do harm, for the outer runs in whose attempts that happened.

A sync function has its thread to itself, so its run looks at what happened in that thread. An async function shares the
thread with other tasks: its run opens a `HarmLog`, which the tasks and the threads of `to_thread` inherit with the
context. What happens in threads that inherit no context, as those of an executor, shows only in the error's chain.
"""

import _thread  # threading, which has the same function, takes a tenth of the time of `import forbear`
from contextvars import ContextVar

from forbear.core.record import Shared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextvars import Token
    from typing import Any

    from forbear.core.report import Report
    from forbear.run.protocols import RunState

_MOST = 100
"""The number of harms that one place remembers: the last ones."""
_MOST_THREADS = 10_000

is_watched = Shared(False, __name__, "is_watched")
"""True if anything in this process can do harm by a repeat.

That is an adapter, or a policy with `repeatable=False`. Until it is true, async runs open no log, which costs more than
half of a call that succeeds.
"""


is_used = [False]
"""A list of one item: true once a function, a block or a cycle runs under a policy.

Before, nobody could ask for the entries of the ledger (`run/ledger.py`), and adapters make none.
"""


def watch() -> None:
    """Let async runs open logs from now on."""
    is_watched.now = True


class Harm:
    """A report on what must not be repeated; `is_settled` once it is known what became of it."""

    __slots__ = ("is_settled", "report")

    def __init__(self, report: "Report") -> None:
        self.report = report
        self.is_settled = False


class HarmLog:
    """The harms of one async call, in its own task and in all that it starts; those count for the calls around it, too.

    A new one is that of its context until it is closed there. `started` is the time when the call's run began, None
    once it has ended; `run` is the run, None before its first failure. `thread` is the number of its thread, and
    `entries` is its ledger, None before the first entry.
    """

    __slots__ = ("_token", "entries", "harms", "outer", "run", "started", "thread")

    outer: "HarmLog | None"

    def __init__(self, started: float, run: "RunState | None" = None) -> None:
        self.started: float | None = started
        self.run = run
        self.thread = _thread.get_ident()
        self.entries: Any = None
        self.harms: list[Harm] = []
        outer = _innermost.get()
        while outer is not None and outer.started is None:  # ended: a task that goes on for ever would keep them all
            outer = outer.outer
        self.outer = outer
        self._token: Token[HarmLog | None] | None = _innermost.set(self)

    def reopen(self) -> None:
        """Make this log that of the context again, for the next attempt."""
        self._token = _innermost.set(self)

    def close(self) -> None:
        """End the log with its call, and make the log around it that of the context again."""
        self.end()
        self.leave()

    def end(self) -> None:
        """End the log with its call: nothing that comes later belongs to it."""
        self.started = self.run = self.entries = None
        self.harms = []

    def leave(self) -> None:
        """Make the log around this one that of the context again, between two attempts."""
        token, self._token = self._token, None  # which holds the log around this one
        if token is None:
            return
        try:  # noqa: SIM105 - suppress would need contextlib, which costs more than this call
            _innermost.reset(token)
        except ValueError:  # a coroutine that was left open is closed in any context
            pass


_innermost: "ContextVar[HarmLog | None]" = ContextVar("forbear_harms", default=None)
_of_threads: dict[int, list[Harm]] = {}
"""The harms of each thread, by its number; a greenlet has one of its own."""


def open_logs() -> "Iterator[HarmLog]":
    """Yield the logs of the context, the innermost first; those of calls that have ended are among them."""
    log = _innermost.get()
    while log is not None:
        yield log
        log = log.outer


def remember(report: "Report") -> None:
    """Record `report` for this thread, and for the async calls in which it was made."""
    harm = Harm(report)
    thread = _thread.get_ident()
    if thread not in _of_threads and len(_of_threads) >= _MOST_THREADS:
        del _of_threads[next(iter(_of_threads))]
    _append(_of_threads.setdefault(thread, []), harm)
    for log in open_logs():
        _append(log.harms, harm)


def harms(*, shared: bool) -> "list[Harm]":
    """Return the harms that may be those of the call under way, the oldest first.

    With `shared`, the call shares its thread with others, since it is async. Then the log counts, and without one
    everything in the thread.
    """
    log = _innermost.get() if shared else None
    return _of_threads.get(_thread.get_ident(), []) if log is None else log.harms


def settle(since: int, *, shared: bool) -> None:
    """Forget the harms of the call under way whose reports have a number above `since`: their outcome is now known."""
    for harm in harms(shared=shared):
        if harm.report.number > since:
            harm.is_settled = True


def _append(harms: "list[Harm]", harm: Harm) -> None:
    harms.append(harm)
    if len(harms) > _MOST:
        del harms[0]

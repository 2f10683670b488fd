"""The ledger: what adapters have sent in an attempt, so that a run that fails later knows what a repeat would do twice.

An adapter makes an `Entry` before the first byte of a request is sent, and says what became of it. The entry is judged
only if an attempt fails, by the table for functions and with the arguments of the run that asks. It is remembered like
what was given up (`harm.py`): for its thread, and for the async calls in whose context it was made.

An adapter that has no file here, as one for another client, uses the ledger so:

1. `if is_used[0]: enter(entry)` with an `Entry`, before it sends a request that changes anything.
2. `entry.done()` once the request has succeeded, `entry.take_back()` if it was certainly not executed or changes
   nothing. Whatever is neither counts as a request whose outcome is unknown.
3. The function of the entry returns the judgement of the table, as `judge_described` in `forbear.exchange.call_state`.
"""

import sys
from _thread import get_ident

from forbear.core.decide import Reason, Stop
from forbear.core.record import numbers, reports_made
from forbear.core.verdict import TRANSIENT
from forbear.run.failure import Failure
from forbear.run.harm import _innermost, open_logs
from forbear.run.judge_slot import RunContext, modes
from forbear.run.listeners import _active
from forbear.run.open_runs import marks_of_stack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from forbear.core.service import Judgement
    from forbear.run.harm import HarmLog
    from forbear.run.protocols import RunState

    Call = tuple[object, tuple[Any, ...], dict[str, Any]]

    class AnyEntry(Protocol):
        """The protocol of entries, which have the attributes of `Entry`."""

        is_done: bool
        is_open: bool
        number: int

        def judge(self, context: "RunContext | None", reads: Sequence[object], *, done: bool = False) -> Judgement: ...


_SWEPT = 100
"""The entries of one place after which those that no open run needs are dropped."""
_MOST = 1000
_MOST_THREADS = 10_000
_FEW_THREADS = 64
_swept = [_FEW_THREADS]  # the number of threads at which the ended ones are dropped next
_IS_OF_THREADS = get_ident.__module__ == "_thread"  # not where gevent has replaced it: then a greenlet has a number


class Entry:
    """One request that is sent, with the function that judges it: `judge_with(context, reads, is_done, *parts)`.

    `is_done` is True once it has succeeded, `is_open` False once it is taken back. `enter` sets `number`.
    """

    __slots__ = ("is_done", "is_open", "number", "_judge_with", "_judged", "_parts")

    number: int

    def __init__(self, judge_with: "Callable[..., Judgement]", *parts: "Any") -> None:
        self.is_done = False
        self.is_open = True
        self._judge_with = judge_with
        self._parts = parts
        self._judged: Judgement | None = None

    def done(self, *, is_large: bool = False) -> None:
        """Note that the request has succeeded. A large one is judged now, for any run, and not kept."""
        self.is_done = True
        if is_large:
            self._judged = self.judge(None, ())
            self._parts = ()

    def take_back(self) -> None:
        """Note that the request was not executed, or changes nothing: a repeat does no harm."""
        self.is_open = False

    def judge(self, context: RunContext | None, reads: "Sequence[object]", *, done: bool = False) -> "Judgement":
        """Return the judgement on a repeat, with the arguments of the run that asks; None for any run.

        `reads` are those before the request. With `done` it is judged as one that has succeeded.
        """
        return self._judged or self._judge_with(context, reads, done or self.is_done, *self._parts)


class Entries(list["AnyEntry"]):
    """The entries of a thread or an async call; `lost` is the number of the newest one that was dropped unjudged.

    `reads` has what was read, each with its number: the words of a command, or a URL, and once it was compared, the
    `Place` of that. `lost_reads` is the number of the newest one that was dropped.
    """

    __slots__ = ("lost", "lost_reads", "reads", "sweep")

    def __init__(self) -> None:
        self.lost = self.lost_reads = 0
        self.reads: list[tuple[int, object]] = []
        self.sweep = _SWEPT

    def reads_of(self, entry: "AnyEntry", after: int) -> "list[object]":
        """Return what was read before a request, from the number `after` on."""
        from forbear.http.request import Place  # only if a run asks

        for at, (number, thing) in enumerate(self.reads):
            if not isinstance(thing, tuple | Place):
                self.reads[at] = number, Place.of(str(thing))  # each URL is taken apart once
        return [thing for number, thing in self.reads if after < number < entry.number]

    def drop(self, before: int) -> None:
        """Drop the entries whose number is at most `before`, and those that are harmless in any run.

        No run in the stack needs the former. But a suspended one may, such as a block in a generator.
        """
        if len(self.reads) > _MOST:
            self.lost_reads = self.reads[-_MOST - 1][0]
        self.reads = [read for read in self.reads[-_MOST:] if read[0] > before]
        self.lost = max((each.number for each in self if each.is_open and each.number <= before), default=self.lost)
        kept = (entry for entry in self if entry.number > before and entry.is_open)
        self[:] = [entry for entry in kept if not _is_harmless(entry, self.reads_of(entry, 0))]
        if len(self) > _MOST:
            self.lost = self[-_MOST - 1].number
            del self[:-_MOST]
        self.sweep = max(_SWEPT, 2 * max(len(self), len(self.reads)))


_of_threads: dict[int, Entries] = {}


def enter(entry: "AnyEntry") -> int:
    """Enter a request that is sent now, for the runs around the caller; return its number.

    What a listener sends belongs to no attempt.
    """
    entry.number = number = reports_made.now = next(numbers)
    if _active.get():  # a listener
        return number
    thread = get_ident()
    try:
        entries = _of_threads[thread]
    except KeyError:
        entries = _add_thread(thread)
    entries.append(entry)
    if len(entries) >= entries.sweep:
        entries.drop(min(marks_of_stack(), default=number))
    log = _innermost.get()
    while log is not None:
        if log.started is not None:
            if log.entries is None:
                log.entries = Entries()
            log.entries.append(entry)
            if len(log.entries) >= log.entries.sweep:
                log.entries.drop(0)
        log = log.outer
    return number


def note_read(thing: object) -> None:
    """Note what is read now, the words of a command or a URL: a later write of the same may depend on it."""
    number = reports_made.now = next(numbers)
    if _active.get():  # a listener
        return
    thread = get_ident()
    try:
        entries = _of_threads[thread]
    except KeyError:
        entries = _add_thread(thread)
    reads = entries.reads
    reads.append((number, thing))
    if len(reads) >= entries.sweep:
        entries.drop(min(marks_of_stack(), default=number))
    log = _innermost.get()
    while log is not None:
        if log.started is not None:
            log.entries = Entries() if log.entries is None else log.entries
            log.entries.reads.append((number, thing))
            if len(log.entries.reads) >= 2 * _MOST:
                log.entries.drop(0)
        log = log.outer


def has_reads() -> bool:
    """Return whether anything was read that a write which is sent now may depend on."""
    entries = _of_threads.get(get_ident())
    if entries is not None and entries.reads:
        return True
    log = _innermost.get()
    while log is not None:
        if log.entries is not None and log.entries.reads:
            return True
        log = log.outer
    return False


def _add_thread(thread: int) -> Entries:
    """Return new entries for a thread; those of threads that have ended go now and then, with the requests in them."""
    if len(_of_threads) >= _swept[0] and _IS_OF_THREADS:
        alive = sys._current_frames()
        for each in list(_of_threads):
            if each not in alive:
                _of_threads.pop(each, None)
        _swept[0] = max(_FEW_THREADS, 2 * len(_of_threads))
    if len(_of_threads) >= _MOST_THREADS:
        del _of_threads[next(iter(_of_threads))]
    entries = _of_threads[thread] = Entries()
    return entries


def replace(entry: "AnyEntry", other: "AnyEntry") -> None:
    """Put another entry for the same request into the place of one."""
    for entries in (_of_threads.get(get_ident()), *(log.entries for log in open_logs())):
        for at in range(len(entries or ()) - 1, -1, -1):
            if entries is not None and entries[at] is entry:
                entries[at] = other
                break


def reads_in(run: "RunState") -> "list[object]":
    """Return what adapters have read in the attempt of `run` under way."""
    if reports_made.now == run.reports:
        return []
    log = _innermost.get() if run.awaits else None
    entries = _of_threads.get(get_ident()) if log is None else log.entries
    return [] if entries is None else [thing for number, thing in entries.reads if number > run.reports]


def why_not_again(
    run: "RunState",
    function: object,
    args: "tuple[Any, ...]",
    kwargs: "Mapping[str, Any]",
    log: "HarmLog | None" = None,
) -> str | None:
    """Return why the attempt of `run` that failed must not be repeated, by what was sent in it; None if it may be.

    `log` is that of an async run, by default that of the context. With `enforce="warn"` the listeners are notified
    instead.
    """
    log = _innermost.get() if run.awaits and log is None else log
    entries = _of_threads.get(get_ident()) if log is None else log.entries
    why = None
    if entries is not None:
        context = RunContext(run, function, args, kwargs)
        sent = [entry for entry in entries if entry.is_open and entry.number > run.reports]
        judgements = [entry.judge(context, entries.reads_of(entry, run.reports)) for entry in sent]
        why = next((each.refused for each in judgements if not each.repeatable), None)
        run.maybe_done = run.maybe_done or any(each.maybe_done for each in judgements)
        if why is None and (entries.lost > run.reports or (sent and entries.lost_reads > run.reports)):
            why = LOST
    if why is None or (run.plan.enforce or modes["enforce"]) != "warn":
        return why
    run.notify_would_stop(why)
    return None


def gives_up_late(run: "RunState", error: Exception, call: "Call", log: "HarmLog | None") -> bool:
    """Return whether a request that was sent since the attempt failed, as by a task of it, forbids the next one.

    Then the run gives up after all, with the `error` of its last attempt.
    """
    if log is None or reports_made.now == run.reports or run.plan.repeatable is not None:
        return False
    why = why_not_again(run, *call, log=log)
    if why is not None:
        failure = Failure(TRANSIENT, error)
        failure.elapsed = run.runtime.monotonic() - run.started
        run.withdraw(Stop(Reason.UNSAFE, why), failure)
    return why is not None


LOST = (
    f"the attempt has sent more than {_MOST} requests that may not be repeated blindly; "
    "decorate the function that does the work on one item"
)
"""The reason why an attempt with too many entries is not repeated."""


def _is_harmless(entry: "AnyEntry", reads: "list[object]") -> bool:
    """Return whether a repeat of a request does no harm in any run, whatever becomes of it: it may be under way."""
    try:
        judgements = [entry.judge(None, reads, done=done) for done in (False, True)]
    except Exception:  # of a function of the user
        return False
    return all(judgement.repeatable and not judgement.maybe_done for judgement in judgements)

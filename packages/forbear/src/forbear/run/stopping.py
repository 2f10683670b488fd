"""`stop_on`, the scope in which an event of the caller ends runs and interrupts their waits."""

from forbear.core.decide import Reason, Stop
from forbear.run.grant import Grant
from forbear.run.scope import Scope, open_scopes
from forbear.run.switch import ever_stopping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from forbear.run.failure import Failure
    from forbear.run.grant import Granting
    from forbear.run.runtime import StopEvent


WHY = "the event of stop_on is set"


class stop_on(Scope):  # noqa: N801 - used like a function
    """`with stop_on(event):` ends the runs in the block once `event` is set, and interrupts their sync waits.

    The event has `is_set()` and `wait(timeout)`, as a threading.Event has. It is looked at after each failure, and
    during each wait of sync code, in functions, blocks and clients. If it is set, the run gives up. The error of the
    last attempt is raised, with a note and a report whose reason is STOPPED; a client returns its last response. A
    running attempt is not interrupted. Async waits are not either, because tasks can be cancelled; async code looks at
    the event after each failure only.

    A wait ends at once; in the main thread and in nested scopes it ends within 0.05 seconds. Each event of nested
    scopes counts, and a signal handler may set one. A scope applies to this thread or task, and to the tasks that it
    starts, until the block ends. In a generator it applies to what the generator itself calls, not to its consumer;
    in a fixture of pytest, to the fixture's tests.
    Raises TypeError for an object without these methods.

    >>> import threading
    >>> with forbear.stop_on(threading.Event()):
    ...     forbear.retry(OSError).call(len, "abc")
    3
    """

    __slots__ = ("event",)

    def __init__(self, event: "StopEvent") -> None:
        if isinstance(event, type) or not all(callable(getattr(event, name, None)) for name in ("is_set", "wait")):
            raise TypeError(f"`event` must have is_set() and wait(timeout), as a threading.Event has, got {event!r}")
        from forbear.run.functions import is_async

        if is_async(event.wait):
            raise TypeError(
                f"`event` must not be async, because sync code waits for it; cancel tasks instead: {event!r}"
            )
        super().__init__()
        self.event = event

    def __enter__(self) -> "Self":
        ever_stopping[0] = True
        return super().__enter__()


def events() -> "tuple[StopEvent, ...]":
    """Return the events of the open scopes around the caller, outermost first."""
    return tuple(scope.event for scope in open_scopes(stop_on))


def is_stopped() -> bool:
    """Return whether one of the events is set."""
    return any(event.is_set() for event in events())


class InterruptibleGrant(Grant):
    """A retry of sync code within `stop_on`: `ask` waits, and returns False if an event ended the wait."""

    __slots__ = ("_failure", "_run", "_watched")

    is_open = True

    def __init__(self, run: "Granting", failure: "Failure", delay: float, watched: "tuple[StopEvent, ...]") -> None:
        super().__init__(run.runtime, delay)
        self._run = run
        self._failure = failure
        self._watched = watched

    def ask(self) -> bool:
        """Wait, and return True; let the run give up if one of the events is set."""
        try:
            self.runtime.sleep_unless(self._watched, self.delay)
            self.delay = 0.0
            if any(event.is_set() for event in self._watched):
                self._run.withdraw(Stop(Reason.STOPPED, WHY), self._failure)
                return False
            return True
        finally:
            del self._failure  # its error leads to the frame that holds this grant

    def sleep(self) -> None:
        pass  # `ask` has waited

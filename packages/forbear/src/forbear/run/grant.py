"""`Grant`: one retry that a run has decided on. A loop asks whether it is granted, then waits."""

from forbear.core.decide import Reason, Stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Protocol

    from forbear.run.failure import Failure
    from forbear.run.runtime import Runtime

    class Granting(Protocol):
        """The protocol of a run, as far as a grant settles it."""

        @property
        def runtime(self) -> Runtime: ...
        def schedule(self, failure: Failure, delay: float) -> "Grant": ...
        def withdraw(self, stop: Stop, failure: Failure) -> None: ...
        def give_up(self, stop: Stop, failure: Failure) -> None: ...

    class AskedBudget(Protocol):
        """The protocol of a budget whose answer takes time."""

        def take(self) -> bool: ...
        async def atake(self) -> bool: ...


class Grant:
    """A retry after `delay` seconds. A loop calls `ask` within its `except` block and `sleep` after it.

    Async loops await `aask` and `asleep`. False from `ask` means that the run has given up after all: raise the error,
    or return the response. This class is for a retry that is granted already. Others have `is_open`: only `ask` finds
    out, and may wait for the answer. Example: see `Failure`.
    """

    __slots__ = ("delay", "runtime")

    is_open = False

    def __init__(self, runtime: "Runtime", delay: float) -> None:
        self.runtime = runtime
        self.delay = delay

    def ask(self) -> bool:
        """Return whether the retry is granted; async code awaits `aask`."""
        return True

    async def aask(self) -> bool:
        return True

    def sleep(self) -> None:
        """Wait until the retry may begin."""
        self.runtime.sleep(self.delay)

    def asleep(self) -> "Awaitable[None]":
        """Return an awaitable that waits until the retry may begin."""
        return self.runtime.asleep(self.delay)


class OpenGrant(Grant):
    """A retry of `run` whose `budget` takes its time to answer: `ask` calls `take`, and `aask` awaits `atake`.

    `waited` is True once the wait is over; then `sleep` does nothing.
    """

    __slots__ = ("budget", "failure", "run", "waited")

    is_open = True

    def __init__(self, run: "Granting", budget: "AskedBudget", failure: "Failure", delay: float) -> None:
        super().__init__(run.runtime, delay)
        self.run = run
        self.budget = budget
        self.failure = failure
        self.waited = False

    def ask(self) -> bool:
        try:
            return self.settle(allowed=self.budget.take())
        finally:
            del self.failure  # its error leads to the frame that holds this grant

    async def aask(self) -> bool:
        try:
            return self.settle(allowed=await self.budget.atake())
        finally:
            del self.failure

    def settle(self, *, allowed: bool) -> bool:
        """Schedule the retry if it is allowed, else let the run give up; return whether the retry follows."""
        if allowed:
            return self.schedule()
        self.run.give_up(Stop(Reason.BUDGET), self.failure)
        return False

    def schedule(self) -> bool:
        """Schedule the retry and return True; False if an event of `stop_on` ended its wait."""
        scheduled = self.run.schedule(self.failure, self.delay)
        if not scheduled.is_open:
            return True
        self.waited, self.delay = True, 0.0
        return scheduled.ask()

    def sleep(self) -> None:
        if not self.waited:
            super().sleep()

    async def asleep(self) -> None:
        if not self.waited:
            await super().asleep()

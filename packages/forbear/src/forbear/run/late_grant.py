"""Grants of budgets whose answer may come late: they are asked when a retry is decided, and again after the wait.

The answer is looked for at once, for at most `LOOK` seconds, which are part of the backoff. A refusal that is known by
then ends the run. Without an answer the run waits. It looks again after `AGAIN` seconds, for a long wait is not worth a
refusal, and when the backoff ends.
"""

import time

from forbear.core.decide import Reason, Stop
from forbear.run.grant import OpenGrant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from forbear.run.failure import Failure
    from forbear.run.grant import AskedBudget, Granting

    class LateAnswer(Protocol):
        """The protocol of an answer that a budget may not have yet; None stands for no answer so far."""

        def look(self) -> bool | None:
            """Return the answer if it is there; never wait."""
            ...

        def wait(self, seconds: float) -> bool | None:
            """Return the answer as soon as it is there, None after so many real seconds."""
            ...

        def end(self) -> bool:
            """Return whether the retry is granted, now that its backoff has ended; no answer is a refusal."""
            ...

        def give_up(self) -> None:
            """Note that the run does not need the answer any more."""
            ...

    class LateBudget(AskedBudget, Protocol):
        """The protocol of a budget that gives its runs a `LateGrant`."""

        def ask(self) -> bool | LateAnswer:
            """Ask for a retry, without waiting; return the decision if it is known at once."""
            ...


LOOK = 0.005
"""Seconds for which the answer is looked for at once, at most."""
AGAIN = 0.25
"""Seconds into the wait after which a run looks for the answer again."""
_STEP = 0.0005
"""Seconds from look to look of async code, which gives way to other tasks in between."""


class LateGrant(OpenGrant):
    """A retry whose answer may come late: without one, `ask` waits until the backoff ends."""

    __slots__ = ("_began",)

    budget: "LateBudget"

    def __init__(self, run: "Granting", budget: "LateBudget", failure: "Failure", delay: float) -> None:
        super().__init__(run, budget, failure, delay)
        self._began = run.runtime.monotonic()

    def ask(self) -> bool:
        answer: bool | LateAnswer = False
        try:
            answer = self.budget.ask()
            allowed = answer if isinstance(answer, bool) else answer.wait(min(LOOK, self.delay))
            if isinstance(answer, bool) or allowed is not None:
                return self.settle(allowed=bool(allowed))
            if self.schedule():
                for seconds in self._parts():
                    self.runtime.sleep(seconds)
                    if answer.look() is False:
                        break
                return self._end(answer)
            answer.give_up()
            return False
        except BaseException:
            _give_up(answer)
            raise
        finally:
            del self.failure  # its error leads to the frame that holds this grant

    async def aask(self) -> bool:
        answer: bool | LateAnswer = False
        try:
            answer = self.budget.ask()
            if isinstance(answer, bool):
                return self.settle(allowed=answer)
            until = time.monotonic() + min(LOOK, self.delay)
            while (allowed := answer.look()) is None and (real := until - time.monotonic()) > 0:
                await self.runtime.pause(min(real, _STEP))
            if allowed is None:
                allowed = answer.wait(0)
            if allowed is not None:
                return self.settle(allowed=allowed)
            self.schedule()
            for seconds in self._parts():
                await self.runtime.asleep(seconds)
                if answer.look() is False:
                    break
            return self._end(answer)
        except BaseException:
            _give_up(answer)
            raise
        finally:
            del self.failure

    def schedule(self) -> bool:
        """Schedule the retry; the look for the answer was a part of its wait."""
        is_granted = super().schedule()
        self.delay = max(self.delay - (self.runtime.monotonic() - self._began), 0.0)
        return is_granted

    def _parts(self) -> tuple[float, ...]:
        """Return the parts of the wait, after each of which the grant looks for the answer."""
        if self.waited:
            return ()
        return (self.delay,) if self.delay <= 2 * AGAIN else (AGAIN, self.delay - AGAIN)

    def _end(self, answer: "LateAnswer") -> bool:
        """Return whether the budget grants the retry at the end of the wait; if not, let the run give up."""
        self.waited, self.delay = True, 0.0
        if answer.end():
            return True
        self.run.withdraw(Stop(Reason.BUDGET), self.failure)
        return False


def _give_up(answer: "bool | LateAnswer") -> None:
    if not isinstance(answer, bool):
        answer.give_up()

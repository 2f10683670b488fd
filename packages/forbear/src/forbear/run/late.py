"""Budgets whose answer may come after the decision: they are asked when a retry is decided, and again after the wait.

The answer is looked for at once, for at most `LOOK` seconds, which are part of the backoff. A refusal that is known by
then ends the run. Without an answer the run waits. It looks again after `AGAIN` seconds, for a long wait is not worth a
refusal, and when the backoff ends.
"""

import time
from functools import partial

from forbear.core.decide import Reason, Stop
from forbear.run.budget import Budget, PendingDelay
from forbear.run.stopping import WAITED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from forbear.run.state import Failure, Run

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

    class LateBudget(Protocol):
        """The protocol of a budget with `answers_late`."""

        def ask(self) -> bool | LateAnswer:
            """Ask for a retry, without waiting; return the decision if it is known at once."""
            ...


LOOK = 0.005
"""Seconds for which the answer is looked for at once, at most."""
AGAIN = 0.25
"""Seconds into the wait after which a run looks for the answer again."""
_STEP = 0.0005
"""Seconds from look to look of async code, which gives way to other tasks in between."""


def settled(
    run: "Run", budget: Budget, delay: float, failure: "Failure", outcome: object, maybe_done: bool
) -> float | None:
    """Return the seconds to wait before the retry, `WAITED` if the wait is over, None if the budget refuses the retry.

    For a run that `awaits` it is a `PendingDelay`, whose `ask` does the same.
    """
    asking: LateBudget = budget  # type: ignore[assignment]  # it has `answers_late`
    if run.awaits:
        return PendingDelay(delay, partial(_asettled, run, asking, delay, failure, outcome, maybe_done), _unchanged)
    began = run.runtime.monotonic()
    answer = asking.ask()
    allowed = answer if isinstance(answer, bool) else answer.wait(min(LOOK, delay))
    if allowed is not None or isinstance(answer, bool):
        return _left(run, began, run._settle(delay, failure, outcome, maybe_done, bool(allowed)))
    try:
        left = _left(run, began, run._schedule(delay, failure, outcome))
        for seconds in _parts(left):
            run.runtime.sleep(seconds)
            if answer.look() is False:
                break
    except BaseException:
        answer.give_up()
        raise
    return _ended(run, answer, left, failure, outcome)


async def _asettled(
    run: "Run", asking: "LateBudget", delay: float, failure: "Failure", outcome: object, maybe_done: bool
) -> float | None:
    began = run.runtime.monotonic()
    answer = asking.ask()
    if isinstance(answer, bool):
        return _left(run, began, run._settle(delay, failure, outcome, maybe_done, answer))
    try:
        until = time.monotonic() + min(LOOK, delay)
        while (allowed := answer.look()) is None and (real := until - time.monotonic()) > 0:
            await run.runtime.pause(min(real, _STEP))
        if allowed is None:
            allowed = answer.wait(0)
        if allowed is not None:
            return _left(run, began, run._settle(delay, failure, outcome, maybe_done, allowed))
        left = _left(run, began, run._schedule(delay, failure, outcome))
        for seconds in _parts(left):
            await run.runtime.asleep(seconds)
            if answer.look() is False:
                break
    except BaseException:
        answer.give_up()
        raise
    return _ended(run, answer, left, failure, outcome)


def _ended(run: "Run", answer: "LateAnswer", left: float | None, failure: "Failure", outcome: object) -> float | None:
    """Return `WAITED` if the budget grants the retry at the end of the wait, else None; `left` None: it gave up."""
    if left is None:
        answer.give_up()
        return None
    if answer.end():
        return WAITED
    run._withdraw(Stop(Reason.BUDGET), failure, outcome)
    return None


def _left(run: "Run", began: float, delay: float | None) -> float | None:
    """Return what is left of `delay`, of which the look for the answer was a part."""
    if delay is None or delay is WAITED:
        return delay
    return max(delay - (run.runtime.monotonic() - began), 0.0)


def _parts(left: float | None) -> tuple[float, ...]:
    """Return the parts of a wait, after each of which the run looks for the answer."""
    if left is None or left is WAITED:
        return ()
    return (left,) if left <= 2 * AGAIN else (AGAIN, left - AGAIN)


def _unchanged(delay: float | None) -> float | None:
    return delay

"""`transaction(func, *keys)` of the clients, sync and asyncio: the whole cycle from WATCH on, again and again.

A conflict runs the cycle again, under the backoff and the limits of the policy. So does a failure before anything was
executed. Once the outcome of EXEC is unknown, the error comes out: the change may have been applied.
"""

from collections.abc import Callable
from dataclasses import replace
from inspect import isawaitable
from typing import Any

from forbear.core.verdict import PERMANENT, Kind, Verdict
from forbear.exchange.redis.call import Call
from forbear.exchange.redis.pipelines import Trail
from forbear.exchange.redis.settings import Settings
from forbear.exchange.redis.verdicts import verdict_of
from forbear.exchange.redis.work import Work
from forbear.policy import Policy

_TRANSACTION = Work("transaction", repeatable=False, unsafe="")


def transact(
    settings: Settings,
    policy: Policy,
    pipe: Any,
    func: Callable[[Any], Any],
    watches: tuple[Any, ...],
    *,
    value_from_callable: bool = False,
    watch_delay: float | None = None,
) -> Any:
    """Run the cycle until it is through; `pipe` sends everything once."""
    cycle = _Cycle(settings, policy, watch_delay)
    while True:
        cycle.trail = pipe.trail = Trail()
        try:
            if watches:
                pipe.watch(*watches)
            value = func(pipe)
            executed = pipe.execute()
        except Exception as error:
            delay = cycle.failed(error)
            if delay is None:
                raise
        else:
            cycle.succeeded()
            return value if value_from_callable else executed
        pipe.reset()
        cycle.runtime.sleep(delay)


async def atransact(
    settings: Settings,
    policy: Policy,
    pipe: Any,
    func: Callable[[Any], Any],
    watches: tuple[Any, ...],
    *,
    value_from_callable: bool = False,
    watch_delay: float | None = None,
) -> Any:
    """The same for asyncio; `func` may be async or not."""
    cycle = _Cycle(settings, policy, watch_delay)
    while True:
        cycle.trail = pipe.trail = Trail()
        try:
            if watches:
                await pipe.watch(*watches)
            value = func(pipe)
            if isawaitable(value):
                value = await value
            executed = await pipe.execute()
        except Exception as error:
            delay = cycle.failed(error)
            if delay is None:
                raise
        else:
            cycle.succeeded()
            return value if value_from_callable else executed
        await pipe.reset()
        await cycle.runtime.asleep(delay)


class _Cycle:
    """What both loops share: what the cycle under way has sent, and what a failure means there."""

    def __init__(self, settings: Settings, policy: Policy, watch_delay: float | None) -> None:
        self.trail = Trail()
        self._call = Call(settings, policy, _TRANSACTION)
        self.runtime = self._call.runtime
        self._delay = watch_delay or None

    def succeeded(self) -> None:
        """Tell the budget and the listener."""
        self._call.succeeded()

    def failed(self, error: Exception) -> float | None:
        """Seconds to wait before the next cycle, None to let the error out."""
        trail = self.trail
        if not trail.failed:
            return self._call.after(PERMANENT, error)  # of the function, whatever else it called
        sent = _TRANSACTION if trail.queued is None else trail.queued()
        # A loss before EXEC leaves nothing behind but what was sent at once.
        repeatable = trail.harmless and (trail.queued is None or sent.repeatable)
        work = replace(sent, repeatable=repeatable, watched=False)
        verdict = self._call.judged(error, verdict_of(error, work))
        return self._call.after(self._of_cycle(verdict), error, work)

    def _of_cycle(self, verdict: Verdict) -> Verdict:
        """What a failure means where the whole cycle may be repeated."""
        if verdict.kind is Kind.CONFLICT:
            return verdict.replace(kind=Kind.NOT_EXECUTED, delay=self._delay)
        if verdict.kind is Kind.NOT_EXECUTED and not self.trail.harmless:
            return verdict.replace(kind=Kind.TRANSIENT)
        return verdict

"""Read-modify-write: on a conflict the whole cycle runs again, and a change is never applied twice.

It knows no service: what a conflict is, and how to tell one's own write from another's, is for the caller to say.
"""

from forbear.core.decide import Limits, Reason
from forbear.core.report import report, text_of
from forbear.core.verdict import NOT_EXECUTED, TRANSIENT, Verdict
from forbear.policy import Policy
from forbear.run.errors import AttemptTimeout
from forbear.run.functions import name_of
from forbear.run.runtime import current
from forbear.run.state import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from forbear.core.report import Report

    V = TypeVar("V")

_DEFAULT = Policy((ConnectionError, TimeoutError), Limits(attempts=None, timeout=60))

_TRIED_ENOUGH = (Reason.ATTEMPTS, Reason.TIMEOUT, Reason.RETRY_AFTER, Reason.BUDGET)
"""Reasons by which an inner policy ends the matter; by any other it leaves the next step to the cycle."""


def update(
    *,
    read: "Callable[[], V]",
    modify: "Callable[[V], V]",
    write: "Callable[[V], V | None]",
    conflict: "Callable[[Exception], bool]",
    mine: "Callable[[V], bool] | None" = None,
    policy: Policy = _DEFAULT,
) -> "V":
    """Change a stored value that others change, too: `write(modify(read()))`, again and again while others are quicker.

    `read` gets the current value with whatever tells its version (an etag, a metageneration), `modify` makes the new
    value of it, and `write` stores that on condition that the version is still the same. `conflict` recognises the
    error that `write` raises when it is not. Then the whole cycle runs again, under the policy's backoff and limits.

    After a write whose outcome is unknown (a lost reply) the value is read again, and `mine` is asked whether it has
    this very change; if so, the update is done. From then on every read of the run is asked, since a conflict may be
    with one's own late write. Without `mine` such an error comes out, for writing again could apply the change twice.

    `policy` says which errors of `read` and `write` are transient, how long to hold back and when to stop; an attempt
    is one cycle. By default it is ConnectionError and TimeoutError, full jitter under 1, 2, 4 … 64 s, and 60 seconds in
    all. Returns the value as it is stored: what `write` returned, the written value where that was None, or the value
    read where the change turned out to be there. On giving up the last error comes out, annotated.
    """
    if policy.attempt_timeout is not None:
        raise TypeError("`policy` must have no attempt_timeout: sync code cannot be cut short; use aupdate")
    cycle = _Cycle(policy, conflict, mine, name_of(write))
    while True:
        try:
            value = read()
        except Exception as error:
            delay = cycle.read_failed(error)
            if delay is None:
                raise
        else:
            if cycle.is_done(value):
                return value
            changed = _checked(modify(value), modify)
            try:
                stored = write(changed)
            except Exception as error:
                delay = cycle.write_failed(error)
                if delay is None:
                    raise
            else:
                cycle.run.succeeded()
                return changed if stored is None else stored
        cycle.run.runtime.sleep(delay)


async def aupdate(
    *,
    read: "Callable[[], Awaitable[V]]",
    modify: "Callable[[V], V]",
    write: "Callable[[V], Awaitable[V | None]]",
    conflict: "Callable[[Exception], bool]",
    mine: "Callable[[V], bool] | None" = None,
    policy: Policy = _DEFAULT,
) -> "V":
    """`update` for async `read` and `write`, on asyncio and trio; an attempt timeout holds for each of the two."""
    cycle = _Cycle(policy, conflict, mine, name_of(write))
    while True:
        try:
            value = await cycle.bounded(read())
        except Exception as error:
            delay = cycle.read_failed(error)
            if delay is None:
                raise
        else:
            if cycle.is_done(value):
                return value
            changed = _checked(modify(value), modify)
            try:
                stored = await cycle.bounded(write(changed))
            except Exception as error:
                delay = cycle.write_failed(error)
                if delay is None:
                    raise
            else:
                cycle.run.succeeded()
                return changed if stored is None else stored
        await cycle.run.runtime.asleep(delay)


class _Cycle:
    """What both loops share: what a failure means here, and whether an earlier write may have been applied."""

    def __init__(
        self,
        policy: Policy,
        conflict: "Callable[[Exception], bool]",
        mine: "Callable[..., bool] | None",
        operation: str,
    ) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"`policy` must be a forbear.Policy, got {policy!r}")
        runtime = current.get()
        self._policy = policy
        self._conflict = conflict
        self._mine = mine
        # What an inner policy leaves open is decided here, so the run itself must not stop at its report.
        plan = policy.replace(retry_exhausted=True)
        self.run = Run(plan, policy.name or operation, runtime, runtime.monotonic())

    def is_done(self, value: object) -> bool:
        """Whether an earlier write of this run, whose fate was unknown, turns out to have been applied."""
        done = self.run.in_doubt and self._mine is not None and self._mine(value)
        if done:
            self.run.succeeded()
        return done

    def read_failed(self, error: Exception) -> float | None:
        """Seconds to wait before the next cycle, None to let the error out."""
        in_doubt = self.run.in_doubt
        delay = self._after(error, self._verdict(error), repeatable=True)
        self.run.in_doubt = in_doubt  # a read applies nothing
        return delay

    def write_failed(self, error: Exception) -> float | None:
        """Seconds to wait before the next cycle, None to let the error out."""
        if not self._conflict(error):
            return self._after(error, self._verdict(error), repeatable=self._mine is not None)
        inner = report(error)
        if inner is not None and inner.maybe_done:  # repeated by an inner policy, it may have met its own first attempt
            self.run.in_doubt = True
        knowable = self._mine is not None or not self.run.in_doubt
        return self._after(error, NOT_EXECUTED if knowable else TRANSIENT, repeatable=knowable)

    async def bounded(self, awaitable: "Awaitable[V]") -> "V":
        """The result of a read or a write, within the attempt timeout if there is one."""
        limit = self.run.attempt_limit()
        if limit is None:
            return await awaitable
        async with self.run.runtime.within(limit):
            return await awaitable

    def _verdict(self, error: Exception) -> Verdict:
        inner = report(error)
        if type(error) is AttemptTimeout or (inner is not None and inner.reason is Reason.UNSAFE):
            return TRANSIENT
        return self._policy.judge_error(error)

    def _after(self, error: Exception, verdict: Verdict, *, repeatable: bool) -> float | None:
        if not self._policy.retry_exhausted and self._was_tried_enough(report(error)):
            return None
        return self.run.after(
            verdict,
            error,
            type(error).__qualname__,
            text_of(error),
            repeatable=repeatable,
            maybe_done=True,
            unsafe="the write may have been applied, and without `mine` nobody can tell",
        )

    def _was_tried_enough(self, inner: "Report | None") -> bool:
        return inner is not None and inner.reason in _TRIED_ENOUGH and inner.made_after(self.run.reports)


def _checked(value: "V | None", modify: object) -> "V":
    if value is None:
        raise TypeError(f"`modify` must return the new value, but {name_of(modify)} returned None")
    return value

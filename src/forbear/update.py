"""Read-modify-write: on a conflict the whole cycle runs again, and a change is never applied twice.

It knows no service: what a conflict is, and how to tell one's own write from another's, is for the caller to say.
"""

from collections.abc import Coroutine

from forbear.core.decide import Limits, Reason, Stop
from forbear.core.report import text_of
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind
from forbear.policy import Policy
from forbear.run.functions import name_of, refuse_async
from forbear.run.nesting import inner_report
from forbear.run.runtime import AttemptTimeout, current
from forbear.run.state import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeVar

    from forbear.core.report import Report
    from forbear.core.verdict import Verdict

    V = TypeVar("V")

_DEFAULT = Policy((ConnectionError, TimeoutError), Limits(attempts=None, timeout=60))

_TRIED_ENOUGH = (Reason.ATTEMPTS, Reason.TIMEOUT, Reason.RETRY_AFTER, Reason.BUDGET)
"""Reasons by which an inner policy ends the matter; by any other it leaves the next step to the cycle."""

_LEFT_OPEN = (Reason.UNSAFE, Reason.BODY)
"""Reasons by which an inner policy stopped at a failure that it would else have repeated."""

_UNKNOWABLE = "the write may have been applied, and without `mine` nobody can tell"


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
    value of it, and `write` stores that on condition that the version is still the same, and raises when it is not.
    `conflict` recognises that error. Then the whole cycle runs again, under the policy's backoff and limits.

    After a write whose outcome is unknown (a lost reply) the value is read again, and `mine` is asked whether it has
    this very change; if so, the update is done. From then on every read of the run is asked, since a conflict may be
    with one's own late write. Without `mine` such an error comes out, for writing again could apply the change twice;
    its report has `maybe_done` set, as has that of every other error after which the change may have been applied.

    `policy` says which errors of `read` and `write` are transient, how long to hold back and when to stop; an attempt
    is one cycle. By default it is ConnectionError and TimeoutError, full jitter under 1, 2, 4 … 64 s, and 60 seconds in
    all. Errors of `modify` and `mine` come out. Where `read` and `write` have retries of their own, what those gave up
    on is not repeated, but a conflict and a write that they dared not repeat are this cycle's business. Returns the
    value as it is stored: what `write` returned, the written value where that was None, or the value read where the
    change turned out to be there. On giving up the last error comes out, annotated. TypeError for arguments that cannot
    be right, and for a policy with an `attempt_timeout` (a thread cannot be stopped) or `on_result`.
    """
    cycle = _Cycle(read, modify, write, conflict, mine, policy)
    if policy.attempt_timeout is not None:
        raise TypeError("`policy` must have no attempt_timeout: sync code cannot be cut short; use aupdate")
    while True:
        try:
            value = read()
            if cycle.is_done(value):
                return value
            changed = cycle.changed(value)
            stored = write(changed)
        except Exception as error:
            delay = cycle.failed(error)
            if delay is None:
                raise
        else:
            return cycle.done(changed, stored)
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
    cycle = _Cycle(read, modify, write, conflict, mine, policy)
    while True:
        try:
            value = await cycle.bounded("read", read)
            if cycle.is_done(value):
                return value
            changed = cycle.changed(value)
            stored = await cycle.bounded("write", write, changed)
        except Exception as error:
            delay = cycle.failed(error)
            if delay is None:
                raise
        else:
            return cycle.done(changed, stored)
        await cycle.run.runtime.asleep(delay)


class _Cycle:
    """What both loops share: how far the cycle under way has come, and what a failure means there."""

    def __init__(
        self,
        read: object,
        modify: "Callable[..., Any]",
        write: object,
        conflict: "Callable[[Exception], bool]",
        mine: "Callable[..., bool] | None",
        policy: Policy,
    ) -> None:
        functions = {"read": read, "modify": modify, "write": write, "conflict": conflict, "mine": mine}
        for name, function in functions.items():
            if not callable(function) and not (name == "mine" and function is None):
                raise TypeError(f"`{name}` must be callable, got {function!r}")
        for name in ("modify", "conflict", "mine"):
            refuse_async(f"`{name}`", functions[name], "do what is async in `read` or `write`")
        if not isinstance(policy, Policy):
            raise TypeError(f"`policy` must be a forbear.Policy, got {policy!r}")
        if policy.judges_values:
            raise TypeError("`policy` must have no on_result: have `read` or `write` raise what is to be repeated")
        runtime = current.get()
        self._modify = modify
        self._conflict = conflict
        self._mine = mine
        self._policy = policy
        self._step = "read"
        # What an inner policy leaves open is decided here, so the run itself must not stop at its report.
        plan = policy.replace(retry_exhausted=True)
        self.run = Run(plan, policy.name or name_of(write), runtime, runtime.monotonic())

    def is_done(self, value: object) -> bool:
        """Whether an earlier write of this run, whose fate was unknown, turns out to have been applied."""
        self._step = "modify"
        _refuse_coroutine("read", value)
        done = self.run.in_doubt and self._mine is not None and self._mine(value)
        _refuse_coroutine("mine", done)
        if done:
            self.run.succeeded()
        return done

    def changed(self, value: "V") -> "V":
        """The new value, about to be written."""
        changed: V | None = self._modify(value)
        _refuse_coroutine("modify", changed)
        if changed is None:
            raise TypeError(f"`modify` must return the new value, but {name_of(self._modify)} returned None")
        self._step = "write"
        return changed

    def done(self, changed: "V", stored: "V | None") -> "V":
        """The value as it is stored, after a write that went well."""
        _refuse_coroutine("write", stored)
        self.run.succeeded()
        return changed if stored is None else stored

    async def bounded(self, name: str, function: "Callable[..., Awaitable[V]]", *value: "Any") -> "V":
        """The result of a read or a write, within the attempt timeout if there is one."""
        limit = self.run.attempt_limit()
        awaitable = function(*value)
        if not hasattr(type(awaitable), "__await__"):
            self._step = "modify"  # an error of the caller's, not one of reading or writing
            raise TypeError(f"`{name}` returned no awaitable: use update, where `read` and `write` are not async")
        if limit is None:
            return await awaitable
        async with self.run.runtime.within(limit):
            return await awaitable

    def failed(self, error: Exception) -> float | None:
        """Seconds to wait before the next cycle, None to let the error out."""
        step, self._step = self._step, "read"
        inner = inner_report(error, self.run)
        if step == "modify":
            return self._after(error, PERMANENT, None, repeatable=False)
        verdict = self._policy.judge_error(error)
        if type(error) is AttemptTimeout or (inner is not None and inner.reason in _LEFT_OPEN):
            verdict = TRANSIENT
        if step == "write":
            return self._write_failed(error, verdict, inner)
        in_doubt = self.run.in_doubt
        delay = self._after(error, verdict, inner, repeatable=True)
        self.run.in_doubt = in_doubt  # a read applies nothing
        return delay

    def _write_failed(self, error: Exception, verdict: "Verdict", inner: "Report | None") -> float | None:
        # Repeated by an inner policy, the write may be in conflict with its own first attempt.
        repeated = inner is not None and (inner.count > 1 or inner.maybe_done)
        if self._is_conflict(error, verdict, inner):
            self.run.in_doubt |= repeated
            knowable = self._mine is not None or not self.run.in_doubt
            kind = Kind.NOT_EXECUTED if knowable else Kind.TRANSIENT
            return self._after(error, verdict.replace(kind=kind), None, repeatable=knowable)
        self.run.in_doubt |= repeated or verdict.kind is Kind.TRANSIENT or _tried_enough(inner)
        return self._after(error, verdict, inner, repeatable=self._mine is not None)

    def _is_conflict(self, error: Exception, verdict: "Verdict", inner: "Report | None") -> bool:
        if verdict.kind is Kind.CONFLICT or (inner is not None and inner.reason is Reason.CONFLICT):
            return True
        answer = self._conflict(error)
        _refuse_coroutine("conflict", answer)
        return answer

    def _after(self, error: Exception, verdict: "Verdict", inner: "Report | None", *, repeatable: bool) -> float | None:
        blocked = None
        if inner is not None and _tried_enough(inner) and not self._policy.retry_exhausted:
            if not self.run.in_doubt:
                return None  # the inner report says it all
            blocked = Stop(inner.reason, f"{inner.operation} gave up: {inner.text}")
            verdict, repeatable = TRANSIENT, True
        return self.run.after(
            verdict,
            error,
            type(error).__qualname__,
            text_of(error),
            repeatable=repeatable,
            maybe_done=True,
            blocked=blocked,
            unsafe=_UNKNOWABLE,
        )


def _tried_enough(inner: "Report | None") -> bool:
    return inner is not None and inner.reason in _TRIED_ENOUGH


def _refuse_coroutine(name: str, value: object) -> None:
    """Refuse the coroutine that an async function returned to sync code: nothing would await it."""
    if isinstance(value, Coroutine):
        value.close()
        raise TypeError(
            f"`{name}` returned a coroutine: use aupdate, where `read` and `write` are async; "
            "`modify`, `conflict` and `mine` never are"
        )

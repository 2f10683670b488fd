"""Read-modify-write: on a conflict, run the whole cycle again, and never apply a change twice."""

from collections.abc import Awaitable, Callable, Coroutine

from forbear.core.decide import Reason, Stop
from forbear.core.record import reports_made
from forbear.core.report import Report
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.policy import Policy, retry
from forbear.run.doubt import leave_in_doubt
from forbear.run.failure import DetailedFailure
from forbear.run.functions import check_takes, name_of, refuse_async
from forbear.run.harm import HarmLog, settle, watch
from forbear.run.judge_slot import unsafe_by_evidence
from forbear.run.judges import RAISE
from forbear.run.nesting import inherit, inner_report
from forbear.run.runtime import AttemptTimeout, current
from forbear.run.scope import OwnWrites
from forbear.run.spending import begin
from forbear.run.state import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from forbear.run.grant import Grant

    V = TypeVar("V")

_DEFAULT = retry(ConnectionError, TimeoutError, attempts=None)

_ARGUMENTS = {"read": (), "modify": ("old",), "write": ("new",), "conflict": ("error",), "mine": ("value",)}
_TRIED_ENOUGH = (Reason.ATTEMPTS, Reason.TIMEOUT, Reason.RETRY_AFTER, Reason.BUDGET, Reason.EXHAUSTED, Reason.STOPPED)
"""Reasons for which the cycle stops as well, because an inner policy reached a limit; not with `retry_exhausted`."""

_LEFT_OPEN = (Reason.UNSAFE, Reason.BODY)
"""Reasons for which an inner policy did not repeat a transient failure; the cycle may."""

_UNKNOWABLE = "the write may have been applied, and without `mine` this cannot be checked"
_UNFINISHED = "a write may have been applied, and the cycle failed before this was checked"


def update(
    *,
    read: "Callable[[], V]",
    modify: "Callable[[V], V]",
    write: "Callable[[V], V | None]",
    conflict: "Callable[[Exception], bool]",
    mine: "Callable[[V], bool] | None" = None,
    policy: Policy = _DEFAULT,
) -> "V":
    """Change a value that other clients change, too: call `write(modify(read()))` until no other write interferes.

    `read` returns the current value with its version (an etag, a metageneration), and `modify` returns the new value.
    `write` stores the new value if the version is still the same, and raises an error if it is not. `conflict` returns
    True for that error. Then the whole cycle runs again, under the policy's backoff and limits.

    After a write with an unknown outcome (a lost response), the value is read again, and `mine(value)` returns whether
    it has this very change; if so, the update is done. `mine` is then called after every later read, too, since a
    conflict may be with the own late write. Without `mine`, such an error is raised, because writing again could apply
    the change twice. Its report has `maybe_done` set, as has that of any error after which the change may be applied.
    An error of `read` that shows a request which must not be executed twice is raised, as around any function.

    `policy` says which errors of `read` and `write` are transient, how long to wait and when to stop; an attempt is one
    cycle. The default policy retries ConnectionError and TimeoutError for 60 seconds, with full jitter under 1, 2, 4 …
    64 s. Errors of `modify` and `mine` are raised. An error on which retries within `read` or `write` reached a limit
    is raised, unless the policy has `retry_exhausted`; a conflict, and a write that they found unsafe, begin a cycle.

    Returns the stored value: the result of `write`, the value passed to it if the result is None, or the value read if
    that has the change. On giving up, the last error is raised with a report. Raises TypeError for invalid arguments,
    and for a policy with `on_result` or an `attempt_timeout` (a thread cannot be stopped).

    >>> stored = {"count": 1}
    >>> forbear.update(read=stored.copy, modify=lambda old: {"count": 2}, write=stored.update, conflict=bool)
    {'count': 2}
    """
    cycle = _UpdateCycle(read, modify, write, conflict, mine, policy)
    if policy.attempt_timeout is not None:
        raise TypeError("`policy` must have no attempt_timeout: sync code cannot be interrupted; use aupdate")
    while True:
        try:
            value = read()
            if cycle.is_done(value):
                return value
            changed = cycle.changed(value)
            with OwnWrites():
                stored = write(changed)
        except Exception as error:
            grant = cycle.failed(error)
            if grant is None or not grant.ask():
                raise
        except BaseException:
            cycle.run.end()
            raise
        else:
            return cycle.done(changed, stored)
        grant.sleep()


async def aupdate(
    *,
    read: "Callable[[], Awaitable[V]]",
    modify: "Callable[[V], V]",
    write: "Callable[[V], Awaitable[V | None]]",
    conflict: "Callable[[Exception], bool]",
    mine: "Callable[[V], bool] | None" = None,
    policy: Policy = _DEFAULT,
) -> "V":
    """Change a stored value as `update` does, with async `read` and `write`, in asyncio and trio.

    `modify`, `conflict` and `mine` are sync. The policy may have an attempt timeout, which limits each `read` and each
    `write`. Example: see `update`.
    """
    cycle = _UpdateCycle(read, modify, write, conflict, mine, policy, awaits=True)
    log = HarmLog(cycle.run.started, cycle.run)
    try:
        while True:
            try:
                value = await cycle.call_bounded("read", read)
                if cycle.is_done(value):
                    return value
                changed = cycle.changed(value)
                with OwnWrites():
                    stored = await cycle.call_bounded("write", write, changed)
            except Exception as error:
                grant = cycle.failed(error)
                if grant is None or not await grant.aask():
                    raise
            else:
                return cycle.done(changed, stored)
            await grant.asleep()
    finally:  # after a cancellation, too
        cycle.run.end()
        log.close()


class _UpdateCycle:
    """The state that `update` and `aupdate` share: the step of the current cycle, and the judging of failures in it.

    Making one raises TypeError for invalid arguments.
    """

    def __init__(
        self,
        read: object,
        modify: "Callable[..., Any]",
        write: object,
        conflict: "Callable[[Exception], bool]",
        mine: "Callable[..., bool] | None",
        policy: Policy,
        *,
        awaits: bool = False,
    ) -> None:
        functions = {"read": read, "modify": modify, "write": write, "conflict": conflict, "mine": mine}
        for name, function in functions.items():
            if not callable(function) and not (name == "mine" and function is None):
                raise TypeError(f"`{name}` must be callable, got {function!r}")
            check_takes(f"`{name}`", function, *_ARGUMENTS[name])
        for name in ("modify", "conflict", "mine"):
            refuse_async(f"`{name}`", functions[name], "do async work in `read` or `write`")
        if not isinstance(policy, Policy):
            raise TypeError(f"`policy` must be a forbear.Policy, got {policy!r}")
        if policy.checks_values:
            raise TypeError(
                "`policy` must have no on_result: let `read` or `write` raise an error for results to repeat"
            )
        if policy.key is not None:
            raise TypeError("`policy` must have no key, which is called with the arguments of a function")
        if policy.on_give_up is not RAISE:
            raise TypeError("`policy` must have no on_give_up, because it would hide whether the change was made")
        watch()
        runtime = current.get()
        self._read, self._modify = read, modify
        self._conflict, self._mine = conflict, mine
        self._policy = policy
        self._step = "read"
        self._reports = reports_made.now
        # `failed` reads the reports of inner runs, so the run itself must not stop at them.
        plan = policy.replace(retry_exhausted=True)
        self.run = Run(plan, policy.name or name_of(write), runtime, runtime.monotonic(), awaits=awaits)
        if self.run.spending is not None:
            begin(self.run)

    def is_done(self, value: object) -> bool:
        """Return whether `value` has the change of an earlier write of this run, whose outcome was unknown.

        `mine` decides that; without it, or if no write is in doubt, the result is False. True counts as the run's
        success.
        """
        self._step = "modify"
        _refuse_coroutine("read", value)
        done = self.run.in_doubt and self._mine is not None and self._mine(value)
        _refuse_coroutine("mine", done)
        if done:
            self._succeeded()
        return done

    def changed(self, value: "V") -> "V":
        """Return `modify(value)`, the new value, which is written next; TypeError if it is None or a coroutine."""
        changed: V | None = self._modify(value)
        _refuse_coroutine("modify", changed)
        if changed is None:
            raise TypeError(f"`modify` must return the new value, but {name_of(self._modify)} returned None")
        self._step = "write"
        return changed

    def done(self, changed: "V", stored: "V | None") -> "V":
        """Return the stored value after a successful write, and count the success.

        It is `stored`, the result of `write`, or, if that is None, `changed`, the value passed to it.
        """
        _refuse_coroutine("write", stored)
        self._succeeded()
        return changed if stored is None else stored

    def _succeeded(self) -> None:
        settle(self._reports, shared=self.run.awaits)  # what became of earlier writes is known
        self.run.succeeded()

    async def call_bounded(self, name: str, function: "Callable[..., Awaitable[V]]", *value: "Any") -> "V":
        """Await `function(*value)`, a read or a write, and return its result.

        With an attempt timeout, it raises AttemptTimeout after that time. Raises TypeError if the function returns no
        awaitable; `name` is "read" or "write".
        """
        limit = self.run.attempt_limit()
        awaitable = function(*value)
        if not hasattr(type(awaitable), "__await__"):
            self._step = "modify"  # so that `failed` sees an error of the caller, not of reading or writing
            raise TypeError(f"`{name}` returned no awaitable: use update, where `read` and `write` are not async")
        if limit is None:
            return await awaitable
        async with self.run.runtime.within(limit):
            return await awaitable

    def failed(self, error: Exception) -> "Grant | None":
        """Return the retry of the cycle, None to raise the error.

        Errors of `modify` and `mine` are always raised, those of `read` and `write` by the policy. A conflict leads to
        the next cycle within the policy's limits, unless a write is in doubt and there is no `mine`.
        """
        step, self._step = self._step, "read"
        inherit(error, self.run)
        try:
            return self._failed(step, error)
        except Exception as broken:  # of `on` or `conflict`
            if step == "write" or self.run.in_doubt:
                leave_in_doubt(broken, self.run.operation, _UNFINISHED, self.run.runtime, self.run.started)
            raise

    def _failed(self, step: str, error: Exception) -> "Grant | None":
        inner = inner_report(error, self.run)
        if step == "modify":
            verdict = TRANSIENT if self.run.in_doubt else PERMANENT  # no outer run repeats a write that is in doubt
            return self._after(error, verdict, None, unsafe=_UNFINISHED)
        verdict = self._policy.verdict_of_error(error)
        if type(error) is AttemptTimeout or (inner is not None and inner.reason in _LEFT_OPEN):
            verdict = TRANSIENT
        if step == "write":
            return self._write_failed(error, verdict, inner)
        unsafe = None
        if inner is None and self._policy.repeatable is None and verdict.kind is Kind.TRANSIENT:
            unsafe = unsafe_by_evidence(error, self.run, (self._read, (), {}))
        return self._after(error, verdict, inner, unsafe=unsafe, harmless=unsafe is None)

    def _write_failed(self, error: Exception, verdict: "Verdict", inner: "Report | None") -> "Grant | None":
        # If an inner policy repeated the write, it may be in conflict with its own first attempt.
        repeated = inner is not None and (inner.count > 1 or inner.maybe_done)
        if self._is_conflict(error, verdict, inner):
            self.run.in_doubt |= repeated
            knowable = self._mine is not None or not self.run.in_doubt
            kind = Kind.NOT_EXECUTED if knowable else Kind.TRANSIENT
            return self._after(error, verdict.replace(kind=kind), None, unsafe=None if knowable else _UNKNOWABLE)
        self.run.in_doubt |= repeated or verdict.kind is Kind.TRANSIENT or _has_tried_enough(inner)
        return self._after(error, verdict, inner, unsafe=_UNKNOWABLE if self._mine is None else None)

    def _is_conflict(self, error: Exception, verdict: "Verdict", inner: "Report | None") -> bool:
        if verdict.kind is Kind.CONFLICT or (inner is not None and inner.reason is Reason.CONFLICT):
            return True
        is_conflict = self._conflict(error)
        _refuse_coroutine("conflict", is_conflict)
        return is_conflict

    def _after(
        self,
        error: Exception,
        verdict: "Verdict",
        inner: "Report | None",
        *,
        unsafe: str | None,
        harmless: bool = False,
    ) -> "Grant | None":
        blocked = Stop(Reason.EXHAUSTED) if verdict.exhausted and not self._policy.retry_exhausted else None
        if inner is not None and _has_tried_enough(inner) and not self._policy.retry_exhausted:
            if not self.run.in_doubt:
                return None  # the inner run's report is enough
            blocked = Stop(inner.reason, f"{inner.operation} gave up: {inner.text}")
            verdict, unsafe = TRANSIENT, None
        return self.run.after(
            DetailedFailure(verdict, error, unsafe=unsafe, maybe_done=True, blocked=blocked, harmless=harmless)
        )


def _has_tried_enough(inner: "Report | None") -> bool:
    return inner is not None and inner.reason in _TRIED_ENOUGH


def _refuse_coroutine(name: str, value: object) -> None:
    """Close `value` and raise TypeError if it is a coroutine, which nothing would await.

    `value` is the result of the function `name`.
    """
    if isinstance(value, Coroutine):
        value.close()
        raise TypeError(
            f"`{name}` returned a coroutine: use aupdate, where `read` and `write` are async; "
            "`modify`, `conflict` and `mine` never are"
        )

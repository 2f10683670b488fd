"""The slot for a judge of errors, which says what an error of a function shows of the request that failed.

The loops lie below the services and name none. `forbear` fills the slot at the first failure of a function.
"""

import os
import sys

from forbear.core.chain import context_of, traceback_of
from forbear.core.dataclass import dataclass
from forbear.run.judges import CHOICES, load_judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import FrameType
    from typing import Any, Protocol

    from forbear.core.service import Judgement
    from forbear.run.plan import RetryPlan
    from forbear.run.protocols import RunState

    Call = tuple[object, tuple[Any, ...], Mapping[str, Any]]

    class Judge(Protocol):
        """The protocol of what looks into errors for requests, and says whether they may be sent again."""

        def is_bare(self, error: BaseException) -> bool:
            """Return whether a quick look proves that `error` shows nothing; then `find` is not called."""
            ...

        def find(self, error: BaseException, handled: BaseException | None) -> Any:
            """Return the requests that `error` shows, None if it shows none; `handled` shows nothing of the call."""

        def judge(self, evidence: Any, error: BaseException, context: "RunContext") -> Judgement | None:
            """Return how safe it is to repeat the call that sent what `find` found, None if it shows too little."""
            ...


@dataclass(slots=True)
class RunContext:
    """The failed call of a function, for whoever judges what it sent.

    - `run` is the run of the call, with its policy.
    - `function` is the function, None for a block, and `args` and `kwargs` are its arguments.
    - `read` returns what adapters have read in the attempt; few failures need it.
    """

    run: "RunState"
    function: object
    args: "tuple[Any, ...]"
    kwargs: "Mapping[str, Any]"
    read: "Callable[[RunState], Sequence[object]] | None" = None

    @property
    def plan(self) -> "RetryPlan":
        """The policy of the run."""
        return self.run.plan  # type: ignore[no-any-return] # `RunState` lies below the policy

    @property
    def elapsed(self) -> float:
        """The number of seconds since the run began."""
        return self.run.runtime.monotonic() - self.run.started

    @property
    def reads(self) -> "Sequence[object]":
        """Everything that adapters have read in the attempt."""
        return () if self.read is None else self.read(self.run)


slot: "list[Judge | None]" = [None]


def fill() -> "Judge | None":
    """Load the judge into the slot, and return it."""
    slot[0] = load_judge[0]()
    return slot[0]


UNKNOWN = (
    'nothing shows what the attempt sent, and the policy has unknown="stop"; '
    "if a second execution does no harm, say so: repeatable=True"
)
"""The reason why a function is not called again of which nothing is known."""


def _mode(option: str) -> str:
    """Return the value of an option that holds for policies without one: FORBEAR_UNKNOWN, FORBEAR_ENFORCE."""
    name, choices = f"FORBEAR_{option.upper()}", CHOICES[option]
    value = os.environ.get(name, "").lower() or choices[0]
    if value not in choices:
        import warnings  # few processes get here

        warnings.warn(f"`{name}` must be one of {', '.join(choices)}, got {value!r}", RuntimeWarning, stacklevel=2)
        return "stop"
    return value


modes = {option: _mode(option) for option in CHOICES}


def unsafe_by_evidence(
    error: BaseException,
    run: "RunState",
    call: "Call",
    read: "Callable[[RunState], Sequence[object]] | None" = None,
) -> str | None:
    """Return why the function of `run` must not be called again, by what `error` shows; None if nothing forbids it.

    With `enforce="warn"` nothing does, but the listeners are notified. `read` returns what adapters have read in the
    attempt. It is called after a failure, within the loop that called the function: the stack is that of the call.
    """
    judge, evidence, judgement = slot[0] or fill(), None, None
    if judge is not None and not judge.is_bare(error):
        handled = None
        if context_of(error) is not None and call[0] is not None:
            handled = find_handled_at_call(error, sys._getframe(1))
        evidence = judge.find(error, handled)
        if evidence is not None:
            judgement = judge.judge(evidence, error, RunContext(run, *call, read))
    if judgement is None:  # most failures end here
        if (run.plan.unknown or modes["unknown"]) != "stop":
            return None
        why = UNKNOWN
    else:
        if judgement.repeatable:
            run.maybe_done = run.maybe_done or bool(judgement.maybe_done)
            run.billed = run.billed or (run.attempt if judgement.billed else 0)
            return None
        from forbear.core.service import why_not

        why = why_not(judgement, run.operation)
    if (run.plan.enforce or modes["enforce"]) != "warn":
        return why
    run.notify_would_stop(why)
    return None


def find_handled_at_call(error: BaseException, frame: "FrameType | None") -> BaseException | None:
    """Return the exception in the chain of `error` that a caller of the loop was handling, None without one.

    Python puts it into the chain, but it shows nothing of this call. The loop is the frames of forbear from `frame`
    upwards. A traceback begins at the frame that caught the exception: one that the function or the loop itself caught
    begins below.
    """
    older: BaseException | None = context_of(error)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("forbear."):
        frame = frame.f_back
    callers = set["FrameType"]()
    while frame is not None:
        callers.add(frame)
        frame = frame.f_back
    seen = {id(error)}
    while older is not None and id(older) not in seen:
        trace = traceback_of(older)
        if trace is not None and trace.tb_frame in callers:
            return older
        seen.add(id(older))
        older = context_of(older)
    return None

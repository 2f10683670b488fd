"""The slot for a judge of errors, which says what an error of a function shows of the request that failed.

The loops lie below the services and name none. A package above sets `slot[0]`. It is empty today, and it is read
only after a failure.
"""

import sys

from forbear.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType
    from typing import Any

    from forbear.core.service import Judgement
    from forbear.run.plan import RetryPlan

    Judge = Callable[[BaseException, "RunContext"], Judgement | None]
    """Returns how safe a repeat of the request that the error shows is, or None if the error shows none."""


class RunContext(Record):
    """The facts about the failed call of a function.

    - `plan` is the policy.
    - `args` and `kwargs` are the arguments of the function, empty for a block.
    - `handled` is the exception that was being handled when the function was called, None if there was none, and for a
      block. Python puts it into the chain of the error, but it shows nothing of this call.
    - `keys` are the idempotency keys of the run.
    """

    __slots__ = ("plan", "args", "kwargs", "handled", "keys")

    plan: "RetryPlan"
    args: "tuple[Any, ...]"
    kwargs: "Mapping[str, Any]"
    handled: BaseException | None
    keys: tuple[str, ...]

    def __init__(
        self,
        plan: "RetryPlan",
        args: "tuple[Any, ...]" = (),
        kwargs: "Mapping[str, Any] | None" = None,
        handled: BaseException | None = None,
        keys: tuple[str, ...] = (),
    ) -> None:
        self._set(plan=plan, args=args, kwargs={} if kwargs is None else kwargs, handled=handled, keys=keys)


slot: "list[Judge | None]" = [None]


def judged(
    error: BaseException, plan: "RetryPlan", args: "tuple[Any, ...]", kwargs: "Mapping[str, Any]"
) -> "Judgement | None":
    """Return the judgement of the request that `error` shows, None if the slot is empty or the error shows none.

    It is called after a failure, within the loop that called the function: the stack is that of the call.
    """
    judge = slot[0]
    if judge is None:
        return None
    return judge(error, RunContext(plan, args, kwargs, handled_at_call(error, sys._getframe(1))))


def handled_at_call(error: BaseException, frame: "FrameType | None") -> BaseException | None:
    """Return the exception in the chain of `error` that a frame from `frame` upwards was handling, None without one.

    A traceback begins at the frame that caught the exception. One that the function itself caught begins below.
    """
    callers = set["FrameType"]()
    while frame is not None:
        callers.add(frame)
        frame = frame.f_back
    seen = {id(error)}
    older = error.__context__
    while older is not None and id(older) not in seen:
        if older.__traceback__ is not None and older.__traceback__.tb_frame in callers:
            return older
        seen.add(id(older))
        older = older.__context__
    return None

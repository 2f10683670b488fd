"""What follows one kind of failure, and why, in words. The answer is that of the one decision; no request is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from forbear.core.decide import Reason, Wait, decide
from forbear.core.verdict import Kind, Safety, Verdict
from forbear.policy import Policy

NOT_SENT = "connection refused, DNS or TLS failure"
LOST = "reset or timeout after sending"


class Judged(Protocol):
    """What every service says of one request, call or command."""

    @property
    def service(self) -> str:
        """The service's name."""
        ...

    @property
    def operation(self) -> str | None:
        """The operation, None where it is not known."""
        ...

    @property
    def safety(self) -> Safety:
        """Whether the operation may be executed twice."""
        ...

    @property
    def conditions(self) -> tuple[str, ...]:
        """What would make a conditional operation repeatable."""
        ...

    @property
    def met(self) -> str | None:
        """Which of them is there."""
        ...

    @property
    def repeatable(self) -> bool:
        """Whether this very one may be executed twice."""
        ...

    @property
    def mutation(self) -> bool:
        """Whether it changes anything."""
        ...

    @property
    def refused(self) -> str | None:
        """Why no rule lets it be repeated."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What follows one kind of failure, and why; `status` is that of an HTTP reply, None where there is none."""

    failure: str
    status: int | None
    retried: bool
    why: str


def decided(failure: str, verdict: Verdict | None, policy: Policy, judged: Judged, more: str = "") -> Outcome:
    """What follows a failed first attempt at what was `judged`; `more` is added where it is retried."""
    if verdict is None:
        return Outcome(failure, None, False, "it means success")
    step = decide(
        policy.limits, policy.backoff, verdict, attempt=1, elapsed=0.0, u=0.5, repeatable=judged.repeatable
    )  # fmt: skip
    if isinstance(step, Wait):
        return Outcome(failure, None, True, why_retried(verdict, judged) + more)
    return Outcome(failure, None, False, unsafe(judged) if step.reason is Reason.UNSAFE else step.text)


def why_retried(verdict: Verdict, judged: Judged) -> str:
    """Why a failure with this verdict is retried."""
    asked = verdict.retry_after
    wait = "" if asked is None else f", after {asked:g} s or more as the server asks"
    if verdict.kind is Kind.NOT_EXECUTED:
        return f"it was not executed{'; at once, where the server says' if verdict.delay == 0 else wait}"
    if judged.met is not None:
        return f"it may pass, and the condition keeps a repeat from doing harm{wait}"
    return f"it may pass, and a repeat does no harm{wait}"


def either(conditions: Sequence[str]) -> str:
    """Conditions in one text, any one of which is enough."""
    return ("; or " if any(", " in text or " and " in text for text in conditions) else " or ").join(conditions)


def unsafe(judged: Judged) -> str:
    """Why what was judged may not be executed twice."""
    if judged.refused is not None:
        return judged.refused
    name = judged.operation or "it"
    if judged.conditions:
        return f"{name} may have been executed, and no condition is met that would make it safe to repeat"
    return f"{name} may have been executed and must not be executed twice"

"""The verdict on a failed attempt (its kind and effect), and the safety of an operation."""

from enum import Enum

from forbear.core.check import INFINITY, in_seconds, seconds
from forbear.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta


class Effect(Enum):
    """The effect of a failed attempt on the server: certainly none, or unknown. Example: see `Verdict`."""

    NO = "no"
    UNKNOWN = "unknown"


class Safety(Enum):
    """The safety of executing an operation twice: always safe, safe under a condition, or never safe.

    >>> from forbear.services import redis
    >>> [redis.classify(command).safety.value for command in (["SADD", "ids", "7"], ["INCR", "count"])]
    ['always', 'never']
    """

    ALWAYS = "always"
    CONDITIONAL = "conditional"
    NEVER = "never"


class Kind(Enum):
    """The kind of a failure, which decides whether a repeat is allowed; `Verdict` explains the four.

    Example: see `Verdict`.
    """

    NOT_EXECUTED = "not executed"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    CONFLICT = "conflict"


class Verdict(Record):
    """The verdict on one failed attempt.

    `kind` is the row of the decision table. NOT_EXECUTED: certainly without effect, so any operation may be repeated.
    TRANSIENT: the outcome is unknown, so only a repeatable operation is repeated. PERMANENT: a repeat cannot help.
    CONFLICT: only a whole read-modify-write cycle may be repeated, never the write alone. `retry_after` is the minimum
    wait that the server asks for, in seconds: infinity for "do not retry", None if the server asks for none.
    `wait_from` names the header or field that asks for it, such as "Retry-After", if that is known. `delay` replaces
    the backoff by an exact wait in seconds. `throttled` says that the server is overloaded. `exhausted` says
    that the client has used up retries of its own; it is not retried again, unless the policy has `retry_exhausted`.
    `timed_out` says that the client's own timeout ended the attempt. A run sets it for its budget if the class of the
    error, or a base of it, has "Timeout" in its name.

    >>> busy = Verdict(Kind.NOT_EXECUTED, retry_after=2)
    >>> busy.effect
    <Effect.NO: 'no'>
    >>> policy = forbear.retry(on=lambda error: busy if "busy" in str(error) else PERMANENT)
    """

    __slots__ = ("kind", "retry_after", "delay", "throttled", "exhausted", "timed_out", "wait_from")

    kind: Kind
    retry_after: float | None
    delay: float | None
    throttled: bool
    exhausted: bool
    timed_out: bool
    wait_from: str | None

    def __init__(
        self,
        kind: Kind,
        retry_after: "float | timedelta | None" = None,
        delay: "float | timedelta | None" = None,
        throttled: bool = False,
        exhausted: bool = False,
        timed_out: bool = False,
        wait_from: str | None = None,
    ) -> None:
        if not isinstance(kind, Kind):
            raise TypeError(f"`kind` must be a forbear.verdicts.Kind, got {kind!r}")
        retry_after, delay = in_seconds(retry_after), in_seconds(delay)
        if retry_after is not None and retry_after != INFINITY:
            seconds("retry_after", retry_after)
        if delay is not None:
            seconds("delay", delay)
        self._set(
            kind=kind,
            retry_after=retry_after,
            delay=delay,
            throttled=throttled,
            exhausted=exhausted,
            timed_out=timed_out,
            wait_from=wait_from,
        )

    def __bool__(self) -> bool:
        """Return whether the verdict asks for a retry: True for NOT_EXECUTED and TRANSIENT."""
        return self.kind is not Kind.PERMANENT and self.kind is not Kind.CONFLICT

    @property
    def effect(self) -> Effect:
        """The effect of the failed attempt on the server: unknown for a transient failure, none for all others."""
        return Effect.UNKNOWN if self.kind is Kind.TRANSIENT else Effect.NO


NOT_EXECUTED = Verdict(Kind.NOT_EXECUTED)
"""The verdict on an attempt that certainly had no effect: any operation may be repeated."""

TRANSIENT = Verdict(Kind.TRANSIENT)
"""The verdict on an attempt whose outcome is unknown: only a repeatable operation is repeated."""

PERMANENT = Verdict(Kind.PERMANENT)
"""The verdict on an attempt that failed for good: a repeat cannot help."""

CONFLICT = Verdict(Kind.CONFLICT)
"""The verdict on a write that met a newer value: only the whole read-modify-write may be repeated."""


def settle(verdict: Verdict | None) -> Verdict:
    """Return `verdict`, or PERMANENT for None, the answer of a table that does not know the failure."""
    return PERMANENT if verdict is None else verdict

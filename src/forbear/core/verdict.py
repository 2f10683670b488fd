"""What a failed attempt means (verdict, effect) and what an operation tolerates (safety); it knows no error by name."""

from enum import Enum

from forbear.core.check import INFINITY, seconds
from forbear.core.record import Record


class Effect(Enum):
    """Whether a failed attempt acted on the server."""

    NO = "no"
    UNKNOWN = "unknown"


class Safety(Enum):
    """Whether an operation may be executed twice: always, only under a condition, or never."""

    ALWAYS = "always"
    CONDITIONAL = "conditional"
    NEVER = "never"


class Kind(Enum):
    """The four rows of the decision table."""

    NOT_EXECUTED = "not executed"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    CONFLICT = "conflict"


class Verdict(Record):
    """What one failed attempt means.

    `kind` is the row of the decision table: NOT_EXECUTED (certainly without effect; any operation may be repeated),
    TRANSIENT (outcome unknown; only a repeatable operation is repeated), PERMANENT (repeating cannot help), CONFLICT
    (only a whole read-modify-write cycle may be repeated, never the write alone). `retry_after` is the server's own
    word: the least number of seconds to wait, infinity for "do not come back", None if it said nothing. `delay`
    replaces the backoff by an exact wait in seconds. `throttled` tells overload from breakage.
    """

    __slots__ = ("kind", "retry_after", "delay", "throttled")

    kind: Kind
    retry_after: float | None
    delay: float | None
    throttled: bool

    def __init__(
        self, kind: Kind, retry_after: float | None = None, delay: float | None = None, throttled: bool = False
    ) -> None:
        if not isinstance(kind, Kind):
            raise TypeError(f"`kind` must be a forbear.Kind, got {kind!r}")
        if retry_after is not None and retry_after != INFINITY:
            seconds("retry_after", retry_after)
        if delay is not None:
            seconds("delay", delay)
        self._set(kind=kind, retry_after=retry_after, delay=delay, throttled=throttled)

    @property
    def effect(self) -> Effect:
        """Whether the failed attempt may have acted: unknown for a transient failure, no for all others."""
        return Effect.UNKNOWN if self.kind is Kind.TRANSIENT else Effect.NO


NOT_EXECUTED = Verdict(Kind.NOT_EXECUTED)
TRANSIENT = Verdict(Kind.TRANSIENT)
PERMANENT = Verdict(Kind.PERMANENT)
CONFLICT = Verdict(Kind.CONFLICT)

"""A policy as export targets need it, and the list of its features that a target loses.

Every feature of the policy begins as a loss. A target calls `says` for each feature that it expresses exactly, and
`differs` for each that it expresses in another way. So a feature that a target forgets is listed, never dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.decide import show
from forbear.http.request import IDEMPOTENT, READS
from forbear.http.status import TRANSIENT_STATUSES
from forbear.policy import Policy
from forbear.services.errors import ErrorVerdicts
from forbear.services.redis.errors import verdict_of_exception

if TYPE_CHECKING:
    from forbear.core.backoff import Backoff

MANY = 1_000_000
"""The number of retries for targets that require one, if the policy has no limit."""

LEAST = 0.001
"""The shortest duration in seconds that gRPC and Envoy do not round to zero."""

_LONGEST = 315_576_000_000  # seconds: ten thousand years, the limit of protobuf's durations
_MOST_RETRIES = 1_000
_MEANS = {"full": 0.5, "equal": 0.75}

T = TypeVar("T")

Jitter = Literal["full", "equal", "documented", "decorrelated", "spread", "none"]


class Exported(NamedTuple, Generic[T]):
    """The result of an export: `value` for the target, and `losses`, one sentence for each difference to the policy."""

    value: T
    losses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Waits:
    """A backoff in the terms of most systems: steps that grow by a factor up to a maximum, and their jitter.

    Steps are the upper ends of the waits, in seconds. `spread` is the random part that is added to them, for the
    jitters "documented" and "spread".
    """

    initial: float
    multiplier: float
    maximum: float
    jitter: Jitter
    spread: float = 0.0

    @classmethod
    def of(cls, backoff: "Backoff") -> "Waits":
        """Approximate a backoff. For one of another kind take its first wait and the longest of ten, and factor 2."""
        if isinstance(backoff, Exponential):
            spread = backoff.spread if backoff.jitter == "documented" else 0.0
            return cls(backoff.initial, backoff.multiplier, backoff.maximum, backoff.jitter, spread)
        if isinstance(backoff, Constant):
            kind: Jitter = "spread" if backoff.spread else "none"
            return cls(backoff.seconds, 1.0, backoff.seconds, kind, backoff.spread)
        spread = backoff.spread if isinstance(backoff, Sequence) else 0.0
        first, *others = (backoff.delay(n, 0.5, None) - spread / 2 for n in range(10))
        return cls(first, 2.0, max(first, *others), "spread" if spread else "none", spread)

    @property
    def mean(self) -> "Waits":
        """The mean waits without jitter, for targets that have none or spread around a middle."""
        factor = _MEANS.get(self.jitter, 1.0)
        added = self.spread / 2
        return Waits(self.initial * factor + added, self.multiplier, self.maximum * factor + added, "none")

    def __str__(self) -> str:
        if self.multiplier == 1:
            return f"{self.initial:g} s"
        return f"{self.initial:g} s, times {self.multiplier:g} up to {self.maximum:g} s"


class Outline:
    """The parts of a policy that targets need, and the list of losses."""

    def __init__(self, policy: Policy) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"`policy` must be a forbear.Policy, got {policy!r}")
        self.policy = policy
        self.attempts = policy.limits.attempts
        self.timeout = policy.limits.timeout
        self.attempt_timeout = policy.attempt_timeout
        self.waits = Waits.of(policy.backoff)
        self._losses = _features(policy, self.waits)

    @classmethod
    def for_storage(cls, policy: Policy) -> "Outline":
        """Return the outline for a client of Cloud Storage; raise ValueError for a policy of another service."""
        outline = cls(policy)
        if outline.service not in (None, "cloud_storage"):
            raise ValueError(
                f"`policy` must be for Cloud Storage or for no service in particular, got one for {outline.service}; "
                "take another target, or derive one with `policy.replace(service=None)`"
            )
        return outline

    def says(self, *features: str) -> None:
        """Record that the target expresses these features exactly."""
        for feature in features:
            self._losses.pop(feature, None)

    def differs(self, feature: str, how: str) -> None:
        """Record how the target expresses a feature in another way.

        Ignored if the policy does not have the feature, or `says` has recorded it as exact.
        """
        if feature in self._losses:
            self._losses[feature] = how

    def warns(self, topic: str, text: str) -> None:
        """Add a warning for users of the export, whether or not the policy has such a feature."""
        self._losses[topic] = f"{topic}: {text}"

    def text(self, *lines: str) -> Exported[str]:
        """Return these lines as an exported text, with the losses so far."""
        return Exported("\n".join([*lines, ""]), self.losses)

    @property
    def losses(self) -> tuple[str, ...]:
        """The losses, in the order of importance."""
        return tuple(self._losses.values())

    @property
    def service(self) -> str | None:
        """The name of the policy's service."""
        return None if self.policy.service is None else self.policy.service.name

    @property
    def methods(self) -> frozenset[str] | None:
        """The HTTP methods that a target may repeat if it sees no more of a request; None for all of them."""
        if self.policy.service is None:
            return None if self.policy.repeatable else frozenset()
        return frozenset({*READS, *IDEMPOTENT}) if self.service == "rfc9110" else READS

    @property
    def statuses(self) -> tuple[int, ...]:
        """The HTTP statuses that are transient for the policy's service."""
        return tuple(sorted(getattr(self.policy.service, "statuses", TRANSIENT_STATUSES)))

    @property
    def retries(self) -> int | None:
        """The number of retries within the limits, assuming medium waits; None for no limit."""
        counts = [] if self.attempts is None else [self.attempts - 1]
        if self.timeout is not None:
            counts.append(self._retries_within(self.timeout))
        return min(counts) if counts else None

    @property
    def longest(self) -> float | None:
        """The sum of the longest waits between all attempts in seconds, None without a limit on attempts."""
        if self.attempts is None:
            return None
        total, previous = 0.0, None
        for n in range(self.attempts - 1):
            previous = self.policy.backoff.delay(n, 1.0, previous)
            total += previous
        return total

    def count_retries(self) -> int:
        """Return the number of retries for a target that has no timeout, and record the loss of the timeout."""
        retries = MANY if self.retries is None else self.retries
        if self.timeout is not None:
            self.differs("timeout", f"timeout of {show(self.timeout)}: no limit in time, but {retries} retries")
        self.says("attempts")
        return retries

    def has_full_jitter(self) -> None:
        """Record that the target draws each wait from zero to the whole step."""
        if self.waits.jitter == "full":
            self.says("jitter")
        self.differs("jitter", f"jitter={self.waits.jitter}: full, so waits may also be much shorter")

    def has_no_jitter(self) -> None:
        """Record that the target always waits for the policy's mean wait."""
        self.differs("jitter", f"jitter={self.waits.jitter}: none; each wait is the policy's mean wait")

    def has_usual_statuses(self) -> None:
        """Record that the target repeats the usual transient statuses, and no others."""
        if self.policy.service is not None and frozenset(self.statuses) == TRANSIENT_STATUSES:
            self.differs("errors", "errors: the target classifies errors without a status")
        else:
            usual = ", ".join(map(str, sorted(TRANSIENT_STATUSES)))
            self.differs("errors", f"errors: statuses {usual}; the target classifies errors without a status")

    def knows_idempotent_calls(self) -> None:
        """Record that the target has a list of its own of idempotent calls."""
        self.differs("safety", "safety: by the client's own list of idempotent calls")

    def sees_methods_only(self) -> None:
        """Record that the target decides by the HTTP method of a request."""
        names = ", ".join(sorted(self.methods or ()))
        if self.policy.service is None:
            self.says("safety")
        self.differs("safety", f"safety: by the method alone; {names} are repeated, and no other")

    def _retries_within(self, timeout: float) -> int:
        elapsed, previous = 0.0, None
        for n in range(_MOST_RETRIES):
            previous = self.policy.backoff.delay(n, 0.5, previous)
            elapsed += previous
            if elapsed > timeout:
                return n
        return _MOST_RETRIES


def duration(seconds: float) -> str:
    """Format seconds as protobuf's JSON does ("1.5s"), within the range that gRPC and Envoy accept."""
    return f"{min(max(seconds, LEAST), _LONGEST):.9f}".rstrip("0").rstrip(".") + "s"


def assignments(values: Iterable[tuple[str, object]]) -> list[str]:
    """Return an indented line `name=value,` of Python for each value."""
    return [f"    {name}={value!r}," for name, value in values]


def _may_answer_delays(hook: object) -> bool:
    """Return whether a hook of a policy may answer with a delay; types and the judges of services never do."""
    if isinstance(hook, type | tuple | ErrorVerdicts) or hook is verdict_of_exception:
        return False
    return hook is not None


def _features(policy: Policy, waits: Waits) -> dict[str, str]:
    """Return every feature that the policy has, with the loss if a target does not express it."""
    limits, backoff = policy.limits, policy.backoff
    losses: dict[str, str] = {}
    if policy.service is not None:
        losses["safety"] = "safety: the target does not see which operations are safe to execute twice"
    elif not policy.repeatable:
        losses["safety"] = "repeatable=False: calls that may have been executed are repeated"
    losses["errors"] = "errors: the target decides which failures are transient"
    if limits.attempts is not None:
        losses["attempts"] = f"attempts={limits.attempts}: no limit on attempts"
    if limits.timeout is not None:
        losses["timeout"] = f"timeout of {show(limits.timeout)}: no limit in time"
    if limits.clamp:
        losses["clamp"] = "clamp=True: no last attempt at the deadline"
    if policy.attempt_timeout is not None:
        losses["attempt_timeout"] = f"attempt_timeout of {show(policy.attempt_timeout)}: no limit on an attempt's time"
    losses["backoff"] = f"waits of {waits}: the target's own"
    if not isinstance(backoff, Exponential | Constant | Sequence):
        losses["shape"] = f"backoff={backoff!r}: exponential waits instead"
    elif isinstance(backoff, Sequence):
        losses["shape"] = f"delays={list(backoff.delays)}: exponential waits instead"
    if waits.jitter != "none":
        losses["jitter"] = f"jitter={waits.jitter}: none, so clients that fail together retry together"
    losses["retry_after"] = "Retry-After: not obeyed"
    if limits.timeout is None:
        losses["max_retry_after"] = f"max_retry_after of {show(limits.max_retry_after)}: no such limit"
    if policy.budget is not None:
        losses["budget"] = f"budget={policy.budget!r}: retries are not limited across calls"
    if policy.on_result is not None:
        losses["on_result"] = "on_result: returned values are not judged"
    if any(_may_answer_delays(hook) for hook in (policy.on, policy.on_result)):
        losses["delays"] = "delays: a delay that `on` or `on_result` returns is ignored"
    if policy.on_event is not None:
        losses["on_event"] = "on_event: the listener is not called"
    if policy.retry_exhausted:
        losses["retry_exhausted"] = "retry_exhausted=True: the target does not know reports of inner policies"
    return losses

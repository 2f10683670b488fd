"""A policy in the form that export targets need, and the list of its features that a target loses.

Every feature of the policy begins as a loss. A target calls `says` for each feature that it expresses exactly, and
`differs` for each that it expresses in another way. So a feature that a target forgets is listed, never dropped.
"""

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.export.waits import Waits, difference, full_waits, mean_delays, mean_waits
from forbear.http.request import IDEMPOTENT, READS
from forbear.http.status import TRANSIENT_STATUSES
from forbear.policy import Policy
from forbear.run.endings import RAISE
from forbear.services.errors import ErrorVerdicts
from forbear.services.redis.errors import verdict_of_exception
from forbear.text.duration import show

MANY = 1_000_000
"""The number of retries for targets that require one, if the policy has no limit."""

LEAST = 0.001
"""The shortest duration in seconds that gRPC and Envoy do not round to zero."""

_LONGEST = 315_576_000_000  # seconds: ten thousand years, the limit of protobuf's durations
_MOST_RETRIES = 1_000
_SHOWN = 7  # waits that a loss lists
_SAME = 0.001

T = TypeVar("T")


class Exported(NamedTuple, Generic[T]):
    """The result of an export: `value` for the target, and `losses`, a sentence for each difference or warning.

    `value` is the target's object, keywords for it, or text.
    """

    value: T
    losses: tuple[str, ...]


class Outline:
    """The parts of a policy that targets need, and the losses, which a target records with the methods of this class.

    Raises TypeError if `policy` is no `Policy`.
    """

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
        """Return the outline of a policy for a client of Cloud Storage.

        The policy must have the service Cloud Storage or none, and must not judge errors of Redis. Raises ValueError
        for another.
        """
        outline = cls.for_requests(policy)
        if outline.service not in (None, "cloud_storage"):
            raise ValueError(
                f"`policy` must be for Cloud Storage or for no service in particular, got one for {outline.service}; "
                "take another target, or derive one with `policy.replace(service=None)`"
            )
        return outline

    @classmethod
    def for_requests(cls, policy: Policy) -> "Outline":
        """Return the outline of a policy for a target that sends HTTP requests or RPCs.

        Raises ValueError for a policy that judges errors of Redis, whose waits are for commands on a connection.
        """
        outline = cls(policy)
        if policy.on is verdict_of_exception:
            raise ValueError(
                "`policy` must be for HTTP requests or RPCs, got one for the commands of Redis, with waits of "
                f"{outline.waits}; export the policy of the service that you call (--profile cloud_storage), or name "
                "the errors with `policy.with_on(...)` if these waits are meant"
            )
        return outline

    def says(self, *features: str) -> None:
        """Record that the target expresses these features exactly: remove them from the losses."""
        for feature in features:
            self._losses.pop(feature, None)

    def differs(self, feature: str, how: str) -> None:
        """Record that the target expresses a feature in another way: `how` becomes the sentence in the losses.

        Ignored if the policy does not have the feature, or `says` has recorded it as exact.
        """
        if feature in self._losses:
            self._losses[feature] = how

    def warns(self, topic: str, text: str) -> None:
        """Add the warning "topic: text" to the losses, even if the policy has no such feature.

        It replaces the loss of a feature or an earlier warning with the same topic.
        """
        self._losses[topic] = f"{topic}: {text}"

    def text(self, *lines: str) -> Exported[str]:
        """Return these lines as an exported text that ends with a newline, with the losses recorded until now."""
        return Exported("\n".join([*lines, ""]), self.losses)

    @property
    def losses(self) -> tuple[str, ...]:
        """The sentences of the losses recorded until now: features in the order of importance, then warnings."""
        # A target that never obeys Retry-After loses no limit on it.
        spared = "max_retry_after" if "retry_after" in self._losses else None
        return tuple(loss for feature, loss in self._losses.items() if feature != spared)

    @property
    def service(self) -> str | None:
        """The name of the policy's service, None if it has no service."""
        return None if self.policy.service is None else self.policy.service.name

    @property
    def methods(self) -> frozenset[str] | None:
        """The HTTP methods that a target may repeat if it sees no more of a request; None for all of them.

        A policy without a service has all methods if it is repeatable, else none (an empty set). For the service
        "rfc9110" these are reads, PUT and DELETE, for any other service reads only.
        """
        if self.policy.service is None:
            return None if self.policy.repeats_calls else frozenset()
        return frozenset({*READS, *IDEMPOTENT}) if self.service == "rfc9110" else READS

    @property
    def statuses(self) -> tuple[int, ...]:
        """The HTTP statuses that are transient for the policy's service, sorted.

        For a service that names none, and without a service, these are 408, 429, 500, 502, 503 and 504.
        """
        return tuple(sorted(getattr(self.policy.service, "statuses", TRANSIENT_STATUSES)))

    @property
    def retries(self) -> int | None:
        """The number of retries that fit in the limits on attempts and on time; None without such limits.

        Against the limit on time count only the waits, each of medium length.
        """
        counts = [] if self.attempts is None else [self.attempts - 1]
        if self.timeout is not None:
            counts.append(self._retries_within(self.timeout))
        return min(counts) if counts else None

    @property
    def longest(self) -> float | None:
        """The sum in seconds of the waits between all attempts, each as long as can be.

        None without a limit on attempts.
        """
        if self.attempts is None:
            return None
        total, previous = 0.0, None
        for n in range(self.attempts - 1):
            previous = self.policy.backoff.delay(n, 1.0, previous)
            total += previous
        return total

    def count_retries(self) -> int:
        """Return `retries`, or `MANY` without a limit, for a target that limits the number of retries and not the time.

        Records the limit on attempts as exact, and a timeout as the loss that only this number replaces it.
        """
        retries = MANY if self.retries is None else self.retries
        if self.timeout is not None:
            self.differs("timeout", f"timeout of {show(self.timeout)}: no limit in time, but {retries} retries")
        self.says("attempts")
        return retries

    @property
    def mean_waits(self) -> Waits:
        """The mean waits of the policy, as steps; see `waits.mean_waits`."""
        return mean_waits(self.policy.backoff, self.retries)

    @property
    def full_waits(self) -> Waits:
        """The steps for a target with full jitter that keep the policy's mean waits; see `waits.full_waits`."""
        return full_waits(self.policy.backoff, self.retries)

    @property
    def shown_waits(self) -> int:
        """The number of waits that a loss lists, and that approximations are measured by: at most 7."""
        return _SHOWN if self.retries is None else max(min(self.retries, _SHOWN), 1)

    def means(self) -> list[float]:
        """Return the mean waits of the policy in seconds, for as many retries as a loss lists."""
        return mean_delays(self.policy.backoff, self.shown_waits)

    def waits_become(self, theirs: Iterable[float], source: str) -> None:
        """Record the mean waits of the target in seconds, before the first retries.

        They are exact if none differs from the policy's by a thousandth. Else the loss lists both, and quotes `source`,
        the target's documentation or source code that says why.
        """
        listed = list(theirs)
        ours = mean_delays(self.policy.backoff, len(listed))
        if all(difference(one, other) < _SAME for one, other in zip(listed, ours, strict=True)):
            self.says("backoff", "shape")
        self.differs(
            "backoff", f"waits of {self.waits}: on average {_seconds(listed)} instead of {_seconds(ours)} ({source})"
        )

    def has_full_jitter(self, source: str) -> None:
        """Record that the target draws each wait from zero to the whole step: exact for "full", else a difference.

        `source` is the line of the target's code that is the reason.
        """
        if self.waits.jitter == "full":
            self.says("jitter")
        self.differs("jitter", f"jitter={self.waits.jitter}: full, so waits may also be much shorter ({source})")

    def has_no_jitter(self, source: str) -> None:
        """Record, for a policy with jitter, the difference that the target always waits for the mean wait.

        `source` is the line of the target's code that is the reason.
        """
        self.differs("jitter", f"jitter={self.waits.jitter}: none, so each wait is near the policy's mean ({source})")

    def has_usual_statuses(self) -> None:
        """Record that the target repeats the usual statuses, and classifies errors without a status by itself.

        The usual statuses are 408, 429, 500, 502, 503 and 504.
        """
        if self.policy.service is not None and frozenset(self.statuses) == TRANSIENT_STATUSES:
            self.differs("errors", "errors: the target classifies errors without a status")
        else:
            usual = ", ".join(map(str, sorted(TRANSIENT_STATUSES)))
            self.differs("errors", f"errors: statuses {usual}; the target classifies errors without a status")

    def knows_idempotent_calls(self) -> None:
        """Record the difference that the target decides by a list of its own which calls are safe to repeat."""
        self.differs("safety", "safety: by the client's own list of idempotent calls")

    def sees_methods_only(self) -> None:
        """Record that the target decides by the HTTP method alone which requests it repeats.

        For a policy without a service that is exact, for any other a difference.
        """
        names = ", ".join(sorted(self.methods or ()))
        if self.policy.service is None:
            self.says("safety")
        self.says("chunks")  # no target repeats a PUT to this service
        self.differs("safety", f"safety: by the method alone; {names} are repeated, and no other")

    def _retries_within(self, timeout: float) -> int:
        elapsed, previous = 0.0, None
        for n in range(_MOST_RETRIES):
            previous = self.policy.backoff.delay(n, 0.5, previous)
            elapsed += previous
            if elapsed > timeout:
                return n
        return _MOST_RETRIES


def _seconds(waits: Iterable[float]) -> str:
    return f"{', '.join(f'{each:.3g}' for each in waits)} s"


def duration(seconds: float) -> str:
    """Return seconds as text in the form of protobuf's JSON ("1.5s").

    Values outside the range that gRPC and Envoy accept become its ends: 1 ms and ten thousand years.
    """
    return f"{min(max(seconds, LEAST), _LONGEST):.9f}".rstrip("0").rstrip(".") + "s"


def assignments(values: Iterable[tuple[str, object]]) -> list[str]:
    """Return an indented line `name=value,` of Python for each pair of a name and a value."""
    return [f"    {name}={value!r}," for name, value in values]


def _may_answer_delays(hook: object) -> bool:
    """Return whether a hook of a policy (`on` or `on_result`) may return a delay: whether it is a user's function.

    False for None, for exception types, and for the judges that forbear's services bring.
    """
    if isinstance(hook, type | tuple | ErrorVerdicts) or hook is verdict_of_exception:
        return False
    return hook is not None


def _features(policy: Policy, waits: Waits) -> dict[str, str]:
    """Return the features that the policy has: name, and the sentence of the loss if a target does not express it."""
    limits, backoff = policy.limits, policy.backoff
    losses: dict[str, str] = {}
    if policy.service is not None:
        losses["safety"] = "safety: the target does not see which operations are safe to execute twice"
    elif not policy.repeats_calls:
        losses["safety"] = "repeatable=False: calls that may have been executed are repeated"
    losses["errors"] = "errors: the target decides which failures are transient"
    service = policy.service
    if service is not None and service.name == "cloud_storage" and getattr(service, "documented", False):
        losses["chunks"] = "429 to data of a resumable upload: repeated, although the page on retries calls it final"
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
    if getattr(policy.service, "retry_not_found", False):
        losses["retry_not_found"] = "retry_not_found: 404 is permanent"
    for name, is_set, loss in (
        ("others", bool(policy.others), "the errors of policies joined by | are not retried"),
        ("stop", policy.stop is not None, "the function is not called"),
        ("delay", policy.delay is not None, "the waits do not depend on the error"),
        ("on_give_up", policy.on_give_up is not RAISE, "the last error is raised"),
        ("raise_unsatisfied", policy.raise_unsatisfied, "values that are still refused are no errors"),
        ("on_success", policy.on_success is not None, "the listener is not called"),
    ):
        if is_set:
            losses[name] = f"{name}: {loss}"
    if policy.retry_exhausted:
        losses["retry_exhausted"] = "retry_exhausted=True: the target does not know reports of inner policies"
    return losses

"""A policy in the form that export targets need, and the list of its features that a target loses.

Every feature of the policy begins as a loss. A target calls `says` for each feature that it expresses exactly, and
`differs` for each that it expresses in another way. So a feature that a target forgets is listed, never dropped.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.export.waits import Waits, difference, full_waits, mean_delays, mean_waits
from forbear.http.request import IDEMPOTENT, READS
from forbear.http.status import TRANSIENT_STATUSES
from forbear.policy import Policy
from forbear.run.judges import RAISE
from forbear.services.errors import ErrorVerdicts
from forbear.services.redis.errors import verdict_of_exception
from forbear.text.duration import show

_NOT_CALLED = "the listener is not called"


def features(policy: Policy, waits: Waits) -> Iterator[tuple[str, str, str]]:
    """Yield the features of a policy, the important first: name, topic, and loss where a target lacks it."""
    limits, backoff, service = policy.limits, policy.backoff, policy.service
    topics = {
        "safety": "repeatable=False" if service is None and policy.repeatable is False else "safety",
        "chunks": "429 to data of a resumable upload",
        "attempts": f"attempts={limits.attempts}",
        "timeout": f"timeout of {show(limits.timeout or 0)}",
        "clamp": "clamp=True",
        "attempt_timeout": f"attempt_timeout of {show(policy.attempt_timeout or 0)}",
        "backoff": f"waits of {waits}",
        "shape": f"delays={list(backoff.delays)}" if isinstance(backoff, Sequence) else f"backoff={backoff!r}",
        "jitter": f"jitter={waits.jitter}",
        "retry_after": "Retry-After",
        "max_retry_after": f"max_retry_after of {show(limits.max_retry_after)}",
        "budget": f"budget={policy.budget!r}",
        "retry_exhausted": "retry_exhausted=True",
        "safe": f"safe={list(policy.safe)}",
        "unknown": f"unknown={policy.unknown!r}",
        "enforce": f"enforce={policy.enforce!r}",
    }
    unseen = "the target does not see which operations are safe to execute twice"
    if service is None:
        unseen = "calls that may have been executed are repeated"
        if policy.repeatable is None:
            unseen = "what an error shows is not read, so a write may be executed twice"
    is_page = service is not None and service.name == "cloud_storage" and getattr(service, "documented", False)
    delays = any(map(_may_answer_delays, (policy.on, policy.on_result)))
    for name, is_there, loss in (
        ("safety", service is not None or policy.repeatable is not True, unseen),
        ("errors", True, "the target decides which failures are transient"),
        ("chunks", is_page, "repeated, although the page on retries calls it final"),
        ("attempts", limits.attempts is not None, "no limit on attempts"),
        ("timeout", limits.timeout is not None, "no limit in time"),
        ("clamp", limits.clamp, "no last attempt at the deadline"),
        ("attempt_timeout", policy.attempt_timeout is not None, "no limit on an attempt's time"),
        ("backoff", True, "the target's own"),
        ("shape", not isinstance(backoff, Exponential | Constant), "exponential waits instead"),
        ("jitter", waits.jitter != "none", "none, so clients that fail together retry together"),
        ("retry_after", True, "not obeyed"),
        ("max_retry_after", limits.timeout is None, "no such limit"),
        ("budget", policy.budget is not None, "retries are not limited across calls"),
        ("on_result", policy.on_result is not None, "returned values are not judged"),
        ("delays", delays, "a delay that `on` or `on_result` returns is ignored"),
        ("on_event", policy.on_event is not None, _NOT_CALLED),
        ("retry_not_found", getattr(service, "retry_not_found", False), "404 is permanent"),
        ("others", policy.others, "the errors of policies joined by | are not retried"),
        ("stop", policy.stop is not None, "the function is not called"),
        ("delay", policy.delay is not None, "the waits do not depend on the error"),
        ("on_give_up", policy.on_give_up is not RAISE, "the last error is raised"),
        ("raise_unsatisfied", policy.raise_unsatisfied, "values that are still refused are no errors"),
        ("on_success", policy.on_success is not None, _NOT_CALLED),
        ("retry_exhausted", policy.retry_exhausted, "the target does not know reports of inner policies"),
        ("key", policy.key is not None, "no idempotency key is made"),
        ("safe", bool(policy.safe), "the target does not know them"),
        ("apis", bool(policy.apis), "what is known of these APIs is not used"),
        ("unknown", policy.unknown == "stop", "a call of which nothing is known is repeated"),
        ("enforce", policy.enforce == "warn", _NOT_CALLED),
    ):
        if is_there:
            yield name, topics.get(name, name), loss


def _may_answer_delays(hook: object) -> bool:
    """Return whether a hook of a policy (`on` or `on_result`) may return a delay: whether it is a user's function."""
    is_ours = isinstance(hook, type | tuple | ErrorVerdicts) or hook is verdict_of_exception
    return hook is not None and not is_ours


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
    """An object, keywords or text for a target, and a sentence for each difference. Example: see `source`."""

    value: T
    losses: tuple[str, ...]


class Outline:
    """The parts of a policy that targets need, and the losses, which a target records with the methods here."""

    def __init__(self, policy: Policy) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"`policy` must be a forbear.Policy, got {policy!r}")
        self.policy = policy
        self.attempts = policy.limits.attempts
        self.timeout = policy.limits.timeout
        self.attempt_timeout = policy.attempt_timeout
        self.waits = Waits.from_backoff(policy.backoff)
        self._topics, self._losses = dict[str, str](), dict[str, str]()
        for feature, topic, loss in features(policy, self.waits):
            self._topics[feature], self._losses[feature] = topic, f"{topic}: {loss}"

    def says(self, *features: str) -> None:
        """Record that the target expresses these features exactly: remove them from the losses."""
        for feature in features:
            self._losses.pop(feature, None)

    def differs(self, feature: str, how: str) -> None:
        """Record that the target expresses a feature in another way, if the policy has it and it is not exact."""
        if feature in self._losses:
            self._losses[feature] = f"{self._topics[feature]}: {how}"

    def warns(self, topic: str, text: str) -> None:
        """Add the warning "topic: text" to the losses, even if the policy has no such feature."""
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

        A policy without a service has all methods with `repeatable=True`, and none with False. By default it has
        reads, PUT and DELETE, as "rfc9110" has; other services have reads.
        """
        if self.policy.service is None and self.policy.repeatable is not None:
            return None if self.policy.repeatable else frozenset()
        return frozenset({*READS, *IDEMPOTENT}) if self.service in (None, "rfc9110") else READS

    @property
    def statuses(self) -> tuple[int, ...]:
        """The HTTP statuses that are transient for the policy's service, sorted; the usual ones if it names none."""
        return tuple(sorted(getattr(self.policy.service, "statuses", TRANSIENT_STATUSES)))

    @property
    def retries(self) -> int | None:
        """The number of retries that fit in the limits, with waits of medium length; None without limits."""
        counts = [] if self.attempts is None else [self.attempts - 1]
        if self.timeout is not None:
            counts.append(self._count_within(self.timeout))
        return min(counts) if counts else None

    @property
    def longest(self) -> float | None:
        """The sum in seconds of the waits between all attempts, each as long as can be; None without such a limit."""
        return None if self.attempts is None else sum(self._delays(self.attempts - 1, 1.0))

    def count_retries(self) -> int:
        """Return `retries`, or `MANY`, for a target that limits retries and not the time, and record that."""
        retries = MANY if self.retries is None else self.retries
        self.differs("timeout", f"no limit in time, but {retries} retries")
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

    @property
    def means(self) -> list[float]:
        """The mean waits of the policy in seconds, for as many retries as a loss lists."""
        return mean_delays(self.policy.backoff, self.shown_waits)

    def waits_become(self, theirs: Iterable[float], source: str) -> None:
        """Record the mean waits of the target before the first retries; `source` is the reason why they may differ."""
        listed = list(theirs)
        ours = mean_delays(self.policy.backoff, len(listed))
        if all(difference(one, other) < _SAME for one, other in zip(listed, ours, strict=True)):
            self.says("backoff", "shape")
        self.differs("backoff", f"on average {_seconds(listed)} instead of {_seconds(ours)} ({source})")

    def takes_full_waits(self, source: str) -> Waits:
        """Return `full_waits`, and record that the target draws each wait from zero to the step, as `source` says."""
        waits = self.full_waits
        self.waits_become([step / 2 for step in waits.steps(self.shown_waits)], source)
        self.has_full_jitter(source)
        return waits

    def takes_mean_waits(self, source: str) -> Waits:
        """Return `mean_waits`, and record that the target always waits for the step, as `source` says."""
        waits = self.mean_waits
        self.waits_become(waits.steps(self.shown_waits), source)
        self.differs("jitter", f"none, so each wait is near the policy's mean ({source})")
        return waits

    def has_full_jitter(self, source: str) -> None:
        """Record that the target draws each wait from zero to the whole step: exact for "full", else a difference."""
        if self.waits.jitter == "full":
            self.says("jitter")
        self.differs("jitter", f"full, so waits may also be much shorter ({source})")

    def has_usual_statuses(self) -> None:
        """Record that the target repeats the usual statuses, and classifies errors without a status by itself."""
        usual = "" if self.knows_statuses(TRANSIENT_STATUSES) else _USUAL
        self.differs("errors", f"{usual}the target classifies errors without a status")

    def knows_statuses(self, statuses: Iterable[int]) -> bool:
        """Return whether the policy's service has just these transient statuses; False without a service."""
        return self.policy.service is not None and frozenset(self.statuses) == frozenset(statuses)

    def knows_idempotent_calls(self) -> None:
        """Record the difference that the target decides by a list of its own which calls are safe to repeat."""
        self.differs("safety", "by the client's own list of idempotent calls")

    def sees_methods_only(self) -> None:
        """Record that the target decides by the HTTP method alone; exact for a policy that is `repeatable` or not."""
        if self.policy.service is None and self.policy.repeatable is not None:
            self.says("safety")
        self.says("chunks")  # no target repeats a PUT to this service
        names = ", ".join(sorted(self.methods or ()))
        self.differs("safety", f"by the method alone; {names} are repeated, and no other")

    def _count_within(self, timeout: float) -> int:
        elapsed = 0.0
        for n, delay in enumerate(self._delays(_MOST_RETRIES, 0.5)):
            elapsed += delay
            if elapsed > timeout:
                return n
        return _MOST_RETRIES

    def _delays(self, retries: int, u: float) -> Iterator[float]:
        """Yield the waits before so many retries, where every random draw is `u`."""
        previous = None
        for n in range(retries):
            previous = self.policy.backoff.delay(n, u, previous)
            yield previous


_USUAL = f"statuses {', '.join(map(str, sorted(TRANSIENT_STATUSES)))}; "


def outline_requests(policy: Policy) -> Outline:
    """Return the outline of a policy for HTTP requests or RPCs; ValueError for one that judges errors of Redis."""
    outline = Outline(policy)
    if policy.on is verdict_of_exception:
        raise ValueError(
            "`policy` must be for HTTP requests or RPCs, got one for the commands of Redis, with waits of "
            f"{outline.waits}; export the policy of the service that you call (--profile cloud_storage), or name "
            "the errors with `policy.with_on(...)` if these waits are meant"
        )
    return outline


def outline_storage(policy: Policy) -> Outline:
    """Return the outline of a policy for a client of Cloud Storage; ValueError for one of another service."""
    outline = outline_requests(policy)
    if outline.service not in (None, "cloud_storage"):
        raise ValueError(
            f"`policy` must be for Cloud Storage or for no service in particular, got one for {outline.service}; "
            "take another target, or derive one with `policy.replace(service=None)`"
        )
    return outline


def duration(seconds: float) -> str:
    """Return seconds, from 1 ms to ten thousand years, as gRPC and Envoy take them: protobuf's JSON ("1.5s")."""
    return f"{min(max(seconds, LEAST), _LONGEST):.9f}".rstrip("0").rstrip(".") + "s"


def assignments(values: dict[str, object]) -> list[str]:
    """Return an indented line `name=value,` of Python for each name and value."""
    return [f"    {name}={value!r}," for name, value in values.items()]


def _seconds(waits: Iterable[float]) -> str:
    return f"{', '.join(f'{each:.3g}' for each in waits)} s"

"""A policy as others may say it, and what of it is still unsaid. It knows no target.

Every feature of the policy begins as a loss. A target strikes out what it says (`says`) or puts down how it differs
(`differs`); so what a target forgets is listed, never dropped.
"""

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.decide import show
from forbear.export.waits import Waits
from forbear.http.request import IDEMPOTENT, READS
from forbear.http.status import TRANSIENT_STATUSES
from forbear.policy import Policy
from forbear.services.errors import ErrorVerdicts
from forbear.services.redis.errors import verdict_of_exception

MANY = 1_000_000
"""The number of retries for targets that must be told one, where the policy has no limit."""

_LOOKED_AT = 1_000


class Outline:
    """What targets need to know of a policy, and the list of losses."""

    def __init__(self, policy: Policy) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"`policy` must be a forbear.Policy, got {policy!r}")
        self.policy = policy
        self.attempts = policy.limits.attempts
        self.timeout = policy.limits.timeout
        self.attempt_timeout = policy.attempt_timeout
        self.waits = Waits.of(policy.backoff)
        self._unsaid = _features(policy)

    @classmethod
    def for_storage(cls, policy: Policy) -> "Outline":
        """That of a policy for a client of Cloud Storage; ValueError for policies of other services."""
        outline = cls(policy)
        if outline.service not in (None, "cloud_storage"):
            raise ValueError(
                f"`policy` must be for Cloud Storage or for no service in particular, got one for {outline.service}; "
                "take another target, or derive one with `policy.replace(service=None)`"
            )
        return outline

    def says(self, *features: str) -> None:
        """The target says these features as they are."""
        for feature in features:
            self._unsaid.pop(feature, None)

    def differs(self, feature: str, how: str) -> None:
        """The target says a feature in another way, or in part; nothing is listed that the policy does not have."""
        if feature in self._unsaid:
            self._unsaid[feature] = how

    def warns(self, what: str, text: str) -> None:
        """List something that who uses the export must know, whether or not the policy has such a feature."""
        self._unsaid[what] = f"{what}: {text}"

    @property
    def losses(self) -> tuple[str, ...]:
        """What was not said, in the order of importance."""
        return tuple(self._unsaid.values())

    @property
    def service(self) -> str | None:
        """The name of the policy's service."""
        return None if self.policy.service is None else self.policy.service.name

    @property
    def methods(self) -> frozenset[str] | None:
        """The HTTP methods that the policy repeats where nobody sees more of a request; None for all of them."""
        if self.policy.service is None:
            return None if self.policy.repeatable else frozenset()
        return frozenset({*READS, *IDEMPOTENT}) if self.service == "rfc9110" else READS

    @property
    def statuses(self) -> tuple[int, ...]:
        """The HTTP statuses that the policy's service takes for transient."""
        return tuple(sorted(getattr(self.policy.service, "statuses", TRANSIENT_STATUSES)))

    @property
    def retries(self) -> int | None:
        """The retries that its limits allow, in time by waits of medium length; None for any number."""
        counts = [] if self.attempts is None else [self.attempts - 1]
        if self.timeout is not None:
            counts.append(self._fitting(self.timeout))
        return min(counts) if counts else None

    @property
    def longest(self) -> float | None:
        """The seconds of all waits between its attempts at their longest, None where their number has no limit."""
        if self.attempts is None:
            return None
        total, previous = 0.0, None
        for n in range(self.attempts - 1):
            previous = self.policy.backoff.delay(n, 1.0, previous)
            total += previous
        return total

    def tells_usual_statuses(self) -> None:
        """The target repeats the statuses that most clients take for transient, and no others."""
        if self.policy.service is not None and frozenset(self.statuses) == TRANSIENT_STATUSES:
            self.differs("errors", "errors: those without a status as the target sees them")
        else:
            usual = ", ".join(map(str, sorted(TRANSIENT_STATUSES)))
            self.differs("errors", f"errors: statuses {usual}, and those without a status as the target sees them")

    def count(self) -> int:
        """The retries for a target that has no limit in time: those that fit into it; what that means is listed."""
        retries = MANY if self.retries is None else self.retries
        if self.timeout is not None:
            self.differs("timeout", f"timeout of {show(self.timeout)}: no limit in time, but {retries} retries")
        self.says("attempts")
        return retries

    def tells_methods_apart(self) -> None:
        """The target repeats by the method of a request alone."""
        names = ", ".join(sorted(self.methods or ()))
        if self.policy.service is None:
            self.says("safety")
        self.differs("safety", f"safety: told by the method alone; {names} are repeated, and no other")

    def _fitting(self, timeout: float) -> int:
        elapsed, previous = 0.0, None
        for n in range(_LOOKED_AT):
            previous = self.policy.backoff.delay(n, 0.5, previous)
            elapsed += previous
            if elapsed > timeout:
                return n
        return _LOOKED_AT


def _is_judge(hook: object) -> bool:
    """Whether a hook of a policy may answer with more than yes or no; the judges of services have no delays."""
    if isinstance(hook, type | tuple | ErrorVerdicts) or hook is verdict_of_exception:
        return False
    return hook is not None


def _features(policy: Policy) -> dict[str, str]:
    """Every feature that the policy has, with what is lost where a target cannot say it."""
    limits, backoff = policy.limits, policy.backoff
    found: dict[str, str] = {}
    if policy.service is not None:
        found["safety"] = "safety: what may be executed twice is not told apart by operation and condition"
    elif not policy.repeatable:
        found["safety"] = "repeatable=False: what may have been executed is repeated"
    found["errors"] = "errors: which failures are transient is the target's own choice"
    if limits.attempts is not None:
        found["attempts"] = f"attempts={limits.attempts}: no limit on attempts"
    if limits.timeout is not None:
        found["timeout"] = f"timeout of {show(limits.timeout)}: no limit in time"
    if limits.clamp:
        found["clamp"] = "clamp=True: no last attempt at the deadline"
    if policy.attempt_timeout is not None:
        found["attempt_timeout"] = f"attempt_timeout of {show(policy.attempt_timeout)}: an attempt may take any time"
    found["backoff"] = f"waits of {Waits.of(backoff)}: the target's own"
    if not isinstance(backoff, Exponential | Constant | Sequence):
        found["shape"] = f"backoff={backoff!r}: waits grow by powers instead"
    elif isinstance(backoff, Sequence):
        found["shape"] = f"delays={list(backoff.delays)}: waits grow by powers instead"
    jitter = Waits.of(backoff).jitter
    if jitter != "none":
        found["jitter"] = f"jitter={jitter}: waits are not spread out, so clients that fail together stay together"
    found["retry_after"] = "Retry-After: the server's own word on when to come back is not obeyed"
    if limits.timeout is None:
        found["max_retry_after"] = f"max_retry_after of {show(limits.max_retry_after)}: no such limit"
    if policy.budget is not None:
        found["budget"] = f"budget={policy.budget!r}: retries are not limited across calls"
    if policy.on_result is not None:
        found["on_result"] = "on_result: returned values are not judged"
    if any(_is_judge(hook) for hook in (policy.on, policy.on_result)):
        found["delays"] = "delays: a wait that `on` or `on_result` answers with is not kept"
    if policy.on_event is not None:
        found["on_event"] = "on_event: nobody is told"
    if policy.retry_exhausted:
        found["retry_exhausted"] = "retry_exhausted=True: the target does not know reports of inner policies"
    return found

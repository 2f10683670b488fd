"""`decide`: the one decision after a failed attempt, to wait and try again or to stop. A pure function."""

from enum import Enum

from forbear.core import check
from forbear.core.check import INFINITY, LARGEST
from forbear.core.limits import Limits
from forbear.core.verdict import Kind, Verdict
from forbear.text.duration import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.core.protocols import Backoff


_TRANSIENT, _PERMANENT, _CONFLICT = Kind.TRANSIENT, Kind.PERMANENT, Kind.CONFLICT  # slow to look up before 3.12

_LONGEST_WAIT = 100 * 365.25 * 86_400  # in seconds; no system can wait much longer


class Reason(Enum):
    """The rule that stopped a run; its value is the rule in words. SETTLED ends it with a success.

    Example: see `Report`.
    """

    PERMANENT = "the error is permanent"
    CONFLICT = "a conflict: only the whole read-modify-write may be repeated"
    UNSAFE = "the attempt may have been executed and a repeat could do harm"
    ATTEMPTS = "attempts"
    TIMEOUT = "timeout"
    RETRY_AFTER = "the server asked for a longer wait"
    BUDGET = "the retry budget is used up"
    BODY = "the body cannot be sent again"
    STOPPED = "the caller stopped the run"
    EXHAUSTED = "the retries of the client itself are used up; turn them off, or pass retry_exhausted=True"
    BROKEN = "a function of the policy raised an error"
    SETTLED = "a read showed that an earlier attempt had worked"

    @property
    def code(self) -> str:
        """The word for the rule that ends each note, such as "retry_after"; docs/troubleshooting.md has a section."""
        return self.name.lower()


class Wait:
    """The decision to wait `delay` seconds and then to try again. Example: see `decide`."""

    __slots__ = ("delay",)

    def __init__(self, delay: float) -> None:
        self.delay = delay

    def __repr__(self) -> str:
        return f"Wait({self.delay!r})"


class Stop:
    """The decision to give up; `reason` is the rule and `text` the rule in words (default: the reason's value).

    Example: see `decide`.
    """

    __slots__ = ("reason", "text")

    def __init__(self, reason: Reason, text: str | None = None) -> None:
        self.reason = reason
        self.text = reason.value if text is None else text

    def __repr__(self) -> str:
        return f"Stop({self.reason!r}, {self.text!r})"


def decide(
    limits: Limits,
    backoff: "Backoff",
    verdict: "Verdict",
    *,
    attempt: int,
    elapsed: float,
    u: float,
    repeatable: bool,
    previous: float | None = None,
) -> Wait | Stop:
    """Decide after a failed attempt: return `Wait` to try again, or `Stop`, which has the reason.

    `attempt` is the number of the failed attempt (1 is the first call), `elapsed` the seconds since before the first
    attempt, and `u` a random number, uniform in [0, 1). `repeatable` says whether the operation may be executed twice.
    `previous` is the delay before this attempt, None before the first retry.

    Stops for the kinds PERMANENT and CONFLICT, and for TRANSIENT unless `repeatable`. Then stops at a limit: of
    attempts, of the wait that the server asks for, or of time. Otherwise the wait is the verdict's own delay, or that
    of the backoff; a wait that the server asks for is the minimum, and gets jitter. With `limits.clamp`, a wait past
    the deadline is cut there instead of stopping.

    >>> limits, backoff = forbear.Limits(attempts=2), forbear.Constant(1)
    >>> decide(limits, backoff, TRANSIENT, attempt=1, elapsed=0, u=0.5, repeatable=True)
    Wait(1.0)
    >>> decide(limits, backoff, TRANSIENT, attempt=1, elapsed=0, u=0.5, repeatable=False).reason
    <Reason.UNSAFE: ...>
    """
    kind = verdict.kind
    if kind is not _TRANSIENT:
        if kind is _PERMANENT:
            return Stop(Reason.PERMANENT)
        if kind is _CONFLICT:
            return Stop(Reason.CONFLICT)
    elif not repeatable:
        return Stop(Reason.UNSAFE)

    attempts = limits.attempts
    if attempts is not None and attempt >= attempts:
        return Stop(Reason.ATTEMPTS, _explain_attempts(limits, attempts))

    timeout = limits.timeout
    left = INFINITY if timeout is None else timeout - elapsed
    retry_after = verdict.retry_after
    if retry_after is not None and retry_after > (limits.max_retry_after if timeout is None else left):
        return Stop(Reason.RETRY_AFTER, _explain_retry_after(retry_after, verdict.wait_from, limits, elapsed))

    delay = verdict.delay
    if delay is None:
        delay = backoff.delay(attempt - 1, u, previous)
        if type(delay) is not float or not 0 <= delay < INFINITY:
            delay = _check_delay(delay, backoff)
    if retry_after is not None:
        # Add jitter, because all clients got the same number; the jitter alone must not break the deadline.
        jittered = retry_after + u * max(1.0, retry_after / 10)
        delay = max(delay, min(jittered, left, LARGEST))

    if delay >= left:
        if left <= 0 or (delay > left and not limits.clamp):
            return Stop(Reason.TIMEOUT, _explain_timeout(delay, limits, left))
        delay = min(delay, left)
    if delay > _LONGEST_WAIT:
        return Stop(Reason.TIMEOUT, f"the next wait of {show(delay)} would be longer than 100 years")
    return Wait(delay)


def _check_delay(delay: object, backoff: "Backoff") -> float:
    """Return the delay of a user's backoff as a float; raises ValueError if it is no finite number from 0 on."""
    if not isinstance(delay, int | float) or not 0 <= delay <= LARGEST:
        raise ValueError(
            "`backoff` must return finite numbers of seconds that are zero or more, "
            f"got {check.shown(delay)} from {check.shown(backoff)}"
        )
    return float(delay)


def _explain_attempts(limits: Limits, attempts: int) -> str:
    """Return the text for the limit of attempts; it says "default" if nobody chose the limit."""
    name = "limit" if limits.chosen[0] else "default limit"
    return f"{name} of {attempts} attempt{'' if attempts == 1 else 's'} reached"


def _show_timeout(limits: Limits) -> str:
    """Return the timeout in words, with "default" if nobody chose it."""
    return f"{'timeout' if limits.chosen[1] else 'default timeout'} of {show(limits.timeout or 0)}"


def _explain_retry_after(retry_after: float, source: str | None, limits: Limits, elapsed: float) -> str:
    by = f" ({source})" if source else ""
    if retry_after == INFINITY:
        return f"the server asked not to be called again{by}"
    wait = f"the server asked for a wait of {show(retry_after)}{by}"
    if limits.timeout is None:
        return f"{wait}, more than max_retry_after={show(limits.max_retry_after)}"
    return f"{wait}, with {show(max(limits.timeout - elapsed, 0))} left of the {_show_timeout(limits)}"


def _explain_timeout(delay: float, limits: Limits, left: float) -> str:
    if left <= 0:
        return f"{_show_timeout(limits)} reached"
    return f"{_show_timeout(limits)} would be passed by the next wait of {show(delay)}"

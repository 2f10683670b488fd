"""The features of a policy that an export may lose, and the words for each loss."""

from collections.abc import Iterator

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.export.waits import Waits
from forbear.policy import Policy
from forbear.run.endings import RAISE
from forbear.services.error_verdicts import ErrorVerdicts
from forbear.services.redis.errors import verdict_of_exception
from forbear.text.duration import show

_NOT_CALLED = "the listener is not called"


def features(policy: Policy, waits: Waits) -> Iterator[tuple[str, str, str]]:
    """Yield the features of a policy, the important first: name, topic, and loss where a target lacks it."""
    limits, backoff, service = policy.limits, policy.backoff, policy.service
    topics = {
        "safety": "repeatable=False" if service is None else "safety",
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
    }
    unseen = "calls that may have been executed are repeated"
    if service is not None:
        unseen = "the target does not see which operations are safe to execute twice"
    is_page = service is not None and service.name == "cloud_storage" and getattr(service, "documented", False)
    delays = any(map(_may_answer_delays, (policy.on, policy.on_result)))
    for name, is_there, loss in (
        ("safety", service is not None or not policy.repeats_calls, unseen),
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
    ):
        if is_there:
            yield name, topics.get(name, name), loss


def _may_answer_delays(hook: object) -> bool:
    """Return whether a hook of a policy (`on` or `on_result`) may return a delay: whether it is a user's function."""
    is_ours = isinstance(hook, type | tuple | ErrorVerdicts) or hook is verdict_of_exception
    return hook is not None and not is_ours

"""Export a policy to HTTP clients of Python with retries of their own: urllib3 and botocore."""

from typing import TYPE_CHECKING, Any

from forbear.core.budget import TokenBucket
from forbear.export.outline import Exported, Outline, assignments
from forbear.export.python import needed
from forbear.policy import Policy

if TYPE_CHECKING:
    from botocore.config import Config
    from urllib3.util import Retry

_QUOTA = TokenBucket(capacity=500, deposit=1, cost=5, refund=True)


def urllib3(policy: Policy) -> "Exported[Retry]":
    """Return a `urllib3.util.Retry`, which sees the method and the status of a request, and connection errors.

    After the last attempt the caller gets the response unchanged, without an exception for its status. The result is an
    `Exported`, which also lists what is lost. Raises ImportError without urllib3.
    """
    with needed("urllib3", "urllib3"):
        from urllib3.util import Retry

    outline = Outline(policy)
    parameters = _urllib3_parameters(outline)
    if not hasattr(Retry, "DEFAULT_RETRY_AFTER_MAX"):
        del parameters["retry_after_max"]
        outline.warns("urllib3", "before 2.6.3 it obeys any Retry-After, however long")
    return Exported(Retry(**parameters), outline.losses)


def urllib3_source(policy: Policy) -> Exported[str]:
    """Return Python code that makes a `urllib3.util.Retry` called RETRY, for urllib3 2.6.3 and newer.

    The result is an `Exported`, which also lists what is lost.
    """
    outline = Outline(policy)
    parameters = assignments(_urllib3_parameters(outline).items())
    return outline.text("from urllib3.util import Retry  # 2.6.3 or newer", "", "RETRY = Retry(", *parameters, ")")


def _urllib3_parameters(outline: Outline) -> dict[str, Any]:
    policy, waits = outline.policy, outline.waits
    retries = outline.count_retries()
    outline.differs(
        "backoff", f"waits of {waits}: the first retry comes at once, then doubled from {2 * waits.initial:g} s"
    )
    spread = (
        waits.spread if waits.jitter in ("documented", "spread") else 0 if waits.jitter == "none" else waits.initial
    )
    if waits.jitter == "documented":
        outline.says("jitter")
    outline.differs("jitter", f"jitter={waits.jitter}: up to {spread:g} s more for each wait, none at the longest")
    outline.differs("retry_after", "Retry-After: obeyed without jitter")
    if outline.timeout is None:
        outline.says("max_retry_after")
    methods = outline.methods
    outline.sees_methods_only()
    if policy.service is None:
        outline.differs("errors", "errors: connection errors, and statuses 408, 429, 500, 502, 503, 504")
    else:
        outline.differs("errors", "errors: connection errors as urllib3 classifies them; the policy's statuses")
    repeated = retries if methods is None or methods else 0
    return {
        "total": retries,
        "connect": retries,
        "read": repeated,
        "status": repeated,
        "other": repeated,
        "allowed_methods": tuple(sorted(methods)) if methods else None,
        "status_forcelist": outline.statuses if repeated else (),
        "backoff_factor": waits.initial,
        "backoff_max": waits.maximum,
        "backoff_jitter": spread,
        "retry_after_max": round(policy.limits.max_retry_after if outline.timeout is None else outline.timeout),
        "raise_on_status": False,
    }


def botocore(policy: Policy) -> "Exported[Config]":
    """Return a `botocore.config.Config` in the mode "standard", which has waits and errors of its own.

    From the policy come the number of attempts and the timeouts of one attempt. The result is an `Exported`, which also
    lists what is lost. Raises ImportError without botocore.
    """
    with needed("botocore", "botocore"):
        from botocore.config import Config

    outline = Outline(policy)
    return Exported(Config(**_botocore_parameters(outline)), outline.losses)


def botocore_source(policy: Policy) -> Exported[str]:
    """Return Python code that makes a `botocore.config.Config` called CONFIG, as `botocore` does.

    The result is an `Exported`, which also lists what is lost.
    """
    outline = Outline(policy)
    parameters = assignments(_botocore_parameters(outline).items())
    return outline.text("from botocore.config import Config", "", "CONFIG = Config(", *parameters, ")")


def _botocore_parameters(outline: Outline) -> dict[str, Any]:
    retries = outline.count_retries()
    outline.differs("backoff", f"waits of {outline.waits}: up to 1 s, doubled up to 20 s")
    if outline.waits.jitter == "full":
        outline.says("jitter")
    outline.differs("jitter", f"jitter={outline.waits.jitter}: full")
    budget = outline.policy.budget
    if budget is not None and budget._rule == _QUOTA:
        outline.differs("budget", "budget: one for each client, and timeouts cost more")
    elif budget is None:
        outline.warns("budget", "a quota of 500 tokens for each client, as in Budget.aws()")
    parameters: dict[str, Any] = {"retries": {"total_max_attempts": retries + 1, "mode": "standard"}}
    if outline.attempt_timeout is not None:
        parameters |= {"connect_timeout": outline.attempt_timeout, "read_timeout": outline.attempt_timeout}
        outline.differs("attempt_timeout", "attempt_timeout: once for the connection, and again for each read")
    return parameters

"""Export a policy to HTTP clients of Python with retries of their own: urllib3 and botocore."""

from typing import TYPE_CHECKING, Any

from forbear.core.budget import TokenBucket
from forbear.export.outline import Exported, Outline, assignments, outline_requests
from forbear.export.python import importing
from forbear.export.waits import mean_of_draws
from forbear.policy import Policy

if TYPE_CHECKING:
    from botocore.config import Config
    from urllib3.util import Retry

_URLLIB3_SOURCE = "urllib3, util/retry.py: `if consecutive_errors_len <= 1: return 0`"
_URLLIB3_JITTER = "urllib3, util/retry.py: `backoff_value += random.random() * self.backoff_jitter`"
_BOTOCORE_SOURCE = (
    "botocore, retries/standard.py: `'throttling_base_scale': 1, 'non_throttling_base_scale': 0.05`, and "
    "`t_i = self._random() * min(self._get_base_scale(context) * (self._base ** (context.attempt_number - 1)), ...)`"
)
_QUOTA = TokenBucket(capacity=500, deposit=1, cost=14, refund=True, throttled_cost=5)


def urllib3(policy: Policy) -> "Exported[Retry]":
    """Return a `urllib3.util.Retry`; after the last attempt the caller gets the response unchanged.

    >>> urllib3(forbear.retry(OSError, attempts=3)).value.total
    2
    """
    with importing("urllib3", "urllib3"):
        from urllib3.util import Retry

    outline = outline_requests(policy)
    parameters = _urllib3_parameters(outline)
    if not hasattr(Retry, "DEFAULT_RETRY_AFTER_MAX"):
        del parameters["retry_after_max"]
        outline.warns("urllib3", "before 2.6.3 it obeys any Retry-After, however long")
    return Exported(Retry(**parameters), outline.losses)


def urllib3_source(policy: Policy) -> Exported[str]:
    """Return Python code that makes a `urllib3.util.Retry` called RETRY, for urllib3 2.6.3 and newer."""
    outline = outline_requests(policy)
    parameters = assignments(_urllib3_parameters(outline))
    return outline.text("from urllib3.util import Retry  # 2.6.3 or newer", "", "RETRY = Retry(", *parameters, ")")


def _urllib3_parameters(outline: Outline) -> dict[str, Any]:
    policy, waits = outline.policy, outline.waits
    retries = outline.count_retries()
    factor, spread, longest = _urllib3_waits(outline)
    steps = (factor * 2.0**n for n in range(1, outline.shown_waits))
    outline.waits_become(
        [0.0, *(mean_of_draws(step, spread, longest) for step in steps)],
        f"the first retry comes at once; {_URLLIB3_SOURCE}",
    )
    if waits.jitter == "documented" and spread == waits.spread:
        outline.says("jitter")
    outline.differs("jitter", f"up to {spread:g} s more for each wait, none at the longest ({_URLLIB3_JITTER})")
    outline.differs("retry_after", "obeyed without jitter")
    if outline.timeout is None:
        outline.says("max_retry_after")
    methods = outline.methods
    outline.sees_methods_only()
    if policy.service is None:
        outline.differs("errors", "connection errors, and statuses 408, 429, 500, 502, 503, 504")
    else:
        outline.differs("errors", "connection errors as urllib3 classifies them; the policy's statuses")
    repeated = retries if methods is None or methods else 0
    return {
        "total": retries,
        "connect": retries,
        "read": repeated,
        "status": repeated,
        "other": repeated,
        "allowed_methods": tuple(sorted(methods)) if methods else None,
        "status_forcelist": outline.statuses if repeated else (),
        "backoff_factor": factor,
        "backoff_max": longest,
        "backoff_jitter": spread,
        "retry_after_max": round(policy.limits.max_retry_after if outline.timeout is None else outline.timeout),
        "raise_on_status": False,
    }


def _urllib3_waits(outline: Outline) -> tuple[float, float, float]:
    """Return `backoff_factor`, `backoff_jitter` and `backoff_max` whose mean waits differ least from the policy's."""
    waits, mean = outline.waits, outline.mean_waits
    if mean.multiplier == 1:
        return mean.initial, 0, mean.initial
    if waits.multiplier == 2 and waits.jitter in ("documented", "none") and not waits.spread > waits.initial:
        return waits.initial, waits.spread, waits.maximum
    shares = [each / 2**n for n, each in enumerate(outline.means) if n and each < mean.maximum] or [mean.initial]
    factor = (min(shares) * max(shares)) ** 0.5
    if waits.jitter == "none":
        return float(f"{factor:.4g}"), 0, mean.maximum
    return float(f"{0.95 * factor:.4g}"), float(f"{0.4 * factor:.4g}"), mean.maximum


def botocore(policy: Policy) -> "Exported[Config]":
    """Return a `botocore.config.Config` in the mode "standard", with the policy's attempts and attempt timeout.

    >>> botocore(forbear.retry(OSError, attempts=3)).value.retries
    {'total_max_attempts': 3, 'mode': 'standard'}
    """
    with importing("botocore", "botocore"):
        from botocore.config import Config

    outline = outline_requests(policy)
    return Exported(Config(**_botocore_parameters(outline)), outline.losses)


def botocore_source(policy: Policy) -> Exported[str]:
    """Return Python code that makes a `botocore.config.Config` called CONFIG, as `botocore` does."""
    outline = outline_requests(policy)
    parameters = assignments(_botocore_parameters(outline))
    return outline.text("from botocore.config import Config", "", "CONFIG = Config(", *parameters, ")")


def _botocore_parameters(outline: Outline) -> dict[str, Any]:
    retries = outline.count_retries()
    outline.differs(
        "backoff",
        "up to 0.05 s, doubled up to 20 s; from 1 s if throttled, and in older "
        f"versions for every error ({_BOTOCORE_SOURCE})",
    )
    if outline.waits.jitter == "full":
        outline.says("jitter")
    outline.differs("jitter", "full")
    budget = outline.policy.budget
    if budget is not None and budget._rule == _QUOTA:
        outline.warns("budget", "one for each client")
    elif budget is None:
        outline.warns("budget", "a quota of 500 tokens for each client, as in Budget.aws()")
    parameters: dict[str, Any] = {"retries": {"total_max_attempts": retries + 1, "mode": "standard"}}
    if outline.attempt_timeout is not None:
        parameters |= {"connect_timeout": outline.attempt_timeout, "read_timeout": outline.attempt_timeout}
        outline.differs("attempt_timeout", "once for the connection, and again for each read")
    return parameters

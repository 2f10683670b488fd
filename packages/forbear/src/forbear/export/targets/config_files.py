"""Export a policy to configuration files of programs that retry: Envoy, gsutil and gcloud."""

import json
from itertools import product
from math import ceil, floor
from typing import Any

from forbear.core.admission import ActiveShare
from forbear.core.budget import Ratio
from forbear.export.outline import LEAST, MANY, Exported, Outline, duration, outline_requests, outline_storage
from forbear.export.waits import difference, mean_of_draws
from forbear.policy import Policy
from forbear.text.duration import show

_ENVOY_SOURCE = "Envoy, backoff_strategy.cc: `return (random_.random() % backoff)`"
_APITOOLS_SOURCE = "apitools, util.py: `wait_time = 2 ** retry_attempt`"
_APITOOLS_JITTER = "apitools, util.py: `wait_time += random.uniform(-max_jitter, max_jitter)`"
_APITOOLS_STATUSES = (
    "apitools, http_wrapper.py: `response.status_code >= 500 or response.status_code == TOO_MANY_REQUESTS`"
)
_GCLOUD_FIRST, _GCLOUD_LONGEST = 2.0, 2.5  # seconds, on average and at most
_GCLOUD_SOURCE = (
    "each after a wait of apitools of 2 s; gcloud, api_lib/storage/retry_util.py: "
    "`apitools_http_wrapper.HandleExceptionsAndRebuildHttpConnections(retry_args)`"
)
_GCLOUD_JITTER = "gcloud, core/util/retry.py: `wait_time_ms += random.random() * self._jitter_ms`"
_GCLOUD_STATUSES = "gcloud, api_lib/util/apis.py: `elif response.status_code >= 500:`"


def envoy(policy: Policy) -> Exported[str]:
    """Return a `retry_policy` and a `timeout` for a route action of Envoy, as JSON, which is also YAML.

    A proxy sees methods and paths, but no operations. So for the policy of a service, only requests with methods that
    are always safe to repeat are repeated. A policy without a service repeats all methods; if it is not repeatable,
    only requests that never reached the server.

    >>> import json
    >>> route = json.loads(envoy(forbear.retry(OSError, attempts=3, timeout=30)).value)
    >>> route["timeout"], route["retry_policy"]["num_retries"]
    ('30s', 2)
    """
    outline = outline_requests(policy)
    longest = outline.waits.longest
    base = min(_choose_base(outline), longest)
    if base >= LEAST:
        means = [min(base * 2**n, longest) / 2 for n in range(outline.shown_waits)]
        outline.waits_become(means, f"always doubled; {_ENVOY_SOURCE}")
    else:
        outline.differs("backoff", f"doubled instead, and at least {LEAST:g} s")
    outline.has_full_jitter(_ENVOY_SOURCE)
    outline.differs("errors", "connection errors as Envoy classifies them")
    retry: dict[str, Any] = {
        "retry_on": "connect-failure,refused-stream",
        "num_retries": MANY if outline.attempts is None else outline.attempts - 1,
        "retry_back_off": {"base_interval": duration(base), "max_interval": duration(longest)},
    }
    outline.says("attempts")
    methods = outline.methods
    if methods is None or methods:
        retry["retry_on"] += ",reset,retriable-status-codes"
        retry["retriable_status_codes"] = list(outline.statuses)
    if methods:
        retry["retriable_request_headers"] = [
            {"name": ":method", "string_match": {"exact": method}} for method in sorted(methods)
        ]
    longest_told = policy.limits.max_retry_after if outline.timeout is None else outline.timeout
    retry["rate_limited_retry_back_off"] = {
        "reset_headers": [{"name": "Retry-After", "format": "SECONDS"}],
        "max_interval": duration(longest_told),
    }
    outline.differs("retry_after", f"seconds only, no dates; a value above {show(longest_told)} is ignored, not final")
    outline.says("max_retry_after")
    if outline.attempt_timeout is not None:
        retry["per_try_timeout"] = duration(outline.attempt_timeout)
        outline.says("attempt_timeout")
    outline.sees_methods_only()
    rule = None if policy.budget is None else policy.budget._rule
    percent = "set retry_budget.budget_percent of the cluster to"
    if isinstance(rule, ActiveShare):
        outline.warns("budget", f"{percent} {100 * rule.share:g}, and min_retry_concurrency to {rule.least}")
    if isinstance(rule, Ratio):
        outline.warns("budget", f"{percent} {100 * rule.ratio:g} (of active requests)")
    # Without a timeout, Envoy's default of 15 s would apply.
    route: dict[str, Any] = {"retry_policy": retry, "timeout": "0s"}
    if outline.timeout is not None:
        route["timeout"] = duration(outline.timeout)
    outline.differs("timeout", "also ends a running attempt")
    return Exported(json.dumps(route, indent=2), outline.losses)


def boto(policy: Policy) -> Exported[str]:
    """Return section [Boto] of gsutil's .boto file: `num_retries` and `max_retry_delay`, whole and at least 1.

    >>> from forbear.services import cloud_storage
    >>> print(boto(cloud_storage.policy).value)
    [Boto]
    num_retries = 16
    max_retry_delay = 64
    """
    outline = outline_storage(policy)
    retries = outline.count_retries()
    maximum = ceil(outline.waits.maximum)
    means = [max(min(2.0 ** (n + 1), maximum), 1) for n in range(outline.shown_waits)]
    outline.waits_become(means, f"the XML API from 0.5 s; {_APITOOLS_SOURCE}")
    outline.differs(
        "jitter", f"plus or minus a quarter below the longest wait; XML API: full, then cut ({_APITOOLS_JITTER})"
    )
    _loses_statuses(outline, (408,), _APITOOLS_STATUSES)
    outline.warns(
        "attempts", "the JSON API counts attempts, so it makes one retry fewer; after progress it counts from zero"
    )
    if retries == 0:
        outline.warns("num_retries", "1, because 0 keeps gsutil from using a connection again")
    return outline.text("[Boto]", f"num_retries = {max(retries, 1)}", f"max_retry_delay = {max(maximum, 1)}")


def gcloud(policy: Policy) -> Exported[str]:
    """Return lines of a configuration for gcloud storage: its four properties of section [storage], in whole numbers.

    gcloud reads them for uploads and downloads only, and waits 1.5 to 2.5 s more (version 528, read and measured).
    Other requests have waits and a number of attempts that cannot be set. Example: see `source`.
    """
    outline = outline_storage(policy)
    retries, means = outline.count_retries(), outline.means
    maximum = max(floor(min(outline.mean_waits.maximum - _GCLOUD_FIRST, outline.waits.longest - _GCLOUD_LONGEST)), 1)

    def waits(base: int, multiplier: int) -> list[float]:
        steps = (base * multiplier**n for n in range(len(means)))
        return [_GCLOUD_FIRST + mean_of_draws(step, 1, maximum) for step in steps]

    def error(pair: tuple[int, int]) -> float:
        return sum(difference(one, other) for one, other in zip(waits(*pair), means, strict=True))

    whole = product(range(1, ceil(means[0]) + 2), range(1, ceil(outline.mean_waits.multiplier) + 1))
    base, multiplier = min(whole, key=error)
    outline.waits_become(waits(base, multiplier), _GCLOUD_SOURCE)
    outline.differs("jitter", f"1.5 to 3.5 s more, 1.5 to 2.5 s at the longest ({_GCLOUD_JITTER})")
    _loses_statuses(outline, (408, 429), _GCLOUD_STATUSES)
    outline.says("chunks")
    outline.warns(
        "other requests",
        "only uploads and downloads read these properties; all others make 5 attempts, with waits of 2, 4, 8 and 16 s, "
        f"each plus or minus a quarter ({_APITOOLS_SOURCE})",
    )
    return outline.text(
        "[storage]",
        f"base_retry_delay = {base}",
        f"exponential_sleep_multiplier = {multiplier}",
        f"max_retries = {retries}",
        f"max_retry_delay = {maximum}",
    )


def _choose_base(outline: Outline) -> float:
    """Return the first step in seconds that, doubled and drawn from zero, comes nearest to the policy's mean waits."""
    waits = outline.full_waits
    if waits.multiplier == 2 or waits.initial <= 0:
        return waits.initial
    below = [step / 2**n for n, step in enumerate(waits.steps(outline.shown_waits)) if step < waits.maximum]
    return float(f"{(min(below) * max(below)) ** 0.5:.4g}") if below else waits.initial


def _loses_statuses(outline: Outline, lost: tuple[int, ...], source: str) -> None:
    """Record which of the policy's transient statuses the program does not repeat."""
    missing = " and ".join(str(status) for status in lost if status in outline.statuses)
    known = f"; {missing} {'is' if ' ' not in missing else 'are'} final" if missing else ""
    outline.differs("errors", f"every 5xx and the connection errors that the program knows{known} ({source})")

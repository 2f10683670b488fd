"""Export a policy to configuration files of programs that retry: Envoy, gsutil and gcloud."""

import json
from math import ceil
from typing import Any

from forbear.core.budget import Ratio
from forbear.core.decide import show
from forbear.export.outline import LEAST, MANY, Exported, Outline, duration
from forbear.policy import Policy


def envoy(policy: Policy) -> Exported[str]:
    """Return a `retry_policy` and a `timeout` for a route action of Envoy, as JSON, which is also YAML.

    A proxy sees methods and paths, but no operations. So for the policy of a service, only requests with methods that
    are always safe to repeat are repeated. A policy without a service repeats all methods; if it is not repeatable,
    only requests that never reached the server. The result is an `Exported`, which also lists what is lost.
    """
    outline = Outline(policy)
    waits = outline.waits
    if waits.multiplier == 2 and waits.initial >= LEAST:
        outline.says("backoff")
    outline.differs("backoff", f"waits of {waits}: doubled instead, and at least {LEAST:g} s")
    outline.has_full_jitter()
    outline.differs("errors", "errors: connection errors as Envoy classifies them")
    retry: dict[str, Any] = {
        "retry_on": "connect-failure,refused-stream",
        "num_retries": MANY if outline.attempts is None else outline.attempts - 1,
        "retry_back_off": {"base_interval": duration(waits.initial), "max_interval": duration(waits.maximum)},
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
    longest = policy.limits.max_retry_after if outline.timeout is None else outline.timeout
    retry["rate_limited_retry_back_off"] = {
        "reset_headers": [{"name": "Retry-After", "format": "SECONDS"}],
        "max_interval": duration(longest),
    }
    outline.differs(
        "retry_after", f"Retry-After: seconds only, no dates; a value above {show(longest)} is ignored, not final"
    )
    outline.says("max_retry_after")
    if outline.attempt_timeout is not None:
        retry["per_try_timeout"] = duration(outline.attempt_timeout)
        outline.says("attempt_timeout")
    outline.sees_methods_only()
    if policy.budget is not None and isinstance(policy.budget._rule, Ratio):
        share = 100 * policy.budget._rule.ratio
        outline.differs(
            "budget", f"budget: set retry_budget.budget_percent of the cluster to {share:g} (of active requests)"
        )
    # Without a timeout, Envoy's default of 15 s would apply.
    route: dict[str, Any] = {"retry_policy": retry, "timeout": "0s"}
    if outline.timeout is not None:
        route["timeout"] = duration(outline.timeout)
        outline.differs("timeout", f"timeout of {show(outline.timeout)}: also ends a running attempt")
    return Exported(json.dumps(route, indent=2), outline.losses)


def boto(policy: Policy) -> Exported[str]:
    """Return the lines of section [Boto] for gsutil's .boto file: `num_retries` and `max_retry_delay` in whole seconds.

    Both are at least 1. The result is an `Exported`, which also lists what is lost. Raises ValueError for a policy of a
    service other than Cloud Storage.
    """
    outline = Outline.for_storage(policy)
    retries = outline.count_retries()
    maximum = ceil(outline.waits.maximum)
    outline.differs("backoff", f"waits of {outline.waits}: from 1 or 2 s, doubled, up to {maximum} s")
    outline.differs(
        "jitter", f"jitter={outline.waits.jitter}: plus or minus a quarter below the longest wait (XML API: full)"
    )
    outline.warns(
        "attempts", "the JSON API counts attempts, so it makes one retry fewer; after progress it counts from zero"
    )
    if retries == 0:
        outline.warns("num_retries", "1, because 0 keeps gsutil from using a connection again")
    return outline.text("[Boto]", f"num_retries = {max(retries, 1)}", f"max_retry_delay = {max(maximum, 1)}")


def gcloud(policy: Policy) -> Exported[str]:
    """Return lines of a configuration for gcloud storage: its four properties of section [storage], in whole numbers.

    Waits and their factor are rounded up. The result is an `Exported`, which also lists what is lost. Raises ValueError
    for a policy of a service other than Cloud Storage.
    """
    outline = Outline.for_storage(policy)
    retries, waits = outline.count_retries(), outline.waits.mean
    exact = [waits.initial, waits.multiplier, waits.maximum]
    base, multiplier, maximum = whole = [max(ceil(value), 1) for value in exact]
    if whole == exact:
        outline.says("backoff")
    outline.differs("backoff", f"waits of {outline.waits}: {base} s, times {multiplier} up to {maximum} s")
    return outline.text(
        "[storage]",
        f"base_retry_delay = {base}",
        f"exponential_sleep_multiplier = {multiplier}",
        f"max_retries = {retries}",
        f"max_retry_delay = {maximum}",
    )

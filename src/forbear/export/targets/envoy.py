"""Envoy: the retry policy of a route, as JSON (which is YAML, too). A proxy sees methods and paths, no operations."""

import json
from typing import Any

from forbear.core.budget import Ratio
from forbear.core.decide import show
from forbear.export.exported import Exported
from forbear.export.outline import MANY, Outline
from forbear.export.text import LEAST, duration
from forbear.policy import Policy


def envoy(policy: Policy) -> Exported[str]:
    """A `retry_policy` and a `timeout` for a route action; only methods that may always be repeated are."""
    outline = Outline(policy)
    waits = outline.waits
    if waits.multiplier == 2 and waits.initial >= LEAST:
        outline.says("backoff")
    outline.differs("backoff", f"waits of {waits}: doubled instead, and at least {LEAST:g} s")
    if waits.jitter == "full":
        outline.says("jitter")
    outline.differs("jitter", f"jitter={waits.jitter}: full, so waits may also be much shorter")
    outline.differs("errors", "errors: those of connections as Envoy sees them")
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
        "retry_after", f"Retry-After: seconds only, no dates; more than {show(longest)} is passed over, not final"
    )
    outline.says("max_retry_after")
    if outline.attempt_timeout is not None:
        retry["per_try_timeout"] = duration(outline.attempt_timeout)
        outline.says("attempt_timeout")
    outline.tells_methods_apart()
    if policy.budget is not None and isinstance(policy.budget._rule, Ratio):
        share = 100 * policy.budget._rule.ratio
        outline.differs(
            "budget", f"budget: set retry_budget.budget_percent of the cluster to {share:g} (of active requests)"
        )
    # Without one, Envoy would take its own, which is 15 s.
    route: dict[str, Any] = {"retry_policy": retry, "timeout": "0s"}
    if outline.timeout is not None:
        route["timeout"] = duration(outline.timeout)
        outline.differs("timeout", f"timeout of {show(outline.timeout)}: a running attempt is ended by it, too")
    return Exported(json.dumps(route, indent=2), outline.losses)

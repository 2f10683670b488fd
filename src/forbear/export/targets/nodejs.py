"""Node.js: how to make the Cloud Storage client of the package @google-cloud/storage retry.

Its waits are not the same for all requests (7.22, read and measured). Before retry n, counted from 0, reads and changes
of metadata wait `multiplier**(n+1)` s and up to 1 s on top, resumable uploads `multiplier**n` s and up to 1 s on top,
uploads in one request and the start of resumable ones 1 to 2 times `multiplier**n` s; none longer than the maximum.
"""

from forbear.export.exported import Exported
from forbear.export.outline import MANY, Outline
from forbear.http.status import TRANSIENT_STATUSES
from forbear.policy import Policy

_NO_TIMEOUT = 86_400 * 365
_SHORTEST_MAXIMUM = 1.0
"""Seconds; uploads fail where the maximum is below their first wait."""


def nodejs(policy: Policy) -> Exported[str]:
    """Source text that makes a `Storage` client."""
    outline = Outline.for_storage(policy)
    waits = outline.waits
    maximum = max(waits.maximum, _SHORTEST_MAXIMUM)
    options: dict[str, str] = {
        "autoRetry": "true",
        "idempotencyStrategy": "IdempotencyStrategy.RetryConditional",
        "maxRetries": str(MANY if outline.attempts is None else outline.attempts - 1),
        "retryDelayMultiplier": f"{waits.multiplier:g}",
        "maxRetryDelay": f"{maximum:g}",
        "totalTimeout": f"{_NO_TIMEOUT if outline.timeout is None else outline.timeout:g}",
    }
    outline.says("attempts", "timeout")
    first = "1 s" if waits.multiplier == 1 else f"{min(waits.multiplier, maximum):g} s (uploads from 1 s)"
    outline.differs("backoff", f"waits of {waits}: from {first}, times {waits.multiplier:g} up to {maximum:g} s")
    outline.differs(
        "jitter",
        f"jitter={waits.jitter}: up to 1 s on top of each wait, in uploads of one request up to the same again, "
        "none at the longest",
    )
    if policy.service is not None and frozenset(outline.statuses) != TRANSIENT_STATUSES:
        codes = [*map(str, outline.statuses), "'ECONNRESET'", "'EPIPE'", "'EAI_AGAIN'", "'ETIMEDOUT'"]
        options["retryableErrorFn"] = f"(error) => [{', '.join(codes)}].includes(error.code)"
        outline.differs("errors", "errors: those without a status by name, as this text lists them")
    else:
        outline.tells_usual_statuses()
    outline.differs("safety", "safety: by the client's own list of what is idempotent, and its conditions")
    outline.warns(
        "shared switch",
        "calls of one client turn its retries off and on, so a write without its condition may be repeated by mistake; "
        "give such writes a client of their own, with autoRetry: false",
    )
    lines = [
        "const {IdempotencyStrategy, Storage} = require('@google-cloud/storage');",
        "",
        "const storage = new Storage({",
        "  retryOptions: {",
        *(f"    {name}: {value}," for name, value in options.items()),
        "  },",
        "});",
        "",
    ]
    return Exported("\n".join(lines), outline.losses)

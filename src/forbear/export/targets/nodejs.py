"""Node.js: how to make the Cloud Storage client of the package @google-cloud/storage retry."""

from forbear.export.exported import Exported
from forbear.export.outline import MANY, Outline
from forbear.http.status import TRANSIENT_STATUSES
from forbear.policy import Policy

_NO_TIMEOUT = 86_400 * 365


def nodejs(policy: Policy) -> Exported[str]:
    """Source text that makes a `Storage` client."""
    outline = Outline.for_storage(policy)
    waits = outline.waits
    options: dict[str, str] = {
        "autoRetry": "true",
        "idempotencyStrategy": "IdempotencyStrategy.RetryConditional",
        "maxRetries": str(MANY if outline.attempts is None else outline.attempts - 1),
        "retryDelayMultiplier": f"{waits.multiplier:g}",
        "maxRetryDelay": f"{waits.maximum:g}",
        "totalTimeout": f"{_NO_TIMEOUT if outline.timeout is None else outline.timeout:g}",
    }
    outline.says("attempts", "timeout")
    if waits.jitter == "documented" and (waits.initial, waits.spread) == (1, 1):
        outline.says("backoff", "jitter")
    elif waits.initial == 1:
        outline.says("backoff")
    outline.differs("backoff", f"waits of {waits}: from 1 s, times {waits.multiplier:g} up to {waits.maximum:g} s")
    outline.differs("jitter", f"jitter={waits.jitter}: up to 1 s on top of each wait, none at the longest")
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

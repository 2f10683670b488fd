"""Export a policy to Node.js: the client of Cloud Storage, and those of IAM, Memorystore and Resource Manager (gax)."""

import json

from forbear.export.outline import MANY, Exported, outline_storage
from forbear.export.rpcs import client_config, outline_clients
from forbear.export.waits import mean_of_draws
from forbear.http.status import TRANSIENT_STATUSES
from forbear.policy import Policy
from forbear.text.duration import show

_SOURCE = "retry-request, index.js: `Math.pow(retryDelayMultiplier, retryNumber) * 1000 + jitter`"
_NO_TIMEOUT = 86_400 * 365  # seconds
_SHORTEST_MAXIMUM = 1.0
"""The least `maxRetryDelay` in seconds; uploads fail if it is below their first wait."""

_GAX_SOURCE = "google-gax, retries.js: `const toSleep = Math.random() * delay`"
_GAX_ATTEMPTS = "google-gax, gax.js: `createBackoffSettings(...)` of a client config takes no `maxRetries`"
_MEMORYSTORE_DEFAULT = (
    "without this config the library repeats nothing, though the page on exponential backoff says that it does "
    '(@google-cloud/redis, cloud_redis_client_config.json: `"retry_codes_name": "non_idempotent"` for each method, and '
    '`"non_idempotent": []`)'
)


def nodejs(policy: Policy) -> Exported[str]:
    """Return JavaScript that makes a `Storage` client called `storage` (@google-cloud/storage).

    Its waits depend on the kind of request (version 7.22, read and measured). Before retry n, counted from 0, reads and
    changes of metadata wait `multiplier**(n+1)` s and up to 1 s more, resumable uploads `multiplier**n` s and up to 1 s
    more. Uploads in one request and the start of resumable ones wait 1 to 2 times `multiplier**n` s. No wait is longer
    than the maximum. Example: see `source`.
    """
    outline = outline_storage(policy)
    waits = outline.waits
    maximum = max(waits.maximum, _SHORTEST_MAXIMUM)
    options: dict[str, object] = {
        "autoRetry": "true",
        "idempotencyStrategy": "IdempotencyStrategy.RetryConditional",
        "maxRetries": MANY if outline.attempts is None else outline.attempts - 1,
        "retryDelayMultiplier": f"{waits.multiplier:g}",
        "maxRetryDelay": f"{maximum:g}",
        "totalTimeout": f"{_NO_TIMEOUT if outline.timeout is None else outline.timeout:g}",
    }
    outline.says("attempts", "timeout")
    means = [mean_of_draws(waits.multiplier ** (n + 1), 1, maximum) for n in range(outline.shown_waits)]
    outline.waits_become(means, f"uploads one step sooner, from 1 s; {_SOURCE}, where the first is 1")
    outline.differs(
        "jitter",
        "up to 1 s more for each wait, up to twice the wait for uploads in one request, none at the longest "
        f"({_SOURCE})",
    )
    if policy.service is None or outline.knows_statuses(TRANSIENT_STATUSES):
        outline.has_usual_statuses()
    else:
        codes = [*map(str, outline.statuses), "'ECONNRESET'", "'EPIPE'", "'EAI_AGAIN'", "'ETIMEDOUT'"]
        options["retryableErrorFn"] = f"(error) => [{', '.join(codes)}].includes(error.code)"
        outline.differs("errors", "those without a status by the names in this text")
    outline.differs("safety", "by the client's own list of idempotent calls and their preconditions")
    outline.warns(
        "shared switch",
        "calls of one client turn its retries off and on, so a write without its precondition may be repeated by "
        "mistake; use a second client for such writes, with autoRetry: false",
    )
    return outline.text(
        "const {IdempotencyStrategy, Storage} = require('@google-cloud/storage');",
        "",
        "const storage = new Storage({",
        "  retryOptions: {",
        *(f"    {name}: {value}," for name, value in options.items()),
        "  },",
        "});",
    )


def gax_nodejs(policy: Policy) -> Exported[str]:
    """Return a client config in JSON: `new CloudRedisClient({clientConfig: CONFIG})`. Example: see `source`."""
    outline, clients = outline_clients(policy, "interface")
    waits = outline.takes_full_waits(_GAX_SOURCE)
    config, timeout = client_config(outline, clients, waits)
    outline.differs("attempts", f"{show(timeout)} in time instead ({_GAX_ATTEMPTS})")
    if outline.service == "memorystore":
        outline.warns("default", _MEMORYSTORE_DEFAULT)
    return Exported(json.dumps(config, indent=2), outline.losses)

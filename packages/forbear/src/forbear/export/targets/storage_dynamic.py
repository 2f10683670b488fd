"""Export a policy as source code for the Cloud Storage clients of dynamic languages: Node.js, PHP and Ruby."""

from forbear.export.outline import MANY, Exported, Outline
from forbear.export.waits import Waits
from forbear.http.status import TRANSIENT_STATUSES
from forbear.policy import Policy

_NODEJS_SOURCE = "retry-request, index.js: `Math.pow(retryDelayMultiplier, retryNumber) * 1000 + jitter`"
_RUBY_SOURCE = "retriable, exponential_backoff.rb: `[base_interval * multiplier**iteration, max_interval].min`"
_RUBY_JITTER = "retriable, exponential_backoff.rb: `delta = rand_factor * interval * 1.0`"
_RUBY_SHARE = 1.5  # of a step: its longest wait
_NO_TIMEOUT = 86_400 * 365  # seconds
_SHORTEST_MAXIMUM = 1.0
"""The least `maxRetryDelay` in seconds that Node.js gets; uploads fail if it is below their first wait."""


def nodejs(policy: Policy) -> Exported[str]:
    """Return JavaScript that makes a `Storage` client called `storage` (@google-cloud/storage).

    Its waits depend on the kind of request (version 7.22, read and measured). Before retry n, counted from 0, reads and
    changes of metadata wait `multiplier**(n+1)` s and up to 1 s more, resumable uploads `multiplier**n` s and up to 1 s
    more. Uploads in one request and the start of resumable ones wait 1 to 2 times `multiplier**n` s. No wait is longer
    than the maximum. The result is an `Exported`, which also lists what is lost. Raises ValueError for a policy of a
    service other than Cloud Storage.
    """
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
    means = [_nodejs_mean(waits.multiplier ** (n + 1), maximum) for n in range(outline.shown_waits)]
    outline.waits_become(means, f"uploads one step sooner, from 1 s; {_NODEJS_SOURCE}, where the first is 1")
    outline.differs(
        "jitter",
        f"jitter={waits.jitter}: up to 1 s more for each wait, up to twice the wait for uploads in one request, "
        f"none at the longest ({_NODEJS_SOURCE})",
    )
    if policy.service is not None and frozenset(outline.statuses) != TRANSIENT_STATUSES:
        codes = [*map(str, outline.statuses), "'ECONNRESET'", "'EPIPE'", "'EAI_AGAIN'", "'ETIMEDOUT'"]
        options["retryableErrorFn"] = f"(error) => [{', '.join(codes)}].includes(error.code)"
        outline.differs("errors", "errors: those without a status by the names in this text")
    else:
        outline.has_usual_statuses()
    outline.differs("safety", "safety: by the client's own list of idempotent calls and their preconditions")
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


def _nodejs_mean(step: float, maximum: float) -> float:
    """Return the mean wait in seconds of a step to which the client adds up to a second, cut to the maximum."""
    return sum(min(step + (draw + 0.5) / 100, maximum) for draw in range(100)) / 100


def php(policy: Policy) -> Exported[str]:
    """Return PHP that makes a `StorageClient` called `$storage` (google/cloud-storage).

    The waits are a function in PHP: exact for exponential and constant backoffs, except for the jitter "decorrelated".
    The result is an `Exported`, which also lists what is lost. Raises ValueError for a policy of a service other than
    Cloud Storage.
    """
    outline = Outline.for_storage(policy)
    waits = outline.waits
    outline.says("backoff")
    if waits.jitter != "decorrelated":
        outline.says("jitter")
    outline.differs("jitter", f"jitter={waits.jitter}: full")
    outline.has_usual_statuses()
    outline.knows_idempotent_calls()
    config = [f"'retries' => {outline.count_retries()},", "'retryStrategy' => StorageClient::RETRY_IDEMPOTENT,"]
    if outline.attempt_timeout is not None:
        config.append(f"'requestTimeout' => {outline.attempt_timeout!r},")
        outline.says("attempt_timeout")
    config += [
        "'restCalcDelayFunction' => function (int $attempt): int {",
        "    $u = mt_rand() / mt_getrandmax();",
        f"    $step = {waits.initial!r} * pow({waits.multiplier!r}, $attempt);",
        f"    return (int) (1000000 * {_php_wait(waits)});",
        "},",
    ]
    return outline.text(
        "use Google\\Cloud\\Storage\\StorageClient;",
        "",
        "$storage = new StorageClient([",
        *(f"    {line}" for line in config),
        "]);",
    )


def _php_wait(waits: Waits) -> str:
    """Return a PHP expression for a wait in seconds, made of `$step` and `$u`.

    `$step` is the step before it is cut to the maximum, `$u` a random number from 0 to 1.
    """
    step = f"min($step, {waits.maximum!r})"
    match waits.jitter:
        case "documented":
            return f"min($step + $u * {waits.spread!r}, {waits.maximum!r})"
        case "spread":
            return f"({step} + $u * {waits.spread!r})"
        case "equal":
            return f"{step} * (1 + $u) / 2"
        case "none":
            return step
        case _:
            return f"{step} * $u"


def ruby(policy: Policy) -> Exported[str]:
    """Return Ruby that makes a client called `storage` (google-cloud-storage).

    The result is an `Exported`, which also lists what is lost. Raises ValueError for a policy of a service other than
    Cloud Storage.
    """
    outline = Outline.for_storage(policy)
    waits = outline.mean_waits.capped(outline.waits.longest / _RUBY_SHARE)
    retries = outline.count_retries()
    if outline.attempts is None and outline.timeout is not None:
        retries *= 2  # the timeout is the limit, but the client makes a list of this many waits
    outline.says("timeout")
    outline.waits_become(waits.steps(outline.shown_waits), _RUBY_SOURCE)
    outline.differs(
        "jitter",
        f"jitter={outline.waits.jitter}: from half to one and a half of the mean wait instead ({_RUBY_JITTER})",
    )
    outline.differs("errors", "errors: the client's own list")
    outline.knows_idempotent_calls()
    arguments = {
        "retries": retries,
        "max_elapsed_time": _NO_TIMEOUT if outline.timeout is None else f"{outline.timeout:g}",
        "base_interval": f"{waits.initial:g}",
        "max_interval": f"{waits.maximum:.6g}",
        "multiplier": f"{waits.multiplier:g}",
    }
    if outline.attempt_timeout is not None:
        arguments["timeout"] = f"{outline.attempt_timeout:g}"
        outline.says("attempt_timeout")
    return outline.text(
        'require "google/cloud/storage"',
        "",
        "storage = Google::Cloud::Storage.new(",
        ",\n".join(f"  {name}: {value}" for name, value in arguments.items()),
        ")",
    )

"""Export a policy to PHP: the client of Cloud Storage, and those of IAM, Memorystore and Resource Manager (gax-php)."""

import json

from forbear.export.outline import Exported, outline_storage
from forbear.export.rpcs import client_config, outline_clients
from forbear.export.waits import Waits
from forbear.policy import Policy

_GAX_SOURCE = "gax-php, RetryMiddleware.php: `($this->delayHandler)((int) $delayMs)`"


def php(policy: Policy) -> Exported[str]:
    """Return PHP that makes a `StorageClient` called `$storage` (google/cloud-storage).

    The waits are a function in PHP: exact for exponential and constant backoffs, except for the jitter "decorrelated".
    Example: see `source`.
    """
    outline = outline_storage(policy)
    waits = outline.waits
    outline.says("backoff")
    if waits.jitter != "decorrelated":
        outline.says("jitter")
    outline.differs("jitter", "full")
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
        f"    return (int) (1000000 * {_wait(waits)});",
        "},",
    ]
    return outline.text(
        "use Google\\Cloud\\Storage\\StorageClient;",
        "",
        "$storage = new StorageClient([",
        *(f"    {line}" for line in config),
        "]);",
    )


def _wait(waits: Waits) -> str:
    """Return a PHP expression for a wait in seconds, made of the uncut `$step` and of `$u`, random from 0 to 1."""
    step = f"min($step, {waits.maximum!r})"
    expressions = {
        "documented": f"min($step + $u * {waits.spread!r}, {waits.maximum!r})",
        "spread": f"({step} + $u * {waits.spread!r})",
        "equal": f"{step} * (1 + $u) / 2",
        "none": step,
    }
    return expressions.get(waits.jitter, f"{step} * $u")


def gax_php(policy: Policy) -> Exported[str]:
    """Return PHP with a function `retrying` that makes the options of a client (google/gax).

    `new CloudRedisClient(retrying(CloudRedisClient::class))` is a client of Memorystore; those of IAM and Resource
    Manager are made alike. The library's own configuration stays below. Example: see `source`.
    """
    outline, clients = outline_clients(policy, "interface")
    waits = outline.takes_mean_waits(_GAX_SOURCE)
    config, _ = client_config(outline, clients, waits, has_attempts=True)
    return outline.text(
        "function retrying(string $client): array",
        "{",
        "    $folder = dirname((new ReflectionClass($client))->getFileName(), 2) . '/resources';",
        "    $config = [];",
        "    foreach (glob($folder . '/*_client_config.json') as $file) {",
        "        $config = array_replace_recursive($config, json_decode(file_get_contents($file), true));",
        "    }",
        "    $retries = json_decode(<<<'JSON'",
        json.dumps(config, indent=1),
        "JSON, true);",
        "    return ['clientConfig' => array_replace_recursive($config, $retries)];",
        "}",
    )

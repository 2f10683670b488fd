"""PHP: how to make the Cloud Storage client of google/cloud-storage retry. Its waits are a function, so ours fit in."""

from forbear.export.exported import Exported
from forbear.export.outline import Outline
from forbear.export.waits import Waits
from forbear.policy import Policy


def php(policy: Policy) -> Exported[str]:
    """Source text that makes a `StorageClient`."""
    outline = Outline.for_storage(policy)
    waits = outline.waits
    outline.says("backoff")
    if waits.jitter != "decorrelated":
        outline.says("jitter")
    outline.differs("jitter", f"jitter={waits.jitter}: full")
    outline.tells_usual_statuses()
    outline.differs("safety", "safety: by the client's own list of what is idempotent")
    config = [f"'retries' => {outline.count()},", "'retryStrategy' => StorageClient::RETRY_IDEMPOTENT,"]
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
    lines = [
        "use Google\\Cloud\\Storage\\StorageClient;",
        "",
        "$storage = new StorageClient([",
        *(f"    {line}" for line in config),
        "]);",
        "",
    ]
    return Exported("\n".join(lines), outline.losses)


def _wait(waits: Waits) -> str:
    """The wait in seconds, of `$step` and `$u`."""
    longest = repr(waits.maximum)
    match waits.jitter:
        case "documented":
            return f"min($step + $u * {waits.spread!r}, {longest})"
        case "spread":
            return f"(min($step, {longest}) + $u * {waits.spread!r})"
        case "equal":
            return f"min($step, {longest}) * (1 + $u) / 2"
        case "none":
            return f"min($step, {longest})"
        case _:
            return f"min($step, {longest}) * $u"

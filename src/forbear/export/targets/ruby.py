"""Ruby: how to make the Cloud Storage client google-cloud-storage retry."""

from forbear.export.exported import Exported
from forbear.export.outline import Outline
from forbear.policy import Policy

_NO_TIMEOUT = 86_400 * 365


def ruby(policy: Policy) -> Exported[str]:
    """Source text that makes a client."""
    outline = Outline.for_storage(policy)
    waits = outline.waits.mean
    retries = outline.count()
    if outline.attempts is None and outline.timeout is not None:
        retries *= 2  # it is the time that counts; but the client makes a list of as many waits
    outline.says("backoff", "timeout")
    outline.differs("jitter", f"jitter={outline.waits.jitter}: from half to one and a half of the mean wait instead")
    outline.differs("errors", "errors: the client's own list")
    outline.differs("safety", "safety: by the client's own list of what is idempotent")
    arguments = {
        "retries": retries,
        "max_elapsed_time": _NO_TIMEOUT if outline.timeout is None else f"{outline.timeout:g}",
        "base_interval": f"{waits.initial:g}",
        "max_interval": f"{waits.maximum:g}",
        "multiplier": f"{waits.multiplier:g}",
    }
    if outline.attempt_timeout is not None:
        arguments["timeout"] = f"{outline.attempt_timeout:g}"
        outline.says("attempt_timeout")
    lines = [
        'require "google/cloud/storage"',
        "",
        "storage = Google::Cloud::Storage.new(",
        ",\n".join(f"  {name}: {value}" for name, value in arguments.items()),
        ")",
        "",
    ]
    return Exported("\n".join(lines), outline.losses)

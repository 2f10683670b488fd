"""C#: how to make the Cloud Storage client Google.Cloud.Storage.V1 retry, call by call."""

from forbear.export.exported import Exported
from forbear.export.outline import Outline
from forbear.policy import Policy


def csharp(policy: Policy) -> Exported[str]:
    """Source text that makes `RetryOptions`, for the options of each call that may be repeated."""
    outline = Outline.for_storage(policy)
    waits = outline.waits.mean
    outline.says("backoff")
    outline.differs("jitter", f"jitter={outline.waits.jitter}: each wait is the mean one, and not spread out")
    outline.differs("errors", "errors: by status alone; lost connections are not repeated")
    outline.warns(
        "safety", "pass these options only with what may be executed twice, such as a call with its condition"
    )
    lines = [
        "using System;",
        "using Google.Cloud.Storage.V1;",
        "",
        "var retryOptions = new RetryOptions(",
        "    retryTiming: new RetryTiming(",
        f"        initialBackoff: {_seconds(waits.initial)},",
        f"        maxBackoff: {_seconds(waits.maximum)},",
        f"        backoffMultiplier: {waits.multiplier!r}),",
        f"    retryPredicate: RetryPredicate.FromErrorCodes({', '.join(map(str, outline.statuses))}));",
        "",
    ]
    return Exported("\n".join(lines), outline.losses)


def _seconds(seconds: float) -> str:
    return f"TimeSpan.FromSeconds({seconds!r})"

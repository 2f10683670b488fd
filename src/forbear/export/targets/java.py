"""Java: how to make the Cloud Storage client of com.google.cloud retry."""

from forbear.export.exported import Exported
from forbear.export.outline import MANY, Outline
from forbear.policy import Policy


def java(policy: Policy) -> Exported[str]:
    """Source text that makes `StorageOptions`."""
    outline = Outline.for_storage(policy)
    waits = outline.waits
    attempts = outline.attempts or (MANY if outline.timeout is None else 0)  # with neither it would not retry at all
    calls = [
        f"setInitialRetryDelayDuration({_duration(waits.initial)})",
        f"setRetryDelayMultiplier({waits.multiplier!r})",
        f"setMaxRetryDelayDuration({_duration(waits.maximum)})",
        f"setMaxAttempts({attempts})",
        f"setTotalTimeoutDuration({_duration(outline.timeout or 0)})",
    ]
    outline.says("backoff", "attempts", "timeout")
    if waits.jitter == "full":
        outline.says("jitter")
    outline.differs("jitter", f"jitter={waits.jitter}: full, so waits may also be much shorter")
    if outline.attempt_timeout is not None:
        limit = _duration(outline.attempt_timeout)
        calls += [f"setInitialRpcTimeoutDuration({limit})", f"setMaxRpcTimeoutDuration({limit})"]
        outline.differs("attempt_timeout", "attempt_timeout: for calls by gRPC; by HTTP it is the transport's")
    outline.tells_usual_statuses()
    outline.differs("safety", "safety: by the client's own list of what is idempotent")
    lines = [
        "import com.google.api.gax.retrying.RetrySettings;",
        "import com.google.cloud.storage.StorageOptions;",
        "import com.google.cloud.storage.StorageRetryStrategy;",
        "import java.time.Duration;",
        "",
        "RetrySettings retrySettings =",
        "    RetrySettings.newBuilder()",
        *(f"        .{call}" for call in calls),
        "        .build();",
        "StorageOptions storageOptions =",
        "    StorageOptions.newBuilder()",
        "        .setRetrySettings(retrySettings)",
        "        .setStorageRetryStrategy(StorageRetryStrategy.getDefaultStorageRetryStrategy())",
        "        .build();",
        "",
    ]
    return Exported("\n".join(lines), outline.losses)


def _duration(seconds: float) -> str:
    if seconds == int(seconds):
        return f"Duration.ofSeconds({int(seconds)})"
    return f"Duration.ofMillis({max(round(seconds * 1000), 1)})"

"""Export a policy to Java: the client of Cloud Storage, and those of IAM, Memorystore and Resource Manager (gax)."""

from forbear.export.outline import MANY, Exported, outline_storage
from forbear.export.rpcs import LONGEST_CALL, as_variable, code_names, outline_clients
from forbear.export.waits import Waits
from forbear.policy import Policy

_SOURCE = "gax-java, ExponentialRetryAlgorithm.java: `ThreadLocalRandom.current().nextLong(bound)`"


def java(policy: Policy) -> Exported[str]:
    """Return Java that makes `StorageOptions` called `storageOptions`. Example: see `source`."""
    outline = outline_storage(policy)
    waits = outline.takes_full_waits(_SOURCE)
    attempts = outline.attempts or (MANY if outline.timeout is None else 0)  # without any limit it would not retry
    limits = [f"setMaxAttempts({attempts})", f"setTotalTimeoutDuration({_duration(outline.timeout or 0)})"]
    outline.says("attempts", "timeout")
    if outline.attempt_timeout is not None:
        limit = _duration(outline.attempt_timeout)
        limits += [f"setInitialRpcTimeoutDuration({limit})", f"setMaxRpcTimeoutDuration({limit})"]
        outline.differs("attempt_timeout", "for gRPC calls only; over HTTP the transport decides")
    outline.has_usual_statuses()
    outline.knows_idempotent_calls()
    return outline.text(
        "import com.google.api.gax.retrying.RetrySettings;",
        "import com.google.cloud.storage.StorageOptions;",
        "import com.google.cloud.storage.StorageRetryStrategy;",
        "import java.time.Duration;",
        "",
        *_settings(waits, limits),
        "StorageOptions storageOptions =",
        "    StorageOptions.newBuilder()",
        "        .setRetrySettings(retrySettings)",
        "        .setStorageRetryStrategy(StorageRetryStrategy.getDefaultStorageRetryStrategy())",
        "        .build();",
    )


def gax_java(policy: Policy) -> Exported[str]:
    """Return Java that makes settings for clients of IAM, Memorystore or Resource Manager. Example: see `source`."""
    outline, clients = outline_clients(policy, "java")
    waits = outline.takes_full_waits(_SOURCE)
    outline.says("attempts", "timeout", "attempt_timeout")
    total = LONGEST_CALL if outline.timeout is None else outline.timeout
    limit = _duration(total if outline.attempt_timeout is None else outline.attempt_timeout)
    limits = [
        f"setMaxAttempts({outline.attempts or 0})",
        f"setInitialRpcTimeoutDuration({limit})",
        "setRpcTimeoutMultiplier(1.0)",
        f"setMaxRpcTimeoutDuration({limit})",
        f"setTotalTimeoutDuration({_duration(total)})",
    ]
    codes = ", ".join(f"StatusCode.Code.{code}" for code in code_names(outline))
    lines = [*_settings(waits, limits), f"Set<StatusCode.Code> safe = Set.of({codes});"]
    for client in clients:
        settings = client.home.rpartition(".")[2]
        name = as_variable(settings)
        lines += ["", f"{settings}.Builder {name} = {settings}.newBuilder();"]
        for method in client.methods:
            setter = f"{method[0].lower()}{method[1:]}Settings()"
            lines.append(f"{name}.{setter}.setRetrySettings(retrySettings).setRetryableCodes(safe);")
    gax = ["com.google.api.gax.retrying.RetrySettings", "com.google.api.gax.rpc.StatusCode"]
    imports = [*sorted([*gax, *(client.home for client in clients)]), "java.time.Duration", "java.util.Set"]
    return outline.text(*(f"import {name};" for name in imports), "", *lines)


def _settings(waits: Waits, limits: list[str]) -> list[str]:
    """Return the lines that make a RetrySettings called `retrySettings` of the waits and of calls that set limits."""
    calls = [
        f"setInitialRetryDelayDuration({_duration(waits.initial)})",
        f"setRetryDelayMultiplier({waits.multiplier!r})",
        f"setMaxRetryDelayDuration({_duration(waits.maximum)})",
        *limits,
    ]
    head = ["RetrySettings retrySettings =", "    RetrySettings.newBuilder()"]
    return [*head, *(f"        .{call}" for call in calls), "        .build();"]


def _duration(seconds: float) -> str:
    if seconds == int(seconds):
        return f"Duration.ofSeconds({int(seconds)})"
    return f"Duration.ofMillis({max(round(seconds * 1000), 1)})"

"""Export a policy to C#: the client of Cloud Storage, and those of IAM, Memorystore and Resource Manager (gax)."""

from forbear.export.outline import MANY, Exported, outline_storage
from forbear.export.rpcs import as_camel, as_variable, code_names, longest_call, milliseconds, outline_clients
from forbear.policy import Policy

_SOURCE = "RetryTiming.cs: `InitialBackoff.TotalSeconds * Math.Pow(BackoffMultiplier, failureCount - 1)`"
_GAX_SOURCE = "gax-dotnet, RetrySettings.cs: `_random.NextDouble() * maxDelay.Ticks`"


def csharp(policy: Policy) -> Exported[str]:
    """Return C# code that makes `RetryOptions` called `retryOptions` (Google.Cloud.Storage.V1).

    They are passed to each call that may be repeated. Example: see `source`.
    """
    outline = outline_storage(policy)
    waits = outline.takes_mean_waits(_SOURCE)
    outline.differs("errors", "by status alone; lost connections are not repeated")
    outline.warns(
        "safety", "pass these options only to calls that are safe to execute twice, such as one with its precondition"
    )
    return outline.text(
        "using System;",
        "using Google.Cloud.Storage.V1;",
        "",
        "var retryOptions = new RetryOptions(",
        "    retryTiming: new RetryTiming(",
        f"        initialBackoff: TimeSpan.FromSeconds({waits.initial!r}),",
        f"        maxBackoff: TimeSpan.FromSeconds({waits.maximum!r}),",
        f"        backoffMultiplier: {waits.multiplier!r}),",
        f"    retryPredicate: RetryPredicate.FromErrorCodes({', '.join(map(str, outline.statuses))}));",
    )


def gax_csharp(policy: Policy) -> Exported[str]:
    """Return C# that makes settings for the clients of IAM, Memorystore or Resource Manager (Google.Api.Gax.Grpc).

    The settings of a client are a variable that is called after it. Example: see `source`.
    """
    outline, clients = outline_clients(policy, "csharp")
    waits = outline.takes_full_waits(_GAX_SOURCE)
    outline.says("attempts", "timeout")
    codes = ", ".join(f"StatusCode.{as_camel(code)}" for code in code_names(outline))
    lines = [
        "var retrying = CallSettings.FromRetry(RetrySettings.FromExponentialBackoff(",
        f"    maxAttempts: {MANY if outline.attempts is None else outline.attempts},",
        f"    initialBackoff: {_duration(waits.initial)},",
        f"    maxBackoff: {_duration(waits.maximum)},",
        f"    backoffMultiplier: {waits.multiplier:g},",
        f"    retryFilter: RetrySettings.FilterForStatusCodes({codes})))",
        f"    .WithTimeout({_duration(longest_call(outline))});",
    ]
    for client in clients:
        settings = f"{client.name}Settings"
        lines += ["", f"var {as_variable(settings)} = {client.home}.{settings}.GetDefault();"]
        lines += [f"{as_variable(settings)}.{method}Settings = retrying;" for method in client.methods]
    return outline.text("using System;", "using Google.Api.Gax.Grpc;", "using Grpc.Core;", "", *lines)


def _duration(seconds: float) -> str:
    return f"TimeSpan.FromMilliseconds({milliseconds(seconds)})"

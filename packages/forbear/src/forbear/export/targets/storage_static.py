"""Export a policy as source code for the Cloud Storage clients of static languages: Go, Java, C++ and C#."""

from forbear.export.cpp_waits import cpp_milliseconds, cpp_window
from forbear.export.outline import MANY, Exported, Outline
from forbear.policy import Policy
from forbear.text.duration import show

_GO_LEAST = 1e-6  # seconds
_GO_STATUSES = (408, 429, *range(500, 600))
_GO_SOURCE = "gax-go, call_option.go: `d := time.Duration(1 + rand.Int63n(int64(bo.cur)))`"
_JAVA_SOURCE = "gax-java, ExponentialRetryAlgorithm.java: `ThreadLocalRandom.current().nextLong(bound)`"
_CSHARP_SOURCE = "RetryTiming.cs: `InitialBackoff.TotalSeconds * Math.Pow(BackoffMultiplier, failureCount - 1)`"


def go(policy: Policy) -> Exported[str]:
    """Return Go code that sets the retries of a `*storage.Client` called `client` (cloud.google.com/go/storage).

    The result is an `Exported`, which also lists what is lost. Raises ValueError for a policy of a service other than
    Cloud Storage.
    """
    outline = Outline.for_storage(policy)
    waits = outline.full_waits
    standard, others = ['"time"'], ['"cloud.google.com/go/storage"', '"github.com/googleapis/gax-go/v2"']
    options = [
        "storage.WithPolicy(storage.RetryIdempotent),",
        "storage.WithBackoff(gax.Backoff{",
        f"\tInitial:    {_go_duration(waits.initial)},",
        f"\tMax:        {_go_duration(waits.maximum)},",
        f"\tMultiplier: {waits.multiplier:g},",
        "}),",
    ]
    if waits.initial < _GO_LEAST:
        outline.differs(
            "backoff", f"waits of {outline.waits}: at least {_GO_LEAST:g} s, because 0 means the client's own"
        )
    else:
        outline.waits_become([step / 2 for step in waits.steps(outline.shown_waits)], _GO_SOURCE)
    outline.has_full_jitter(_GO_SOURCE)
    if outline.attempts is not None:
        options.append(f"storage.WithMaxAttempts({outline.attempts}),")
        outline.says("attempts")
    if policy.service is not None and outline.statuses != _GO_STATUSES:
        standard.insert(0, '"errors"')
        others.append('"google.golang.org/api/googleapi"')
        options += [
            "storage.WithErrorFunc(func(err error) bool {",
            "\tvar reply *googleapi.Error",
            "\tif errors.As(err, &reply) {",
            "\t\tswitch reply.Code {",
            f"\t\tcase {', '.join(map(str, outline.statuses))}:",
            "\t\t\treturn true",
            "\t\t}",
            "\t\treturn false",
            "\t}",
            "\treturn storage.ShouldRetry(err)",
            "}),",
        ]
    outline.differs("errors", "errors: the client classifies errors without a status")
    outline.knows_idempotent_calls()
    if outline.timeout is not None:
        context = f"context.WithTimeout(ctx, {_go_duration(outline.timeout)})"
        outline.differs("timeout", f"timeout of {show(outline.timeout)}: {context} for each call")
    return outline.text(
        *("import (", *(f"\t{name}" for name in standard), "", *(f"\t{name}" for name in sorted(others)), ")", ""),
        *("client.SetRetry(", *(f"\t{line}" for line in options), ")"),
    )


def _go_duration(seconds: float) -> str:
    seconds = max(seconds, _GO_LEAST)
    if seconds == int(seconds):
        return f"{int(seconds)} * time.Second"
    return f"{round(seconds / _GO_LEAST)} * time.Microsecond"


def java(policy: Policy) -> Exported[str]:
    """Return Java code that makes `StorageOptions` called `storageOptions` (com.google.cloud.storage).

    The result is an `Exported`, which also lists what is lost. Raises ValueError for a policy of a service other than
    Cloud Storage.
    """
    outline = Outline.for_storage(policy)
    waits = outline.full_waits
    attempts = outline.attempts or (MANY if outline.timeout is None else 0)  # without any limit it would not retry
    calls = [
        f"setInitialRetryDelayDuration({_java_duration(waits.initial)})",
        f"setRetryDelayMultiplier({waits.multiplier!r})",
        f"setMaxRetryDelayDuration({_java_duration(waits.maximum)})",
        f"setMaxAttempts({attempts})",
        f"setTotalTimeoutDuration({_java_duration(outline.timeout or 0)})",
    ]
    outline.says("attempts", "timeout")
    outline.waits_become([step / 2 for step in waits.steps(outline.shown_waits)], _JAVA_SOURCE)
    outline.has_full_jitter(_JAVA_SOURCE)
    if outline.attempt_timeout is not None:
        limit = _java_duration(outline.attempt_timeout)
        calls += [f"setInitialRpcTimeoutDuration({limit})", f"setMaxRpcTimeoutDuration({limit})"]
        outline.differs("attempt_timeout", "attempt_timeout: for gRPC calls only; over HTTP the transport decides")
    outline.has_usual_statuses()
    outline.knows_idempotent_calls()
    return outline.text(
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
    )


def _java_duration(seconds: float) -> str:
    if seconds == int(seconds):
        return f"Duration.ofSeconds({int(seconds)})"
    return f"Duration.ofMillis({max(round(seconds * 1000), 1)})"


def cpp(policy: Policy) -> Exported[str]:
    """Return C++ code that makes a `gcs::Client` called `client` (google-cloud-cpp).

    It sets the strict list of idempotent calls, which is not the client's default. The result is an `Exported`, which
    also lists what is lost. Raises ValueError for a policy of a service other than Cloud Storage.
    """
    outline = Outline.for_storage(policy)
    shortest, longest, factor = cpp_window(outline)
    if outline.timeout is not None:
        limit = f"gcs::LimitedTimeRetryPolicy({cpp_milliseconds(outline.timeout)})"
        outline.says("timeout")
        outline.differs("attempts", f"attempts={outline.attempts}: no limit on attempts beside the timeout")
    else:
        limit = f"gcs::LimitedErrorCountRetryPolicy({outline.count_retries()})"
    outline.has_usual_statuses()
    outline.knows_idempotent_calls()
    return outline.text(
        '#include "google/cloud/storage/client.h"',
        "#include <chrono>",
        "",
        "namespace gcs = ::google::cloud::storage;",
        "",
        "auto client = gcs::Client(",
        "    google::cloud::Options{}",
        "        .set<gcs::RetryPolicyOption>(",
        f"            {limit}.clone())",
        "        .set<gcs::BackoffPolicyOption>(",
        "            gcs::ExponentialBackoffPolicy(",
        f"                {cpp_milliseconds(shortest)},",
        f"                {cpp_milliseconds(longest)},",
        f"                {factor!r})",
        "                .clone())",
        "        .set<gcs::IdempotencyPolicyOption>(",
        "            gcs::StrictIdempotencyPolicy().clone()));",
    )


def csharp(policy: Policy) -> Exported[str]:
    """Return C# code that makes `RetryOptions` called `retryOptions` (Google.Cloud.Storage.V1).

    They are passed to each call that may be repeated. The result is an `Exported`, which also lists what is lost.
    Raises ValueError for a policy of a service other than Cloud Storage.
    """
    outline = Outline.for_storage(policy)
    waits = outline.mean_waits
    outline.waits_become(waits.steps(outline.shown_waits), _CSHARP_SOURCE)
    outline.has_no_jitter(_CSHARP_SOURCE)
    outline.differs("errors", "errors: by status alone; lost connections are not repeated")
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

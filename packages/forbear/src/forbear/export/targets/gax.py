"""Export a policy to the generated clients of IAM, Memorystore and Resource Manager for Node.js, Java and Go (gax).

Each method has settings of its own, whatever the request: a method that is safe only under a condition is not retried.
"""

import json
from typing import Any

from forbear.export.outline import Exported, Outline
from forbear.export.rpcs import LONGEST_CALL, camel, code_names, longest_call, milliseconds, outlined
from forbear.policy import Policy
from forbear.text.duration import show

# The interfaces: settings class of Java, package of Go, its name, and the client's type in it.
_CLIENTS = {
    "google.cloud.redis.v1.CloudRedis": (
        "com.google.cloud.redis.v1.CloudRedisSettings",
        ("cloud.google.com/go/redis/apiv1", "redis", "CloudRedisClient"),
    ),
    "google.cloud.redis.cluster.v1.CloudRedisCluster": (
        "com.google.cloud.redis.cluster.v1.CloudRedisClusterSettings",
        ("cloud.google.com/go/redis/cluster/apiv1", "cluster", "CloudRedisClusterClient"),
    ),
    "google.cloud.memorystore.v1.Memorystore": (
        "com.google.cloud.memorystore.v1.MemorystoreSettings",
        ("cloud.google.com/go/memorystore/apiv1", "memorystore", "Client"),
    ),
    "google.iam.admin.v1.IAM": (
        "com.google.cloud.iam.admin.v1.IAMSettings",
        ("cloud.google.com/go/iam/admin/apiv1", "admin", "IamClient"),
    ),
    "google.iam.credentials.v1.IAMCredentials": (
        "com.google.cloud.iam.credentials.v1.IamCredentialsSettings",
        ("cloud.google.com/go/iam/credentials/apiv1", "credentials", "IamCredentialsClient"),
    ),
    "google.iam.v2.Policies": (
        "com.google.iam.v2.PoliciesSettings",
        ("cloud.google.com/go/iam/apiv2", "iamv2", "PoliciesClient"),
    ),
    "google.iam.v3.PolicyBindings": (
        "com.google.iam.v3.PolicyBindingsSettings",
        ("cloud.google.com/go/iam/apiv3", "iamv3", "PolicyBindingsClient"),
    ),
    "google.iam.v3.PrincipalAccessBoundaryPolicies": (
        "com.google.iam.v3.PrincipalAccessBoundaryPoliciesSettings",
        ("cloud.google.com/go/iam/apiv3", "iamv3", "PrincipalAccessBoundaryPoliciesClient"),
    ),
    **{
        f"google.cloud.resourcemanager.v3.{name}": (
            f"com.google.cloud.resourcemanager.v3.{name}Settings",
            ("cloud.google.com/go/resourcemanager/apiv3", "resourcemanager", f"{name}Client"),
        )
        for name in ("Folders", "Organizations", "Projects", "TagBindings", "TagHolds", "TagKeys", "TagValues")
    },
}
_NODEJS_SOURCE = "google-gax, retries.js: `const toSleep = Math.random() * delay`"
_JAVA_SOURCE = "gax-java, ExponentialRetryAlgorithm.java: `ThreadLocalRandom.current().nextLong(bound)`"
_GO_SOURCE = "gax-go, call_option.go: `d := time.Duration(1 + rand.Int63n(int64(bo.cur)))`"
_NODEJS_ATTEMPTS = "google-gax, gax.js: `createBackoffSettings(...)` of a client config takes no `maxRetries`"
_MEMORYSTORE_DEFAULT = (
    "without this config the library repeats nothing, though the page on exponential backoff says that it does "
    '(@google-cloud/redis, cloud_redis_client_config.json: `"retry_codes_name": "non_idempotent"` for each method, and '
    '`"non_idempotent": []`)'
)


def gax_nodejs(policy: Policy) -> Exported[str]:
    """Return a client config in JSON for Node.js: `new CloudRedisClient({clientConfig: CONFIG})` (google-gax).

    It lists retry codes and parameters for each method of IAM, Memorystore or Resource Manager that is always safe to
    repeat. The result is an `Exported`, which also lists what is lost. Raises ValueError for a policy of another
    service.
    """
    outline, methods = outlined(policy, _CLIENTS)
    _has_full_jitter(outline, _NODEJS_SOURCE)
    waits = outline.full_waits
    timeout = longest_call(outline)
    if outline.attempts is not None:
        outline.differs(
            "attempts", f"attempts={outline.attempts}: {show(timeout)} in time instead ({_NODEJS_ATTEMPTS})"
        )
    outline.says("timeout")
    attempt = timeout if outline.attempt_timeout is None else outline.attempt_timeout
    outline.says("attempt_timeout")
    if outline.service == "memorystore":
        outline.warns("default", _MEMORYSTORE_DEFAULT)
    limit = milliseconds(attempt)
    parameters = {
        "initial_retry_delay_millis": milliseconds(waits.initial),
        "retry_delay_multiplier": waits.multiplier,
        "max_retry_delay_millis": milliseconds(waits.maximum),
        "initial_rpc_timeout_millis": limit,
        "rpc_timeout_multiplier": 1,
        "max_rpc_timeout_millis": limit,
        "total_timeout_millis": milliseconds(timeout),
    }
    named = {"timeout_millis": limit, "retry_codes_name": "safe", "retry_params_name": "policy"}
    interfaces: dict[str, Any] = {
        interface: {
            "retry_codes": {"safe": code_names(outline)},
            "retry_params": {"policy": parameters},
            "methods": dict.fromkeys(listed, named),
        }
        for interface, listed in methods.items()
    }
    return Exported(json.dumps({"interfaces": interfaces}, indent=2), outline.losses)


def gax_java(policy: Policy) -> Exported[str]:
    """Return Java code that makes settings for the clients of IAM, Memorystore or Resource Manager (gax).

    It sets each method that is always safe to repeat. The result is an `Exported`, which also lists what is lost.
    Raises ValueError for a policy of another service.
    """
    outline, methods = outlined(policy, _CLIENTS)
    _has_full_jitter(outline, _JAVA_SOURCE)
    waits = outline.full_waits
    outline.says("attempts", "timeout")
    total = LONGEST_CALL if outline.timeout is None else outline.timeout
    attempt = total if outline.attempt_timeout is None else outline.attempt_timeout
    outline.says("attempt_timeout")
    lines = [
        "RetrySettings retrySettings =",
        "    RetrySettings.newBuilder()",
        f"        .setInitialRetryDelayDuration({_java_duration(waits.initial)})",
        f"        .setRetryDelayMultiplier({waits.multiplier!r})",
        f"        .setMaxRetryDelayDuration({_java_duration(waits.maximum)})",
        f"        .setMaxAttempts({outline.attempts or 0})",
        f"        .setInitialRpcTimeoutDuration({_java_duration(attempt)})",
        "        .setRpcTimeoutMultiplier(1.0)",
        f"        .setMaxRpcTimeoutDuration({_java_duration(attempt)})",
        f"        .setTotalTimeoutDuration({_java_duration(total)})",
        "        .build();",
        f"Set<StatusCode.Code> safe = Set.of({', '.join(f'StatusCode.Code.{code}' for code in code_names(outline))});",
    ]
    for interface, listed in methods.items():
        settings = _CLIENTS[interface][0].rpartition(".")[2]
        name = f"iam{settings[3:]}" if settings.startswith("IAM") else settings[0].lower() + settings[1:]
        lines += ["", f"{settings}.Builder {name} = {settings}.newBuilder();"]
        for method in listed:
            setter = f"{method[0].lower()}{method[1:]}Settings()"
            lines.append(f"{name}.{setter}.setRetrySettings(retrySettings).setRetryableCodes(safe);")
    classes = sorted(_CLIENTS[interface][0] for interface in methods)
    imports = sorted(["com.google.api.gax.retrying.RetrySettings", "com.google.api.gax.rpc.StatusCode", *classes])
    standard = ["java.time.Duration", "java.util.Set"]
    return outline.text(*(f"import {name};" for name in [*imports, *standard]), "", *lines)


def gax_go(policy: Policy) -> Exported[str]:
    """Return Go code with a function for each client of IAM, Memorystore or Resource Manager (gax-go).

    It sets the call options of each method that is always safe to repeat. The result is an `Exported`, which also lists
    what is lost. Raises ValueError for a policy of another service.
    """
    outline, methods = outlined(policy, _CLIENTS)
    _has_full_jitter(outline, _GO_SOURCE)
    waits = outline.full_waits
    if outline.timeout is not None:
        context = f"context.WithTimeout(ctx, {_go_duration(outline.timeout)})"
        outline.differs("timeout", f"timeout of {show(outline.timeout)}: {context} for each call")
    packages = {_CLIENTS[interface][1][:2] for interface in methods}
    imports = sorted([
        *(f'{name} "{path}"' for path, name in packages),
        'gax "github.com/googleapis/gax-go/v2"',
        'codes "google.golang.org/grpc/codes"',
    ])  # fmt: skip
    lines = ["import (", '\t"time"', "", *(f"\t{each}" for each in imports), ")"]
    lines += [
        "",
        "var retry = []gax.CallOption{gax.WithRetry(func() gax.Retryer {",
        f"\tsafe := []codes.Code{{{', '.join(f'codes.{camel(code)}' for code in code_names(outline))}}}",
        "\treturn gax.OnCodes(safe, gax.Backoff{",
        f"\t\tInitial:    {_go_duration(waits.initial)},",
        f"\t\tMax:        {_go_duration(waits.maximum)},",
        f"\t\tMultiplier: {waits.multiplier:g},",
        "\t})",
        "})}",
    ]
    for interface, listed in methods.items():
        _, package, client = _CLIENTS[interface][1]
        function = f"set{interface.rpartition('.')[2]}Retries"
        lines += ["", f"func {function}(client *{package}.{client}) {{"]
        lines += [*(f"\tclient.CallOptions.{method} = retry" for method in listed), "}"]
    return outline.text(*lines)


def _has_full_jitter(outline: Outline, source: str) -> None:
    outline.waits_become([step / 2 for step in outline.full_waits.steps(outline.shown_waits)], source)
    outline.has_full_jitter(source)


def _java_duration(seconds: float) -> str:
    return f"Duration.ofMillis({milliseconds(seconds)})"


def _go_duration(seconds: float) -> str:
    return f"{milliseconds(seconds)} * time.Millisecond"

"""Export a policy to the generated clients of IAM, Memorystore and Resource Manager for Ruby, PHP, C# and C++.

Each method has settings of its own, whatever the request: a method that is safe only under a condition is not retried.
C++ decides by a list of its own.
"""

import json
import re

from forbear.export.cpp_waits import cpp_milliseconds, cpp_window
from forbear.export.outline import MANY, Exported, Outline
from forbear.export.rpcs import camel, code_names, longest_call, milliseconds, outlined
from forbear.policy import Policy
from forbear.text.duration import show

_TAGS = ("Folders", "Organizations", "Projects", "TagBindings", "TagHolds", "TagKeys", "TagValues")

# The interfaces that a language has clients for: module of Ruby, namespace of C#, folder of the headers of C++.
_CLIENTS = {
    "google.cloud.redis.v1.CloudRedis": ("Google::Cloud::Redis::V1", "Google.Cloud.Redis.V1", "redis/v1"),
    "google.cloud.redis.cluster.v1.CloudRedisCluster": (
        "Google::Cloud::Redis::Cluster::V1",
        "Google.Cloud.Redis.Cluster.V1",
        "redis/cluster/v1",
    ),
    "google.cloud.memorystore.v1.Memorystore": (
        "Google::Cloud::Memorystore::V1",
        "Google.Cloud.Memorystore.V1",
        "memorystore/v1",
    ),
    "google.iam.admin.v1.IAM": (None, "Google.Cloud.Iam.Admin.V1", "iam/admin/v1"),
    "google.iam.credentials.v1.IAMCredentials": (
        "Google::Iam::Credentials::V1",
        "Google.Cloud.Iam.Credentials.V1",
        "iam/credentials/v1",
    ),
    "google.iam.v2.Policies": ("Google::Iam::V2", "Google.Cloud.Iam.V2", "iam/v2"),
    "google.iam.v3.PolicyBindings": ("Google::Iam::V3", "Google.Cloud.Iam.V3", "iam/v3"),
    "google.iam.v3.PrincipalAccessBoundaryPolicies": ("Google::Iam::V3", "Google.Cloud.Iam.V3", "iam/v3"),
    **{
        f"google.cloud.resourcemanager.v3.{name}": (
            "Google::Cloud::ResourceManager::V3",
            "Google.Cloud.ResourceManager.V3",
            "resourcemanager/v3",
        )
        for name in _TAGS
    },
}
_RUBY_CLIENTS = {interface: names[0] for interface, names in _CLIENTS.items() if names[0] is not None}
_RUBY_SHARE = 0.1  # of the first wait, which is added to each where the policy has another jitter
_RUBY_SOURCE = "gapic-common, retry_policy.rb: `[delay + Kernel.rand(0.0..jitter), max_delay].min`"
_RUBY_TIMEOUT = "gapic-common, rpc_call.rb: `deadline = calculate_deadline options`, once for all attempts"
_PHP_SOURCE = "gax-php, RetryMiddleware.php: `($this->delayHandler)((int) $delayMs)`"
_CSHARP_SOURCE = "gax-dotnet, RetrySettings.cs: `_random.NextDouble() * maxDelay.Ticks`"
_CPP_ERRORS = "google-cloud-cpp, cloud_redis_retry_traits.h: `status.code() != StatusCode::kUnavailable`"


def gax_ruby(policy: Policy) -> Exported[str]:
    """Return Ruby that configures the gRPC clients of IAM, Memorystore or Resource Manager (gapic-common).

    It sets each method that is always safe to repeat. The result is an `Exported`, which also lists what is lost.
    Raises ValueError for a policy of another service.
    """
    outline, methods = outlined(policy, _RUBY_CLIENTS)
    jitter = _ruby_jitter(outline)
    waits = outline.waits if outline.waits.jitter == "documented" else outline.mean_waits
    maximum = outline.waits.longest
    steps = waits.steps(outline.shown_waits)
    outline.waits_become([_ruby_mean(step, jitter, maximum) for step in steps], _RUBY_SOURCE)
    timeout = longest_call(outline)
    outline.says("timeout")
    outline.differs("attempts", f"attempts={outline.attempts}: {show(timeout)} in time instead ({_RUBY_TIMEOUT})")
    outline.warns("jitter's version", "gapic-common before 1.3 ignores `jitter:`, and waits for the step itself")
    outline.warns("REST", "the clients over REST have a configuration of their own, which this text leaves as it is")
    names = ", ".join(f'"{name}"' for name in code_names(outline))
    lines = [
        "retry_policy = {",
        f"  initial_delay: {waits.initial:g},",
        f"  multiplier: {waits.multiplier:g},",
        f"  max_delay: {maximum:g},",
        f"  jitter: {jitter:g},",
        f"  retry_codes: [{names}]",
        "}",
    ]
    for interface, listed in methods.items():
        name = f"{_RUBY_CLIENTS[interface]}::{interface.rpartition('.')[2]}"
        lines += ["", f"{name}::Client.configure do |config|", "  ["]
        lines += [f"    config.rpcs.{_snake(method)}," for method in listed]
        lines += ["  ].each do |rpc|", "    rpc.retry_policy = retry_policy", f"    rpc.timeout = {timeout:g}", "  end"]
        lines += ["end"]
    modules = sorted({_RUBY_CLIENTS[interface] for interface in methods})
    return outline.text(*(f'require "{_ruby_path(module)}"' for module in modules), "", *lines)


def gax_php(policy: Policy) -> Exported[str]:
    """Return PHP with a function `retrying` that makes the options of a client (google/gax).

    `new CloudRedisClient(retrying(CloudRedisClient::class))` is a client of Memorystore; those of IAM and Resource
    Manager are made alike. It sets each method that is always safe to repeat, on top of the configuration that the
    library ships. The result is an `Exported`, which also lists what is lost. Raises ValueError for a policy of another
    service.
    """
    outline, methods = outlined(policy, _CLIENTS)
    waits = outline.mean_waits
    outline.waits_become(waits.steps(outline.shown_waits), _PHP_SOURCE)
    outline.has_no_jitter(_PHP_SOURCE)
    outline.says("attempts", "timeout", "attempt_timeout")
    timeout = longest_call(outline)
    limit = milliseconds(timeout if outline.attempt_timeout is None else outline.attempt_timeout)
    parameters = {
        "initial_retry_delay_millis": milliseconds(waits.initial),
        "retry_delay_multiplier": waits.multiplier,
        "max_retry_delay_millis": milliseconds(waits.maximum),
        "initial_rpc_timeout_millis": limit,
        "rpc_timeout_multiplier": 1,
        "max_rpc_timeout_millis": limit,
        "total_timeout_millis": milliseconds(timeout),
        "max_retries": 0 if outline.attempts is None else outline.attempts - 1,  # 0 is no limit
    }
    named = {"timeout_millis": limit, "retry_codes_name": "forbear", "retry_params_name": "forbear"}
    codes = [] if outline.attempts == 1 else code_names(outline)
    interfaces = {
        interface: {
            "retry_codes": {"forbear": codes},
            "retry_params": {"forbear": parameters},
            "methods": dict.fromkeys(listed, named),
        }
        for interface, listed in methods.items()
    }
    return outline.text(
        "function retrying(string $client): array",
        "{",
        "    $folder = dirname((new ReflectionClass($client))->getFileName(), 2) . '/resources';",
        "    $config = [];",
        "    foreach (glob($folder . '/*_client_config.json') as $file) {",
        "        $config = array_replace_recursive($config, json_decode(file_get_contents($file), true));",
        "    }",
        "    $retries = json_decode(<<<'JSON'",
        json.dumps({"interfaces": interfaces}, indent=1),
        "JSON, true);",
        "    return ['clientConfig' => array_replace_recursive($config, $retries)];",
        "}",
    )


def gax_csharp(policy: Policy) -> Exported[str]:
    """Return C# that makes settings for the clients of IAM, Memorystore or Resource Manager (Google.Api.Gax.Grpc).

    It sets each method that is always safe to repeat. The result is an `Exported`, which also lists what is lost.
    Raises ValueError for a policy of another service.
    """
    outline, methods = outlined(policy, _CLIENTS)
    waits = outline.full_waits
    outline.waits_become([step / 2 for step in waits.steps(outline.shown_waits)], _CSHARP_SOURCE)
    outline.has_full_jitter(_CSHARP_SOURCE)
    outline.says("attempts", "timeout")
    names = ", ".join(f"StatusCode.{camel(code)}" for code in code_names(outline))
    lines = [
        "var retrying = CallSettings.FromRetry(RetrySettings.FromExponentialBackoff(",
        f"    maxAttempts: {MANY if outline.attempts is None else outline.attempts},",
        f"    initialBackoff: {_csharp_duration(waits.initial)},",
        f"    maxBackoff: {_csharp_duration(waits.maximum)},",
        f"    backoffMultiplier: {waits.multiplier:g},",
        f"    retryFilter: RetrySettings.FilterForStatusCodes({names})))",
        f"    .WithTimeout({_csharp_duration(longest_call(outline))});",
    ]
    for interface, listed in methods.items():
        settings = f"{interface.rpartition('.')[2]}Settings"
        name = f"iam{settings[3:]}" if settings.startswith("IAM") else settings[0].lower() + settings[1:]
        lines += ["", f"var {name} = {_CLIENTS[interface][1]}.{settings}.GetDefault();"]
        lines += [f"{name}.{method}Settings = retrying;" for method in listed]
    return outline.text("using System;", "using Google.Api.Gax.Grpc;", "using Grpc.Core;", "", *lines)


def gax_cpp(policy: Policy) -> Exported[str]:
    """Return C++ with a function for each client of IAM, Memorystore or Resource Manager that makes its `Options`.

    The client decides by its own list which methods it repeats. The result is an `Exported`, which also lists what is
    lost. Raises ValueError for a policy of another service.
    """
    outline, methods = outlined(policy, _CLIENTS)
    shortest, longest, factor = cpp_window(outline)
    if outline.timeout is not None:
        limit = f"LimitedTimeRetryPolicy({cpp_milliseconds(outline.timeout)})"
        outline.says("timeout")
        outline.differs("attempts", f"attempts={outline.attempts}: no limit on attempts beside the timeout")
    else:
        limit = f"LimitedErrorCountRetryPolicy({outline.count_retries()})"
    outline.warns("errors", f"UNAVAILABLE and no other code is repeated ({_CPP_ERRORS})")
    outline.warns(
        "safety", "by the client's own list of idempotent calls: reads, credentials, and SetIamPolicy with an etag"
    )
    outline.warns("versions", "the clients are those of today; remove any that your version of the library lacks")
    lines = ["namespace gc = ::google::cloud;"]
    headers = ['#include "google/cloud/backoff_policy.h"', '#include "google/cloud/options.h"']
    for interface in methods:
        name, folder = interface.rpartition(".")[2], _CLIENTS[interface][2]
        space = f"gc::{folder.replace('/', '_')}::{name}"
        headers.append(f'#include "google/cloud/{folder}/{_snake(name)}_options.h"')
        lines += [
            "",
            f"gc::Options {name}Options() {{",
            "  return gc::Options{}",
            f"      .set<{space}RetryPolicyOption>(",
            f"          {space}{limit}.clone())",
            f"      .set<{space}BackoffPolicyOption>(",
            f"          gc::ExponentialBackoffPolicy({cpp_milliseconds(shortest)}, {cpp_milliseconds(longest)},",
            f"                                       {factor!r})",
            "              .clone());",
            "}",
        ]
    return outline.text(*sorted(headers), "#include <chrono>", "", *lines)


def _ruby_jitter(outline: Outline) -> float:
    """Return the seconds of jitter for Ruby, and record what the policy's jitter becomes."""
    if outline.waits.jitter == "documented":
        outline.says("jitter")
        return outline.waits.spread
    jitter = 0.0 if outline.waits.jitter == "none" else round(outline.mean_waits.initial * _RUBY_SHARE, 3)
    outline.differs(
        "jitter",
        f"jitter={outline.waits.jitter}: up to {show(jitter)} more for each wait, none at the longest ({_RUBY_SOURCE})",
    )
    return jitter


def _ruby_mean(step: float, jitter: float, maximum: float) -> float:
    """Return the mean wait in seconds of a step to which up to `jitter` is added, cut to the maximum."""
    return sum(min(step + jitter * (draw + 0.5) / 100, maximum) for draw in range(100)) / 100


def _ruby_path(module: str) -> str:
    """Return the path to require for a module of Ruby: google/cloud/resource_manager/v3."""
    return "/".join(_snake(part) for part in module.split("::"))


def _snake(name: str) -> str:
    """Return a name in lower case with underscores: get_iam_policy."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _csharp_duration(seconds: float) -> str:
    return f"TimeSpan.FromMilliseconds({milliseconds(seconds)})"

"""The generated clients of IAM, Memorystore and Resource Manager get only the methods that are always safe."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from forbear import export
from forbear.core.limits import Limits
from forbear.export.waits import difference, mean_delays
from forbear.policy import Policy, retry
from forbear.services import cloud_storage, iam, memorystore, resource_manager
from forbear_testkit.export.runners import program, run

TARGETS = ("gax_nodejs", "gax_java", "gax_go")
REDIS = "google.cloud.redis.v1.CloudRedis"


def config(policy: Policy) -> dict[str, Any]:
    """Return the interfaces of the client config for Node.js."""
    interfaces: dict[str, Any] = json.loads(export.gax_nodejs(policy).value)["interfaces"]
    return interfaces


@pytest.mark.parametrize(
    ("policy", "interface", "safe", "never"),
    [
        (memorystore.policy, REDIS, "ListInstances", "UpdateInstance"),
        (memorystore.policy, REDIS, "GetInstanceAuthString", "FailoverInstance"),
        (memorystore.policy, "google.cloud.memorystore.v1.Memorystore", "GetInstance", "UpdateInstance"),
        (memorystore.policy, "google.cloud.redis.cluster.v1.CloudRedisCluster", "ListClusters", "UpdateCluster"),
        (iam.documented, "google.iam.admin.v1.IAM", "GetRole", "SetIamPolicy"),
        (iam.documented, "google.iam.admin.v1.IAM", "ListServiceAccounts", "CreateServiceAccountKey"),
        (iam.documented, "google.iam.credentials.v1.IAMCredentials", "SignBlob", None),
        (iam.documented, "google.iam.v2.Policies", "ListPolicies", "DeletePolicy"),
        (iam.documented, "google.iam.v3.PolicyBindings", "GetPolicyBinding", "DeletePolicyBinding"),
        (resource_manager.policy, "google.cloud.resourcemanager.v3.Projects", "GetProject", "UpdateProject"),
        (resource_manager.policy, "google.cloud.resourcemanager.v3.TagValues", "ListTagValues", "SetIamPolicy"),
    ],
)
def test_methods_that_are_always_safe_are_retried(policy: Policy, interface: str, safe: str, never: str | None) -> None:
    """In all three languages; what needs a condition, or is never safe, keeps the library's own settings."""
    methods = config(policy)[interface]["methods"]
    assert safe in methods
    assert never not in methods
    java, go = export.gax_java(policy).value, export.gax_go(policy).value
    assert f".{safe[0].lower()}{safe[1:]}Settings().setRetrySettings(retrySettings).setRetryableCodes(safe);" in java
    assert f"\tclient.CallOptions.{safe} = retry\n" in go
    if never is not None:
        body = go.partition(f"func set{interface.rpartition('.')[2]}Retries(")[2].partition("}")[0]
        assert f".{never} = retry" not in body


def test_the_codes_are_those_of_the_profile() -> None:
    """The page of IAM names the statuses 500, 502, 503 and 504, so RESOURCE_EXHAUSTED (429) is not repeated."""
    codes = config(iam.documented)["google.iam.admin.v1.IAM"]["retry_codes"]["forbear"]
    assert "UNAVAILABLE" in codes
    assert "RESOURCE_EXHAUSTED" not in codes
    assert "StatusCode.Code.RESOURCE_EXHAUSTED" not in export.gax_java(iam.documented).value
    assert "codes.ResourceExhausted" not in export.gax_go(iam.documented).value
    assert "RESOURCE_EXHAUSTED" in config(memorystore.documented)[REDIS]["retry_codes"]["forbear"]
    assert "codes.ResourceExhausted" in export.gax_go(memorystore.documented).value


def milliseconds(line: str) -> float:
    """Return the number in a line, in milliseconds if it has another unit."""
    units = {"ofSeconds": 1000, "time.Second": 1000, "time.Microsecond": 0.001}
    factor = next((factor for unit, factor in units.items() if unit in line), 1)
    return float(re.findall(r"[0-9.]*[0-9]", line)[-1]) * factor


@pytest.mark.parametrize("policy", [iam.documented, iam.policy, memorystore.documented, memorystore.policy])
@pytest.mark.parametrize("target", TARGETS)
def test_mean_waits_are_those_of_the_policy(target: str, policy: Policy) -> None:
    """All three draw from zero to the step, `Math.random() * delay`; the first five are within 5 % on average."""
    text = export.source(target, policy).value
    name = {"gax_nodejs": "retry_delay", "gax_java": "RetryDelay", "gax_go": "Initial:|Max:|Multiplier:"}[target]
    lines = [line for line in text.splitlines() if re.search(name, line)][:3]
    initial, first, second = map(milliseconds, lines)
    multiplier, maximum = sorted((first, second))
    theirs = [min(initial * multiplier**n, maximum) / 2000 for n in range(5)]
    for mean, ours in zip(theirs, mean_delays(policy.backoff, 5), strict=True):
        assert round(difference(mean, ours), 3) <= 0.051
    assert maximum / 1000 == 64


def test_each_client_gets_the_limit_that_it_counts() -> None:
    """Java counts attempts; Node.js has the time that they would take at most; Go takes neither, which is a loss."""
    policy = memorystore.policy.with_limits(Limits(attempts=4, timeout=None)).replace(attempt_timeout=5)
    parameters = config(policy)[REDIS]["retry_params"]["forbear"]
    assert parameters["total_timeout_millis"] == 14_000
    assert (parameters["initial_rpc_timeout_millis"], parameters["max_rpc_timeout_millis"]) == (5000, 5000)
    assert config(policy)[REDIS]["methods"]["GetInstance"]["timeout_millis"] == 5000
    java, losses = export.gax_java(policy)
    assert ".setMaxAttempts(4)" in java
    assert not [loss for loss in losses if loss.startswith("attempts")]
    assert [loss for loss in export.gax_go(policy).losses if loss.startswith("attempts=4: no limit")]
    (loss,) = [loss for loss in export.gax_go(iam.documented).losses if loss.startswith("timeout")]
    assert "context.WithTimeout(ctx, 300 * time.Second)" in loss


def test_memorystores_library_for_nodejs_repeats_nothing_by_itself() -> None:
    """Its page promises otherwise; the loss quotes the configuration that the library ships."""
    losses = export.gax_nodejs(memorystore.documented).losses
    assert [
        loss for loss in losses if loss.startswith("default: without this config") and '"non_idempotent": []' in loss
    ]
    assert not [loss for loss in export.gax_nodejs(iam.documented).losses if loss.startswith("default")]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("policy", "service"), [(cloud_storage.policy, "cloud_storage"), (retry(on=OSError), "none in particular")]
)
def test_other_services_are_refused(target: str, policy: Policy, service: str) -> None:
    """The error names the service and the targets to take."""
    cure = (
        rf"must be for IAM, Memorystore or Resource Manager, got one for {service}; .* targets named after the language"
    )
    with pytest.raises(ValueError, match=cure):
        export.source(target, policy)


@pytest.mark.parametrize("target", ["gax_java", "gax_go"])
@pytest.mark.parametrize("policy", [iam.policy, memorystore.documented, resource_manager.policy])
def test_every_bracket_is_closed(target: str, policy: Policy) -> None:
    """And every interface has its client."""
    text = export.source(target, policy).value
    for opening, closing in ("()", "{}", "[]"):
        assert text.count(opening) == text.count(closing)
    assert text.count("newBuilder();" if target == "gax_java" else "func set") == len(config(policy))


@pytest.mark.soak
def test_gos_compiler_takes_the_text(tmp_path: Path) -> None:
    """With the client of Memorystore for Redis that Debian has, and the methods that this old version knows."""
    compiler = program("go", "apt install golang-go golang-google-cloud-dev")
    client = Path("/usr/share/gocode/src/cloud.google.com/go/redis/apiv1/cloud_redis_client.go").read_text()
    known = client.partition("type CloudRedisCallOptions struct {")[2].partition("}")[0].split()
    lines = []
    for block in export.gax_go(memorystore.documented).value.split("\n\n"):
        if block.startswith("func ") and "*redis.CloudRedisClient" not in block:
            continue
        lines += [
            line
            for line in [*block.splitlines(), ""]
            if not re.search(r"go/(memorystore|redis/cluster)/", line)
            and ("client.CallOptions." not in line or line.partition("CallOptions.")[2].split()[0] in known)
        ]
    main = "func main() { setCloudRedisRetries(&redis.CloudRedisClient{CallOptions: &redis.CloudRedisCallOptions{}}) }"
    (tmp_path / "main.go").write_text("\n".join(["package main", "", *lines, main, ""]))
    env = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": str(tmp_path / "cache")}
    run(compiler, "run", "main.go", cwd=tmp_path, **env)
    assert "GetInstance" in known

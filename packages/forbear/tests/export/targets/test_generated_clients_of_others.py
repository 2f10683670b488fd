"""The generated clients of IAM, Memorystore and Resource Manager for Ruby, PHP, C# and C++."""

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

TARGETS = ("gax_ruby", "gax_php", "gax_csharp", "gax_cpp")
POLICIES = (iam.documented, iam.policy, memorystore.documented, memorystore.policy, resource_manager.policy)
LIBRARY = {"GetInstance": {"timeout_millis": 1}, "UpdateInstance": {"timeout_millis": 2}}


def php_config(policy: Policy) -> dict[str, Any]:
    """The interfaces in the text for PHP."""
    text = export.gax_php(policy).value.partition("<<<'JSON'\n")[2].partition("\nJSON")[0]
    interfaces: dict[str, Any] = json.loads(text)["interfaces"]
    return interfaces


@pytest.mark.parametrize(
    ("policy", "interface", "safe", "never"),
    [
        (memorystore.policy, "google.cloud.redis.v1.CloudRedis", "GetInstanceAuthString", "UpdateInstance"),
        (memorystore.policy, "google.cloud.memorystore.v1.Memorystore", "GetInstance", "UpdateInstance"),
        (iam.policy, "google.iam.credentials.v1.IAMCredentials", "SignBlob", "SetIamPolicy"),
        (iam.policy, "google.iam.v3.PolicyBindings", "GetPolicyBinding", "DeletePolicyBinding"),
        (resource_manager.policy, "google.cloud.resourcemanager.v3.TagHolds", "ListTagHolds", "SetIamPolicy"),
        (resource_manager.policy, "google.cloud.resourcemanager.v3.Projects", "GetProject", "UpdateProject"),
    ],
)
def test_methods_that_are_always_safe_are_retried(policy: Policy, interface: str, safe: str, never: str) -> None:
    """A method that needs a condition, or is never safe, keeps the library's own settings."""
    methods = php_config(policy)[interface]["methods"]
    assert safe in methods
    assert never not in methods
    name = interface.rpartition(".")[2]
    ruby = export.gax_ruby(policy).value.partition(f"::{name}::Client.configure")[2].partition("\nend")[0]
    names = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", each).lower() for each in (safe, never)]
    assert [f"config.rpcs.{each}," in ruby for each in names] == [True, False]
    csharp = export.gax_csharp(policy).value.partition(f"{name}Settings.GetDefault();")[2].partition("\n\n")[0]
    assert [f".{each}Settings = retrying;" in csharp for each in (safe, never)] == [True, False]


def test_cpp_has_a_list_of_its_own() -> None:
    """The text sets limits and waits for each client; the losses name the list, and the only code that is repeated."""
    text, losses = export.gax_cpp(resource_manager.policy)
    assert text.count("gc::Options{}") == 7
    assert '#include "google/cloud/resourcemanager/v3/tag_holds_options.h"' in text
    assert "gc::resourcemanager_v3::TagHoldsLimitedTimeRetryPolicy(std::chrono::milliseconds(300000)).clone())" in text
    assert "LimitedErrorCountRetryPolicy(10).clone())" in export.gax_cpp(memorystore.documented).value
    assert [loss for loss in losses if loss.startswith("safety: by the client's own list of idempotent calls: reads")]
    assert [loss for loss in losses if loss.startswith("errors: UNAVAILABLE and no other code is repeated")]


def means(target: str, policy: Policy) -> list[float]:
    """Return the mean waits in seconds before the first five retries, by the algorithm in the source of the target."""
    text = export.source(target, policy).value
    pattern = {
        "gax_ruby": r"(?:initial_delay|multiplier|max_delay|jitter): (.*?),",
        "gax_php": r"(?:initial_retry_delay_millis|retry_delay_multiplier|max_retry_delay_millis)\": (.*?),",
        "gax_csharp": r"(?:initialBackoff: .*?Milliseconds\(|maxBackoff: .*?Milliseconds\(|Multiplier: )([0-9.]+)",
    }[target]
    numbers = [float(each) for each in re.findall(pattern, text)[: 4 if target == "gax_ruby" else 3]]
    if target == "gax_ruby":
        initial, multiplier, maximum, jitter = numbers
        return [min(initial * multiplier**n + jitter / 2, maximum) for n in range(5)]
    initial, second, third = numbers
    multiplier, maximum = sorted((second, third))
    share = 1000 if target == "gax_php" else 2000  # C# draws from zero to the step
    return [min(initial * multiplier**n, maximum) / share for n in range(5)]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("target", TARGETS[:3])
def test_mean_waits_are_those_of_the_policy(target: str, policy: Policy) -> None:
    """The first five are within 5 %."""
    for mean, ours in zip(means(target, policy), mean_delays(policy.backoff, 5), strict=True):
        assert round(difference(mean, ours), 3) <= 0.051


def test_ruby_waits_as_the_page_says() -> None:
    """Its formula is that of the page on IAM: nothing about waits or jitter is lost."""
    text, losses = export.gax_ruby(iam.documented)
    assert "  initial_delay: 1,\n  multiplier: 2,\n  max_delay: 64,\n  jitter: 1,\n" in text
    assert not [loss for loss in losses if loss.startswith(("waits", "jitter="))]


def test_ruby_has_no_client_for_accounts() -> None:
    """The loss names the interface."""
    assert [
        loss for loss in export.gax_ruby(iam.policy).losses if loss.startswith("other clients: google.iam.admin.v1")
    ]


def test_each_client_gets_the_limit_that_it_counts() -> None:
    """PHP and C# count attempts; Ruby has the time that they would take at most; without any limit there is a day."""
    policy = memorystore.policy.with_limits(Limits(attempts=4, timeout=None)).replace(attempt_timeout=5)
    parameters = php_config(policy)["google.cloud.redis.v1.CloudRedis"]["retry_params"]["forbear"]
    assert (parameters["max_retries"], parameters["total_timeout_millis"]) == (3, 14_000)
    assert (parameters["initial_rpc_timeout_millis"], parameters["max_rpc_timeout_millis"]) == (5000, 5000)
    assert "maxAttempts: 4," in export.gax_csharp(policy).value
    text, losses = export.gax_ruby(policy)
    assert "rpc.timeout = 14\n" in text
    assert [loss for loss in losses if loss.startswith("attempts=4: 14 s in time instead")]
    once = php_config(policy.with_attempts(1))["google.cloud.redis.v1.CloudRedis"]
    assert once["retry_codes"] == {"forbear": []}  # max_retries=0 would be no limit
    endless = memorystore.policy.with_limits(Limits(attempts=None, timeout=None, unlimited=True))
    assert "rpc.timeout = 86400\n" in export.gax_ruby(endless).value


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("policy", [cloud_storage.policy, retry(on=OSError)])
def test_other_services_are_refused(target: str, policy: Policy) -> None:
    """The error names the services."""
    with pytest.raises(ValueError, match="must be for IAM, Memorystore or Resource Manager, got one for "):
        export.source(target, policy)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_bracket_is_closed(target: str, policy: Policy) -> None:
    """In each language."""
    text = export.source(target, policy).value
    for opening, closing in ("()", "{}", "[]"):
        assert text.count(opening) == text.count(closing)


@pytest.mark.soak
def test_ruby_reads_the_text(tmp_path: Path) -> None:
    """Its parser takes it; the gems are in no registry of Debian, PyPI or npm."""
    (tmp_path / "main.rb").write_text(export.gax_ruby(memorystore.documented).value)
    assert run(program("ruby", "apt install ruby"), "-wc", "main.rb", cwd=tmp_path).strip() == "Syntax OK"


@pytest.mark.soak
def test_php_adds_to_the_librarys_own_configuration(tmp_path: Path) -> None:
    """A client keeps the other methods of the file that its library ships; the library is not in Debian or npm."""
    folder = tmp_path / "src" / "V1"
    (folder / "Client").mkdir(parents=True)
    (folder / "resources").mkdir()
    interface = "google.cloud.redis.v1.CloudRedis"
    config = {"interfaces": {interface: {"retry_codes": {"own": []}, "retry_params": {}, "methods": LIBRARY}}}
    (folder / "resources" / "cloud_redis_client_config.json").write_text(json.dumps(config))
    (folder / "Client" / "CloudRedisClient.php").write_text("<?php class CloudRedisClient {}")
    text = export.gax_php(memorystore.documented).value
    main = f"<?php require 'Client/CloudRedisClient.php';\n{text}echo json_encode(retrying('CloudRedisClient'));"
    (folder / "main.php").write_text(main)
    made = json.loads(run(program("php", "apt install php-cli"), "main.php", cwd=folder))
    found = made["clientConfig"]["interfaces"][interface]
    assert found["methods"]["UpdateInstance"] == {"timeout_millis": 2}
    assert found["methods"]["GetInstance"]["retry_codes_name"] == "forbear"
    assert "UNAVAILABLE" in found["retry_codes"]["forbear"]
    assert found["retry_params"]["forbear"]["max_retries"] == 10

"""No feature of any policy is dropped silently by any target."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import forbear
from forbear import export
from forbear.core.backoff import Constant, Exponential
from forbear.core.budget import Throttle
from forbear.export.outline import Outline, features
from forbear.policy import Policy, retry
from forbear.run.budget import Budget
from forbear.run.plan import OPTIONS
from forbear.services import cloud_storage, iam, redis
from forbear_testkit.export.policies import NAMED, Busy, Growing, policies

GAX = ("gax_nodejs", "gax_java", "gax_go", "gax_ruby", "gax_php", "gax_csharp", "gax_cpp")
CALLERS = ("google_api_core", "tenacity", "celery", "temporal")
"""Targets that call functions, also those that send commands to Redis."""

FULL = retry(
    on=Busy,
    attempts=4,
    timeout=60,
    attempt_timeout=5,
    on_result=bool,
    on_event=print,
    budget=Budget(),
    clamp=True,
    repeatable=False,
    retry_exhausted=True,
    stop=bool,
    delay=hash,
    on_give_up=None,
    raise_unsatisfied=True,
    on_success=print,
    key=hash,
    safe="POST https://api.example.com/search*",
    apis=forbear.Api("https://api.example.com"),
    unknown="stop",
    enforce="warn",
)


def test_what_is_not_said_is_a_loss() -> None:
    """A target that says nothing loses everything, each feature in a line of its own."""
    assert [loss.split(":")[0] for loss in Outline(FULL).losses] == [
        "repeatable=False",
        "errors",
        "attempts=4",
        "timeout of 60 s",
        "clamp=True",
        "attempt_timeout of 5 s",
        "waits of 1 s, times 2 up to 64 s",
        "jitter=full",
        "Retry-After",
        f"budget={FULL.budget!r}",
        "on_result",
        "on_event",
        "stop",
        "delay",
        "on_give_up",
        "raise_unsatisfied",
        "on_success",
        "retry_exhausted=True",
        "key",
        "safe=['POST https",
        "apis",
        "unknown='stop'",
        "enforce='warn'",
    ]


def test_every_option_is_a_feature() -> None:
    """A new option of policies needs a loss, unless it has no meaning for a target."""
    told = {feature for feature, _, _ in features(FULL, Outline(FULL).waits)}
    assert OPTIONS.keys() - told == {"name", "service", "repeatable", "others"}
    others = FULL | retry(KeyError)
    assert "others" in {feature for feature, _, _ in features(others, Outline(others).waits)}


@pytest.mark.parametrize(
    ("policy", "losses"),
    [
        (retry(on=Busy, backoff=Growing()), {"backoff=Growing()"}),
        (retry(on=Busy, backoff=Constant(1, spread=2)), {"waits of 1 s", "jitter=spread"}),
        (cloud_storage.policy, {"safety"}),
        (retry(on=Busy), {"safety"}),
    ],
)
def test_features_that_not_every_policy_has(policy: Policy, losses: set[str]) -> None:
    """They are losses where it has them."""
    assert losses <= {loss.split(":")[0] for loss in Outline(policy).losses}


def test_a_policy_without_a_feature_does_not_lose_it() -> None:
    """A feature that the policy lacks is no loss, even if a target records a difference."""
    outline = Outline(retry(on=Busy, timeout=None, attempts=2))
    outline.differs("timeout", "timeout: none")
    outline.differs("budget", "budget: none")
    assert not [loss for loss in outline.losses if loss.startswith(("timeout", "budget"))]


@given(policies, st.sampled_from(sorted(export.TARGETS)))
def test_any_policy_to_any_target(policy: Policy, target: str) -> None:
    """There is a text, and what no target knows is always among the losses."""
    assume(target not in GAX)  # for three services only
    if policy.on is redis.policy.on and target not in CALLERS:
        with pytest.raises(ValueError, match=r"must be for HTTP requests or RPCs, got one for the commands of Redis"):
            export.source(target, policy)
        return
    text, losses = export.source(target, policy)
    assert text.strip()
    told = "\n".join(losses)
    assert ("clamp=True" in told) == policy.limits.clamp
    assert ("on_event" in told) == (policy.on_event is not None)
    assert ("on_result" in told) == (policy.on_result is not None)
    assert ("retry_exhausted" in told) == policy.retry_exhausted
    throttle = policy.budget is not None and isinstance(policy.budget._rule, Throttle)
    if policy.budget is not None and not (throttle and target == "grpc"):
        assert "budget" in told
    if policy.service is not None:
        assert "safety" in told
    assert all(": " in loss or " is " in loss for loss in losses)


@pytest.mark.parametrize("target", sorted(set(export.TARGETS) - set(GAX)))
def test_attempts_or_time_bound_every_export(target: str) -> None:
    """A policy with only one of the limits does not become one without any."""
    for policy in (retry(on=Busy, attempts=3, timeout=None), retry(on=Busy, attempts=None, timeout=7)):
        text, losses = export.source(target, policy)
        told = "\n".join(losses)
        if "attempts=3: no limit" in told or "timeout of 7 s: no limit in time\n" in told:
            assert target == "csharp", text  # its calls are bounded by the client's own defaults


@pytest.mark.parametrize("target", ["boto", "gcloud", "go", "java", "nodejs", "cpp", "csharp", "php", "ruby"])
@pytest.mark.parametrize("name", ["iam", "memorystore", "rfc9110"])
def test_clients_of_cloud_storage_take_no_other_service(target: str, name: str) -> None:
    """The error names the service and the cure."""
    with pytest.raises(ValueError, match=r"must be for Cloud Storage .*, got one for \w+; take another target"):
        export.source(target, NAMED[name])


@pytest.mark.parametrize("target", sorted(set(export.TARGETS) - set(CALLERS)))
def test_what_sends_requests_does_not_take_the_waits_of_redis(target: str) -> None:
    """Its waits of milliseconds would storm a service on the network; the error names both cures, and one works."""
    cure = r"export the policy of the service that you call .*, or name the errors with `policy.with_on"
    with pytest.raises(ValueError, match=cure):
        export.source(target, redis.policy)
    cured = redis.policy.with_on(OSError)
    assert export.source(target, cured.replace(service=iam.policy.service) if target in GAX else cured).value


@pytest.mark.parametrize("target", ["google_api_core", "tenacity", "celery"])
def test_a_judge_of_the_users_own_has_no_text(target: str) -> None:
    """It is refused, with both ways out."""
    with pytest.raises(TypeError, match=r"name types with `with_on`, or use the function of forbear.export"):
        export.source(target, retry(on=lambda error: True))


class Outer:
    """Something with a class inside."""

    class Inner(Exception):
        """A type that no import statement reaches."""


@pytest.mark.parametrize("target", ["google_api_core", "tenacity", "celery"])
def test_types_without_an_import_have_no_text(target: str) -> None:
    """The text would not run."""

    class Local(Exception):
        """A type that only this test sees."""

    for kind in (Outer.Inner, Local):
        with pytest.raises(ValueError, match="must list types from the top of a module"):
            export.source(target, retry(on=kind))


def test_the_waits_of_a_judge_are_a_loss() -> None:
    """It may answer with seconds, which no target asks for; types and the judges of services do not."""
    answered = [retry(on=lambda error: 3.0), retry(on=Busy, on_result=lambda value: 3.0)]
    for policy in answered:
        assert [loss for loss in export.tenacity(policy).losses if loss.startswith("delays: ")]
    for policy in (retry(on=(Busy, OSError)), cloud_storage.policy, NAMED["redis"]):
        assert not [loss for loss in export.tenacity(policy).losses if loss.startswith("delays: ")]


def test_what_is_no_policy_is_refused() -> None:
    """A wrong policy and an unknown target are refused; the error lists the targets."""
    nonsense: Any = Exponential()
    with pytest.raises(TypeError, match=r"`policy` must be a forbear\.Policy"):
        export.source("tenacity", nonsense)
    with pytest.raises(ValueError, match="`target` must be one of grpc, boto, "):
        export.source("perl", retry(on=Busy))
    assert not hasattr(export, "perl")


def test_every_target_is_a_function() -> None:
    """Every target is a function of its name, and `__all__` lists it."""
    for target in export.TARGETS:
        assert callable(getattr(export, target))
    assert {"TARGETS", "Exported", "source", *export.TARGETS} == set(export.__all__)


@pytest.mark.parametrize("profile", ["documented", "documented_2020", "python_client", "gsutil"])
@pytest.mark.parametrize(
    "language", ["nodejs", "php", "ruby", "go", "java", "cpp", "csharp", "boto", "google_api_core"]
)
def test_data_that_is_sent_again_after_429(language: str, profile: str) -> None:
    """The retry page calls 429 to a chunk final; a client that repeats it says so, under the profiles of the page."""
    loss = "429 to data of a resumable upload: repeated, although the page on retries calls it final"
    assert loss in getattr(export, language)(getattr(cloud_storage, profile)).losses
    assert loss not in getattr(export, language)(cloud_storage.policy).losses


def test_tools_that_do_not_send_data_again_after_429() -> None:
    """For gcloud 429 is final, and the others repeat no request that sends data."""
    for target in (export.gcloud, export.grpc, export.envoy, export.urllib3):
        assert not any(loss.startswith("429") for loss in target(cloud_storage.documented).losses)

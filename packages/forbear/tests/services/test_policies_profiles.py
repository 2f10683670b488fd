"""Profiles of several services: presets, the option for 404, and the rare status 508."""

import pickle
from collections.abc import Iterator

import httpx
import pytest

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall, is_rpc_service
from forbear.http.request import Request
from forbear.services import cloud_storage, iam, memorystore, registry, resource_manager
from forbear.testing.virtual_clock import virtual_time
from forbear_cloud import Cloud, Fault

PROFILES = {
    f"{service}.{profile}": registry.policy(service, profile)
    for service in registry.names()
    for profile in registry.profiles(service)
}


def test_every_profile_is_listed() -> None:
    """Each service lists its policies, the recommended one first, and nothing else of its module counts as one."""
    assert set(PROFILES) == {
        "cloud_storage.policy", "cloud_storage.documented", "cloud_storage.documented_2020", "cloud_storage.gsutil",
        "cloud_storage.python_client", "iam.policy", "iam.documented", "memorystore.policy", "memorystore.documented",
        "redis.policy", "resource_manager.policy", "resource_manager.documented", "rfc9110.policy",
        "aws.policy",
    }  # fmt: skip
    for service in registry.names():
        assert registry.profiles(service)[0] == "policy"
        for other in ("RECOMMENDED", "__all__", "nope", "", "is_conflict", "gsutil_policy"):
            assert registry.policy(service, other) is None


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("preset", forbear.policies.PRESETS)
def test_a_preset_changes_limits_and_waits_only(name: str, preset: str) -> None:
    """Which errors are transient, and what is safe, stays with the policy; so do the other limits."""
    policy = PROFILES[name]
    assert policy is not None
    policy = policy.with_limits(policy.limits.replace(clamp=True, max_retry_after=7))
    changed, chosen = policy.with_preset(preset), forbear.policies.PRESETS[preset]
    assert (changed.limits.attempts, changed.limits.timeout) == (chosen.limits.attempts, chosen.limits.timeout)
    assert (changed.limits.clamp, changed.limits.max_retry_after) == (True, 7)
    assert changed.backoff == chosen.backoff
    assert changed.with_limits(policy.limits).with_backoff(policy.backoff) == policy
    assert pickle.loads(pickle.dumps(changed)) == changed


@pytest.mark.parametrize("name", ["nope", "", "cloud_storage"])
def test_an_unknown_preset(name: str) -> None:
    """The error lists the presets."""
    with pytest.raises(ValueError, match=r"`name` must be one of interactive, mobile, ci, batch, got"):
        forbear.retry(on=OSError).with_preset(name)


NOT_FOUND_POLICIES = [iam.policy, iam.documented, resource_manager.policy, resource_manager.documented]


@pytest.mark.parametrize("policy", NOT_FOUND_POLICIES)
def test_not_found_can_be_retried(policy: forbear.Policy) -> None:
    """The option applies to requests, calls and errors of functions, and can be taken back; nothing else changes."""
    patient = policy.with_retry_not_found()
    service = patient.service
    assert service is not None
    read = service.classify(Request("GET", "localhost", "/v1/projects/p"))
    assert service.verdict(read, 404, {}) is TRANSIENT
    rpcs: object = service
    assert is_rpc_service(rpcs)
    call = rpcs.classify_call(GrpcCall("google.cloud.resourcemanager.v3.Projects/GetProject"))
    assert rpcs.call_verdict(call, codes.NOT_FOUND) is TRANSIENT
    response = httpx.Response(404, request=httpx.Request("GET", "http://localhost/"))
    error = httpx.HTTPStatusError("gone", request=response.request, response=response)
    assert patient.verdict_of_error(error).kind is Kind.TRANSIENT
    assert policy.verdict_of_error(error) is PERMANENT
    assert patient.with_retry_not_found(False) == policy
    assert patient.replace(on=policy.on, service=policy.service) == policy


def test_a_404_that_may_be_a_success_stays_permanent() -> None:
    """A delete whose response was lost is answered 404, with the option or without."""
    service = resource_manager.policy.with_retry_not_found().service
    assert service is not None
    delete = service.classify(Request("DELETE", "localhost", "/v3/liens/x"))
    assert 404 in delete.maybe_done
    assert service.verdict(delete, 404, {}) is PERMANENT


@pytest.mark.parametrize("policy", [cloud_storage.policy, memorystore.policy, forbear.retry(on=OSError)])
def test_other_services_have_no_such_option(policy: forbear.Policy) -> None:
    """The error names the policies that have it."""
    with pytest.raises(TypeError, match=r"must be one of IAM or Resource Manager, such as iam\.policy, got one of"):
        policy.with_retry_not_found()
    with pytest.raises(TypeError, match="`retry_not_found` must be"):
        iam.policy.with_retry_not_found(1)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def shared() -> Iterator[Cloud]:
    """The cloud of all tests here."""
    with Cloud() as running:
        yield running


@pytest.fixture
def cloud(shared: Cloud) -> Iterator[Cloud]:
    """A cloud with nothing but a bucket, in virtual time."""
    shared.reset()
    shared.store.create_bucket("bkt")
    with virtual_time(3):
        yield shared


def _adapter(policy: forbear.Policy | None) -> RetryTransport:
    return RetryTransport(policy, transport=httpx.HTTPTransport(verify=False))  # reading certificates takes long


def test_what_is_new_is_found_later(cloud: Cloud) -> None:
    """A service account that cannot be read yet: three requests with the option, one without."""
    for policy, expected in ((iam.documented.with_retry_not_found(), (200, 3)), (iam.documented, (404, 1))):
        cloud.fault(Fault.lag(2))
        with httpx.Client(base_url=cloud.url, transport=_adapter(policy)) as http:
            accounts = "/v1/projects/p/serviceAccounts"
            email = http.post(accounts, json={"accountId": f"worker-{expected[1]}"}).json()["email"]
            before = cloud.requests.total
            response = http.get(f"{accounts}/{email}")
        assert (response.status_code, cloud.requests.total - before) == expected


@pytest.mark.parametrize(
    ("name", "repeated"),
    [
        ("cloud_storage.policy", False),
        ("cloud_storage.documented", True),
        ("cloud_storage.documented_2020", True),
        ("cloud_storage.gsutil", True),
        ("cloud_storage.python_client", True),
        ("iam.policy", False),
        ("iam.documented", False),
        ("memorystore.policy", False),
        ("memorystore.documented", True),
        ("resource_manager.policy", False),
        ("resource_manager.documented", False),
        ("rfc9110.policy", False),
    ],
)
def test_status_508(cloud: Cloud, name: str, repeated: bool) -> None:
    """508 is retried where the page lists it or says 5xx, and by no recommended policy."""
    cloud.fault(Fault.status(508, times=1))
    with httpx.Client(base_url=cloud.url, transport=_adapter(PROFILES[name])) as http:
        assert http.get("/storage/v1/b/bkt").status_code == (200 if repeated else 508)
    assert cloud.requests.total == (2 if repeated else 1)

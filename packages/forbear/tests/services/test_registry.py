"""Which service answers on a host, and which knows an RPC."""

import pytest

from forbear.services import cloud_storage, iam, memorystore, resource_manager
from forbear.services.registry import find, find_rpc, recommend
from forbear.services.rfc9110 import policy as rfc9110_policy
from forbear.tables import google_apis


@pytest.mark.parametrize(
    ("host", "api"),
    [
        ("iam.googleapis.com", "iam"),
        ("IAM.GoogleAPIs.com.:443", "iam"),
        ("iam.mtls.googleapis.com", "iam"),
        ("content-redis.googleapis.com", "redis"),
        ("redis.europe-west1.rep.googleapis.com", "redis"),
        ("memorystore-psc1.p.googleapis.com", "memorystore"),
        ("iamcredentials.googleapis.com", "iamcredentials"),
        ("googleapis.com", None),
        ("iam.googleapis.com.example.com", None),
        ("xiam.example.com", None),
        ("a.b.iam.googleapis.com", None),
        ("iam.googleapis.community", None),
        ("iam.googleapis.com:pw@evil.example", None),
        ("user@iam.googleapis.com", None),
        ("iam.googleapis.com:x", None),
        ("127.0.0.1:80", None),
        ("", None),
    ],
)
def test_hosts_of_google(host: str, api: str | None) -> None:
    """Plain, mutual TLS, regional and private endpoints are of the same API."""
    assert google_apis.api(host) == api


@pytest.mark.parametrize(
    ("host", "path", "name"),
    [
        ("iam.googleapis.com", "/v1/x", "iam"),
        ("iamcredentials.mtls.googleapis.com", "/v1/x", "iam"),
        ("redis.googleapis.com", "/v1/x", "memorystore"),
        ("memorystore.googleapis.com:443", "/", "memorystore"),
        ("storage.googleapis.com", "/bucket/object", "cloud_storage"),
        ("cloudresourcemanager.googleapis.com", "/v1/projects/p:setIamPolicy", "resource_manager"),
        ("cloudresourcemanager.mtls.googleapis.com", "/v3/folders/1:getIamPolicy", "resource_manager"),
        ("pubsub.googleapis.com", "/v1/projects/p/topics/t:setIamPolicy", "iam"),
        ("pubsub.googleapis.com", "/v1/projects/p/topics/t:publish", None),
        ("iam.example.com", "/v1/x", None),
        ("iam.example.com", "/v1/projects/p:setIamPolicy", None),
    ],
)
def test_services_by_host(host: str, path: str, name: str | None) -> None:
    """A host names a service and its recommended policy; an unknown one has the policy of RFC 9110."""
    policies = {
        "iam": iam.policy,
        "memorystore": memorystore.policy,
        "cloud_storage": cloud_storage.policy,
        "resource_manager": resource_manager.policy,
    }
    service = find(host, path)
    assert (None if service is None else service.name) == name
    assert recommend(host, path) is policies.get(name or "", rfc9110_policy)
    assert service == (None if name is None else policies[name].service)


@pytest.mark.parametrize(
    ("method", "host", "name"),
    [
        ("/google.storage.v2.Storage/GetObject", "", "cloud_storage"),
        ("google.storage.control.v2.StorageControl/GetFolder", "", "cloud_storage"),
        ("/google.iam.admin.v1.IAM/GetRole", "", "iam"),
        ("/google.iam.credentials.v1.IAMCredentials/SignJwt", "", "iam"),
        ("/google.iam.v3.PolicyBindings/GetPolicyBinding", "", "iam"),
        ("/google.cloud.redis.cluster.v1.CloudRedisCluster/GetCluster", "", "memorystore"),
        ("/google.cloud.memorystore.v1.Memorystore/GetInstance", "", "memorystore"),
        ("/google.longrunning.Operations/GetOperation", "redis.googleapis.com:443", "memorystore"),
        ("/google.longrunning.Operations/GetOperation", "", None),
        ("/google.cloud.resourcemanager.v3.Folders/SetIamPolicy", "", "resource_manager"),
        ("/google.iam.v1.IAMPolicy/SetIamPolicy", "pubsub.googleapis.com", "iam"),
        ("google.cloud.kms.v1.KeyManagementService/GetIamPolicy", "", "iam"),
        ("/google.cloud.run.v2.Services/TestIamPermissions", "run.googleapis.com:443", "iam"),
        ("/google.pubsub.v1.Publisher/Publish", "pubsub.googleapis.com", None),
        ("/google.pubsub.v1.Publisher/setIamPolicy", "", None),
        ("/acme.v1.Topics/GetIamPolicy", "", None),
        ("/googleevil.v1.Topics/GetIamPolicy", "", None),
        ("/helloworld.Greeter/SayHello", "localhost:50051", None),
        ("", "", None),
    ],
)
def test_services_by_rpc(method: str, host: str, name: str | None) -> None:
    """A package names a service; what many services share is known by the host."""
    service = find_rpc(method, host)
    assert (None if service is None else service.name) == name

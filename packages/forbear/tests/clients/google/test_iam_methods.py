"""The IAM methods of any Google service over real gRPC: the messages of Google's library decide."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.iam.v1 import iam_policy_pb2, policy_pb2  # type: ignore[import-untyped]
from google.protobuf import field_mask_pb2

import forbear
from forbear.clients.grpc import RetryInterceptor
from forbear.services import iam, memorystore
from forbear.testing import virtual_time
from forbear_testkit.clients.google.rpc_server import Server, running

messages: Any = iam_policy_pb2
policies: Any = policy_pb2
SERVICES = ["google.cloud.resourcemanager.v3.Folders", "google.pubsub.v1.Publisher", "google.iam.v1.IAMPolicy"]
TAGGED = messages.SetIamPolicyRequest(resource="r", policy=policies.Policy(etag=b"BwX"))
BARE = messages.SetIamPolicyRequest(resource="r", policy=policies.Policy(version=1))
MASKED = messages.SetIamPolicyRequest(
    resource="r", policy=policies.Policy(etag=b"BwX"), update_mask=field_mask_pb2.FieldMask(paths=["bindings"])
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    """The server of all tests here."""
    with running() as server:
        yield server


@pytest.fixture
def server(shared: Server) -> Server:
    """A server that has not been called yet."""
    shared.calls.clear()
    shared.fates.clear()
    return shared


def attempts(server: Server, rpc: str, message: Any, policy: forbear.Policy | None = None) -> int:
    """The number of calls that the server gets if the first one ends with UNAVAILABLE."""
    server.fail(grpc.StatusCode.UNAVAILABLE)
    with virtual_time(), grpc.insecure_channel(server.target) as plain:
        interceptor: Any = RetryInterceptor(policy)
        channel: Any = grpc.intercept_channel(plain, interceptor)
        try:
            channel.unary_unary(f"/{rpc}", request_serializer=type(message).SerializeToString)(message)
        except grpc.RpcError as error:
            report = forbear.report(error)
            assert report is not None
            assert report.reason is forbear.events.Reason.UNSAFE
            return -len(server.calls)
    return len(server.calls)


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("method", "message", "expected"),
    [
        ("GetIamPolicy", messages.GetIamPolicyRequest(resource="r"), 2),
        ("TestIamPermissions", messages.TestIamPermissionsRequest(resource="r", permissions=["a.b"]), 2),
        ("SetIamPolicy", TAGGED, 2),
        ("SetIamPolicy", BARE, -1),
        ("SetIamPolicy", MASKED, -1),
        ("SetIam", TAGGED, -1),
    ],
    ids=["get", "test", "tagged", "bare", "masked", "unknown"],
)
def test_messages_decide(server: Server, service: str, method: str, message: Any, expected: int) -> None:
    """Reads are repeated, and a write with the etag; a write without one ends, and the report says why."""
    assert attempts(server, f"{service}/{method}", message) == expected


@pytest.mark.parametrize("policy", [iam.documented, memorystore.policy, iam.policy.with_retry_not_found()])
def test_under_policies_of_services(server: Server, policy: forbear.Policy) -> None:
    """A policy of IAM applies; on a channel with the policy of another service, IAM's own does."""
    assert attempts(server, "google.pubsub.v1.Publisher/SetIamPolicy", TAGGED, policy) == 2


def test_other_packages_stay_unknown(server: Server) -> None:
    """A package that is not Google's may mean anything by these names."""
    assert attempts(server, "acme.v1.Topics/GetIamPolicy", messages.GetIamPolicyRequest(resource="r")) == -1

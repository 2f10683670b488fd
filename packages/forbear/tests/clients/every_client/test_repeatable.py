"""`Policy.repeatable` in adapters: None leaves it to the tables, False forbids doubtful repeats, True is refused."""

from collections.abc import Callable
from functools import partial
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

import forbear
from forbear.clients import aiohttp, google, httpx, httpx2, requests, urllib3, valkey
from forbear.clients import redis as redis_clients
from forbear.clients.google_storage import DEFAULT_RETRY, install
from forbear.clients.grpc import RetryInterceptor, aio_interceptors
from forbear.core.decide import Reason
from forbear.policy import Policy
from forbear.services import cloud_storage, iam, redis, rfc9110
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.google.rpc_server import running
from forbear_testkit.clients.others import BLIND_TOO
from forbear_testkit.clients.wire import Answer, Wire, reply

RPC = "google.iam.admin.v1.IAM/GetRole"
HTTP = 'safe="POST https://api.example.com/v1/search*" in the adapter'
COMMAND = 'safe="INCR"'
NAMES = 'safe=["package.Service/Method"]'


def made(kind: Any, policy: Policy, **options: Any) -> object:
    """A client of Redis or Valkey under a policy."""
    client: object = kind(policy=policy, **options)
    return client


MAKERS: list[tuple[str, Callable[[Policy], object], str]] = [
    ("httpx", httpx.RetryTransport, HTTP),
    ("httpx, async", httpx.AsyncRetryTransport, HTTP),
    ("httpx2", httpx2.RetryTransport, HTTP),
    ("httpx2, async", httpx2.AsyncRetryTransport, HTTP),
    ("requests", requests.RetryAdapter, HTTP),
    ("aiohttp", aiohttp.RetryMiddleware, HTTP),
    ("urllib3", urllib3.Retry, "forbear.clients.requests.RetryAdapter(safe=...)"),
    ("google-cloud-storage", lambda policy: install(_storage(), policy), HTTP),
    ("gRPC", RetryInterceptor, NAMES),
    ("gRPC, async", aio_interceptors, NAMES),
    ("retry objects", lambda policy: google.retry_for(RPC, policy), NAMES),
    ("retry objects, async", lambda policy: google.async_retry_for(RPC, policy), NAMES),
    ("redis", partial(made, redis_clients.Redis), COMMAND),
    ("redis, async", partial(made, redis_clients.AsyncRedis), COMMAND),
    ("redis cluster", partial(made, redis_clients.RedisCluster, host="localhost"), COMMAND),
    ("redis cluster, async", partial(made, redis_clients.AsyncRedisCluster, host="localhost"), COMMAND),
    ("valkey", partial(made, valkey.Valkey), COMMAND),
    ("valkey, async", partial(made, valkey.AsyncValkey), COMMAND),
]


def _storage() -> Any:
    credentials: Any = AnonymousCredentials
    return storage.Client("p", credentials())


@pytest.mark.parametrize(("make", "cure"), [pytest.param(*row[1:], id=row[0]) for row in MAKERS])
def test_true_is_refused_with_the_cure(make: Callable[[Policy], object], cure: str) -> None:
    """At construction, for a policy of one's own and for one of a service."""
    base = redis.policy if cure is COMMAND else iam.policy if cure is NAMES else cloud_storage.policy
    plain, blunt = forbear.retry(on=forbear.transient), forbear.retry(on=KeyError, repeatable=True)
    for policy in (base.with_repeatable(True), blunt.with_on(forbear.transient), plain | blunt):
        with pytest.raises(ValueError, match="`policy` must not have repeatable=True") as caught:
            make(policy)
        assert cure in str(caught.value)


@BLIND_TOO
@pytest.mark.parametrize("policy", [rfc9110.policy, cloud_storage.policy, forbear.retry(on=forbear.transient)])
def test_false_repeats_no_get_in_doubt(flavour: Flavour, policy: Policy) -> None:
    """Not even under the policy of a service, whose table allows it; the note names the policy."""
    with Wire(reply(503)) as wire:
        result = flavour.call(flavour.transport(policy.with_repeatable(False)), "GET", f"{wire.url}/b/o")
        assert len(wire.seen) == 1
    assert result.report.reason is Reason.UNSAFE
    assert "repeatable=False" in result.report.text


@BLIND_TOO
def test_false_repeats_what_was_not_executed(flavour: Flavour, closed_port: int) -> None:
    """A refused connection is retried until the limit."""
    policy = rfc9110.policy.with_repeatable(False).with_attempts(3)
    result = flavour.call(flavour.transport(policy), "POST", f"http://127.0.0.1:{closed_port}/")
    assert (result.report.reason, result.report.count) == (Reason.ATTEMPTS, 3)


@BLIND_TOO
def test_none_leaves_it_to_the_table(flavour: Flavour) -> None:
    """A GET is repeated, a POST is not, whoever made the policy."""
    for policy in (rfc9110.policy, forbear.retry(on=forbear.transient, on_result=lambda _: False)):
        if flavour.name == "urllib3" and policy.checks_values:
            continue
        for method, requests_sent in (("GET", 2), ("POST", 1)):
            with Wire(reply(503), reply(200)) as wire:
                flavour.call(flavour.transport(policy), method, wire.url)
                assert len(wire.seen) == requests_sent


@BLIND_TOO
def test_joined_policies_repeat_no_post(flavour: Flavour) -> None:
    """Whichever of them retries the error: what they do with functions does not count."""
    policy = forbear.retry(on=KeyError) | forbear.retry(on=Exception, attempts=2)
    with Wire(Answer(end="reset")) as wire:
        result = flavour.call(flavour.transport(policy), "POST", wire.url, content=b"x")
        assert (result.report.reason, len(wire.seen)) == (Reason.UNSAFE, 1)


@BLIND_TOO
def test_a_joined_policy_repeats_no_get_in_doubt(flavour: Flavour) -> None:
    """`repeatable=False` counts for the errors of its own policy."""
    policy = forbear.retry(on=KeyError) | forbear.retry(on=Exception, repeatable=False)
    with Wire(Answer(end="reset")) as wire:
        result = flavour.call(flavour.transport(policy), "GET", wire.url)
        assert (result.report.reason, len(wire.seen)) == (Reason.UNSAFE, 1)


def test_retry_objects_of_google(cloud: Cloud, bucket: Any) -> None:
    """False sends even a read once; None is the table again."""
    for repeatable, waits in ((False, 0), (None, 1), (True, 1)):
        cloud.clear_faults()
        cloud.fault(Fault.status(503, times=1))
        retry = DEFAULT_RETRY.with_repeatable(False).with_repeatable(repeatable).with_timeout(60)
        with virtual_time() as time:
            try:
                bucket.reload(retry=retry)
            except exceptions.ServiceUnavailable:
                raised = True
            else:
                raised = False
        assert (len(time.slept), raised) == (waits, repeatable is False)


def test_repeatable_false_goes_before_safe_in_grpc() -> None:
    """False beats `safe`, which holds under None."""
    for repeatable, calls in ((False, 1), (None, 2)):
        with running() as server, grpc.insecure_channel(server.target) as plain, virtual_time():
            server.fail(grpc.StatusCode.UNAVAILABLE)
            policy = rfc9110.policy.with_repeatable(repeatable)
            interceptor: Any = RetryInterceptor(policy, safe=["t.T/Say"])
            channel: Any = grpc.intercept_channel(plain, interceptor)
            notes: list[str] = []
            try:
                channel.unary_unary("/t.T/Say")(b"a")
            except grpc.RpcError as error:
                notes = error.__notes__
            assert (len(server.calls), [note for note in notes if "repeatable=False" in note]) == (calls, notes)
            assert bool(notes) is (repeatable is False)


@pytest.fixture
def bucket(cloud: Cloud) -> Any:
    """The bucket "bkt" through a real client."""
    credentials: Any = AnonymousCredentials
    client: Any = storage.Client("p", credentials(), client_options={"api_endpoint": cloud.url})
    return client.bucket("bkt")

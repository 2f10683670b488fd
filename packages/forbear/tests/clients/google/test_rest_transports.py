"""`retry_for` on the REST transports of Google's generated clients, against real HTTP servers."""

import asyncio
import gc
import socket
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest
import requests
from google.api_core import exceptions
from google.api_core.operations_v1 import operations_rest_client_async
from google.api_core.operations_v1.transports.rest_asyncio import AsyncOperationsRestTransport
from google.auth import exceptions as auth
from google.auth.aio.credentials import AnonymousCredentials as AsyncAnonymous
from google.auth.aio.transport.sessions import AsyncAuthorizedSession
from google.cloud import iam_credentials_v1, iam_v2, iam_v3, redis_v1
from google.cloud.iam_credentials_v1.services.iam_credentials.transports import IAMCredentialsRestTransport
from google.cloud.iam_v2.services.policies.transports import PoliciesRestTransport
from google.cloud.iam_v3.services.policy_bindings.transports import PolicyBindingsRestTransport
from google.cloud.redis_v1.services.cloud_redis.transports import CloudRedisRestTransport

import forbear
from forbear.clients.google import async_retry_for, retry_for
from forbear.services import iam, memorystore
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.google import ANONYMOUS
from forbear_testkit.clients.google.rest_server import Fate, Server

ASYNC_ANONYMOUS: Any = cast("Callable[[], object]", AsyncAnonymous)()
CLIENTS: dict[str, tuple[Any, Any]] = {
    "google.cloud.redis.v1.CloudRedis": (redis_v1.CloudRedisClient, CloudRedisRestTransport),
    "google.iam.v2.Policies": (iam_v2.PoliciesClient, PoliciesRestTransport),
    "google.iam.v3.PolicyBindings": (iam_v3.PolicyBindingsClient, PolicyBindingsRestTransport),
    "google.iam.credentials.v1.IAMCredentials": (
        iam_credentials_v1.IAMCredentialsClient,
        IAMCredentialsRestTransport,
    ),
}
INSTANCE = "projects/p/locations/us-central1/instances/i"
BINDING = "projects/p/locations/global/policyBindings/b"
POLICY = "policies/a/denypolicies/b"


@dataclass(frozen=True)
class Call:
    """One call of a real client, and whether it may be repeated after a doubtful attempt."""

    rpc: str
    name: str
    request: dict[str, Any]
    safe: bool

    def __call__(self, host: str, *, policy: forbear.Policy | None = None, **options: Any) -> Any:
        """Make the call at a server."""
        kind, transport = CLIENTS[self.rpc.partition("/")[0]]
        client = kind(transport=transport(host=host, credentials=ANONYMOUS, url_scheme="http"))
        with client:
            return getattr(client, self.name)(self.request, retry=retry_for(self.rpc, policy), **options)


READ = Call("google.cloud.redis.v1.CloudRedis/GetInstance", "get_instance", {"name": INSTANCE}, safe=True)
CREATE = Call(
    "google.cloud.redis.v1.CloudRedis/CreateInstance",
    "create_instance",
    {"parent": INSTANCE.rpartition("/instances/")[0], "instance_id": "i", "instance": {"memory_size_gb": 1}},
    safe=True,
)
FAILOVER = Call(
    "google.cloud.redis.v1.CloudRedis/FailoverInstance", "failover_instance", {"name": INSTANCE}, safe=False
)
CALLS = [
    READ,
    CREATE,
    Call("google.cloud.redis.v1.CloudRedis/DeleteInstance", "delete_instance", {"name": INSTANCE}, safe=False),
    FAILOVER,
    Call("google.iam.v2.Policies/GetPolicy", "get_policy", {"name": POLICY}, safe=True),
    Call("google.iam.v2.Policies/DeletePolicy", "delete_policy", {"name": POLICY, "etag": "x"}, safe=True),
    Call("google.iam.v2.Policies/DeletePolicy", "delete_policy", {"name": POLICY}, safe=False),
    Call("google.iam.v3.PolicyBindings/GetPolicyBinding", "get_policy_binding", {"name": BINDING}, safe=True),
    Call(
        "google.iam.v3.PolicyBindings/UpdatePolicyBinding",
        "update_policy_binding",
        {"policy_binding": {"name": BINDING, "etag": "x"}},
        safe=True,
    ),
    Call(
        "google.iam.v3.PolicyBindings/UpdatePolicyBinding",
        "update_policy_binding",
        {"policy_binding": {"name": BINDING}},
        safe=False,
    ),
    Call(
        "google.iam.credentials.v1.IAMCredentials/GenerateAccessToken",
        "generate_access_token",
        {"name": "projects/-/serviceAccounts/a", "scope": ["s"]},
        safe=True,
    ),
]
IDS = [f"{call.name}-{'safe' if call.safe else 'unsafe'}" for call in CALLS]


@pytest.fixture
def nobody() -> Iterator[str]:
    """The address of a port on which nobody listens; it stays bound, so that no other test gets it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


FATES = [
    *(Fate(status) for status in (408, 429, 500, 502, 503, 504)),
    Fate(503, executed=True),
    Fate(breaks="reset"),
    Fate(breaks="reset", executed=True),
    Fate(breaks="body", executed=True),
]


@pytest.mark.parametrize(
    ("call", "fate"),
    [
        *((call, Fate(503, executed=True)) for call in CALLS),
        *((call, fate) for call in (READ, FAILOVER) for fate in FATES),
    ],
)
def test_a_doubtful_attempt(rest: Server, call: Call, fate: Fate) -> None:
    """A status or a broken connection is followed by another attempt exactly where the message makes that harmless."""
    rest.fail(fate)
    with virtual_time(seed=1) as time:
        if call.safe:
            call(rest.host)
            assert (len(rest.requests), len(time.slept)) == (2, 1)
            return
        with pytest.raises((exceptions.GoogleAPICallError, requests.RequestException)) as caught:
            call(rest.host)
    assert len(rest.requests) == 1
    assert len(rest.executed) == fate.executed
    assert f"{call.rpc} may have been executed" in caught.value.__notes__[0]


@pytest.mark.parametrize("call", [READ, FAILOVER], ids=["read", "write"])
@pytest.mark.parametrize("status", [400, 403, 404, 412, 501, 505])
def test_a_permanent_status(rest: Server, call: Call, status: int) -> None:
    """It is raised at once, without a note."""
    rest.fail(Fate(status))
    with virtual_time() as time, pytest.raises(exceptions.GoogleAPICallError) as caught:
        call(rest.host)
    assert (caught.value.code, len(rest.requests), time.slept) == (status, 1, [])
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("call", CALLS, ids=IDS)
def test_no_connection(nobody: str, call: Call) -> None:
    """A call that could not be sent was not executed, so any call is repeated."""
    with virtual_time() as time, pytest.raises(requests.ConnectionError) as caught:
        call(nobody, policy=(iam if "iam" in call.rpc else memorystore).policy.with_attempts(3))
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.reason, len(time.slept)) == (forbear.events.Reason.ATTEMPTS, 2)


def test_no_connection_under_a_policy_of_ones_own(nobody: str) -> None:
    """It says what is worth another try; what was not executed stays so."""
    policy = forbear.retry(on=requests.ConnectionError, attempts=2)
    with virtual_time() as time, pytest.raises(requests.ConnectionError):
        FAILOVER(nobody, policy=policy)
    assert len(time.slept) == 1
    with virtual_time() as time, pytest.raises(requests.ConnectionError):
        FAILOVER(nobody, policy=forbear.retry(on=ValueError, attempts=2))
    assert time.slept == []


@pytest.mark.parametrize(("call", "sent"), [(READ, 2), (FAILOVER, 1)], ids=["safe", "unsafe"])
def test_no_response_in_time(rest: Server, call: Call, sent: int) -> None:
    """A read timeout says nothing of what was executed."""
    rest.fail(Fate(breaks="silence", executed=True))
    with virtual_time():
        if call.safe:
            call(rest.host, timeout=0.05)
        else:
            with pytest.raises(requests.ReadTimeout, match="timed out"):
                call(rest.host, timeout=0.05)
    assert len(rest.requests) == sent


def test_a_redirect_to_nowhere(rest: Server, nobody: str) -> None:
    """A write that was executed before its redirect failed is not taken for one that was never sent."""
    rest.fail(Fate(303, executed=True, headers=(("Location", f"http://{nobody}/"),)))
    with virtual_time(), pytest.raises(requests.ConnectionError):
        FAILOVER(rest.host)
    assert len(rest.executed) == 1


@pytest.mark.parametrize("policy", [None, forbear.retry(on=exceptions.ServiceUnavailable)], ids=["service", "own"])
@pytest.mark.parametrize(
    "fate",
    [
        Fate(503, headers=(("Retry-After", "40"),)),
        Fate(503, details=({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "40s"},)),
    ],
    ids=["header", "details"],
)
def test_the_wait_that_the_server_asks_for(rest: Server, policy: forbear.Policy | None, fate: Fate) -> None:
    """It is obeyed under any policy, from the header and from the details of the error."""
    rest.fail(fate)
    with virtual_time(seed=1) as time:
        READ(rest.host, policy=policy)
    assert time.slept[0] >= 40


@pytest.mark.parametrize(("name", "status"), [("create_instance", 409), ("delete_policy", 404), ("delete_policy", 409)])
def test_a_status_that_an_earlier_attempt_may_have_caused(rest: Server, name: str, status: int) -> None:
    """It is raised as it is, and the report says that the work may be done: by HTTP status, as by gRPC code."""
    call = next(call for call in CALLS if call.name == name and call.safe)
    rest.fail(Fate(503, executed=True), Fate(status))
    with virtual_time(), pytest.raises(exceptions.GoogleAPICallError) as caught:
        call(rest.host)
    report = forbear.report(caught.value)
    assert report is not None
    assert report.maybe_done


def test_a_conflict(rest: Server) -> None:
    """ABORTED calls for a new read, so a write is not sent again, and `is_conflict` knows it."""
    update = next(call for call in CALLS if call.name == "update_policy_binding" and call.safe)
    rest.fail(Fate(409, error="ABORTED"))
    with virtual_time(), pytest.raises(exceptions.Conflict) as caught:
        update(rest.host)
    assert len(rest.requests) == 1
    assert iam.is_conflict(caught.value)
    rest.fail(Fate(409, error="ABORTED"))
    with virtual_time():
        READ(rest.host)  # a read is a new read itself


def test_a_profile_has_its_own_statuses(rest: Server) -> None:
    """The page of Memorystore takes every 5xx for transient, that of IAM no 429."""
    rest.fail(Fate(501))
    with virtual_time():
        READ(rest.host, policy=memorystore.documented)
    assert len(rest.requests) == 2
    rest.fail(Fate(429))
    with virtual_time(), pytest.raises(exceptions.TooManyRequests):
        next(call for call in CALLS if call.name == "get_policy")(rest.host, policy=iam.documented)


@pytest.mark.parametrize("when", ["before", "after"])
def test_effects_in_the_embedded_cloud(cloud: Cloud, when: Any) -> None:
    """An instance is created once whatever happens to the response; ALREADY_EXISTS then says that it may be ours."""
    host = cloud.url.removeprefix("http://")
    request = {
        "parent": "projects/p/locations/us-central1",
        "instance_id": "i1",
        "instance": {"memory_size_gb": 1},
    }
    create = Call("google.cloud.redis.v1.CloudRedis/CreateInstance", "create_instance", request, safe=True)
    cloud.fault(Fault.status(503, when=when))
    with virtual_time() as time:
        if when == "before":
            create(host)
        else:
            with pytest.raises(exceptions.Conflict) as caught:
                create(host)
            assert "an earlier attempt may have worked" in caught.value.__notes__[0]
    assert (cloud.effects.total, len(time.slept)) == (1, 1)


ERRORS: Any = exceptions


@pytest.mark.parametrize(
    ("status", "sent"),
    [(408, 2), (429, 2), (500, 2), (501, 1), (502, 2), (503, 2), (504, 2), (505, 1), (404, 1), (409, 1)],
)
def test_errors_without_a_response(status: int, sent: int) -> None:
    """An error that only names its status is judged by it, too."""
    fates: list[Exception] = [ERRORS.from_http_status(status, "as told")]
    calls: list[object] = []

    def send(request: object) -> str:
        calls.append(request)
        if fates:
            raise fates.pop()
        return "value"

    retried = retry_for(READ.rpc)(send)
    with virtual_time():
        if sent == 2:
            assert retried({}) == "value"
        else:
            with pytest.raises(exceptions.GoogleAPICallError):
                retried({})
    assert len(calls) == sent


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        (auth.TransportError(requests.ConnectionError("no token")), 2),  # type: ignore[no-untyped-call]
        (requests.ConnectTimeout("x"), 1),  # its name alone proves nothing
        (requests.exceptions.ProxyError("x"), 1),
        (requests.exceptions.SSLError("x"), 1),
        (auth.TimeoutError(), 1),  # type: ignore[no-untyped-call]
    ],
    ids=["credentials", "connect-timeout", "proxy", "tls", "asyncio-timeout"],
)
def test_errors_of_the_session(error: Exception, sent: int) -> None:
    """Only what proves that nothing was sent lets a call be repeated that must not be executed twice."""
    calls: list[object] = []

    def send(request: object) -> None:
        calls.append(request)
        if len(calls) == 1:
            raise error

    with virtual_time():
        if sent == 2:
            retry_for(FAILOVER.rpc)(send)({})
        else:
            with pytest.raises(type(error)):
                retry_for(FAILOVER.rpc)(send)({})
    assert len(calls) == sent


@pytest.mark.parametrize(
    ("name", "fate", "sent"),
    [
        ("get_operation", Fate(502), 2),
        ("cancel_operation", Fate(502), 2),
        ("cancel_operation", Fate(breaks="reset"), 2),
        ("cancel_operation", Fate(404), 1),
    ],
    ids=["read", "write", "lost", "permanent"],
)
def test_the_asyncio_rest_transport_retries(rest: Server, name: str, fate: Fate, sent: int) -> None:
    """The one asyncio REST transport there is, that of long-running operations.

    Its session repeats 408, 429, 500, 503 and 504 itself, and aiohttp a GET whose connection breaks.
    """
    rest.fail(fate)
    rpc = {"get_operation": "GetOperation", "cancel_operation": "CancelOperation"}[name]

    async def run() -> None:
        transport: Any = AsyncOperationsRestTransport(host=f"http://{rest.host}", credentials=ASYNC_ANONYMOUS)
        client: Any = operations_rest_client_async.AsyncOperationsRestClient(transport=transport)
        retry = async_retry_for(f"google.longrunning.Operations/{rpc}", memorystore.policy)
        try:
            await getattr(client, name)("projects/p/locations/l/operations/o", retry=retry)
        finally:
            await transport._session.close()

    with virtual_time(seed=1) as time, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the transport leaves the response to a cancel unread
        if sent == 2:
            asyncio.run(run())
        else:
            with pytest.raises(exceptions.NotFound):
                asyncio.run(run())
        gc.collect()
    assert (len(rest.requests), len(time.slept)) == (sent, sent - 1)


def test_asyncio_without_a_connection(nobody: str) -> None:
    """A session that repeats requests itself cannot show that none of them was executed."""
    calls: list[object] = []

    async def send(request: object) -> None:
        calls.append(request)
        session: Any = AsyncAuthorizedSession(ASYNC_ANONYMOUS)
        try:
            await session.post(f"http://{nobody}/")
        finally:
            await session.close()

    with virtual_time(), pytest.raises(auth.TransportError):
        asyncio.run(async_retry_for(FAILOVER.rpc)(send)({}))  # type: ignore[arg-type]
    assert len(calls) == 1

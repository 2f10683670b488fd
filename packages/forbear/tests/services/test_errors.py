"""Errors of functions that call a service, judged by their shape: those of the real libraries, from real sockets."""

import errno
import http.client
import pickle
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import grpc
import httpx
import httpx2
import pytest
import requests
import urllib3
from aiohttp import client_reqrep
from google.auth import exceptions as auth
from hypothesis import given
from hypothesis import strategies as st

import forbear
from forbear.core.verdict import CONFLICT, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.grpc import codes
from forbear.policy import Policy
from forbear.services import cloud_storage, iam, memorystore
from forbear.services import errors as shapes
from forbear.services.errors import ErrorVerdicts
from forbear.services.rfc9110 import RFC9110
from forbear.services.rfc9110 import policy as rfc9110_policy
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Wire, reply
from forbear_testkit.services import errors
from forbear_testkit.services.errors import api_core

POLICIES = {
    "cloud_storage": cloud_storage.policy, "iam": iam.policy, "memorystore": memorystore.policy,
    "rfc9110": rfc9110_policy,
}  # fmt: skip
THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)
auth_error: Any = auth.TransportError
auth_timeout: Any = auth.TimeoutError


@pytest.fixture
def nobody() -> Iterator[str]:
    """The address of a port on which nobody listens; it stays bound, so that no other test gets it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"


@pytest.mark.parametrize("make", errors.OF_HTTP.values(), ids=errors.OF_HTTP)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize(
    ("status", "verdict"),
    [(400, PERMANENT), (404, PERMANENT), (412, PERMANENT), (501, PERMANENT), (500, TRANSIENT), (503, THROTTLED)],
)
def test_responses(make: errors.Maker, policy: Policy, status: int, verdict: Verdict) -> None:
    """A status means what the service says of it, from whichever client it comes."""
    assert policy.verdict_of_error(make(status, b"{}", {})) == verdict


@pytest.mark.parametrize("make", errors.OF_HTTP.values(), ids=errors.OF_HTTP)
def test_the_server_s_word_is_heard(make: errors.Maker) -> None:
    """Retry-After, whatever the case of its name."""
    expected = Verdict(Kind.TRANSIENT, retry_after=7.0, throttled=True, wait_from="Retry-After")
    assert iam.policy.verdict_of_error(make(503, b"", {"Retry-After": "7"})) == expected


@pytest.mark.parametrize(("host", "waits"), [("api.github.com", True), ("example.com", False)])
def test_waits_in_headers_of_a_known_host(host: str, waits: bool) -> None:
    """A header counts where its unit is known, as the request of the error shows."""
    request = httpx.Request("GET", f"https://{host}/x")
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "784111817", "date": "Sun, 06 Nov 1994 08:49:37 GMT"}
    response = httpx.Response(429, headers=headers, request=request)
    error = httpx.HTTPStatusError("x", request=request, response=response)
    assert shapes.wait_of(error) == ((40.0, "x-ratelimit-reset") if waits else None)


def test_a_stream_that_nobody_read_stays_unread() -> None:
    """A response that the caller streams is not read for a wait: its body may never end."""
    body = b'{"error": {"details": [{"@type": "x/google.rpc.RetryInfo", "retryDelay": "53s"}]}}'
    for stream, wait in ((True, None), (False, 53.0)):
        with Wire(reply(503, body, "Content-Type: application/json")) as wire:
            response = requests.get(wire.url, stream=stream, timeout=9)
            with pytest.raises(requests.HTTPError) as caught:
                response.raise_for_status()
            assert forbear.transient(caught.value).retry_after == wait
            assert response.content == body


def test_a_conflict_is_told_by_the_body() -> None:
    """409 with ABORTED is a conflict, for a function too."""
    body = b'{"error": {"status": "ABORTED"}}'
    assert iam.policy.verdict_of_error(errors.http_error(409, body, {})) is CONFLICT
    assert rfc9110_policy.verdict_of_error(errors.http_error(409, body, {})) is PERMANENT


def test_other_clients() -> None:
    """aiohttp and urllib keep no body, but a status and headers."""
    info: Any = None
    late = aiohttp.ClientResponseError(info, (), status=503, headers={"retry-after": "7"})  # type: ignore[arg-type]
    expected = Verdict(Kind.TRANSIENT, retry_after=7.0, throttled=True, wait_from="Retry-After")
    assert cloud_storage.policy.verdict_of_error(late) == expected
    assert cloud_storage.policy.verdict_of_error(errors.urllib_error(503, {"Retry-After": "7"})) == expected
    assert cloud_storage.policy.verdict_of_error(errors.urllib_error(404, {})) is PERMANENT
    assert shapes.body_of(late) == shapes.body_of(errors.urllib_error(409, {})) == b""


@pytest.mark.parametrize("make", errors.OF_GRPC.values(), ids=errors.OF_GRPC)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_ends_of_calls(make: errors.CallMaker, policy: Policy) -> None:
    """A code means what the service says of it, and the pushback of the server is heard."""
    assert policy.verdict_of_error(make(grpc.StatusCode.NOT_FOUND, ())) is PERMANENT
    assert policy.verdict_of_error(make(grpc.StatusCode.INTERNAL, ())) == TRANSIENT
    assert policy.verdict_of_error(make(grpc.StatusCode.ABORTED, ())) is CONFLICT
    pushed = policy.verdict_of_error(make(grpc.StatusCode.UNAVAILABLE, (("grpc-retry-pushback-ms", "1500"),)))
    assert pushed == Verdict(Kind.TRANSIENT, retry_after=1.5, throttled=True, wait_from="grpc-retry-pushback-ms")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (api_core.from_http_status(503, "x"), 503, None),
        (api_core.from_http_status(408, "x"), 408, None),
        (api_core.from_http_status(429, "x"), 429, None),
        (api_core.from_http_status(502, "x"), 502, None),
        (api_core.from_http_status(501, "x"), 501, None),
        (api_core.from_http_status(409, "x"), 409, None),
        (api_core.from_http_status(302, "x"), None, None),
        (api_core.ResourceExhausted("x"), None, codes.RESOURCE_EXHAUSTED),
        (api_core.DeadlineExceeded("x"), None, codes.DEADLINE_EXCEEDED),
        (api_core.Aborted("x"), None, codes.ABORTED),
        (api_core.Unknown("x"), None, codes.NUMBERS["UNKNOWN"]),
        (errors.OF_GRPC["google-api-core"](grpc.StatusCode.UNAVAILABLE, ()), None, codes.UNAVAILABLE),
        (errors.OF_GRPC["google-api-core"](grpc.StatusCode.UNIMPLEMENTED, ()), None, codes.NUMBERS["UNIMPLEMENTED"]),
        (errors.OF_HTTP["google-api-core"](503, b"{}", {}), 503, None),
    ],
)
def test_http_and_grpc_are_told_apart(error: Exception, status: int | None, code: int | None) -> None:
    """Google's classes serve both: an error made for a status is HTTP's, one of a call or of a code alone is gRPC's."""
    assert (shapes.status_of(error), shapes.code_of(error)) == (status, code)


def test_a_call_is_told_in_one_line() -> None:
    """The own texts of grpc's errors have four lines."""
    assert shapes.text_of_call(errors.OF_GRPC["grpc.aio"](grpc.StatusCode.UNAVAILABLE, ())) == "UNAVAILABLE: x"
    assert shapes.text_of_call(OSError("two\nlines")) is None


def test_a_status_is_judged_as_one_of_http() -> None:
    """The documented profile takes every 5xx for transient, but UNIMPLEMENTED, the code of a 501, for permanent."""
    assert memorystore.documented.verdict_of_error(api_core.from_http_status(501, "x")) == TRANSIENT
    call = errors.OF_GRPC["google-api-core"](grpc.StatusCode.UNIMPLEMENTED, ())
    assert memorystore.documented.verdict_of_error(call) is PERMANENT


def _cause(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


CERTIFICATE: Any = aiohttp.ClientConnectorCertificateError
CONNECTION = client_reqrep.ConnectionKey(
    "h", 1, is_ssl=True, ssl=True, proxy=None, proxy_auth=None, proxy_headers_hash=None
)
UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (ConnectionRefusedError(), TRANSIENT),
        (socket.gaierror(socket.EAI_NONAME, "no such name"), TRANSIENT),
        (httpx.ConnectError("x"), TRANSIENT),
        (httpx.ConnectTimeout("x"), TRANSIENT),
        (httpx.PoolTimeout("x"), TRANSIENT),
        (httpx2.ConnectError("x"), TRANSIENT),
        (ConnectionResetError(), TRANSIENT),
        (BrokenPipeError(), TRANSIENT),
        (TimeoutError(), TRANSIENT),
        (OSError(errno.EHOSTUNREACH, "x"), TRANSIENT),
        (ssl.SSLEOFError(8, "x"), TRANSIENT),
        (httpx.ReadTimeout("x"), TRANSIENT),
        (httpx.ReadError("x"), TRANSIENT),
        (httpx.RemoteProtocolError("x"), TRANSIENT),
        (httpx2.WriteError("x"), TRANSIENT),
        (requests.ConnectionError("x"), TRANSIENT),
        (requests.ConnectTimeout("x"), TRANSIENT),
        (requests.ReadTimeout("x"), TRANSIENT),
        (requests.exceptions.ChunkedEncodingError("x"), TRANSIENT),
        (urllib3.exceptions.ProtocolError("x"), TRANSIENT),
        (aiohttp.ServerDisconnectedError(), TRANSIENT),
        (aiohttp.ClientPayloadError(), TRANSIENT),
        (http.client.BadStatusLine("x"), TRANSIENT),
        (http.client.IncompleteRead(b""), TRANSIENT),
        (auth_error(requests.ConnectionError("x")), TRANSIENT),
        (auth_error(ValueError("x")), PERMANENT),
        (auth_error("x"), PERMANENT),
        (_cause(auth_timeout("x"), TimeoutError()), TRANSIENT),
        (urllib.error.URLError(ConnectionRefusedError()), TRANSIENT),
        (urllib.error.URLError("x"), PERMANENT),
        (urllib.error.URLError(urllib.error.URLError(ConnectionResetError())), TRANSIENT),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] Connect call failed"), TRANSIENT),
        (OSError("Multiple exceptions: x"), PERMANENT),
        (UNTRUSTED, PERMANENT),
        (_cause(httpx.ConnectError("untrusted"), UNTRUSTED), PERMANENT),
        (CERTIFICATE(CONNECTION, OSError()), PERMANENT),
        (requests.exceptions.SSLError(urllib3.exceptions.SSLError(UNTRUSTED)), PERMANENT),
        (httpx.UnsupportedProtocol("x"), PERMANENT),
        (requests.exceptions.InvalidURL("x"), PERMANENT),
        (FileNotFoundError(errno.ENOENT, "x"), PERMANENT),
        (api_core.RetryError("x", ConnectionResetError()), PERMANENT),
        (ValueError("503"), PERMANENT),
    ],
    ids=lambda value: f"{type(value).__module__}.{value!r}" if isinstance(value, Exception) else "",
)
def test_errors_without_a_response(error: Exception, verdict: Verdict) -> None:
    """Only what certainly was not sent is not executed; a lost connection leaves the outcome unknown."""
    for policy in POLICIES.values():
        assert policy.verdict_of_error(error) == verdict


def test_what_merely_came_before_proves_nothing() -> None:
    """A refused connection that was being handled when this one broke is not its cause."""
    error = httpx.ReadError("x")
    error.__context__ = ConnectionRefusedError()
    assert iam.policy.verdict_of_error(error) == TRANSIENT


SENDERS: dict[str, tuple[Callable[[str], object], Verdict]] = {
    "httpx": (httpx.get, TRANSIENT),
    "urllib": (urllib.request.urlopen, TRANSIENT),
    "requests": (requests.get, TRANSIENT),
}


@pytest.mark.parametrize("client", SENDERS)
def test_a_real_refused_connection(nobody: str, client: str) -> None:
    """The client of requests may have tried several times before, and does not say so."""
    send, verdict = SENDERS[client]
    with pytest.raises((httpx.ConnectError, OSError)) as caught:
        send(nobody)
    assert cloud_storage.policy.verdict_of_error(caught.value) == verdict


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_a_decorated_function_is_not_repeated_after_an_unknown_outcome(policy: Policy) -> None:
    """Nobody knows its operation, nor whether it sent something before a connection was refused."""
    trouble: list[Exception] = [ConnectionRefusedError("the target of a redirect"), ConnectionResetError("lost")]
    calls: list[int] = []

    @policy
    def send() -> str:
        calls.append(1)
        if len(calls) <= len(trouble):
            raise trouble[len(calls) - 1]
        return "done"

    with virtual_time(seed=1):
        with pytest.raises(ConnectionRefusedError) as caught:
            send()
        report = forbear.report(caught.value)
        assert report is not None
        assert report.reason.name == "UNSAFE"
        assert report.text.endswith("if it does none, say so with policy.with_repeatable(True)")
        assert len(calls) == 1
        calls.clear()
        assert policy.with_repeatable(True).call(send.__wrapped__) == "done"  # type: ignore[attr-defined]
        assert len(calls) == 3


class Odd(Exception):
    """An error whose attributes are not what they seem."""

    def __init__(self, **attributes: object) -> None:
        super().__init__("odd")
        self.__dict__.update(attributes)

    @property
    def trailing_metadata(self) -> object:
        raise RuntimeError("no")


@given(
    st.dictionaries(
        st.sampled_from(
            ["code", "status", "status_code", "response", "resp", "headers", "content", "grpc_status_code"]
        ),
        st.none() | st.integers() | st.text(max_size=3) | st.booleans() | st.just(len) | st.binary(max_size=3)
        | st.builds(Odd, code=st.integers(390, 610), status_code=st.integers(390, 610) | st.none()),
    )
)  # fmt: skip
def test_no_error_makes_the_judge_raise(attributes: dict[str, object]) -> None:
    """Attributes may be anything: the error itself must be raised."""
    error = Odd(**attributes)
    assert isinstance(cloud_storage.policy.verdict_of_error(error), Verdict)
    assert iam.is_conflict(error) in (True, False)
    assert cloud_storage.is_conflict(error) in (True, False)


def test_the_judge_can_be_compared_and_pickled() -> None:
    """Policies with it can be compared and pickled."""
    judge = ErrorVerdicts(RFC9110)
    assert pickle.loads(pickle.dumps(judge)) == judge != ErrorVerdicts(memorystore.Memorystore())


def test_wrappers_in_a_circle_are_judged() -> None:
    """Errors that count as what they wrap may wrap each other, and chains may be endless."""
    first, second = urllib.error.URLError("x"), urllib.error.URLError("x")
    first.__cause__, second.__cause__ = second, first
    assert iam.policy.verdict_of_error(first) is PERMANENT
    last = ConnectionResetError()
    for _ in range(10_000):
        last = _cause(urllib.error.URLError("x"), last)  # type: ignore[assignment]
    assert iam.policy.verdict_of_error(last) is PERMANENT

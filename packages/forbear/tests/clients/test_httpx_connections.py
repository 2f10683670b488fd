"""Failures before anything was executed, on real sockets: they are repeated whatever the operation, or never."""

import socket
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

import forbear
from forbear.clients._httpx.errors import HttpxLibrary
from forbear.events import Reason
from forbear.services import rfc9110
from forbear.testing import virtual_time
from forbear.verdicts import NOT_EXECUTED, PERMANENT, TRANSIENT, Verdict
from forbear_testkit.clients.flavours import FLAVOURS, Flavour
from forbear_testkit.clients.h2_server import h2_server
from forbear_testkit.clients.listen import listening
from forbear_testkit.clients.secure import trusted, untrusted
from forbear_testkit.clients.wire import Wire, reply


def test_a_refused_connection_is_tried_again_for_any_operation(flavour: Flavour) -> None:
    """A POST to a port where nobody listens is repeated, and arrives once somebody does."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        events: list[Any] = []

        def listen(event: forbear.events.Event) -> None:
            events.append(event)
            if isinstance(event, forbear.events.Scheduled) and event.attempt == 3:
                reserved.listen()
                reserved.settimeout(10)

        policy = rfc9110.policy.with_on_event(listen).with_attempts(4)
        result = flavour.call(
            flavour.transport(policy.with_attempt_timeout(0.1)), "POST", f"http://127.0.0.1:{port}", content=b"x"
        )
    assert isinstance(result.error, flavour.library.ReadTimeout)  # it was sent then, and nobody answered
    assert [type(event.error).__name__ for event in events if isinstance(event, forbear.events.Failed)] == [
        "ConnectError", "ConnectError", "ReadTimeout"
    ]  # fmt: skip
    assert result.report.reason is Reason.UNSAFE


def test_a_full_pool_is_waited_for(flavour: Flavour) -> None:
    """A request that found no free connection was not sent, so even a POST waits for the next chance."""
    errors = [flavour.library.PoolTimeout("full")]

    def before(request: Any) -> None:
        if errors:
            raise errors.pop()

    with Wire(reply(200)) as wire:
        result = flavour.call(flavour.transport(transport=flavour.tampered(before)), "POST", wire.url, content=b"x")
        assert (result.status, result.retries, len(wire.seen)) == (200, 1, 1)


def test_a_certificate_that_is_not_trusted_will_not_be_trusted_later(flavour: Flavour, tmp_path: Path) -> None:
    """A refused certificate ends the run at the first attempt."""
    with untrusted(tmp_path / "both.pem") as (url, handshakes):
        base = flavour.base(verify=ssl.create_default_context())
        result = flavour.call(flavour.transport(transport=base), "GET", url)
        assert isinstance(result.error, flavour.library.ConnectError)
        assert "CERTIFICATE_VERIFY_FAILED" in str(result.error) or flavour.loop == "trio"
        assert (result.slept, len(handshakes)) == ([], 1)


def test_a_handshake_that_fails_is_tried_again_for_any_operation(flavour: Flavour) -> None:
    """A server that does not speak TLS, perhaps because it is being replaced, has executed nothing."""
    with listening(lambda connection: connection.sendall(b"220 hello\r\n")) as port:
        policy = rfc9110.policy.with_attempts(2)
        result = flavour.call(flavour.transport(policy), "POST", f"https://127.0.0.1:{port}", content=b"x")
        assert isinstance(result.error, flavour.library.ConnectError)
        assert result.retries == 1


def http2(flavour: Flavour) -> Any:
    """A retrying transport that speaks HTTP/2 from the start, without TLS."""
    return flavour.transport(transport=flavour.base(http1=False, http2=True))


def test_a_refused_http2_stream_was_not_executed(flavour: Flavour) -> None:
    """REFUSED_STREAM says that the server has not looked at the request, so a POST is repeated."""
    with h2_server("refuse", "respond") as (url, script):
        result = flavour.call(http2(flavour), "POST", url, content=b"x")
        assert (result.status, script.streams, script.bodies) == (200, 2, [b"x"])


def test_an_http2_stream_that_failed_may_have_been_executed(flavour: Flavour) -> None:
    """Any other reset of a stream leaves the outcome unknown."""
    with h2_server("fail", "respond") as (url, script):
        result = flavour.call(http2(flavour), "POST", url, content=b"x")
        assert isinstance(result.error, flavour.library.RemoteProtocolError)
        assert (result.report.reason, script.streams) == (Reason.UNSAFE, 1)


def test_a_server_that_goes_away_gets_the_whole_stream_again(flavour: Flavour) -> None:
    """A GOAWAY that no stream came before says that nothing was executed; the body comes whole all the same."""
    pieces = [bytes([number]) * 10_000 for number in range(30)]
    with h2_server("go away", "respond") as (url, script):
        result = flavour.call(http2(flavour), "POST", url, content=flavour.once(pieces))
        assert (result.status, script.bodies) == (200, [b"".join(pieces)])


LARGE = b"x" * 300_000
"""More than the flow control of a new stream lets through, so that a server may go away while it is being sent."""


HALF_READ = pytest.mark.filterwarnings("ignore:Exception ignored in. <async_generator object ByteStream")
"""trio's warning of a body that the library itself leaves half read."""


@HALF_READ
@pytest.mark.parametrize(("step", "executed"), [("go away above", False), ("go away at", True), ("go away late", True)])
def test_only_a_stream_above_the_last_one_was_not_processed(flavour: Flavour, step: str, executed: bool) -> None:
    """A GOAWAY names the last stream that the server may have processed: a POST is repeated only if it is above.

    Nor is it repeated if the server had begun to respond to it, whatever it says.
    """
    with h2_server("respond", step, "respond") as (url, script):
        result = flavour.call(http2(flavour), "POST", url, content=LARGE, times=2)
    if executed:
        assert isinstance(result.error, flavour.library.RemoteProtocolError)
        assert (result.report.reason, script.streams, script.bodies) == (Reason.UNSAFE, 2, [LARGE])
    else:
        assert (result.status, script.streams, script.bodies) == (200, 3, [LARGE] * 2)


@HALF_READ
def test_a_stream_above_the_last_one_through_a_proxy(
    flavour: Flavour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same holds within the tunnel of a proxy."""
    context = trusted(tmp_path / "both.pem", monkeypatch)
    context.set_alpn_protocols(["h2"])
    with h2_server("respond", "go away above", "respond", tunnel=context) as (proxy, script):
        base = flavour.base(http2=True, proxy=proxy)
        result = flavour.call(flavour.transport(transport=base), "POST", "https://localhost/", content=LARGE, times=2)
    assert (result.status, script.bodies) == (200, [LARGE] * 2)


@pytest.mark.parametrize("flavour", [each for each in FLAVOURS if each.is_async], ids=lambda each: each.name)
def test_streams_that_were_never_opened_were_not_executed(flavour: Flavour) -> None:
    """Requests that waited for their turn on a connection are repeated when its server goes away, whatever they are."""

    async def post_all(url: str) -> list[int]:
        statuses: list[int] = []
        async with flavour.client(http2(flavour)) as client, anyio.create_task_group() as tasks:

            async def post() -> None:
                statuses.append((await client.post(url, content=b"x")).status_code)

            for _ in range(2):
                tasks.start_soon(post)
        return statuses

    with h2_server("go away soon", "respond") as (url, script), virtual_time():
        assert flavour.run(lambda: post_all(url)) == [200] * 2
    assert (script.streams, script.bodies) == (2, [b"x"])


def test_a_stream_that_is_reset_while_its_body_is_sent_may_have_been_executed(flavour: Flavour) -> None:
    """The libraries lose the code of the reset then: the outcome is unknown, so a PUT is repeated and a POST is not."""
    module = flavour.library
    reset = type("StreamClosedError", (Exception,), {})(1)
    judge = HttpxLibrary(module).verdict
    error = module.LocalProtocolError("1")
    error.__cause__ = Exception(reset)
    assert judge(error) is TRANSIENT
    for method, bodies in (("PUT", 1), ("POST", 0)):
        pieces = [b"x" * 20_000] * 3
        with h2_server("fail", "respond") as (url, script):
            result = flavour.call(http2(flavour), method, url, content=flavour.once(pieces))
            assert len(script.bodies) == bodies, result.error


def test_a_stream_that_is_refused_late_may_have_been_executed(flavour: Flavour) -> None:
    """Once a response has begun, a refusal proves nothing: what must not be executed twice is not read on, either."""
    policy = forbear.retry(on=flavour.library.TransportError).with_repeatable(False)
    with h2_server("refuse late", "respond") as (url, script):
        transport = flavour.transport(policy, transport=flavour.base(http1=False, http2=True))
        result = flavour.call(transport, "GET", url)
        assert isinstance(result.error, flavour.library.RemoteProtocolError)
        assert (result.report.reason, script.streams) == (Reason.UNSAFE, 1)


def test_an_error_of_the_callers_own_stream_proves_nothing(flavour: Flavour) -> None:
    """A body that is read from elsewhere may fail to connect there, when part of the request has been sent."""
    with Wire(reply(200)) as wire:
        body = flavour.once([b"half"], flavour.library.ConnectError("the source of the body is down"))
        result = flavour.call(flavour.transport(), "POST", wire.url, content=body)
        assert (str(result.error), result.retries) == ("the source of the body is down", 0)
        assert result.report.reason is Reason.UNSAFE


def test_errors_of_the_libraries_have_their_verdict(flavour: Flavour) -> None:
    """Each error of the libraries has its verdict, wherever it was wrapped."""
    module = flavour.library
    judge = HttpxLibrary(module).verdict

    def caused(error: Exception, cause: BaseException) -> Exception:
        error.__cause__ = cause
        return error

    def told(kind: str, **fields: int) -> Exception:
        event = type(kind, (SimpleNamespace,), {})(**fields)
        return caused(module.RemoteProtocolError("reset"), Exception(event))

    expected: list[tuple[Exception, Verdict]] = [
        (module.ConnectError("refused"), NOT_EXECUTED),
        (module.ConnectTimeout("slow"), NOT_EXECUTED),
        (module.PoolTimeout("full"), NOT_EXECUTED),
        (caused(module.ConnectError("tls"), ssl.SSLError("handshake")), NOT_EXECUTED),
        (caused(module.ConnectError("tls"), ssl.SSLCertVerificationError("self-signed")), PERMANENT),
        (caused(module.ConnectError("tls"), OSError(ssl.SSLCertVerificationError("self-signed"))), PERMANENT),
        (module.ReadTimeout("slow"), TRANSIENT),
        (module.WriteTimeout("slow"), TRANSIENT),
        (module.ReadError("reset"), TRANSIENT),
        (module.WriteError("reset"), TRANSIENT),
        (module.CloseError("reset"), TRANSIENT),
        (module.RemoteProtocolError("nonsense"), TRANSIENT),
        (ConnectionResetError("raw"), TRANSIENT),
        (TimeoutError("raw"), TRANSIENT),
        (told("StreamReset", error_code=7), NOT_EXECUTED),
        (told("StreamReset", error_code=2), TRANSIENT),
        (told("ConnectionTerminated", error_code=7, last_stream_id=1), TRANSIENT),
        (told("ConnectionTerminated", error_code=0, last_stream_id=0), NOT_EXECUTED),
        (module.ProxyError("503 Service Unavailable"), NOT_EXECUTED),
        (module.ProxyError("407 Proxy Authentication Required"), PERMANENT),
        (module.ProxyError("Proxy Server could not connect"), PERMANENT),
        (type("ConnectionNotAvailable", (Exception,), {})(), TRANSIENT),
        (module.LocalProtocolError("too little data"), PERMANENT),
        (module.UnsupportedProtocol("ftp"), PERMANENT),
        (ValueError("mine"), PERMANENT),
    ]
    assert [(error, judge(error)) for error, _ in expected] == expected


def test_an_error_that_is_handled_meanwhile_is_no_cause(flavour: Flavour) -> None:
    """A refused connection is retried, even while the caller handles a refused certificate."""
    try:
        raise ssl.SSLCertVerificationError("another host's")
    except ssl.SSLCertVerificationError:
        with pytest.raises(flavour.library.ConnectError) as caught:
            raise flavour.library.ConnectError("refused")  # noqa: B904 - that is the point
    assert HttpxLibrary(flavour.library).verdict(caught.value) is NOT_EXECUTED

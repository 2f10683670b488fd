"""Tests of requests alone: its sessions, its raw responses, its pickles, google-auth's session on top of it."""

import gc
import gzip
import io
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import Any

import pytest
import requests
import urllib3
from google.auth.credentials import Credentials
from google.auth.transport.requests import AuthorizedSession

import forbear
from forbear.clients.requests import RetryAdapter
from forbear.events import Reason
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.secure import untrusted
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.garbage import loops_through_forbear
from forbear_testkit.plugin import collect_leftovers

WHOLE = b"one,two,three"
MEDIA = "/storage/v1/b/bkt/o/thing?alt=media"
BROKEN = reply(200, WHOLE[:5], 'ETag: "e"', length=len(WHOLE), end="close")
REST = reply(206, WHOLE[5:], 'ETag: "e"', f"Content-Range: bytes 5-{len(WHOLE) - 1}/{len(WHOLE)}")


@pytest.fixture
def session() -> Iterator[requests.Session]:
    """A session that retries, in virtual time."""
    with virtual_time(seed=7), requests.Session() as session:
        session.trust_env = False
        session.mount("http://", RetryAdapter())
        yield session


def test_googles_session_retries_and_keeps_its_credentials(cloud: Cloud) -> None:
    """Mounted on an AuthorizedSession, each attempt carries the token; a lost upload with its condition is repeated."""

    class Fixed(Credentials):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.token = "secret"

        def refresh(self, request: Any) -> None:
            raise AssertionError("never asked for")

    cloud.fault(Fault.status(503), Fault.reset(when="after"))
    url = cloud.url + "/upload/storage/v1/b/bkt/o?uploadType=media&name=new&ifGenerationMatch=0"
    with virtual_time(seed=7), AuthorizedSession(Fixed()) as session:  # type: ignore[no-untyped-call]
        session.mount("http://", RetryAdapter(cloud_storage.policy))
        response = session.post(url, data=b"abc")
        with Wire(reply(503), reply(200)) as wire:
            session.get(wire.url)
            assert [seen.header("authorization") for seen in wire.seen] == ["Bearer secret"] * 2
    assert (response.status_code, cloud.effects.count("storage.objects.insert")) == (412, 1)
    assert len({request.headers["x-goog-gcs-idempotency-token"] for request in cloud.requests}) == 1
    told = forbear.report(response)
    assert told is not None
    assert told.maybe_done


@pytest.mark.parametrize("size", [1, 3, 5, 1000, None])
def test_a_broken_body_goes_on_whichever_way_it_is_read(session: requests.Session, size: int | None) -> None:
    """iter_content in any size, the whole content and raw all hand out the same bytes; sizes are kept."""
    with Wire(BROKEN, REST) as wire:
        response = session.get(wire.url, stream=True)
        pieces = list(response.iter_content(size))
    assert b"".join(pieces) == WHOLE
    assert all(len(piece) == size for piece in pieces[:-1])
    with Wire(BROKEN, REST) as wire:
        assert session.get(wire.url).content == WHOLE
    with Wire(BROKEN, REST) as wire:
        raw = session.get(wire.url, stream=True).raw
        assert b"".join(iter(lambda: raw.read(size), b"")) == WHOLE
        assert raw.closed


@pytest.mark.parametrize("decode", [False, True])
def test_the_raw_response_decodes_or_not_as_asked(session: requests.Session, cloud: Cloud, decode: bool) -> None:
    """A compressed body is continued byte by byte below the decoder."""
    packed = gzip.compress(WHOLE, mtime=0)
    cloud.store.put("bkt", "thing", packed, {"contentEncoding": "gzip"})
    cloud.fault(Fault.truncate(15))
    response = session.get(cloud.url + MEDIA, headers={"Accept-Encoding": "gzip"}, stream=True)
    assert response.raw.read(decode_content=decode) == (WHOLE if decode else packed)
    assert len(cloud.requests) == 2


def test_a_chunked_body_is_handed_out_as_it_comes(session: requests.Session) -> None:
    """Nobody waits for a full piece where the server sends little by little."""
    read: list[bytes] = []
    first = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none,\r\n"
    with Wire(Answer(first, "stall")) as wire, session.get(wire.url, stream=True, timeout=10) as response:
        read.append(next(response.iter_content(1000)))
    assert read == [b"one,"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_body_that_stays_broken_raises_with_its_report(session: requests.Session, stream: bool) -> None:
    """requests raises its own error for that of its raw response; both carry the note once."""
    with Wire(reply(200, b"abc", 'ETag: "e"', length=9, end="close"), reply(404)) as wire:
        with pytest.raises(requests.exceptions.ChunkedEncodingError) as caught:
            assert session.get(wire.url, stream=stream).content
        told = forbear.report(caught.value)
    assert told is not None
    assert told.reason is Reason.BODY
    assert [attempt.error for attempt in told.attempts] == ["ChunkedEncodingError", "HTTP 404"]
    assert caught.value.__notes__ == [told.note]
    assert isinstance(caught.value.args[0], urllib3.exceptions.ProtocolError)


def test_the_raw_response_raises_what_urllib3_raises(session: requests.Session) -> None:
    """Who reads raw catches urllib3's errors, after the bytes that came before."""
    with Wire(reply(200, b"abc", 'ETag: "e"', length=9, end="close"), reply(404)) as wire:
        raw = session.get(wire.url, stream=True).raw
        assert raw.read(9) == b"abc"
        with pytest.raises(urllib3.exceptions.ProtocolError) as caught:
            raw.read(9)
    assert forbear.report(caught.value) is not None


PACKED = gzip.compress(WHOLE)
HALVES = {
    "plain": reply(200, WHOLE[:5], length=len(WHOLE), end="close"),
    "gzip": reply(200, PACKED[:5], "Content-Encoding: gzip", length=len(PACKED), end="close"),
    "chunked": Answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + WHOLE[:5] + b"\r\n", "close"),
}


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
@pytest.mark.parametrize(
    "read", [methodcaller("read"), methodcaller("read", -1), attrgetter("data")], ids=["", "-1", "data"]
)
def test_a_part_never_passes_for_the_whole(session: requests.Session, half: Answer, read: Callable[[Any], Any]) -> None:
    """Who asks raw for all of a body that stays broken gets the error and no bytes, as from urllib3."""
    with Wire(half, reply(404)) as wire:
        raw: Any = session.get(wire.url, stream=True).raw
        with pytest.raises(urllib3.exceptions.ProtocolError) as caught:
            read(raw)
    assert forbear.report(caught.value) is not None
    assert raw.read() == b""


def test_a_part_of_chunks_is_not_handed_out_for_more(session: requests.Session) -> None:
    """Who asks raw for more of a chunked body than there is gets the error, too: http.client never hands out less."""
    with Wire(HALVES["chunked"], reply(404)) as wire:
        raw: Any = session.get(wire.url, stream=True).raw
        with pytest.raises(urllib3.exceptions.ProtocolError):
            raw.read(1000)


def test_an_error_leaves_no_loop_behind(session: requests.Session) -> None:
    """Nothing of forbear needs the garbage collector after a broken body."""

    def fetch() -> None:
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            assert session.get(wire.url, stream=True).content

    collect_leftovers()
    gc.disable()
    try:
        with Wire(reply(200, b"abc", 'ETag: "e"', length=9, end="close"), reply(404)) as wire:
            fetch()
            assert loops_through_forbear() == []
    finally:
        gc.enable()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_cookies_survive(session: requests.Session, method: str) -> None:
    """A session learns the cookies of a response whose body is read elsewhere."""
    with Wire(reply(200, b"ok", "Set-Cookie: a=b")) as wire:
        assert session.request(method, wire.url).cookies["a"] == "b"
    assert session.cookies["a"] == "b"


def test_a_redirect_rewinds_a_file(session: requests.Session) -> None:
    """A file that was sent through us is sent again in whole to where a 307 leads."""
    with Wire(reply(503), reply(307, b"", "Location: /there"), reply(200)) as wire:
        assert session.put(wire.url, data=io.BytesIO(WHOLE)).status_code == 200
        assert [(seen.target, seen.body) for seen in wire.seen] == [("/", WHOLE), ("/", WHOLE), ("/there", WHOLE)]


def test_a_file_is_sent_again_from_where_it_stood(session: requests.Session, tmp_path: Path) -> None:
    """A seekable file goes back to the position it was handed over at, and keeps its Content-Length."""
    path = tmp_path / "file"
    path.write_bytes(b"skipped," + WHOLE)
    with path.open("rb") as file, Wire(reply(503), Answer(end="reset", read=3), reply(200)) as wire:
        file.seek(len(b"skipped,"))
        assert session.put(wire.url, data=file).status_code == 200
        assert [(seen.body, seen.whole) for seen in wire.seen] == [(WHOLE, True), (WHOLE[:3], False), (WHOLE, True)]
        assert wire.seen[-1].header("content-length") == str(len(WHOLE))


@pytest.mark.parametrize("body", ["tëxt", b"bytes", bytearray(b"array"), io.StringIO("tëxt"), [("a", "b")]], ids=type)
def test_whatever_requests_accepts_is_sent_again(session: requests.Session, body: Any) -> None:
    """Text, bytes, text files and forms arrive twice alike."""
    with Wire(reply(503), reply(200)) as wire:
        assert session.put(wire.url, data=body).status_code == 200
        first, second = wire.seen
        assert first.body == second.body != b""
        assert first.whole
        assert second.whole


def test_a_closed_file_is_not_sent_again(session: requests.Session) -> None:
    """The failed response is returned and its report says what to do."""

    class Closing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            piece = super().read(size)
            if not piece:
                self.close()
            return piece

    with Wire(reply(503)) as wire:
        told = forbear.report(session.put(wire.url, data=Closing(WHOLE)))
    assert told is not None
    assert told.reason is Reason.BODY
    assert "keep it open" in told.text


def test_what_was_not_sent_is_always_repeated(session: requests.Session) -> None:
    """A refused connection is no execution: even a bare POST waits for the server to come up."""
    with pytest.raises(requests.ConnectionError) as caught:
        session.post("http://127.0.0.1:9/", data=b"x")
    told = forbear.report(caught.value)
    assert told is not None
    assert len(told.attempts) > 1


def test_an_error_of_the_callers_own_stream_proves_nothing(session: requests.Session) -> None:
    """A body that is read from elsewhere may fail to connect there, when part of the request has been sent."""

    def elsewhere() -> Iterator[bytes]:
        yield b"half"
        urllib3.PoolManager().request("GET", "http://127.0.0.1:9/", retries=False)

    with Wire(reply(200)) as wire, pytest.raises(requests.ConnectionError) as caught:
        session.post(wire.url, data=elsewhere())
    told = forbear.report(caught.value)
    assert told is not None
    assert told.reason is Reason.UNSAFE


def test_a_certificate_that_is_not_trusted_is_final(session: requests.Session, tmp_path: Path) -> None:
    """No other attempt makes a certificate trusted."""
    session.mount("https://", RetryAdapter())
    with untrusted(tmp_path / "pem") as (url, handshakes):
        with pytest.raises(requests.exceptions.SSLError):
            session.get(url)
        assert len(handshakes) == 1


@pytest.mark.parametrize(("status", "attempts"), [(503, 6), (407, 0)])
def test_a_proxy_that_refuses_counts_by_its_status(session: requests.Session, status: int, attempts: int) -> None:
    """A tunnel that is not there yet is waited for, one that is forbidden is not."""
    session.mount("https://", RetryAdapter(cloud_storage.policy.with_attempts(6)))
    with Wire(reply(status, end="close")) as wire:
        with pytest.raises(requests.exceptions.ProxyError) as caught:
            session.post("https://host.invalid/", data=b"x", proxies={"https": wire.url})
        assert len(wire.seen) == max(attempts, 1)
    assert (forbear.report(caught.value) is not None) == (attempts > 0)


@pytest.mark.parametrize(
    "timeout", [None, 30.0, (5.0, None), (None, 30.0), urllib3.Timeout(total=30), urllib3.Timeout(connect=5)], ids=repr
)
def test_an_attempt_timeout_bounds_whatever_timeout_there_is(session: requests.Session, timeout: Any) -> None:
    """The policy's attempt timeout is the client's own, never longer than what the caller gave."""
    session.mount("http://", RetryAdapter(cloud_storage.policy.with_attempts(2).with_attempt_timeout(0.05)))
    with Wire(Answer(end="stall")) as wire:
        with pytest.raises(requests.ReadTimeout):
            session.get(wire.url, timeout=timeout)
        assert len(wire.seen) == 2


def test_one_connection_is_enough() -> None:
    """Failed and broken responses give their connection back before the wait, so a pool that blocks does not."""
    adapter = RetryAdapter(pool_connections=1, pool_maxsize=1, pool_block=True)
    with virtual_time(), requests.Session() as session, Wire(reply(503, b"x", end="close"), BROKEN, REST) as wire:
        session.mount("http://", adapter)
        with session.get(wire.url, stream=True, timeout=10) as response:
            assert next(response.iter_content(6)) == WHOLE[:6]
        wire.answers[:] = [reply(200, b"ok")]
        assert session.get(wire.url, timeout=10).content == b"ok"


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_may_be_judged_by_its_body(session: requests.Session, stream: bool) -> None:
    """The caller can read what `on_result` has read."""
    policy = forbear.retry(on=OSError, on_result=lambda response: response.content == b"not yet")
    session.mount("http://", RetryAdapter(policy))
    with Wire(reply(200, b"not yet"), reply(200, b"now")) as wire:
        assert session.get(wire.url, stream=stream).content == b"now"
        assert len(wire.seen) == 2


def test_an_adapter_is_pickled_with_its_settings(session: requests.Session) -> None:
    """Sessions travel to other processes, and go on retrying there."""
    session.mount(
        "http://",
        RetryAdapter(
            cloud_storage.policy.with_attempts(2),
            apis=forbear.Api("https://x.example", key=forbear.IdempotencyKey("Key")),
        ),
    )
    again: requests.Session = pickle.loads(pickle.dumps(session))
    assert vars(again.get_adapter("http://x"))["_options"] == vars(session.get_adapter("http://x"))["_options"]
    with Wire(reply(503)) as wire:
        response = again.get(wire.url)
        assert len(wire.seen) == 2
    assert pickle.loads(pickle.dumps(response)).status_code == 503


def test_a_prefix_has_a_policy_of_its_own(session: requests.Session) -> None:
    """The library's place for exceptions: an adapter mounted at a longer prefix."""
    with Wire(reply(503)) as wire:
        session.mount(wire.url + "/once", RetryAdapter(cloud_storage.policy.with_attempts(1)))
        session.get(wire.url + "/once/a")
        assert len(wire.seen) == 1


def test_a_session_without_retries_returns_the_failed_response(session: requests.Session) -> None:
    """A plain response of the library is returned."""
    with Wire(reply(503), reply(200)) as wire, forbear.disabled():
        response = session.get(wire.url)
    assert response.status_code == 503
    assert type(response) is requests.Response


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"policy": 3}, "`policy` must be a forbear.Policy or None (each service's own), got 3"),
        ({"buffer": -1}, "`buffer` must be 0 or more, got -1"),
    ],
)
def test_wrong_arguments_are_refused_with_a_cure(options: dict[str, Any], text: str) -> None:
    """Each error names the parameter, the rule and the value."""
    with pytest.raises((TypeError, ValueError)) as caught:
        RetryAdapter(**options)
    assert str(caught.value) == text


def test_a_missing_library_is_said_with_its_cure() -> None:
    """Importing the adapter without requests names the extra to install; forbear itself does without."""
    script = "import sys; sys.modules['requests'] = None; import forbear; import forbear.clients.requests"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.rstrip().endswith(
        'ImportError: forbear.clients.requests needs requests; install it with: pip install "forbear[requests]"'
    )

"""HTTP: connections stay open, bodies may have any framing, and malformed requests get an error."""

import json
import socket
import struct
import threading
from typing import cast

import httpx
import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.cloud.sockets import connect, talk

UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=o"
SMALL_UPLOAD = f"POST {UPLOAD} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n".encode()


def test_requests_share_a_connection(cloud: Cloud) -> None:
    """Pipelined requests are answered in order on one connection, which closes when a request says so."""
    one = b"GET /storage/v1/b/bkt HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /storage/v1/b/nope HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = talk(cloud, one + one + last + one)
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"404"]


def test_old_clients(cloud: Cloud) -> None:
    """HTTP/1.0 works without Host and without keep-alive."""
    assert talk(cloud, b"GET /storage/v1/b/bkt HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_absolute_targets(cloud: Cloud) -> None:
    """A request whose target is a whole URL is understood."""
    request = b"GET http://storage.googleapis.com/storage/v1/b/bkt HTTP/1.1\r\nHost: storage.googleapis.com\r\n\r\n"
    answer = talk(cloud, request)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"http://storage.googleapis.com/storage/v1/b/bkt" in answer


def test_expect_continue(cloud: Cloud) -> None:
    """A client that waits for "100 Continue" gets it before it sends the body, and the response afterwards."""
    with connect(cloud) as sock:
        sock.sendall(SMALL_UPLOAD + b"Expect: 100-continue\r\n\r\n")
        assert sock.recv(65_536).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"hello")
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_chunked_bodies(cloud: Cloud, http: httpx.Client) -> None:
    """A body of unknown length arrives whole."""
    assert http.post(UPLOAD, content=iter([b"he", b"", b"llo"])).status_code == 200
    assert cloud.store.object("bkt", "o").data == b"hello"


@pytest.mark.parametrize("chunked", [False, True])
def test_large_bodies_are_refused(chunked: bool) -> None:
    """A body beyond the limit is refused with 413 as early as possible, and the client can read the response."""
    with Cloud(body_limit=100_000) as cloud, httpx.Client(base_url=cloud.url, verify=False) as http:
        cloud.store.create_bucket("bkt")
        assert http.post(UPLOAD, content=bytes(100_000)).status_code == 200
        body = bytes(100_001)
        response = http.post(UPLOAD, content=iter([body]) if chunked else body)
        assert response.status_code == 413
        assert "100000" in response.json()["error"]["message"]
        with connect(cloud) as sock:
            sock.sendall(
                b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\nExpect: 100-continue\r\n\r\n"
            )
            assert sock.recv(65_536).startswith(b"HTTP/1.1 413 ")
        assert http.get("/_cloud/health").status_code == 200


@pytest.mark.parametrize(
    ("garbage", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", None),
        (b"hello\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", b"501"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 600_000 + b"\r\n\r\n", b"431"),
        (SMALL_UPLOAD + b"\r\nhe", b"400"),
        (b"GET /%zz/%ff\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        (b"GET /storage/v1/b/%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: y\r\n\r\n", b"400"),
        (b"GET /v1/x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", b"404"),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
    ],
)
def test_a_malformed_request_gets_an_error(cloud: Cloud, garbage: bytes, status: bytes | None) -> None:
    """A malformed request gets an error of the API or a closed connection, and the next client is served."""
    answer = talk(cloud, garbage)
    if status is not None:
        assert answer.split(b" ")[1] == status
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == int(status)
    assert httpx.get(f"{cloud.url}/_cloud/health").status_code == 200


@pytest.mark.parametrize("ending", ["close", "reset"])
def test_a_broken_upload_keeps_whole_quarters(cloud: Cloud, http: httpx.Client, ending: str) -> None:
    """If the client leaves in the middle of a chunk, multiples of 256 KiB are kept, and the upload can continue."""
    session = http.post("/upload/storage/v1/b/bkt/o?uploadType=resumable&name=o").headers["location"]
    data = bytes(range(256)) * 3000
    path = session.removeprefix(cloud.url)
    head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    with connect(cloud) as sock:
        sock.sendall(head + data[:600_000])
        if ending == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait = threading.Event()
    while cloud.requests.count("storage.objects.insert.send") == 0:
        wait.wait(0.005)
    kept = http.put(session, headers={"Content-Range": "bytes */*"}).headers.get("range", "bytes=0--1")
    have = int(kept.rpartition("=0-")[2]) + 1
    # An RST may overtake what was on its way; a FIN does not.
    assert have == 524_288 if ending == "close" else have in (0, 262_144, 524_288)
    rest = {"Content-Range": f"bytes {have}-{len(data) - 1}/{len(data)}"}
    assert http.put(session, content=data[have:], headers=rest).status_code == 200
    assert cloud.store.object("bkt", "o").data == data


def test_head_is_never_answered_with_a_body(cloud: Cloud) -> None:
    """Error responses to HEAD have no body either, and the connection serves the next request."""
    head = b"HEAD /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"
    first, second = talk(cloud, head + b"nonsense\r\n\r\n").split(b"HTTP/1.1 ")[1:]
    assert (first[:3], first.partition(b"\r\n\r\n")[2]) == (b"404", b"")
    assert (second[:3], json.loads(second.partition(b"\r\n\r\n")[2])["error"]["code"]) == (b"400", 400)
    large = talk(cloud, b"HEAD / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n")
    assert (large[9:12], large.partition(b"\r\n\r\n")[2]) == (b"413", b"")


def test_a_failure_inside_is_a_500(cloud: Cloud, http: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    """If the cloud itself fails, the client gets a 500 without a traceback, and the log has the traceback."""
    cloud.store.bucket("bkt").fields["labels"] = cast("str", object())
    response = http.get("/storage/v1/b/bkt")
    assert (response.status_code, response.json()["error"]["errors"][0]["reason"]) == (500, "backendError")
    assert "Traceback" in caplog.text
    assert "Traceback" not in response.text


def test_method_override(cloud: Cloud, http: httpx.Client) -> None:
    """`X-HTTP-Method-Override` replaces the method of a POST, and of no other method."""
    override = {"X-HTTP-Method-Override": "delete"}
    assert http.get("/storage/v1/b/bkt", headers=override).status_code == 200
    assert http.post("/storage/v1/b/bkt", headers=override).status_code == 204
    assert cloud.effects.count("storage.buckets.delete") == 1


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/storage/v1", 404),
        ("GET", "/v1/nothing", 404),
        ("GET", "/storage/v1/b/bkt/o/a/b", 404),
        ("GET", "/storage/v1/b//o", 404),
        ("GET", "/storage/v1/b/bkt/o/http://x/storage/v1/b/bkt", 404),
        ("GET", "/storage/v1/b/bkt/", 200),
        ("DELETE", "/storage/v1/b", 405),
        ("PROPFIND", "/storage/v1/b", 405),
        ("POST", "/storage/v1/b/bkt/o", 400),
        ("GET", "/storage/v1/b/nope/o", 404),
        ("GET", "/storage/v1/b/bkt/o?maxResults=-1", 400),
        ("GET", "/storage/v1/b/bkt/o?maxResults=x", 400),
        ("GET", "/storage/v1/b/bkt/o?versions=perhaps", 400),
    ],
)
def test_unknown_paths_and_methods_get_an_error_of_the_api(
    http: httpx.Client, method: str, path: str, status: int
) -> None:
    """Unknown paths are 404, wrong methods 405 and wrong parameters 400, always with the API's own JSON."""
    response = http.request(method, path)
    assert response.status_code == status
    assert status == 200 or response.json()["error"]["code"] == status


def test_many_clients_at_once(cloud: Cloud) -> None:
    """All effects from many connections are counted, and no generation repeats."""

    def write() -> None:
        with httpx.Client(base_url=cloud.url, verify=False) as http:
            for _ in range(20):
                http.post(UPLOAD, content=b"x")

    threads = [threading.Thread(target=write) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({effect.generation for effect in cloud.effects}) == cloud.effects.count() == 100
    assert [effect.sequence for effect in cloud.effects] == list(range(1, 101))


def test_bytes_sent_are_counted(cloud: Cloud, http: httpx.Client) -> None:
    """`received` adds up the bytes of all bodies, also of requests that broke off or were refused."""
    http.post(UPLOAD, content=bytes(1000))
    http.get("/storage/v1/b/bkt")
    cloud.fault(Fault.reset())
    with pytest.raises(httpx.ReadError):
        http.post(UPLOAD, content=iter([bytes(500), bytes(500)]))
    assert talk(cloud, SMALL_UPLOAD + b"\r\nhe").split(b" ")[1] == b"400"
    assert cloud.requests.received() == cloud.requests.received("storage.objects.insert") == 2002
    assert cloud.requests.received("storage.buckets.get") == 0


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_bodies_share_a_connection(cloud: Cloud, framing: str) -> None:
    """The bytes after a body, even in the same packet, are the next request."""
    data = bytes(range(256)) * 4096
    if framing == "length":
        body = f"Content-Length: {len(data)}\r\n\r\n".encode() + data
    else:
        half = len(data) // 2
        chunk = f"{half:x}\r\n".encode()
        body = b"Transfer-Encoding: chunked\r\n\r\n" + chunk + data[:half] + b"\r\n" + chunk + data[half:] + b"\r\n"
        body += b"0\r\nTrailer: x\r\n\r\n"
    upload = f"POST {UPLOAD} HTTP/1.1\r\nHost: localhost\r\n".encode() + body
    answer = talk(cloud, upload + b"GET /storage/v1/b/bkt HTTP/1.1\r\nHost: localhost\r\n\r\n" + upload)
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200"] * 3
    assert cloud.store.object("bkt", "o").data == data


def test_a_body_that_came_along_needs_no_word(cloud: Cloud) -> None:
    """A client that sends its body without waiting, or has none, gets no "100 Continue"."""
    assert talk(cloud, SMALL_UPLOAD + b"Expect: 100-continue\r\n\r\nhello").startswith(b"HTTP/1.1 200 ")
    waits = b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    chunked = f"POST {UPLOAD} HTTP/1.1\r\nHost: localhost\r\n".encode() + waits
    assert talk(cloud, chunked + b"1\r\nx\r\n0\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    empty = b"GET /storage/v1/b/bkt HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n"
    assert talk(cloud, empty).startswith(b"HTTP/1.1 200 ")
    with connect(cloud) as sock:
        sock.sendall(chunked)
        assert sock.recv(65_536).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"1\r\nx\r\n0\r\n\r\n")
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200 ")

"""Whatever a client sends, the memory and time of the cloud are bounded, and the next client is served."""

import contextlib
import gzip
import socket
import sys
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest

from forbear_cloud import Cloud, Fault
from forbear_cloud.api.partial import read_fields
from forbear_cloud.http import incoming, stream
from forbear_cloud.http.memory import weigh
from forbear_cloud.journal import Effects, LoggedEffect
from forbear_cloud.storage.fields import json_object
from forbear_cloud.storage.listing import Glob
from forbear_cloud.xml.document import read
from forbear_testkit.cloud.sockets import connect, talk

MIB = 1024**2
QUARTER = MIB // 4
UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name="
HEAD = b"GET /storage/v1/b/bkt HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def small() -> Iterator[tuple[Cloud, httpx.Client]]:
    """Run a cloud with a limit of 2 MiB."""
    with Cloud(memory_limit=2 * MIB) as cloud, httpx.Client(base_url=cloud.url, verify=False) as http:
        cloud.store.create_bucket("bkt")
        yield cloud, http


def uploads(http: httpx.Client, name: str, data: bytes) -> int:
    """Upload in one request."""
    return http.post(UPLOAD + name, content=data).status_code


def chunked(http: httpx.Client, name: str, data: bytes) -> int:
    """Upload a body without a stated length."""
    return http.post(UPLOAD + name, content=iter([data[: len(data) // 2], data[len(data) // 2 :]])).status_code


def resumes(http: httpx.Client, name: str, data: bytes) -> int:
    """Upload in a resumable session."""
    started = http.post(f"/upload/storage/v1/b/bkt/o?uploadType=resumable&name={name}")
    return http.put(started.headers["location"], content=data).status_code if started.is_success else 413


def parts(http: httpx.Client, name: str, data: bytes) -> int:
    """Upload a part of a multipart upload that is never completed."""
    started = http.post(f"/bkt/{name}?uploads")
    if not started.is_success:
        return 413
    upload = started.text.partition("<UploadId>")[2].partition("<")[0]
    return http.put(f"/bkt/{name}?uploadId={upload}&partNumber=1", content=data).status_code


def breaks(http: httpx.Client, name: str, data: bytes) -> int:
    """Start a session and break off in a chunk, of which the session keeps what arrived."""
    started = http.post(f"/upload/storage/v1/b/bkt/o?uploadType=resumable&name={name}")
    if not started.is_success:
        return 413
    session = httpx.URL(started.headers["location"])
    with socket.create_connection((session.host, session.port or 80), timeout=20) as sock:
        head = f"PUT {session.raw_path.decode()} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data) + 1}\r\n\r\n"
        sock.sendall(head.encode() + data)
        sock.shutdown(socket.SHUT_WR)
        answer = sock.recv(12)
    return 413 if answer == b"HTTP/1.1 413" else 200


def puts(http: httpx.Client, name: str, data: bytes) -> int:
    """Upload by the XML API."""
    return http.put(f"/bkt/{name}", content=data).status_code


def copies(http: httpx.Client, name: str, data: bytes) -> int:
    """Copy an object."""
    http.post(UPLOAD + "0", content=data)
    return http.post(f"/storage/v1/b/bkt/o/0/rewriteTo/b/bkt/o/{name}").status_code


def copies_xml(http: httpx.Client, name: str, data: bytes) -> int:
    """Copy an object by the XML API."""
    http.post(UPLOAD + "0", content=data)
    return http.put(f"/bkt/{name}", headers={"x-goog-copy-source": "/bkt/0"}).status_code


def composes(http: httpx.Client, name: str, data: bytes) -> int:
    """Compose an object of existing ones."""
    http.post(UPLOAD + "0", content=data[: len(data) // 2])
    sources = {"sourceObjects": [{"name": "0"}] * 2}
    return http.post(f"/storage/v1/b/bkt/o/{name}/compose", json=sources).status_code


@pytest.mark.parametrize("write", [uploads, chunked, resumes, breaks, parts, puts, copies, copies_xml, composes])
def test_memory_is_bounded(small: tuple[Cloud, httpx.Client], write: Callable[[httpx.Client, str, bytes], int]) -> None:
    """Each way to store something ends with 413 when memory is full; a reset makes room again."""
    cloud, http = small
    for _ in range(2):
        statuses = [write(http, f"o{number}", bytes(QUARTER)) for number in range(10)]
        stored = statuses.index(413)
        assert statuses[stored:] == [413] * (10 - stored)
        assert 4 <= stored <= 8
        assert cloud.store.space.limit >= sum(len(item.content) for item in cloud.store.bucket("bkt").versions())
        response = http.post(UPLOAD + "x", content=bytes(MIB))
        assert "raise `memory_limit`, --memory-limit" in response.json()["error"]["message"]
        assert http.get("/storage/v1/b/bkt").status_code == 200
        assert http.post("/_cloud/reset").status_code == 200
        cloud.store.create_bucket("bkt")


def test_deleting_makes_room(small: tuple[Cloud, httpx.Client]) -> None:
    """Overwritten and deleted objects take no room, whoever deletes them, and neither do finished requests."""
    cloud, http = small
    for _ in range(5):
        assert uploads(http, "same", bytes(MIB // 2)) == 200
        assert resumes(http, "same", bytes(MIB // 2)) == 200
    for number in range(3):
        uploads(http, str(number), bytes(MIB // 2))
    assert uploads(http, "more", bytes(MIB // 2)) == 413
    assert http.delete("/storage/v1/b/bkt/o/1").status_code == 204
    assert uploads(http, "more", bytes(QUARTER)) == 200
    cloud.store.delete_object(cloud.store.object("bkt", "0"), for_good=True)
    assert uploads(http, "0", bytes(QUARTER)) == 200


def test_many_small_things_count(small: tuple[Cloud, httpx.Client]) -> None:
    """Metadata, sessions, keys and accounts count as memory, too."""
    _, http = small
    for number in range(1, 12):
        body = {"name": f"bucket-{number}", "labels": {"a": "x" * 200_000}}
        if http.post("/storage/v1/b?project=p", json=body).status_code == 413:
            return
    pytest.fail("2 MiB held more than that")


@pytest.mark.parametrize("body", [bytes(5 * MIB), b"x" * MIB])
def test_growing_compositions_are_refused(small: tuple[Cloud, httpx.Client], body: bytes) -> None:
    """An object composed of itself again and again is refused before it is made."""
    _, http = small
    uploads(http, "o", body[: MIB // 64])
    sources = {"sourceObjects": [{"name": "o"}] * 32}
    statuses = [http.post("/storage/v1/b/bkt/o/o/compose", json=sources).status_code for _ in range(6)]
    assert 413 in statuses
    assert statuses[-1] == 413


def test_unpacking_is_bounded(small: tuple[Cloud, httpx.Client]) -> None:
    """A small gzip object that would unpack to more than the limit is not sent unpacked."""
    cloud, http = small
    cloud.store.put("bkt", "bomb", gzip.compress(bytes(3 * MIB)), {"contentEncoding": "gzip"})
    assert http.get("/bkt/bomb", headers={"Accept-Encoding": "identity"}).status_code == 413
    assert http.get("/bkt/bomb", headers={"Accept-Encoding": "gzip"}).status_code == 200


@pytest.mark.parametrize(
    "sent",
    [b"G", HEAD[:10], HEAD, HEAD + b"A: ", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9"],
)
def test_half_a_head_ends(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """A head that is not complete in time ends its connection."""
    monkeypatch.setattr(incoming, "SECONDS_FOR_A_HEAD", 0.02)
    with Cloud() as cloud, connect(cloud) as sock:
        sock.sendall(sent)
        assert sock.recv(100) == b""


def test_an_idle_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without a request for too long ends."""
    monkeypatch.setattr(incoming, "SECONDS_IDLE", 0.02)
    with Cloud() as cloud, connect(cloud) as sock:
        assert sock.recv(100) == b""


@pytest.mark.parametrize("framing", [b"Content-Length: 2000000", b"Transfer-Encoding: chunked"])
def test_a_body_that_pauses_ends(monkeypatch: pytest.MonkeyPatch, framing: bytes) -> None:
    """A body that pauses too long gets a 408, and of a chunk what arrived is kept."""
    monkeypatch.setattr(incoming, "SECONDS_OF_SILENCE", 0.05)
    with Cloud() as cloud, httpx.Client(base_url=cloud.url, verify=False) as http:
        cloud.store.create_bucket("bkt")
        session = http.post("/upload/storage/v1/b/bkt/o?uploadType=resumable&name=o").headers["location"]
        with connect(cloud) as sock:
            path = session.removeprefix(cloud.url).encode()
            data = bytes(300_000)
            if b"chunked" in framing:
                data = b"%x\r\n" % len(data) + data
            sock.sendall(b"PUT " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + framing + b"\r\n\r\n" + data)
            assert sock.recv(12) == b"HTTP/1.1 408"
        assert http.put(session, headers={"Content-Range": "bytes */*"}).headers["range"] == "bytes=0-262143"


def test_tiny_chunks(cloud: Cloud, http: httpx.Client) -> None:
    """A few chunks of one byte are joined, and very many are refused."""
    body = b"Transfer-Encoding: chunked\r\n\r\n"
    head = f"POST {UPLOAD}o HTTP/1.1\r\nHost: localhost\r\n".encode() + body
    assert talk(cloud, head + b"1\r\nx\r\n" * 2000 + b"0\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    item = cloud.store.object("bkt", "o")
    assert (len(item.content), item.content.count) == (2000, 1)
    assert talk(cloud, head + b"1\r\nx\r\n" * 10_200).startswith(b"HTTP/1.1 400 ")
    assert http.get("/storage/v1/b/bkt").status_code == 200


def test_a_response_that_nobody_reads_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads no byte of its response for too long is disconnected."""
    monkeypatch.setattr(stream, "_SECONDS_TO_TAKE_A_PIECE", 0.05)
    with Cloud() as cloud:
        cloud.store.create_bucket("bkt")
        cloud.store.put("bkt", "o", bytes(32 * MIB))
        with connect(cloud) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(b"GET /bkt/o HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wait_for(lambda: cloud.requests.total == 1)
            wait_for(lambda: closed(cloud))


def closed(cloud: Cloud) -> bool:
    """Return whether the cloud serves no connection."""
    return cloud.connections == 0


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, for at most 10 seconds."""
    wait = threading.Event()
    for _ in range(1000):
        if condition():
            return
        wait.wait(0.01)
    pytest.fail("it never came to be so")


def test_connections_are_bounded() -> None:
    """Any number of half-open requests keeps nobody out: the connection that waits longest is closed."""
    with Cloud(connection_limit=8) as cloud:
        cloud.store.create_bucket("bkt")
        socks = [connect(cloud) for _ in range(20)]
        try:
            for sock in socks:
                try:
                    sock.sendall(HEAD)
                except ConnectionError:
                    continue
            for _ in range(3):
                assert httpx.get(f"{cloud.url}/storage/v1/b/bkt").status_code == 200
            wait_for(lambda: cloud.connections <= 8)  # one that was replaced takes a moment to end
        finally:
            for sock in socks:
                sock.close()


def test_connections_that_come_at_once_are_bounded() -> None:
    """The last of many that come while the server is busy replaces an earlier one, which has not been read yet."""
    with Cloud(connection_limit=8) as cloud, contextlib.ExitStack() as stack:
        cloud.store.create_bucket("bkt")
        busy = stack.enter_context(connect(cloud))
        with cloud.store.lock:
            busy.sendall(HEAD + b"\r\n")
            while not cloud.connections:
                threading.Event().wait(0.001)
            socks = [stack.enter_context(connect(cloud)) for _ in range(20)]
            socks[-1].sendall(HEAD + b"\r\n")
        assert socks[-1].recv(12) == b"HTTP/1.1 200"


def test_busy_connections_stay() -> None:
    """Connections that are being served stay: if all are, a new one is refused."""
    with Cloud(connection_limit=2) as cloud:
        cloud.fault(Fault.stall(0, limit=30, times=2))
        with connect(cloud) as first, connect(cloud) as second:
            for sock in (first, second):
                sock.sendall(HEAD + b"\r\n")
                assert sock.recv(12) == b"HTTP/1.1 404"
            with connect(cloud) as third:
                assert ends(third)


def ends(sock: socket.socket) -> bool:
    """Return whether the server closes a connection without a response."""
    try:
        sock.sendall(HEAD + b"\r\n")
        return not sock.recv(1)
    except ConnectionError:
        return True


@pytest.mark.parametrize(
    "flood",
    [
        b"a: b\r\n" * 300,
        b"a: b\r\n" * 30_000,
        b"a: " + b"x" * 70_000 + b"\r\n",
        b"".join(b"h%d: %s\r\n" % (number, b"x" * 700) for number in range(100)),
    ],
)
def test_header_floods(cloud: Cloud, flood: bytes) -> None:
    """Too many or too large headers get a 431."""
    assert talk(cloud, HEAD + flood + b"\r\n").startswith(b"HTTP/1.1 431 ")
    assert talk(cloud, HEAD + b"a: b\r\n" * 190 + b"\r\n").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "body", [b"[" * 200_000, b'{"a":' * 100_000, b"[" + b"9" * 200_000 + b"]", b"[0]" + b" " * 300_000]
)
def test_hostile_json(http: httpx.Client, body: bytes) -> None:
    """JSON that is too deep or too large, or has an endless number, is refused."""
    response = http.patch("/storage/v1/b/bkt", content=body)
    assert response.status_code in {400, 413}


@pytest.mark.parametrize(
    "body",
    [
        b"<a>" * 140_000 + b"</a>" * 140_000,
        b"<ComposeRequest>" + b"<a/>" * 50_100 + b"</ComposeRequest>",
        b"<ComposeRequest " + b" ".join(b'a%d="1"' % number for number in range(5_000)) + b"/>",
        b'<!DOCTYPE l [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;">]><ComposeRequest>&b;</ComposeRequest>',
        bytes(5 * MIB),
    ],
)
def test_hostile_xml(http: httpx.Client, body: bytes) -> None:
    """XML that is too deep or too large, or has entities, too many elements or too many attributes, is refused."""
    assert http.put("/bkt/o?compose", content=body).status_code in {400, 413}


def test_large_metadata_is_refused(cloud: Cloud, http: httpx.Client) -> None:
    """The custom metadata of an object has at most 8 KiB, as in the service, also when it grows bit by bit."""
    cloud.store.put("bkt", "o", b"")
    statuses = [
        http.patch("/storage/v1/b/bkt/o/o", json={"metadata": {f"k{number}": "x" * 1000}}).status_code
        for number in range(10)
    ]
    assert statuses == [200] * 8 + [400] * 2


def test_the_log_is_bounded() -> None:
    """The log keeps fewer entries if they are large."""
    log = Effects()
    for number in range(80):
        log.add(LoggedEffect(number, "o", "x" * MIB, None, None, number))
    assert (len(log), log.total, log[-1].sequence) == (64, 80, 79)
    log.clear()
    assert len(log) == log.total == 0


def test_every_value_counts_at_any_depth() -> None:
    """Sizes count at any depth, and every value weighs something."""
    assert weigh({"a": ["x" * 1000, {"b": "y" * 1000}]}) > 2000
    assert weigh(LoggedEffect(1, "o", "x" * 1000, None, None, 1)) > 1000
    assert weigh(None) > 0


GROWING: list[tuple[str, Callable[[int], object]]] = [
    ("stars", lambda size: Glob("*a" * (size // 2) + "b").matches("a" * size)),
    ("double stars", lambda size: Glob("**a" * (size // 3)).matches("a" * size)),
    ("braces", lambda size: Glob("{*,**}{a,}" * (size // 10)).matches("a" * size)),
    ("class", lambda size: Glob("[" + "a-b" * (size // 3) + "]" + "*").matches("a" * size)),
    ("text of an element", lambda size: read(b"<a>" + b"&lt;" * size * 10 + b"</a>", "a")),
    ("elements", lambda size: read(b"<a>" + b"<b/>" * size + b"</a>", "a")),
    ("members", lambda size: json_object(b"{" + b",".join(b'"%d":1' % n for n in range(size)) + b"}")),
    ("fields", lambda size: read_fields("a," * size + "a")),
]


@pytest.mark.parametrize(("name", "work"), GROWING, ids=[name for name, _ in GROWING])
def test_work_grows_with_size_only(name: str, work: Callable[[int], object]) -> None:
    """Twice the size takes at most about three times as many function calls."""

    def steps(size: int) -> int:
        count = 0

        def count_one(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(count_one)
        try:
            work(size)
        finally:
            sys.setprofile(None)
        return count

    assert steps(1000) <= 3 * steps(500) + 100, name


def test_a_hostile_glob_is_quick(cloud: Cloud, http: httpx.Client) -> None:
    """Patterns on which backtracking would never end get a response; a pattern that is too long is refused."""
    cloud.store.put("bkt", "a" * 900, b"")
    for glob in ("**a" * 300 + "b", "*a" * 400 + "b", "{a,aa}" * 150 + "b", "{*,**}" * 150 + "b", "[^b]*" * 200 + "b"):
        response = http.get("/storage/v1/b/bkt/o", params={"matchGlob": glob})
        assert (response.status_code, response.json().get("items")) == (200, None)
    for glob in ("*" * 1025, "{" * 30 + "}" * 30):
        assert http.get("/storage/v1/b/bkt/o", params={"matchGlob": glob}).status_code == 400

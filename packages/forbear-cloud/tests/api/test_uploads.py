"""Uploads as media, as multipart and in resumable sessions."""

import json

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forbear_cloud import Cloud, Fault

BASE = "/upload/storage/v1/b/bkt/o"
CHUNK = 262_144
DATA = bytes(range(256)) * (3 * CHUNK // 256) + b"tail"


def start(http: httpx.Client, query: str = "", headers: dict[str, str] | None = None, **metadata: object) -> str:
    """Start a session for the object "o" and return its URL."""
    response = http.post(f"{BASE}?uploadType=resumable&name=o{query}", headers=headers, json=metadata)
    assert response.status_code == 200, response.text
    return response.headers["location"]


def send(http: httpx.Client, session: str, data: bytes, content_range: str | None) -> httpx.Response:
    """Send a chunk, or a status query without a body."""
    headers = {} if content_range is None else {"Content-Range": content_range}
    return http.put(session, content=data, headers=headers)


def test_a_media_upload_stores_the_body(cloud: Cloud, http: httpx.Client) -> None:
    """The body becomes the object, with its type and hashes."""
    made = http.post(f"{BASE}?uploadType=media&name=o", content=b"hello", headers={"Content-Type": "text/plain"})
    assert made.json()["contentType"] == "text/plain"
    assert made.json()["crc32c"] == "mnG7TA=="
    assert made.json()["md5Hash"] == "XUFAKrxLKna5cZ2REBfFkg=="
    assert cloud.store.object("bkt", "o").data == b"hello"


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("uploadType=media", {}),
        ("name=o", {}),
        ("uploadType=carrier-pigeon&name=o", {}),
        ("uploadType=media&name=o", {"x-goog-hash": "crc32c=AAAAAA=="}),
        ("uploadType=media&name=o", {"x-goog-hash": "md5=AAAAAA=="}),
        ("uploadType=resumable&name=o", {"X-Upload-Content-Length": "many"}),
        ("uploadType=resumable&name=o", {"X-Upload-Content-Length": "-1"}),
        ("uploadType=resumable", {}),
        ("uploadType=multipart&name=o", {}),
    ],
)
def test_bad_uploads(cloud: Cloud, http: httpx.Client, query: str, headers: dict[str, str]) -> None:
    """An upload without a type, a name or a bucket is refused, and so is one with wrong hashes."""
    assert http.post(f"{BASE}?{query}", content=b"{}", headers=headers).status_code == 400
    assert len(cloud.effects) == 0


def multipart(metadata: bytes, media: bytes, ending: bytes = b"--") -> bytes:
    """Return a multipart/related body with the boundary "=_b"."""
    return b"\r\n".join(
        (
            b"--=_b\r\nContent-Type: application/json\r\n\r\n" + metadata,
            b"--=_b\r\ncontent-type: text/plain\r\n\r\n" + media,
            b"--=_b" + ending,
        )
    )


@pytest.mark.parametrize("media", [b"\n--\n\n=_b--x", b"x\r", b"\r\n", b""])
def test_multipart_whose_lines_end_with_lf(cloud: Cloud, http: httpx.Client, media: bytes) -> None:
    """Lines may end with LF, as gsutil and gcsfs send them; the media stays unchanged."""
    headers = {"Content-Type": "multipart/related; boundary==_b"}
    head, tail = multipart(b'{"name": "o"}', b"MEDIA").replace(b"\r\n", b"\n").split(b"MEDIA")
    made = http.post(f"{BASE}?uploadType=multipart", content=head + media + tail, headers=headers)
    assert (made.status_code, made.json().get("contentType")) == (200, "text/plain"), made.text
    assert cloud.store.object("bkt", "o").data == media


@pytest.mark.parametrize("boundary", ['"=_b"', "'=_b'", "=_b"])
def test_a_multipart_upload_stores_metadata_and_media(cloud: Cloud, http: httpx.Client, boundary: str) -> None:
    """Metadata and media come in one request; the media may contain line ends and dashes."""
    media = b"\r\n--\r\n\r\n=_b--x"
    headers = {"Content-Type": f"multipart/related; boundary={boundary}"}
    body = multipart(b'{"name": "o", "metadata": {"a": "b"}, "acl": [{"entity": "allUsers", "role": "READER"}]}', media)
    made = http.post(f"{BASE}?uploadType=multipart&projection=full", content=body, headers=headers)
    assert made.status_code == 200, made.text
    assert (made.json()["contentType"], made.json()["metadata"]) == ("text/plain", {"a": "b"})
    assert [entry["entity"] for entry in made.json()["acl"]] == ["allUsers"]
    assert cloud.store.object("bkt", "o").data == media


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/related", multipart(b'{"name": "o"}', b"x")),
        ("text/plain; boundary==_b", multipart(b'{"name": "o"}', b"x")),
        ("multipart/related; boundary=zz", multipart(b'{"name": "o"}', b"x")),
        ("multipart/related; boundary==_b", multipart(b'{"name": "o"}', b"x", ending=b"")),
        ("multipart/related; boundary==_b", multipart(b"[]", b"x")),
        ("multipart/related; boundary==_b", multipart(b'{"name": 7}', b"x")),
        ("multipart/related; boundary==_b", multipart(b'{"name": "\\ud800"}', b"x")),
        ("multipart/related; boundary==_b", b"--=_b\nx\n--=_b\ny\n--=_b--"),
        ("multipart/related; boundary==_b", b"--=_b\r\n--=_b\r\n--=_b--"),
    ],
)
def test_bad_multipart(cloud: Cloud, http: httpx.Client, content_type: str, body: bytes) -> None:
    """A multipart body of any other shape gets a 400."""
    response = http.post(f"{BASE}?uploadType=multipart", content=body, headers={"Content-Type": content_type})
    assert response.status_code == 400
    assert len(cloud.effects) == 0


def test_resumable_in_chunks(cloud: Cloud, http: httpx.Client) -> None:
    """Each chunk gets a 308 with the bytes received; the last one creates the object, which a query then returns."""
    session = start(http, contentType="text/plain", metadata={"a": "b"})
    assert len(cloud.effects) == 0
    query = send(http, session, b"", "bytes */*")
    assert (query.status_code, "range" in query.headers) == (308, False)
    for offset in range(0, 3 * CHUNK, CHUNK):
        response = send(http, session, DATA[offset : offset + CHUNK], f"bytes {offset}-{offset + CHUNK - 1}/*")
        assert (response.status_code, response.headers["range"]) == (308, f"bytes=0-{offset + CHUNK - 1}")
    total = len(DATA)
    done = send(http, session, DATA[3 * CHUNK :], f"bytes {3 * CHUNK}-{total - 1}/{total}")
    assert (done.status_code, done.json()["size"], done.json()["contentType"]) == (200, str(total), "text/plain")
    assert cloud.store.object("bkt", "o").data == DATA
    again = send(http, session, b"", f"bytes */{total}")
    assert (again.status_code, again.json()["generation"]) == (200, done.json()["generation"])
    assert cloud.effects.count("storage.objects.insert", "bkt/o") == 1
    assert [request.operation for request in cloud.requests][:3] == [
        "storage.objects.insert.start",
        "storage.objects.insert.query",
        "storage.objects.insert.send",
    ]
    assert cloud.requests.count("storage.objects.insert") == 7


def test_a_session_spares_clients_the_308_that_ask_so(http: httpx.Client) -> None:
    """A client that asks for it, as in Go, gets a 200 that stands for 308, and may send chunks by POST."""
    session = start(http)
    headers = {"Content-Range": f"bytes 0-{CHUNK - 1}/*", "X-GUploader-No-308": "yes"}
    response = http.post(session, content=DATA[:CHUNK], headers=headers)
    assert (response.status_code, response.headers["x-http-status-code-override"]) == (200, "308")
    assert response.headers["range"] == f"bytes=0-{CHUNK - 1}"
    done = http.post(
        session,
        content=DATA[CHUNK:],
        headers={**headers, "Content-Range": f"bytes {CHUNK}-{len(DATA) - 1}/{len(DATA)}"},
    )
    assert (done.status_code, done.json()["size"], "x-http-status-code-override" in done.headers) == (
        200,
        str(len(DATA)),
        False,
    )


def test_a_session_starts_at_the_other_path_too(http: httpx.Client) -> None:
    """A session can also start at /resumable/upload/, the path in the discovery document, which gsutil uses."""
    began = http.post(f"/resumable{BASE}?uploadType=resumable&name=o", json={})
    assert began.status_code == 200
    assert send(http, began.headers["location"], b"abc", "bytes 0-2/3").status_code == 200


@pytest.mark.parametrize("content_range", [None, "bytes */0"])
def test_resumable_of_nothing(cloud: Cloud, http: httpx.Client, content_range: str | None) -> None:
    """An empty object is uploaded without a range, or with its total only."""
    assert send(http, start(http), b"", content_range).status_code == 200
    assert cloud.store.object("bkt", "o").data == b""


def test_resumable_at_once(cloud: Cloud, http: httpx.Client) -> None:
    """A body without a range is the whole object."""
    session = start(http, headers={"X-Upload-Content-Length": "5", "X-Upload-Content-Type": "text/plain"})
    done = send(http, session, b"hello", None)
    assert (done.status_code, done.json()["contentType"]) == (200, "text/plain")


def test_a_query_with_the_total_finishes(http: httpx.Client) -> None:
    """If all bytes have arrived, a query that states the total size finishes the upload."""
    session = start(http)
    assert send(http, session, DATA[:CHUNK], f"bytes 0-{CHUNK - 1}/*").status_code == 308
    assert send(http, session, b"", f"bytes */{CHUNK}").status_code == 200


@pytest.mark.parametrize(
    ("data", "content_range"),
    [
        (b"x" * 100, "bytes 0-99/*"),
        (b"x" * 100, "bytes 0-99/200"),
        (b"x" * 100, "bytes 0-98/99"),
        (b"x" * CHUNK, f"bytes {CHUNK}-{2 * CHUNK - 1}/*"),
        (b"x" * CHUNK, f"bytes 0-{CHUNK - 1}/7"),
        (b"x" * 7, "bytes 0-6/7"),
        (b"", "bytes */7"),
        (b"", "bytes 5-4/9"),
        (b"x", "bites 0-0/1"),
        (b"x", "bytes 0-0"),
        (b"x", None),
    ],
)
def test_bad_chunks(cloud: Cloud, http: httpx.Client, data: bytes, content_range: str | None) -> None:
    """A chunk that is too small, leaves a gap or contradicts a size gets a 400, and stores nothing."""
    session = start(http, headers={"X-Upload-Content-Length": str(4 * CHUNK)})
    assert send(http, session, data, content_range).status_code == 400
    assert "range" not in send(http, session, b"", "bytes */*").headers
    assert len(cloud.effects) == 0


def test_bytes_already_there_are_skipped(cloud: Cloud, http: httpx.Client) -> None:
    """A chunk that is sent again changes nothing."""
    session = start(http)
    for _ in range(2):
        assert send(http, session, DATA[:CHUNK], f"bytes 0-{CHUNK - 1}/*").headers["range"] == f"bytes=0-{CHUNK - 1}"
    assert send(http, session, DATA, None).status_code == 200
    assert cloud.store.object("bkt", "o").data == DATA


def test_a_cancelled_session_responds_499(cloud: Cloud, http: httpx.Client) -> None:
    """A cancelled session responds 499 to every later request."""
    session = start(http)
    assert http.delete(session).status_code == 499
    assert send(http, session, b"x", None).status_code == 499
    assert send(http, session, b"", "bytes */*").status_code == 499
    assert http.delete(session).status_code == 499
    assert len(cloud.effects) == 0


@pytest.mark.parametrize(
    ("ranges", "stored"),
    [
        (["0-*/*"], True),
        ([f"0-*/{len(DATA)}"], True),
        ([f"0-{CHUNK - 1}/*", f"{CHUNK}-*/*"], True),
        ([f"0-{CHUNK - 1}/{len(DATA)}", f"{CHUNK}-*/{len(DATA)}"], True),
        ([f"0-{CHUNK - 1}/{len(DATA)}", f"{CHUNK}-*/*"], True),
        ([f"{CHUNK}-*/*"], False),
        ([f"0-*/{len(DATA) - 1}"], False),
    ],
)
def test_chunks_without_an_end(cloud: Cloud, http: httpx.Client, ranges: list[str], stored: bool) -> None:
    """The last chunk of an upload may have no stated end, as the Node.js client sends streams."""
    session = start(http)
    status = 0
    for each in ranges:
        first, end = each.partition("-")[0], CHUNK if each.partition("-")[2].startswith(str(CHUNK - 1)) else len(DATA)
        status = send(http, session, DATA[int(first) : end], f"bytes {each}").status_code
    assert status == (200 if stored else 400)
    assert cloud.effects.count("storage.objects.insert") == stored
    if stored:
        assert cloud.store.object("bkt", "o").data == DATA


def test_a_chunk_without_an_end_that_breaks_off(cloud: Cloud, http: httpx.Client) -> None:
    """If the connection breaks in such a chunk, the session keeps the bytes, and the upload can continue."""
    session = start(http)
    cloud.fault(Fault.partial(CHUNK))
    with pytest.raises(httpx.ReadError):
        send(http, session, DATA, "bytes 0-*/*")
    assert send(http, session, b"", "bytes */*").headers["range"] == f"bytes=0-{CHUNK - 1}"
    assert cloud.effects.count() == 0
    assert send(http, session, DATA[CHUNK:], f"bytes {CHUNK}-*/*").status_code == 200
    assert cloud.store.object("bkt", "o").data == DATA


@pytest.mark.parametrize("body", [b"", b"null", b" null ", b"{}"])
def test_a_body_of_null(cloud: Cloud, http: httpx.Client, body: bytes) -> None:
    """null, which Go clients send, counts as an empty body."""
    http.post("/upload/storage/v1/b/bkt/o?uploadType=media&name=o", content=b"x")
    for path in ("rewriteTo/b/bkt/o/c", "copyTo/b/bkt/o/d"):
        assert http.post(f"/storage/v1/b/bkt/o/o/{path}", content=body).status_code == 200
    assert http.post(f"{BASE}?uploadType=resumable&name=n", content=body).status_code == 200
    assert cloud.effects.count() == 3


def test_unknown_sessions(http: httpx.Client) -> None:
    """An unknown session gets 404; a chunk without a session id gets 400."""
    assert http.put(f"{BASE}?upload_id=nope", content=b"x").status_code == 404
    assert http.put(f"{BASE}?name=o", content=b"x").status_code == 400
    assert http.delete(f"{BASE}?name=o").status_code == 400


def test_conditions_are_bound_at_the_start(cloud: Cloud, http: httpx.Client) -> None:
    """The conditions of the start are checked then and when the upload ends, whatever the URL of a chunk has."""
    session = start(http, "&ifGenerationMatch=0")
    cloud.store.put("bkt", "o", b"somebody else's")
    assert send(http, session, b"mine", None).status_code == 412
    assert send(http, session, b"", "bytes */4").status_code == 412
    assert cloud.store.object("bkt", "o").data == b"somebody else's"
    late = http.post(f"{BASE}?uploadType=resumable&name=o&ifGenerationMatch=0", json={})
    assert late.status_code == 412


def test_hashes_are_checked_at_the_end(http: httpx.Client) -> None:
    """A hash in the metadata or with the last chunk must be that of the whole object."""
    right = "mnG7TA=="
    assert http.put(start(http), content=b"hello", headers={"x-goog-hash": "crc32c=AAAAAA=="}).status_code == 400
    assert http.put(start(http), content=b"hello", headers={"x-goog-hash": f"crc32c={right}"}).status_code == 200
    assert send(http, start(http, crc32c="AAAAAA=="), b"hello", None).status_code == 400
    assert send(http, start(http, crc32c=right), b"hello", None).status_code == 200


def test_partial_keeps_a_prefix(cloud: Cloud, http: httpx.Client) -> None:
    """After a chunk that broke off, the session keeps its beginning, and the client can send the rest."""
    session = start(http)
    cloud.fault(Fault.partial(100_000))
    with pytest.raises(httpx.ReadError):
        send(http, session, DATA, f"bytes 0-{len(DATA) - 1}/{len(DATA)}")
    assert send(http, session, b"", "bytes */*").headers["range"] == "bytes=0-99999"
    rest = f"bytes 100000-{len(DATA) - 1}/{len(DATA)}"
    assert send(http, session, DATA[100_000:], rest).status_code == 200
    assert cloud.store.object("bkt", "o").data == DATA
    assert cloud.effects.count() == 1


def test_partial_with_a_status(cloud: Cloud, http: httpx.Client) -> None:
    """If all bytes have arrived but the object was not created, the next query creates it."""
    session = start(http)
    cloud.fault(Fault.partial(5, status=503))
    assert send(http, session, b"hello", None).status_code == 503
    assert cloud.effects.count() == 0
    assert send(http, session, b"", "bytes */5").status_code == 200
    assert cloud.effects.count() == 1


def test_expired_session(cloud: Cloud, http: httpx.Client) -> None:
    """A fault can expire a session between two requests."""
    session = start(http)
    cloud.fault(Fault.expire_session(status=404))
    assert send(http, session, b"hello", None).status_code == 404
    assert send(http, session, b"", "bytes */*").status_code == 404
    assert cloud.requests[1].fault == "expire_session before"


@settings(max_examples=25)
@given(
    total=st.sampled_from([1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, len(DATA)]),
    cuts=st.lists(st.tuples(st.integers(1, 3), st.none() | st.integers(0, 3 * CHUNK)), max_size=6),
    aligned=st.booleans(),
)
def test_any_cuts_make_the_same_object(total: int, cuts: list[tuple[int, int | None]], aligned: bool) -> None:
    """However the chunks are cut and wherever they break off, a client that queries and continues loses nothing."""
    with Cloud() as cloud, httpx.Client(base_url=cloud.url, verify=False) as http:
        cloud.store.create_bucket("bkt")
        session, offset = start(http), 0
        for chunks, keep in [*cuts, (4, None)]:
            if keep is not None:
                cloud.fault(Fault.partial(keep, status=503))
            end = min((offset // CHUNK * CHUNK if aligned else offset) + chunks * CHUNK, total)
            response = send(http, session, DATA[offset:end], f"bytes {offset}-{end - 1}/{total}")
            assert (response.status_code == 503) == (keep is not None)
            response = send(http, session, b"", f"bytes */{total}")
            if response.status_code == 200:
                break
            assert response.status_code == 308
            offset = int(response.headers["range"].rpartition("-")[2]) + 1 if "range" in response.headers else 0
        assert cloud.store.object("bkt", "o").data == DATA[:total]
        assert cloud.effects.count("storage.objects.insert") == 1


def test_metadata_that_is_no_header_survives_a_download(http: httpx.Client) -> None:
    """Stored text that a header cannot contain is replaced in the response, and the download works."""
    headers = {"Content-Type": "application/json"}
    metadata = json.dumps({"name": "o", "contentType": " a\r\nX-Evil: 1\x00é ", "contentDisposition": "日"})
    session = http.post(f"{BASE}?uploadType=resumable", content=metadata, headers=headers).headers["location"]
    assert send(http, session, b"hello", None).status_code == 200
    response = http.get("/download/storage/v1/b/bkt/o/o?alt=media")
    assert (response.status_code, response.content) == (200, b"hello")
    assert "x-evil" not in response.headers

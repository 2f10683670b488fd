"""Faults in transfers: uploads that lose or corrupt bytes, ignored ranges, and objects that other clients change."""

import gzip
import json

import httpx
import pytest

from forbear_cloud import Cloud, Fault

BASE = "/upload/storage/v1/b/bkt/o"
MEDIA = "/download/storage/v1/b/bkt/o/o?alt=media"
INSERT, GET = "storage.objects.insert", "storage.objects.get"
CHUNK = 262_144
DATA = bytes(range(256)) * (3 * CHUNK // 256)


def start(http: httpx.Client) -> str:
    """Start a session for the object "o", and return its URL."""
    return http.post(f"{BASE}?uploadType=resumable&name=o").headers["location"]


def send(http: httpx.Client, session: str, first: int, end: int) -> httpx.Response:
    """Send a part of DATA."""
    return http.put(session, content=DATA[first:end], headers={"Content-Range": f"bytes {first}-{end - 1}/{len(DATA)}"})


def ask(http: httpx.Client, session: str) -> httpx.Response:
    """Query how many bytes the service has."""
    return http.put(session, headers={"Content-Range": f"bytes */{len(DATA)}"})


@pytest.mark.parametrize(("keep", "told"), [(0, None), (CHUNK, f"bytes=0-{CHUNK - 1}"), (100, "bytes=0-99")])
@pytest.mark.parametrize("end", [2 * CHUNK, 3 * CHUNK])
def test_a_chunk_kept_in_part_is_told(cloud: Cloud, http: httpx.Client, keep: int, told: str | None, end: int) -> None:
    """A 308 states how many bytes of a chunk were kept, also of the last one; without any it has no Range."""
    session = start(http)
    cloud.fault(Fault.partial(keep, status=308, operation=INSERT))
    response = send(http, session, 0, end)
    assert (response.status_code, response.headers.get("range")) == (308, told)
    assert ask(http, session).headers.get("range") == told
    assert send(http, session, keep, len(DATA)).status_code == 200
    assert cloud.store.object("bkt", "o").data == DATA


def test_a_chunk_kept_whole_is_answered_as_ever(cloud: Cloud, http: httpx.Client) -> None:
    """If the whole chunk is to be kept, or the session is gone, the response is the usual one."""
    cloud.fault(Fault.partial(len(DATA), status=308, times=2))
    assert send(http, start(http), 0, len(DATA)).status_code == 200
    assert send(http, f"{BASE}?upload_id=nope", 0, CHUNK).status_code == 404


@pytest.mark.parametrize(("to", "told"), [(0, None), (CHUNK, f"bytes=0-{CHUNK - 1}")])
@pytest.mark.parametrize("step", ["send", "query"])
def test_a_session_forgets(cloud: Cloud, http: httpx.Client, step: str, to: int, told: str | None) -> None:
    """Acknowledged bytes and the chunk after them are lost, and the upload can continue from what is left."""
    session = start(http)
    assert send(http, session, 0, 2 * CHUNK).headers["range"] == f"bytes=0-{2 * CHUNK - 1}"
    cloud.fault(Fault.rewind(to, operation=f"{INSERT}.{step}"))
    response = send(http, session, 2 * CHUNK, len(DATA)) if step == "send" else ask(http, session)
    assert (response.status_code, response.headers.get("range")) == (308, told)
    assert cloud.requests[-1].fault == "rewind before"
    assert send(http, session, 2 * CHUNK, len(DATA)).status_code == 400
    assert send(http, session, to, len(DATA)).status_code == 200
    assert cloud.store.object("bkt", "o").data == DATA
    assert cloud.effects.count(INSERT) == 1


def test_what_is_finished_is_not_forgotten(cloud: Cloud, http: httpx.Client) -> None:
    """A session that is finished, or has no more than it should keep, responds as usual."""
    session = start(http)
    cloud.fault(Fault.rewind(CHUNK, times=3))
    assert send(http, session, 0, CHUNK).headers["range"] == f"bytes=0-{CHUNK - 1}"
    assert send(http, session, CHUNK, len(DATA)).status_code == 200
    assert send(http, session, CHUNK, len(DATA)).status_code == 200


@pytest.mark.parametrize("form", ["media", "multipart", "chunk", "xml"])
def test_a_body_spoilt_on_the_way_in(cloud: Cloud, http: httpx.Client, form: str) -> None:
    """One stored byte differs from the one sent, and the checksum of the object shows it."""
    cloud.fault(Fault.corrupt_upload(2))
    match form:
        case "media":
            http.post(f"{BASE}?uploadType=media&name=o", content=b"hello")
        case "multipart":
            body = b"--b\r\n\r\n" + json.dumps({"name": "o"}).encode() + b"\r\n--b\r\n\r\nhello\r\n--b--"
            headers = {"Content-Type": "multipart/related; boundary=b"}
            assert http.post(f"{BASE}?uploadType=multipart", content=body, headers=headers).status_code == 200
        case "chunk":
            http.put(start(http), content=b"hello")
        case _:
            http.put("/bkt/o", content=b"hello")
    item = cloud.store.object("bkt", "o")
    assert (item.data, item.crc32c) == (b"he\x93lo", "C3SQ5A==")


def test_a_hash_sent_along_finds_it(cloud: Cloud, http: httpx.Client) -> None:
    """An upload with a hash is refused, and nothing is stored; other requests are not affected."""
    cloud.fault(Fault.corrupt_upload())
    session = start(http)
    assert cloud.pending_faults == 1
    assert http.put(session, content=b"hello", headers={"x-goog-hash": "crc32c=mnG7TA=="}).status_code == 400
    assert http.put(session, headers={"Content-Range": "bytes */5"}).status_code == 410
    cloud.fault(Fault.corrupt_upload())
    assert http.post(f"{BASE}?uploadType=multipart", content=b"hello").status_code == 400
    assert len(cloud.effects) == 0


@pytest.mark.parametrize(
    ("fault", "status", "body", "content_range"),
    [
        (Fault.ignore_range(), 200, b"hello", None),
        (Fault.other_range(1, 2), 206, b"el", "bytes 1-2/5"),
        (Fault.other_range(0), 206, b"hello", "bytes 0-4/5"),
        (Fault.refuse_range(), 416, None, "bytes */5"),
    ],
)
def test_ranges_not_heeded(
    cloud: Cloud, http: httpx.Client, fault: Fault, status: int, body: bytes | None, content_range: str | None
) -> None:
    """A range request gets the whole object, another range or a 416; other requests are not affected."""
    cloud.store.put("bkt", "o", b"hello")
    cloud.fault(fault)
    assert http.get(MEDIA).content == b"hello"
    response = http.get(MEDIA, headers={"Range": "bytes=3-"})
    assert (response.status_code, response.headers.get("content-range")) == (status, content_range)
    assert body is None or response.content == body
    assert cloud.pending_faults == 0
    assert http.get(MEDIA, headers={"Range": "bytes=3-"}).content == b"lo"


def test_faults_of_ranges_keep_the_header_asked_for(cloud: Cloud, http: httpx.Client) -> None:
    """A header to match counts in addition to the Range header."""
    cloud.store.put("bkt", "o", b"hello")
    cloud.fault(Fault.ignore_range(header=("x-a", "b")))
    assert http.get(MEDIA, headers={"Range": "bytes=3-"}).status_code == 206
    assert http.get(MEDIA, headers={"x-a": "b"}).status_code == 200
    assert cloud.pending_faults == 1
    assert http.get(MEDIA, headers={"Range": "bytes=3-", "x-a": "abc"}).status_code == 200


@pytest.mark.parametrize(("content", "found"), [(None, bytes(0xFF ^ each for each in b"hello")), ("other", b"other")])
def test_an_object_replaced_by_somebody_else(
    cloud: Cloud, http: httpx.Client, content: str | None, found: bytes
) -> None:
    """A read gets a new generation of the same size, or the given content, and no effect is counted."""
    old = cloud.store.put("bkt", "o", b"hello", {"contentType": "x/y"})
    cloud.fault(Fault.from_json({"action": "replace_object", "content": content, "operation": GET}))
    response = http.get(MEDIA)
    assert (response.content, response.headers["content-type"]) == (found, "x/y")
    assert int(response.headers["x-goog-generation"]) > old.generation
    assert http.get(f"{MEDIA}&generation={old.generation}").status_code == 404
    assert len(cloud.effects) == 0


def test_an_object_replaced_afterwards(cloud: Cloud, http: httpx.Client) -> None:
    """With `when="after"` the response has the old object, and the next read the new one."""
    cloud.store.put("bkt", "o", b"hello")
    cloud.fault(Fault.replace_object(b"other", when="after"))
    assert [http.get(MEDIA).content for _ in range(2)] == [b"hello", b"other"]


def test_an_upload_overtaken_by_somebody_else(cloud: Cloud, http: httpx.Client) -> None:
    """The object of an upload is named by the query, the session or the metadata; its preconditions then fail."""
    cloud.fault(Fault.replace_object(times=None, operation=INSERT))
    guarded = "&ifGenerationMatch=0"
    assert http.post(f"{BASE}?uploadType=media&name=o{guarded}", content=b"x").status_code == 412
    assert cloud.store.object("bkt", "o").data == b"somebody else's"
    assert http.post(f"{BASE}?uploadType=resumable{guarded}", json={"name": "p"}).status_code == 412
    body = b'--b\r\n\r\n{"name": "q"}\r\n--b\r\n\r\nhello\r\n--b--'
    multipart = {"Content-Type": "multipart/related; boundary=b"}
    response = http.post(f"{BASE}?uploadType=multipart{guarded}", content=body, headers=multipart)
    assert (response.status_code, cloud.store.object("bkt", "q").data) == (412, b"somebody else's")
    cloud.clear_faults()
    session = http.post(f"{BASE}?uploadType=resumable&name=r{guarded}").headers["location"]
    cloud.fault(Fault.replace_object(operation=INSERT))
    assert http.put(session, content=b"x").status_code == 412
    assert len(cloud.effects) == 0


def test_an_object_deleted_by_somebody_else(cloud: Cloud, http: httpx.Client) -> None:
    """A read finds nothing; in a versioned bucket the old generation stays, and can be read by its number."""
    cloud.store.put("bkt", "o", b"hello")
    cloud.fault(Fault.delete_object(operation=GET, times=3))
    assert http.get(MEDIA).status_code == 404
    http.patch("/storage/v1/b/bkt", json={"versioning": {"enabled": True}})
    old = cloud.store.put("bkt", "o", b"hello")
    assert http.get(f"{MEDIA}&generation={old.generation}").content == b"hello"
    assert http.get(MEDIA).status_code == 404
    assert cloud.effects.count("storage.objects.delete") == 0


def test_a_held_object_is_not_deleted_by_somebody_else(cloud: Cloud, http: httpx.Client) -> None:
    """The hold forbids it to everybody, so the read succeeds."""
    cloud.store.put("bkt", "o", b"hello", {"temporaryHold": True})
    cloud.fault(Fault.delete_object(operation=GET))
    assert http.get(MEDIA).content == b"hello"


def test_nothing_to_replace_or_delete(cloud: Cloud, http: httpx.Client) -> None:
    """If the bucket or name does not exist, the response is the usual one."""
    cloud.fault(Fault.replace_object(), Fault.delete_object(), Fault.replace_object(), Fault.delete_object())
    for _ in range(2):
        assert http.get("/storage/v1/b/nope/o/o").status_code == 404
    for _ in range(2):
        assert http.post(f"{BASE}?uploadType=media", content=b"x").status_code == 400


def test_a_packed_object_has_no_ranges_to_spoil(cloud: Cloud, http: httpx.Client) -> None:
    """With decompressive transcoding the whole object is sent, whatever the fault."""
    cloud.store.put("bkt", "o", gzip.compress(b"plain"), {"contentEncoding": "gzip"})
    cloud.fault(Fault.refuse_range())
    response = http.get(MEDIA, headers={"Range": "bytes=1-", "Accept-Encoding": "identity"})
    assert (response.status_code, response.content) == (200, b"plain")

"""Resumable and multipart uploads of the XML API, over plain HTTP and by the real client."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from google.cloud.storage import transfer_manager

from forbear_cloud import Cloud, Fault
from forbear_testkit.cloud.xml import MATCH, error_of, texts

QUARTER = 262_144
MEBIBYTE = 1_048_576


def session(http: httpx.Client, **headers: str) -> str:
    """Return the URL of a new session."""
    started = http.post("/bkt/o", headers={"x-goog-resumable": "start", **headers})
    assert started.status_code == 201
    return started.headers["location"]


def send(http: httpx.Client, uri: str, where: str, body: bytes = b"") -> httpx.Response:
    """Send a chunk or a status query."""
    return http.put(uri, content=body, headers={"Content-Range": f"bytes {where}"})


def test_a_resumable_upload(cloud: Cloud, http: httpx.Client) -> None:
    """A session receives chunks, responds to queries, finishes once, and keeps the metadata of its start."""
    uri = session(http, **{"Content-Type": "text/plain", "x-goog-meta-a": "b", MATCH: "0"})
    assert uri.startswith(f"{cloud.url}/bkt/o?upload_id=")
    first = send(http, uri, f"0-{QUARTER - 1}/*", bytes(QUARTER))
    assert (first.status_code, first.headers["range"]) == (308, f"bytes=0-{QUARTER - 1}")
    assert send(http, uri, "*/*").headers["range"] == f"bytes=0-{QUARTER - 1}"
    last = send(http, uri, f"{QUARTER}-{QUARTER + 4}/{QUARTER + 5}", b"hello")
    assert (last.status_code, "x-goog-generation" in last.headers) == (200, True)
    assert send(http, uri, f"*/{QUARTER + 5}").status_code == 200
    got = http.get("/bkt/o")
    assert (got.content[-5:], got.headers["x-goog-meta-a"]) == (b"hello", "b")
    assert [effect.operation for effect in cloud.effects] == ["xml.object.put"]
    assert [request.operation for request in cloud.requests][:3] == [
        "xml.object.post.resumable",
        "xml.object.put.session",
        "xml.object.put.session.status",
    ]
    refused = http.post("/bkt/o", headers={"x-goog-resumable": "start", MATCH: "0"})
    assert error_of(refused) == (412, "PreconditionFailed")
    assert error_of(http.post("/bkt/o", headers={"x-goog-resumable": "go"})) == (400, "InvalidArgument")


def test_sessions_by_host(http: httpx.Client) -> None:
    """The URL of a session has the host of the request that started it."""
    host = {"Host": "bkt.storage.googleapis.com"}
    started = http.post("/dir/o", headers={"x-goog-resumable": "start", **host})
    assert started.headers["location"].startswith("http://bkt.storage.googleapis.com/dir/o?upload_id=")


def test_lost_chunks_and_sessions(cloud: Cloud, http: httpx.Client) -> None:
    """Faults keep a part of a chunk or expire a session; a cancelled session is gone."""
    operation: Any = {"operation": "xml.object.put.session"}
    cloud.fault(Fault.partial(QUARTER, **operation), Fault.expire_session(**operation))
    uri = session(http)
    with pytest.raises(httpx.ReadError):
        send(http, uri, f"0-{2 * QUARTER - 1}/{2 * QUARTER}", bytes(2 * QUARTER))
    assert send(http, uri, f"*/{2 * QUARTER}").headers["range"] == f"bytes=0-{QUARTER - 1}"
    assert send(http, uri, f"{QUARTER}-{2 * QUARTER - 1}/{2 * QUARTER}", bytes(QUARTER)).status_code == 410
    assert error_of(send(http, uri, "*/*")) == (410, "NoSuchUpload")
    uri = session(http)
    assert http.delete(uri).status_code == 499
    assert error_of(send(http, uri, "*/*")) == (499, "ClientClosedRequest")
    assert error_of(send(http, "/bkt/o?upload_id=none", "*/*"))[0] == 404
    assert len(cloud.effects) == 0


def begin(http: httpx.Client, path: str = "/bkt/big") -> str:
    """Return the id of a new multipart upload."""
    return texts(http.post(f"{path}?uploads", headers={"x-goog-meta-a": "b"}), "UploadId")[0] or ""


def completion(*parts: tuple[int, str]) -> str:
    """Return the document that names the parts."""
    listed = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{etag}</ETag></Part>" for n, etag in parts)
    return f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>"


def test_a_multipart_upload(cloud: Cloud, http: httpx.Client) -> None:
    """Parts are stored, replaced, listed and joined; a completed upload is gone."""
    upload = begin(http)
    path = f"/bkt/big?uploadId={upload}"
    etags: dict[int, str] = {}
    for number, body in ((1, b"y"), (1, bytes(5 * MEBIBYTE)), (2, b"end")):
        etags[number] = http.put(f"{path}&partNumber={number}", content=body).headers["etag"]
    assert http.get("/bkt/big").status_code == 404
    assert texts(http.get(path), "Part/PartNumber") == ["1", "2"]
    assert texts(http.get("/bkt?uploads"), "Upload/UploadId") == [upload]
    done = http.post(path, content=completion(*etags.items()))
    assert ET.fromstring(done.content).tag == "{http://s3.amazonaws.com/doc/2006-03-01/}CompleteMultipartUploadResult"
    got = http.get("/bkt/big")
    assert (len(got.content), got.content[-3:], got.headers["x-goog-meta-a"]) == (5 * MEBIBYTE + 3, b"end", "b")
    assert "md5" not in got.headers["x-goog-hash"]
    assert error_of(http.post(path, content=completion(*etags.items()))) == (404, "NoSuchUpload")
    assert cloud.effects.count("xml.object.post.uploadId", "bkt/big") == 1
    assert cloud.effects.count("xml.object.put.part") == 3


def test_parts_that_are_copied(cloud: Cloud, http: httpx.Client) -> None:
    """A part can be copied from an object, or from a range of one."""
    cloud.store.put("bkt", "src", b"0123456789")
    path = f"/bkt/big?uploadId={begin(http)}&partNumber=1"
    source = {"x-goog-copy-source": "/bkt/src", "x-goog-copy-source-range": "bytes=2-4"}
    etag = texts(http.put(path, headers=source), "ETag")[0] or ""
    http.post(path.partition("&")[0], content=completion((1, etag)))
    assert http.get("/bkt/big").content == b"234"
    path = f"/bkt/big?uploadId={begin(http)}&partNumber=1"
    for wrong in ("bytes=5-99", "bytes=4-2", "x"):
        assert error_of(http.put(path, headers={**source, "x-goog-copy-source-range": wrong})) == (416, "InvalidRange")


def test_multipart_mistakes(cloud: Cloud, http: httpx.Client) -> None:
    """Parts must exist, be in order and be large enough, and an aborted upload is gone."""
    path = f"/bkt/big?uploadId={begin(http)}"
    etags = [http.put(f"{path}&partNumber={n}", content=b"x").headers["etag"] for n in (1, 2)]
    mistakes = {
        completion((2, etags[1]), (1, etags[0])): "InvalidPartOrder",
        completion((1, "x")): "InvalidPart",
        completion((3, etags[0])): "InvalidPart",
        completion((1, etags[0]), (2, etags[1])): "EntityTooSmall",
        completion(): "MalformedXML",
    }
    for body, code in mistakes.items():
        assert error_of(http.post(path, content=body)) == (400, code)
    for number in ("0", "10001", "x"):
        assert error_of(http.put(f"{path}&partNumber={number}", content=b"x")) == (400, "InvalidArgument")
    assert error_of(http.put(path, content=b"x")) == (400, "InvalidArgument")
    assert error_of(http.get(path.replace("big", "small"))) == (404, "NoSuchUpload")
    assert http.delete(path).status_code == 204
    assert error_of(http.delete(path)) == (404, "NoSuchUpload")
    assert cloud.effects.count("xml.object.delete.uploadId") == 1


def test_the_real_client(cloud: Cloud, tmp_path: Path) -> None:
    """google-cloud-storage uploads in parts through this API, and reads the object through the JSON API."""
    big = tmp_path / "big"
    big.write_bytes(bytes(range(256)) * 4096 * 6)
    client = storage.Client(
        project="p",
        credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
        client_options={"api_endpoint": cloud.url},
    )
    blob = client.bucket("bkt").blob("dir/big one")
    transfer_manager.upload_chunks_concurrently(
        str(big), blob, chunk_size=5 * MEBIBYTE, max_workers=2, worker_type=transfer_manager.THREAD
    )
    assert cloud.effects.count("xml.object.put.part") == 2
    assert blob.download_as_bytes() == big.read_bytes()
    client.close()

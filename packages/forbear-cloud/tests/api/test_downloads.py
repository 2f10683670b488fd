"""Downloads: ranges, validators, pinned generations, hashes and transcoding."""

import gzip

import httpx
import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.cloud.sockets import talk

MEDIA = "/download/storage/v1/b/bkt/o/o?alt=media"


def test_a_download_has_the_headers_of_its_object(cloud: Cloud, http: httpx.Client) -> None:
    """A download has headers for the generation, hashes, stored size, entity tag and metadata."""
    fields = {"contentType": "text/plain", "cacheControl": "no-transform", "contentLanguage": "en"}
    item = cloud.store.put("bkt", "o", b"hello", fields)
    response = http.get(MEDIA)
    assert response.content == b"hello"
    assert response.headers["x-goog-generation"] == str(item.generation)
    assert response.headers["x-goog-hash"] == "crc32c=mnG7TA==,md5=XUFAKrxLKna5cZ2REBfFkg=="
    assert response.headers["x-goog-stored-content-length"] == "5"
    assert response.headers["x-goog-stored-content-encoding"] == "identity"
    assert response.headers["content-type"] == "text/plain"
    assert response.headers["content-language"] == "en"
    assert response.headers["cache-control"] == "no-transform"
    assert response.headers["etag"] == item.etag == http.get("/storage/v1/b/bkt/o/o").json()["etag"]
    head = http.head(MEDIA)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "5")


@pytest.mark.parametrize(
    ("wanted", "status", "body", "content_range"),
    [
        ("bytes=0-1", 206, b"he", "bytes 0-1/5"),
        ("bytes=3-", 206, b"lo", "bytes 3-4/5"),
        ("bytes=3-99", 206, b"lo", "bytes 3-4/5"),
        ("bytes=-2", 206, b"lo", "bytes 3-4/5"),
        ("bytes=-99", 206, b"hello", "bytes 0-4/5"),
        ("bytes=5-", 416, None, "bytes */5"),
        ("bytes=9-12", 416, None, "bytes */5"),
        ("bytes=-0", 416, None, "bytes */5"),
        ("bytes=2-1", 200, b"hello", None),
        ("bytes=0-1,3-4", 200, b"hello", None),
        ("lines=1-2", 200, b"hello", None),
        ("bytes=-", 200, b"hello", None),
        ("bytes=" + "9" * 30 + "-", 200, b"hello", None),
    ],
)
def test_a_range_returns_a_part(
    cloud: Cloud, http: httpx.Client, wanted: str, status: int, body: bytes | None, content_range: str | None
) -> None:
    """A range returns a part; a range beyond the end fails with 416, and a malformed one returns everything."""
    cloud.store.put("bkt", "o", b"hello")
    response = http.get(MEDIA, headers={"Range": wanted})
    assert response.status_code == status
    assert response.headers.get("content-range") == content_range
    assert body is None or response.content == body


def test_an_empty_object_has_no_range(cloud: Cloud, http: httpx.Client) -> None:
    """Every range of an empty object fails with 416."""
    cloud.store.put("bkt", "o", b"")
    assert http.get(MEDIA).content == b""
    response = http.get(MEDIA, headers={"Range": "bytes=0-"})
    assert (response.status_code, response.headers["content-range"]) == (416, "bytes */0")


def test_if_range(cloud: Cloud, http: httpx.Client) -> None:
    """A range applies only if If-Range names the current version, by tag or by date."""
    item = cloud.store.put("bkt", "o", b"hello")
    date = http.get(MEDIA).headers["last-modified"]
    for validator, status in [(item.etag, 206), (f'"{item.etag}"', 206), (date, 206), ('"other"', 200)]:
        response = http.get(MEDIA, headers={"Range": "bytes=1-", "If-Range": validator})
        assert response.status_code == status


def test_a_generation_can_be_pinned(cloud: Cloud, http: httpx.Client) -> None:
    """A download that names a generation fails with 404 once that generation is gone."""
    old = cloud.store.put("bkt", "o", b"old")
    assert http.get(f"{MEDIA}&generation={old.generation}", headers={"Range": "bytes=1-"}).content == b"ld"
    cloud.store.put("bkt", "o", b"new")
    assert http.get(f"{MEDIA}&generation={old.generation}").status_code == 404
    assert http.get(f"{MEDIA}&generation=x").status_code == 400


def test_stored_gzip_is_decompressed_for_clients_without_gzip(cloud: Cloud, http: httpx.Client) -> None:
    """Stored gzip is decompressed and sent whole to a client without gzip, and sent as stored to any other."""
    packed = gzip.compress(b"plain" * 100, mtime=0)
    cloud.store.put("bkt", "o", packed, {"contentEncoding": "gzip"})
    for accept in ("", "identity", "gzip;q=0", "br"):
        plain = http.get(MEDIA, headers={"Accept-Encoding": accept, "Range": "bytes=10-19"})
        assert (plain.status_code, plain.content) == (200, b"plain" * 100)
        assert plain.headers["x-goog-stored-content-length"] == str(len(packed))
        assert plain.headers["x-goog-stored-content-encoding"] == "gzip"
        assert "content-encoding" not in plain.headers
    with http.stream("GET", MEDIA, headers={"Accept-Encoding": "br, gzip", "Range": "bytes=0-9"}) as stored:
        assert b"".join(stored.iter_raw()) == packed[:10]
        assert (stored.status_code, stored.headers["content-encoding"]) == (206, "gzip")
    cloud.store.put("bkt", "o", packed, {"contentEncoding": "gzip", "cacheControl": "no-transform"})
    with http.stream("GET", MEDIA, headers={"Accept-Encoding": "identity"}) as stored:
        assert b"".join(stored.iter_raw()) == packed


@pytest.mark.parametrize(
    "stored",
    [b"not packed", gzip.compress(b"cut short", mtime=0)[:-3], gzip.compress(b"a", mtime=0) + b"garbage"],
    ids=["plain", "cut short", "garbage after it"],
)
def test_a_false_gzip_comes_as_it_is(cloud: Cloud, http: httpx.Client, stored: bytes) -> None:
    """An object that only claims to be gzip is sent as stored."""
    cloud.store.put("bkt", "o", stored, {"contentEncoding": "gzip"})
    with http.stream("GET", MEDIA, headers={"Accept-Encoding": "identity"}) as response:
        assert b"".join(response.iter_raw()) == stored


def test_gzip_in_several_members(cloud: Cloud, http: httpx.Client) -> None:
    """A gzip file of several members is decompressed completely."""
    cloud.store.put("bkt", "o", gzip.compress(b"hel") + gzip.compress(b"lo"), {"contentEncoding": "gzip"})
    assert http.get(MEDIA, headers={"Accept-Encoding": "identity"}).content == b"hello"


def test_alt_media_works_on_the_metadata_path(cloud: Cloud, http: httpx.Client) -> None:
    """alt=media works on the metadata path too, and an unknown value is refused."""
    cloud.store.put("bkt", "o", b"hello")
    assert http.get("/storage/v1/b/bkt/o/o?alt=media").content == b"hello"
    assert http.get("/storage/v1/b/bkt/o/o?alt=json").json()["name"] == "o"
    assert http.get("/storage/v1/b/bkt/o/o?alt=xml").status_code == 400


def test_what_is_unpacked_has_no_length(cloud: Cloud, http: httpx.Client) -> None:
    """A decompressed response has no Content-Length, and a client still notices if it is cut off."""
    cloud.store.put("bkt", "o", gzip.compress(b"plain" * 20_000), {"contentEncoding": "gzip"})
    plain = http.get(MEDIA, headers={"Accept-Encoding": "identity"})
    assert (len(plain.content), plain.headers["transfer-encoding"]) == (100_000, "chunked")
    assert (plain.headers["warning"], plain.headers["accept-ranges"]) == ("214 UploadServer gunzipped", "none")
    assert "content-length" not in plain.headers
    head = http.head(MEDIA, headers={"Accept-Encoding": "identity"})
    assert (head.status_code, head.content) == (200, b"")
    cloud.store.put("bkt", "o", gzip.compress(b""), {"contentEncoding": "gzip"})
    assert http.get(MEDIA, headers={"Accept-Encoding": "identity"}).content == b""
    old = talk(cloud, f"GET {MEDIA} HTTP/1.0\r\n\r\n".encode())
    assert b"Content-Length: 0\r\n" in old
    for fault in (Fault.truncate(3), Fault.truncate(5)):
        cloud.store.put("bkt", "o", gzip.compress(b"plain"), {"contentEncoding": "gzip"})
        cloud.fault(fault)
        with pytest.raises(httpx.RemoteProtocolError):
            http.get(MEDIA, headers={"Accept-Encoding": "identity"})
    cloud.fault(Fault.corrupt())
    assert http.get(MEDIA, headers={"Accept-Encoding": "identity"}).content == b"\x8flain"

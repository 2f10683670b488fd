"""The ids that a support case asks for, in the headers of responses."""

import pytest

from forbear.http.request import REQUEST_IDS, Request, is_resumable, request_ids

UPLOAD = "x-guploader-uploadid"


def test_every_name() -> None:
    """Each is read in any spelling, and no other header is."""
    for name in REQUEST_IDS:
        assert request_ids({"Date": "now", name.title(): "id-1", "set-cookie": "secret"}) == ((name, "id-1"),)
    assert request_ids({"x-forwarded-for": "1", "etag": "2"}) == ()


def test_ids_are_bounded() -> None:
    """At most eight ids of 256 characters each: a server may send anything."""
    ids = request_ids(dict.fromkeys(sorted(REQUEST_IDS), "x" * 999))
    assert [name for name, _ in ids] == sorted(REQUEST_IDS)[:8]
    assert {len(value) for _, value in ids} == {256}


def test_a_trace_is_kept_without_its_options() -> None:
    """They say nothing of the request."""
    assert request_ids({"X-Cloud-Trace-Context": "105445/1;o=1"}) == (("x-cloud-trace-context", "105445/1"),)


def test_the_key_of_an_upload_session_is_hidden() -> None:
    """Whoever has it may send the object, so only the name is left; other ids stay."""
    headers = {"X-GUploader-UploadID": "key", "x-goog-request-id": "1"}
    assert request_ids(headers, resumable=True) == ((UPLOAD, "[redacted]"), ("x-goog-request-id", "1"))
    assert request_ids(headers) == ((UPLOAD, "key"), ("x-goog-request-id", "1"))


@pytest.mark.parametrize(
    ("target", "headers", "expected"),
    [
        ("/upload/storage/v1/b/bkt/o?uploadType=resumable&name=a", {}, True),
        ("/upload/storage/v1/b/bkt/o?upload%54ype=resumable&name=a", {}, True),
        ("/upload/storage/v1/b/bkt/o?uploadType=media&name=a%20b", {}, False),
        ("/bkt/a?upload_id=key", {}, True),
        ("/bkt/a?UPLOAD%5Fid=key", {}, True),
        ("/bkt/a", {"x-goog-resumable": "start"}, True),
        ("/bkt/upload_id=", {}, False),
        ("/storage/v1/b/bkt/o/a", {}, False),
    ],
)
def test_requests_of_a_session_are_recognised(target: str, headers: dict[str, str], expected: bool) -> None:
    """A request that starts or uses a session, in any spelling."""
    assert is_resumable(Request("POST", "storage.googleapis.com", target, headers)) is expected


@pytest.mark.parametrize(
    ("request_", "resource"),
    [
        (Request("GET", "Example.com", "/a?key=secret"), "https://example.com/a"),
        (Request("GET", "example.com", "/a", scheme="http"), "http://example.com/a"),
        (Request("GET", "example.com", "/a", scheme="http", port=80), "http://example.com/a"),
        (Request("GET", "127.0.0.1", "/", scheme="http", port=8080), "http://127.0.0.1:8080/"),
        (Request("GET", "[::1]:8443", "/"), "https://[::1]:8443/"),
    ],
)
def test_the_resource_is_the_url_without_its_query(request_: Request, resource: str) -> None:
    """The URL without its query and without the default port."""
    assert request_.resource == resource

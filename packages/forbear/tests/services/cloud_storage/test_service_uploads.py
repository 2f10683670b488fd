"""Uploads and resumable sessions: the start, the chunks, the questions in between, and the end."""

import pytest

from forbear.core.service import Judgement
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Safety, Verdict
from forbear.http.request import Request
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED, CloudStorage

INSERT = "storage.objects.insert"
PATHS = ["/upload/storage/v1/b/x/o", "/resumable/upload/storage/v1/b/x/o"]
UNKNOWN = Judgement("cloud_storage", None, Safety.NEVER)
CHUNK = Judgement("cloud_storage", INSERT, Safety.NEVER, session=True)
QUERY = Judgement("cloud_storage", INSERT, Safety.ALWAYS, repeatable=True, mutation=False, session=True)
CANCEL = Judgement(
    "cloud_storage", INSERT, Safety.ALWAYS, repeatable=True, maybe_done=(404, 410, 499), session=True
)  # fmt: skip
BOTH = pytest.mark.parametrize("service", [RECOMMENDED, DOCUMENTED], ids=["recommended", "documented"])


def judge(
    service: CloudStorage, method: str, target: str, body: bytes | None = b"", headers: dict[str, str] | None = None
) -> Judgement:
    """The judgement on a request to the API's own host."""
    return service.classify(Request(method, "storage.googleapis.com", target, headers, body))


@pytest.mark.parametrize("path", PATHS)
def test_the_start_of_a_session(path: str) -> None:
    """It commits nothing, so we always repeat it; the page wants the condition of the upload."""
    start = Judgement("cloud_storage", INSERT, Safety.ALWAYS, repeatable=True)
    assert judge(RECOMMENDED, "POST", f"{path}?uploadType=resumable&name=y", b"{}") == start
    assert judge(RECOMMENDED, "POST", f"{path}?uploadType=resumable&ifGenerationMatch=0", None) == start
    bare = Judgement("cloud_storage", INSERT, Safety.CONDITIONAL, ("ifGenerationMatch=",))
    assert judge(DOCUMENTED, "POST", f"{path}?uploadType=resumable&name=y", b"{}") == bare
    guarded = bare.replace(met="ifGenerationMatch=", repeatable=True)
    assert judge(DOCUMENTED, "POST", f"{path}?name=y&ifGenerationMatch=0&uploadType=resumable", b"{}") == guarded


@BOTH
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["media", "multipart", "%6Dedia"])
def test_an_upload_in_one_request(service: CloudStorage, path: str, kind: str) -> None:
    """It commits, so it needs the condition in either profile."""
    bare = Judgement("cloud_storage", INSERT, Safety.CONDITIONAL, ("ifGenerationMatch=",), maybe_done=(412,))
    assert judge(service, "POST", f"{path}?uploadType={kind}&name=y", b"x") == bare
    guarded = bare.replace(met="ifGenerationMatch=", repeatable=True)
    assert judge(service, "POST", f"{path}?uploadType={kind}&name=y&ifGenerationMatch=0", None) == guarded


@BOTH
@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("POST", ""),
        ("POST", "name=y&ifGenerationMatch=0"),
        ("POST", "uploadType=&ifGenerationMatch=0"),
        ("POST", "uploadType=sideways&ifGenerationMatch=0"),
        ("POST", "uploadType=RESUMABLE"),
        ("POST", "uploadtype=resumable"),
        ("POST", "upload_type=resumable"),
        ("POST", "uploadType=resumable&uploadType=media&ifGenerationMatch=0"),
        ("POST", "uploadType=resumable&upload_protocol=multipart"),
        ("POST", "upload_protocol=resumable"),
        ("POST", "uploadType=resumable&upload_id="),
        ("POST", "uploadType=resumable&upload_id=1&upload_id=2"),
        ("PUT", "uploadType=resumable&ifGenerationMatch=0"),
        ("PUT", "uploadType=media&ifGenerationMatch=0"),
        ("DELETE", "uploadType=resumable"),
        ("PATCH", "upload_id=1"),
        ("post", "uploadType=resumable"),
    ],
)
def test_what_is_no_known_upload(service: CloudStorage, method: str, query: str) -> None:
    """An upload that is not understood is never repeated, whatever conditions it carries."""
    assert judge(service, method, f"{PATHS[0]}?{query}", b"x") == UNKNOWN


@pytest.mark.parametrize("header", ["x-goog-upload-protocol", "x-goog-upload-command"])
@pytest.mark.parametrize("query", ["uploadType=resumable", "uploadType=media&ifGenerationMatch=0", "upload_id=1"])
def test_the_upload_protocol_of_other_apis_is_not_known(header: str, query: str) -> None:
    """Its headers change what a request does."""
    assert judge(RECOMMENDED, "POST", f"{PATHS[0]}?{query}", b"x", {header: "start"}) == UNKNOWN


@pytest.mark.parametrize(
    "path",
    [
        "/upload/storage/v1/b/x/o/y",
        "/upload/storage/v1/b//o",
        "/upload/storage/v1/b/../o",
        "/upload/storage/v1/b/x/o/",
        "/upload/storage/v1/b",
        "/upload/storage/v1/b/x/acl",
        "/upload/upload/storage/v1/b/x/o",
        "/resumable/storage/v1/b/x/o",
    ],
)
@pytest.mark.parametrize("query", ["uploadType=resumable", "uploadType=media&ifGenerationMatch=0", "upload_id=1"])
def test_only_objects_are_uploaded(path: str, query: str) -> None:
    """No other path takes an upload."""
    assert judge(RECOMMENDED, "POST", f"{path}?{query}", b"x") == UNKNOWN


@pytest.mark.parametrize("query", ["uploadType=resumable", "upload_id=1&uploadType=media"])
def test_on_the_plain_path_it_is_a_plain_insert(query: str) -> None:
    """Without /upload there is no session to start: the object is made at once."""
    judgement = judge(RECOMMENDED, "POST", f"/storage/v1/b/x/o?{query}", b"{}")
    assert (judgement.operation, judgement.repeatable, judgement.session) == (INSERT, False, False)
    assert judge(RECOMMENDED, "POST", f"/storage/v1/b/x/o?{query}&ifGenerationMatch=0", b"{}").repeatable


@BOTH
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (b"x", {"content-range": "bytes 0-0/1"}, CHUNK),
        (b"x", {"content-range": "bytes 0-0/*"}, CHUNK),
        (b"x", {}, CHUNK),
        (b"", {}, CHUNK),
        (None, {}, CHUNK),
        (None, {"content-range": "bytes 0-9/10"}, CHUNK),
        (b"x", {"content-range": "bytes */10"}, CHUNK),
        (None, {"content-range": "bytes */10"}, CHUNK),
        (None, {"content-range": "bytes */10", "content-length": "5"}, CHUNK),
        (b"x", {"content-range": "bytes */10", "content-length": "0"}, CHUNK),
        (b"", {"content-range": "bytes 0-9/10"}, CHUNK),
        (b"", {"content-range": "*/10"}, CHUNK),
        (b"", {"content-range": ""}, CHUNK),
        (b"", {"content-range": "bytes */10"}, QUERY),
        (b"", {"content-range": "bytes */*"}, QUERY),
        (b"", {"content-range": " Bytes */*"}, QUERY),
        (None, {"content-range": "bytes */10", "content-length": "0"}, QUERY),
    ],
)
def test_within_a_session(
    service: CloudStorage, path: str, method: str, body: bytes | None, headers: dict[str, str], expected: Judgement
) -> None:
    """Data is never sent again blindly; asking how much has arrived is a read."""
    assert (
        judge(service, method, f"{path}?uploadType=resumable&upload_id=ABC&ifGenerationMatch=0", body, headers)
        == expected
    )


@BOTH
def test_cancelling_a_session(service: CloudStorage) -> None:
    """A session is gone after the first time and after the second."""
    judgement = judge(service, "DELETE", f"{PATHS[0]}?uploadType=resumable&upload_id=ABC")
    assert judgement == CANCEL
    assert service.verdict(judgement, 499, {}) is None
    assert service.verdict(judgement, 204, {}) is None
    assert service.verdict(judgement, 404, {}) is PERMANENT
    assert service.verdict(judgement, 410, {}) is PERMANENT
    assert service.verdict(judgement, 500, {}) is TRANSIENT
    assert service.verdict(judgement, 429, {}) == Verdict(Kind.TRANSIENT, throttled=True)


@BOTH
@pytest.mark.parametrize("judgement", [CHUNK, QUERY, UNKNOWN, CANCEL.replace(session=False)])
def test_499_is_a_success_only_for_a_cancelled_session(service: CloudStorage, judgement: Judgement) -> None:
    """Anywhere else it is an error."""
    assert service.verdict(judgement, 499, {}) is PERMANENT


def test_reads_on_an_upload_path_stay_reads() -> None:
    """A GET asks for no change, even where it makes no sense."""
    judgement = judge(RECOMMENDED, "GET", f"{PATHS[0]}?upload_id=1")
    assert (judgement.operation, judgement.repeatable, judgement.mutation) == (None, True, False)


THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)


@pytest.mark.parametrize(
    ("judgement", "recommended", "documented"),
    [(CHUNK, THROTTLED, PERMANENT), (QUERY, THROTTLED, THROTTLED), (UNKNOWN, THROTTLED, THROTTLED)],
)
def test_429_on_a_chunk(judgement: Judgement, recommended: Verdict, documented: Verdict) -> None:
    """The page excepts exactly the requests that send data in a session."""
    assert RECOMMENDED.verdict(judgement, 429, {"x": "y"}) == recommended
    assert DOCUMENTED.verdict(judgement, 429, {"x": "y"}) == documented


@BOTH
def test_other_failures_of_a_chunk_are_transient(service: CloudStorage) -> None:
    """A 503 on a chunk means: wait, ask, and go on."""
    assert service.verdict(CHUNK, 503, {}) == THROTTLED
    assert service.verdict(CHUNK, 408, {}) is TRANSIENT
    assert service.verdict(CHUNK, 308, {}) is None
    assert service.verdict(CHUNK, 404, {}) is PERMANENT

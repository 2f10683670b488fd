"""The XML API by hand: what is not known, what is in doubt, and what two spellings of one thing mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.service import Judgement, why_not
from forbear.core.verdict import Safety
from forbear.http.request import Request
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED, CloudStorage

HOST = "storage.googleapis.com"
BUCKET = "my-bucket.storage.googleapis.com"
READ = Judgement("cloud_storage", None, Safety.ALWAYS, repeatable=True, mutation=False)
UNKNOWN = Judgement("cloud_storage", None, Safety.NEVER)
GUARD = {"x-goog-if-generation-match": "0"}
COPY = {"x-goog-copy-source": "/b/a"}


def judge(
    line: str, headers: dict[str, str] | None = None, *, host: str = HOST, service: CloudStorage = RECOMMENDED
) -> Judgement:
    """The judgement on a request with the given request line."""
    method, _, target = line.partition(" ")
    return service.classify(Request(method, host, target, headers))


@pytest.mark.parametrize(
    "target",
    [
        "/my-bucket/a?unheardOf",
        "/my-bucket/a?torrent",
        "/my-bucket/a?versionId=7",
        "/my-bucket/a?acl&tagging",
        "/my-bucket/a?compose&uploads",
        "/my-bucket/a?ACL",
        "/my-bucket/a?acl;x=1",
        "/my-bucket/a?uploadId=1&uploadId=2",
        "/my-bucket/a?generation=1&generation=2",
        "/my-bucket/a?partNumber=1",
        "/my-bucket/a?upload_id=1&upload_id=2",
        "/my-bucket/a?upload_id=",
        "/my-bucket/./a",
        "/my-bucket/a/../b",
        "/my-bucket/a/%2E%2e/b",
        "/my-bucket/..",
        "/my-bucket/a#b",
        "/my-bucket/a?generation=1#",
        "/My-Bucket/a",
        "/google.storage.v2.Storage/DeleteObject",
        "/b%75cket/a",
        "/ab/a",
        "/-ab/a",
        "//a",
        "a",
        "",
        "/?Action=DeleteBucket",
        "/?acl",
        "/storage/v2/b/x",
        "/upload/x",
        "/download",
        "/resumable/x",
    ],
)
def test_in_doubt_nothing_is_repeated(target: str) -> None:
    """A parameter or a path that is not known may mean something that is not known; a read stays a read."""
    for method in ("PUT", "DELETE", "POST", "PATCH"):
        assert judge(f"{method} {target}", GUARD).replace(unknown=None) == UNKNOWN
    assert judge(f"GET {target}", GUARD).repeatable


@pytest.mark.parametrize(
    ("line", "host", "operation"),
    [
        ("PUT /my-bucket", HOST, "xml.bucket.put"),
        ("PUT /my-bucket/", HOST, "xml.bucket.put"),
        ("PUT /", BUCKET, "xml.bucket.put"),
        ("PUT /my-bucket//a", HOST, "xml.object.put"),
        ("PUT /my-bucket", BUCKET, "xml.object.put"),
        ("PUT /storage/v1/b/x", BUCKET, "xml.object.put"),
        ("PUT /batch", BUCKET, "xml.object.put"),
        ("DELETE /storage/v1/b", "storage-upload.googleapis.com", "xml.object.delete"),
        ("GET /", HOST, "xml.service.get"),
        ("GET /", BUCKET, "xml.bucket.get"),
        ("GET /my-bucket?prefix=a&delimiter=%2F&max-keys=5", HOST, "xml.bucket.get"),
        ("POST /?Action=DeleteAccessKey&AccessKeyId=GOOG1", HOST, "xml.service.post.DeleteAccessKey"),
        ("POST /?AccessKeyId=GOOG1&Act%69on=Delete%41ccessKey", HOST, "xml.service.post.DeleteAccessKey"),
        ("PUT /my-bucket/a?uploadId=1&%70artNumber=2", HOST, "xml.object.put.part"),
        ("PUT /my-bucket/a?ac%6C", HOST, "xml.object.put.acl"),
        ("PUT /my-bucket/a?acl=", HOST, "xml.object.put.acl"),
        ("PUT /my-bucket/a?&&acl&", HOST, "xml.object.put.acl"),
        ("PUT /my-bucket/a?X-Goog-Algorithm=x&X-Goog-SignedHeaders=host", HOST, "xml.object.put"),
        ("PUT /my-bucket/a?x-id=PutObject", HOST, "xml.object.put"),
        ("PUT /my-bucket/a?GoogleAccessId=x&Expires=1&Signature=y", HOST, "xml.object.put"),
        ("DELETE /my-bucket/a", "www.googleapis.com", None),
        ("PUT /my-bucket/a", "localhost:9000", "xml.object.put"),
    ],
)
def test_what_a_path_names(line: str, host: str, operation: str | None) -> None:
    """The host says whether the first segment is a bucket; other hosts are taken at the user's word."""
    assert judge(line, host=host).operation == operation


@pytest.mark.parametrize(
    ("line", "headers", "operation"),
    [
        ("PUT /my-bucket/a", COPY, "xml.object.put.copy"),
        ("PUT /my-bucket/a", {"x-amz-copy-source": "/b/a"}, "xml.object.put.copy"),
        ("PUT /my-bucket/a", COPY | {"x-goog-metadata-directive": "COPY"}, "xml.object.put.copy"),
        ("PUT /my-bucket/a", COPY | {"x-amz-metadata-directive": "Replace"}, "xml.object.put.metadata"),
        ("PUT /my-bucket/a", {"x-goog-metadata-directive": "REPLACE"}, "xml.object.put"),
        ("PUT /my-bucket/a?partNumber=1&uploadId=2", {"x-amz-copy-source": "/b/a"}, "xml.object.put.part.copy"),
        ("PUT /my-bucket/a?acl", {"x-goog-copy-source": "/b/a"}, None),
        ("PUT /my-bucket/a?compose", {"x-goog-copy-source": "/b/a"}, None),
        ("PUT /my-bucket/a", {"x-goog-resumable": "start"}, None),
        ("POST /my-bucket/a", {"x-goog-resumable": " START "}, "xml.object.post.resumable"),
        ("POST /my-bucket/a", {"x-goog-resumable": "query"}, None),
        ("POST /my-bucket/a", {}, None),
        ("POST /my-bucket/a?uploads", {"x-goog-resumable": "start"}, None),
        ("POST /my-bucket", {"content-type": " Multipart/Form-Data; boundary=x"}, "xml.bucket.post.form"),
        ("POST /my-bucket", {"content-type": "application/xml"}, None),
        ("POST /my-bucket", {}, None),
    ],
)  # fmt: skip
def test_headers_of_a_write_decide_its_operation(line: str, headers: dict[str, str], operation: str | None) -> None:
    """A header makes a write a copy or the start of a session; headers that do not go together make it unknown."""
    judgement = judge(line, headers | GUARD)
    assert judgement.operation == operation
    assert operation is not None or judgement == UNKNOWN


def test_the_guard_of_a_copy_is_on_its_destination() -> None:
    """Conditions on the source can hold again after the first copy."""
    copy = {"x-goog-copy-source": "/b/a"}
    assert not judge("PUT /my-bucket/a", copy | {"x-goog-copy-source-if-generation-match": "7"}).repeatable
    assert judge("PUT /my-bucket/a", copy | GUARD).repeatable


@pytest.mark.parametrize("header", ["x-http-method-override", "x-http-method", "x-method-override"])
def test_method_overrides_are_not_trusted(header: str) -> None:
    """The XML API documents none; one that names the method itself changes nothing."""
    assert judge("PUT /my-bucket/a", GUARD | {header: "GET"}) == UNKNOWN
    assert judge("GET /my-bucket/a", {header: "DELETE"}) == UNKNOWN
    assert judge("PUT /my-bucket/a", GUARD | {header: "put"}).repeatable


def test_the_start_of_a_session() -> None:
    """It commits nothing, so we always repeat it; the page wants the condition of the upload."""
    start = {"x-goog-resumable": "start"}
    assert judge("POST /my-bucket/a", start).repeatable
    assert judge("POST /my-bucket/a", start).maybe_done == ()
    assert not judge("POST /my-bucket/a", start, service=DOCUMENTED).repeatable
    assert judge("POST /my-bucket/a", start | GUARD, service=DOCUMENTED).repeatable


def test_a_session_speaks_for_itself() -> None:
    """A chunk is never sent again blindly, and 499 is how a cancelled session looks."""
    target = "/my-bucket/a?upload_id=ABg5"
    chunk = judge(f"PUT {target}", {"content-range": "bytes 0-9/10"})
    assert (chunk.session, chunk.repeatable, chunk.safety) == (True, False, Safety.NEVER)
    cancel = judge(f"DELETE {target}")
    assert RECOMMENDED.verdict(cancel, 499, {}) is None
    assert judge("PUT /my-bucket?upload_id=ABg5") == UNKNOWN


METHODS = st.sampled_from(["GET", "HEAD", "PUT", "DELETE", "POST", "PATCH", "OPTIONS", "put", ""])
PATHS = st.sampled_from(["/", "/my-bucket", "/my-bucket/a", "/..", "//"]) | st.text(max_size=12).map("/".__add__)
NAMES = [
    "acl",
    "uploads",
    "uploadId",
    "partNumber",
    "upload_id",
    "compose",
    "generation",
    "Action",
    "%61cl",
    "cors",
    "x",
]
PAIRS = st.lists(
    st.sampled_from(NAMES) | st.tuples(st.sampled_from(NAMES), st.text(max_size=4)).map("=".join), max_size=4
)
HEADERS = st.dictionaries(
    st.sampled_from(
        ["x-goog-if-generation-match", "x-goog-copy-source", "x-goog-resumable", "content-type", "content-range"]
    ),
    st.sampled_from(["0", "start", "multipart/form-data", "bytes */*", ""]) | st.text(max_size=6),
)


@given(METHODS, PATHS, PAIRS, HEADERS, st.none() | st.binary(max_size=30), st.sampled_from([HOST, BUCKET, "localhost"]))
def test_no_request_raises_and_no_unknown_mutation_is_repeatable(
    method: str, path: str, pairs: list[str], headers: dict[str, str], body: bytes | None, host: str
) -> None:
    """Whatever is sent is judged, and only what is known, or a plain read, may be repeated."""
    target = f"{path}?{'&'.join(pairs)}"
    for service in (RECOMMENDED, DOCUMENTED, CloudStorage(disputed=True)):
        judgement = service.classify(Request(method, host, target, headers, body))
        if judgement.operation is None:
            assert judgement.repeatable is (not judgement.mutation)
        assert not judgement.repeatable or judgement.safety is Safety.ALWAYS or judgement.met is not None


@pytest.mark.parametrize("body", [b"Action=CreateAccessKey&UserName=u", b"x", None])
def test_an_action_in_the_query_counts_only_without_a_body(body: bytes | None) -> None:
    """A form in the body may name another action, and nobody says which of the two counts."""
    target = "/?Action=DeleteAccessKey&AccessKeyId=GOOG1"
    assert RECOMMENDED.classify(Request("POST", HOST, target, body=b"")).repeatable
    assert RECOMMENDED.classify(Request("POST", HOST, target, body=body)) == UNKNOWN
    assert RECOMMENDED.classify(Request("GET", HOST, "/?Action=ListAccessKeys", body=body)).repeatable


@pytest.mark.parametrize(
    ("host", "target", "reason"),
    [
        ("storage.googleapis.com", "/My_Bucket/o", "'My_Bucket' is no valid name of a bucket"),
        ("storage.googleapis.com", "/ab/o", "'ab' is no valid name of a bucket"),
        ("storage.googleapis.com", "/-ab-?acl", "'-ab-' is no valid name of a bucket"),
        ("storage.googleapis.com", "/a%20b/o", "the first part of the path is no valid name of a bucket"),
        ("localhost:4443", "/" + "a" * 300, "the first part of the path is no valid name of a bucket"),
        ("storage.googleapis.com", "/bucket/o?unknown", None),
        ("storage.googleapis.com", "/", None),
        ("storage.googleapis.com", "/storage/v1/b/My_Bucket/x", None),
        ("My_Bucket.storage.googleapis.com", "/o?unknown", None),
    ],
)
def test_an_invalid_name_of_a_bucket_is_the_reason(host: str, target: str, reason: str | None) -> None:
    """The judgement on a write that is unknown for it says so, as does `forbear explain`; a read is a read."""
    write, read = (RECOMMENDED.classify(Request(method, host, target)) for method in ("PUT", "GET"))
    assert (write.operation, write.repeatable, write.unknown) == (None, False, reason)
    assert read.unknown is None
    if reason is not None:
        assert why_not(write, "the request").endswith(f"must not be executed twice ({reason})")

"""Cloud Storage by hand: the cases that matter most, one line each, and what responses mean."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.service import Judgement
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Safety, Verdict
from forbear.http.request import Request
from forbear.services import cloud_storage
from forbear.services.cloud_storage.service import DOCUMENTED, RECOMMENDED, CloudStorage

HOST = "storage.googleapis.com"
READ = Judgement("cloud_storage", None, Safety.ALWAYS, repeatable=True, mutation=False)
UNKNOWN = Judgement("cloud_storage", None, Safety.NEVER)
DISPUTED = CloudStorage(disputed=True)


def judge(
    line: str,
    service: CloudStorage = RECOMMENDED,
    headers: dict[str, str] | None = None,
    *,
    host: str = HOST,
    body: bytes | None = b"",
) -> Judgement:
    """The judgement on a request with the given request line."""
    method, _, target = line.partition(" ")
    return service.classify(Request(method, host, target, headers, body))


IF_MATCH = {"if-match": '"CAE="'}


@pytest.mark.parametrize(
    ("line", "operation", "repeatable"),
    [
        ("GET /storage/v1/b?project=p", "buckets.list", True),
        ("POST /storage/v1/b?project=p", "buckets.insert", True),
        ("DELETE /storage/v1/b/x", "buckets.delete", True),
        ("PATCH /storage/v1/b/x", "buckets.patch", False),
        ("PATCH /storage/v1/b/x?ifMetagenerationMatch=3", "buckets.patch", True),
        ("PATCH /storage/v1/b/x?ifMetagenerationNotMatch=3", "buckets.patch", False),
        ("POST /storage/v1/b/x/lockRetentionPolicy?ifMetagenerationMatch=1", "buckets.lockRetentionPolicy", True),
        ("POST /storage/v1/b/x/acl", "bucketAccessControls.insert", False),
        ("POST /storage/v1/b/x/notificationConfigs", "notifications.insert", False),
        ("DELETE /storage/v1/b/x/notificationConfigs/1", "notifications.delete", True),
        ("GET /storage/v1/b/x/o?prefix=a", "objects.list", True),
        ("GET /storage/v1/b/x/o/y?alt=media", "objects.get", True),
        ("GET /download/storage/v1/b/x/o/y?alt=media", "objects.get", True),
        ("DELETE /storage/v1/b/x/o/y", "objects.delete", False),
        ("DELETE /storage/v1/b/x/o/y?generation=17", "objects.delete", True),
        ("DELETE /storage/v1/b/x/o/y?generation=0", "objects.delete", False),
        ("DELETE /storage/v1/b/x/o/y?ifGenerationMatch=17", "objects.delete", True),
        ("DELETE /storage/v1/b/x/o/y?ifGenerationNotMatch=17", "objects.delete", False),
        ("DELETE /storage/v1/b/x/o/a%2Fb?ifGenerationMatch=17", "objects.delete", True),
        ("PATCH /storage/v1/b/x/o/y?ifMetagenerationMatch=1", "objects.patch", True),
        ("PATCH /storage/v1/b/x/o/y?ifGenerationMatch=1", "objects.patch", False),
        ("POST /storage/v1/b/x/o?name=y", "objects.insert", False),
        ("POST /storage/v1/b/x/o?name=y&ifGenerationMatch=0", "objects.insert", True),
        ("POST /upload/storage/v1/b/x/o?uploadType=media&name=y", "objects.insert", False),
        ("POST /upload/storage/v1/b/x/o?uploadType=media&name=y&ifGenerationMatch=0", "objects.insert", True),
        ("POST /upload/storage/v1/b/x/o?uploadType=multipart", "objects.insert", False),
        ("POST /upload/storage/v1/b/x/o?uploadType=multipart&ifGenerationMatch=0", "objects.insert", True),
        ("POST /upload/storage/v1/b/x/o?uploadType=multipart&ifMetagenerationMatch=1", "objects.insert", False),
        ("POST /storage/v1/b/x/o/y/compose", "objects.compose", False),
        ("POST /storage/v1/b/x/o/y/compose?ifGenerationMatch=0", "objects.compose", True),
        ("POST /storage/v1/b/x/o/y/copyTo/b/z/o/w?ifSourceGenerationMatch=1", "objects.copy", False),
        ("POST /storage/v1/b/x/o/y/copyTo/b/z/o/w?ifGenerationMatch=0", "objects.copy", True),
        ("POST /storage/v1/b/x/o/y/rewriteTo/b/z/o/w", "objects.rewrite", False),
        ("POST /storage/v1/b/x/o/y/rewriteTo/b/z/o/w?rewriteToken=t", "objects.rewrite", False),
        ("POST /storage/v1/b/x/o/y/rewriteTo/b/z/o/w?rewriteToken=t&ifGenerationMatch=0", "objects.rewrite", True),
        ("POST /storage/v1/b/x/o/y/moveTo/o/w?ifSourceGenerationMatch=1", "objects.move", False),
        ("POST /storage/v1/b/x/o/y/moveTo/o/w?ifGenerationMatch=0", "objects.move", True),
        ("POST /storage/v1/b/x/o/y/restore?generation=17", "objects.restore", False),
        ("POST /storage/v1/b/x/o/bulkRestore", "objects.bulkRestore", False),
        ("POST /storage/v1/projects/p/hmacKeys?serviceAccountEmail=e", "projects.hmacKeys.create", False),
        ("DELETE /storage/v1/projects/p/hmacKeys/k", "projects.hmacKeys.delete", True),
        ("PUT /storage/v1/projects/p/hmacKeys/k", "projects.hmacKeys.update", False),
        ("GET /storage/v1/projects/p/serviceAccount", "projects.serviceAccount.get", True),
    ],
)
def test_requests_are_judged_by_what_they_carry(line: str, operation: str, repeatable: bool) -> None:
    """The operation is found and judged by what the request carries."""
    judgement = judge(line)
    assert judgement.operation == f"storage.{operation}"
    assert judgement.repeatable is repeatable


def test_conditions_are_spelt_as_in_the_request() -> None:
    """The one that is met is one of those that would do."""
    judgement = judge("DELETE /storage/v1/b/x/o/y?generation=17")
    assert judgement.conditions == ("ifGenerationMatch=", "generation=")
    assert judgement.met == "generation="
    assert judge("DELETE /storage/v1/b/x/o/y?generation=17&ifGenerationMatch=17").met == "ifGenerationMatch="
    assert judge("PUT /storage/v1/b/x/iam", body=b'{"etag": "CAE="}').met == "etag in the body"


@pytest.mark.parametrize(
    "path", ["/storage/v1/b/x/iam", "/storage/v1/b/x/o/y/iam", "/storage/v1/projects/p/hmacKeys/k"]
)
def test_an_etag_in_the_body_makes_a_policy_write_repeatable(path: str) -> None:
    """The etag must be there to be seen: a body that is not at hand has none."""
    assert judge(f"PUT {path}", body=b'{"version": 1, "etag": "CAE="}').repeatable
    assert not judge(f"PUT {path}", body=b'{"version": 1, "bindings": []}').repeatable
    assert not judge(f"PUT {path}", body=None).repeatable


@pytest.mark.parametrize(
    ("path", "disputed", "documented"),
    [
        ("PATCH /storage/v1/b/x", True, True),
        ("PUT /storage/v1/b/x", True, True),
        ("PATCH /storage/v1/b/x/o/y", True, True),
        ("PUT /storage/v1/b/x/o/y", True, True),
        ("PUT /storage/v1/b/x/iam", True, True),
        ("PUT /storage/v1/projects/p/hmacKeys/k", True, True),
        ("PUT /storage/v1/b/x/o/y/iam", True, False),
        ("PUT /storage/v1/b/x/managedFolders/f/iam", True, False),
        ("DELETE /storage/v1/b/x/o/y", False, False),
        ("POST /upload/storage/v1/b/x/o?uploadType=media", False, False),
    ],
)
def test_if_match_is_disputed(path: str, disputed: bool, documented: bool) -> None:
    """By default If-Match guards nothing; it does on request, and where the page says so in `documented`."""
    assert not judge(path, RECOMMENDED, IF_MATCH).repeatable
    assert judge(path, DISPUTED, IF_MATCH).repeatable is disputed
    assert judge(path, DOCUMENTED, IF_MATCH).repeatable is documented


@pytest.mark.parametrize(
    "line",
    [
        "POST /storage/v1/b/x/o/y/moveTo/o/w?ifGenerationMatch=0",
        "POST /storage/v1/b/x/folders",
        "POST /storage/v1/b/x/restore?generation=17",
        "DELETE /storage/v1/b/x/folders/f?ifMetagenerationMatch=1",
        "POST /storage/v1/b/x/operations/o/cancel",
    ],
)
def test_documented_never_repeats_what_the_page_does_not_name(line: str) -> None:
    """Our own judgements are no part of the letter."""
    assert judge(line).repeatable
    judgement = judge(line, DOCUMENTED)
    assert judgement.operation is not None
    assert judgement.safety is Safety.NEVER


@pytest.mark.parametrize(
    "target",
    [
        "/storage/v1/b/x/o/a/b?ifGenerationMatch=1",
        "/storage/v1/b/x/o/",
        "/storage/v1/b/x/o//y?ifGenerationMatch=1",
        "//storage/v1/b/x",
        "/storage/v1//b/x",
        "/storage/v1/b/x/",
        "/storage/v1/b/x/o/..",
        "/storage/v1/b/..",
        "/storage/v1/b/%2e%2E",
        "/storage/v1/b/x#/o/y",
        "/storage/v1/b/x/o/y#?generation=17",
        "/storage/v1/b/x/o/y?generation=17#",
        "/storage/v1/b/x/o/y?x=1#&ifGenerationMatch=0&generation=17&ifMetagenerationMatch=1",
        "/storage/v2/b/x",
        "/storage/v1",
        "/Storage/v1/b/x",
        "/upload/storage/v1/b/x",
        "/download/storage/v1/b/x/o/",
        "http://storage.googleapis.com/storage/v1/b/x",
        "storage/v1/b/x",
        "//",
        "",
        "*",
    ],
)
def test_unknown_operations_are_reads_or_never_repeated(target: str) -> None:
    """A known API with an unknown call: not even PUT and DELETE are trusted."""
    for method in ("GET", "HEAD", "PUT", "DELETE", "POST", "PATCH", "get", "delete", ""):
        found = judge(f"{method} {target}").replace(unknown=None)
        assert found == (READ if method in ("GET", "HEAD") else UNKNOWN), method


@pytest.mark.parametrize(
    "host", ["bucket.storage.googleapis.com", "storage-upload.googleapis.com", "storage.cloud.google.com"]
)
@pytest.mark.parametrize(
    "path", ["/storage/v1/b/x", "/upload/storage/v1/b/x/o?uploadType=resumable", "/batch/storage/v1"]
)
def test_a_path_is_an_object_where_the_host_speaks_xml_only(host: str, path: str) -> None:
    """DELETE of an object called storage/v1/b/x is no DELETE of a bucket."""
    for method in ("DELETE", "POST", "PUT"):
        judgement = judge(f"{method} {path}", host=host)
        assert judgement.operation in (None, f"xml.object.{method.lower()}")
        assert not judgement.repeatable
        assert judge(f"{method} {path}", headers={"x-http-method-override": "GET"}, host=host) == UNKNOWN
    assert judge(f"GET {path}", host=host).repeatable


@pytest.mark.parametrize("host", ["www.googleapis.com", "localhost:4443", "127.0.0.1:9000", "storage.internal", ""])
def test_other_hosts_are_taken_at_the_users_word(host: str) -> None:
    """Whoever sets this service for an emulator or a proxy says that it speaks this API."""
    assert judge("DELETE /storage/v1/b/x", host=host).operation == "storage.buckets.delete"


@pytest.mark.parametrize("path", ["/batch", "/batch/storage/v1", "/batch/storage/v1/x"])
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_batches_are_refused(method: str, path: str) -> None:
    """The calls in a batch can be judged and repeated only one by one."""
    judgement = judge(f"{method} {path}")
    assert (judgement.operation, judgement.safety, judgement.repeatable) == (None, Safety.NEVER, False)
    assert judgement.refused == (
        "a batch holds many calls that cannot be judged or repeated one by one; send each of them alone"
    )


def test_an_object_in_a_bucket_called_batch_is_no_batch() -> None:
    """Other paths under /batch are nobody's: the JSON API may take them for its own."""
    assert judge("GET /batch/cat.png") == READ
    assert judge("PUT /batch/cat.png") == UNKNOWN
    assert judge("PUT /batches/cat.png").operation == "xml.object.put"


@pytest.mark.parametrize(
    ("line", "headers", "operation"),
    [
        ("POST /storage/v1/b/x/o/y", {"x-http-method-override": "PATCH"}, "storage.objects.patch"),
        ("POST /storage/v1/b/x/o", {"x-http-method-override": "GET"}, "storage.objects.list"),
        ("POST /storage/v1/b/x/o", {"x-http-method-override": "post"}, "storage.objects.insert"),
        ("GET /storage/v1/b/x", {"x-http-method-override": "get", "x-http-method": "GET"}, "storage.buckets.get"),
        ("GET /storage/v1/b/x", {"x-http-method-override": "DELETE"}, None),
        ("GET /storage/v1/b/x", {"x-http-method-override": "HEAD"}, None),
        ("GET /storage/v1/b/x", {"x-http-method-override": ""}, None),
        ("DELETE /storage/v1/b/x", {"x-http-method-override": "GET"}, None),
        ("POST /storage/v1/b/x", {"x-http-method": "DELETE"}, None),
        ("POST /storage/v1/b/x", {"x-method-override": "GET"}, None),
        ("POST /storage/v1/b/x", {"x-http-method-override": "GET", "x-http-method": "GET"}, None),
        ("POST /storage/v1/b/x/unknown", {"x-http-method-override": "GET"}, None),
        ("POST /bucket/object?delete", {"x-http-method-override": "GET"}, None),
        ("POST /upload/storage/v1/b/x/o?uploadType=media", {"x-http-method-override": "GET"}, None),
        ("POST /upload/storage/v1/b/x/o?upload_id=1", {"x-http-method-override": "DELETE"}, None),
        ("POST /download/storage/v1/b/x/o/y", {"x-http-method-override": "GET"}, None),
        ("POST /batch/storage/v1", {"x-http-method-override": "GET"}, None),
    ],
)
def test_method_overrides(line: str, headers: dict[str, str], operation: str | None) -> None:
    """The one documented header counts on a POST to a plain path; anything else is never repeated."""
    judgement = judge(line, headers=headers)
    assert judgement.operation == operation
    assert operation is not None or judgement == UNKNOWN


@pytest.mark.parametrize(
    ("status", "recommended", "documented"),
    [
        (200, None, None),
        (304, None, None),
        (308, None, None),
        (400, PERMANENT, PERMANENT),
        (401, PERMANENT, PERMANENT),
        (404, PERMANENT, PERMANENT),
        (409, PERMANENT, PERMANENT),
        (412, PERMANENT, PERMANENT),
        (499, PERMANENT, PERMANENT),
        (408, TRANSIENT, TRANSIENT),
        (429, Verdict(Kind.TRANSIENT, throttled=True), Verdict(Kind.TRANSIENT, throttled=True)),
        (500, TRANSIENT, TRANSIENT),
        (501, PERMANENT, TRANSIENT),
        (502, TRANSIENT, TRANSIENT),
        (503, Verdict(Kind.TRANSIENT, throttled=True), Verdict(Kind.TRANSIENT, throttled=True)),
        (504, TRANSIENT, TRANSIENT),
        (505, PERMANENT, TRANSIENT),
        (508, PERMANENT, TRANSIENT),
        (599, PERMANENT, TRANSIENT),
        (600, PERMANENT, PERMANENT),
    ],
)
def test_statuses_have_their_verdict(status: int, recommended: Verdict | None, documented: Verdict | None) -> None:
    """The page retries every 5xx, we those that a repeat can cure."""
    judgement = judge("GET /storage/v1/b/x")
    assert RECOMMENDED.verdict(judgement, status, {}) == recommended
    assert DISPUTED.verdict(judgement, status, {}) == recommended
    assert DOCUMENTED.verdict(judgement, status, {}) == documented


def test_services_can_be_compared_and_pickled() -> None:
    """Services with the same settings are equal, in any process."""
    assert pickle.loads(pickle.dumps(DISPUTED)) == DISPUTED != RECOMMENDED
    assert CloudStorage() == RECOMMENDED != DOCUMENTED == CloudStorage(documented=True)
    assert RECOMMENDED.name == "cloud_storage"
    assert RECOMMENDED.token_header == "x-goog-gcs-idempotency-token"
    assert cloud_storage.CloudStorage is CloudStorage


def test_disputed_conditions_are_no_part_of_the_page() -> None:
    """The letter leaves nothing to choose."""
    with pytest.raises(ValueError, match="`disputed` must be False with `documented`"):
        CloudStorage(disputed=True, documented=True)


def test_a_name_that_is_not_there() -> None:
    """The lazy names of the package do not hide mistakes."""
    with pytest.raises(AttributeError, match="has no attribute 'polciy'"):
        cloud_storage.polciy  # type: ignore[attr-defined]  # noqa: B018


METHODS = st.sampled_from(["GET", "HEAD", "PUT", "DELETE", "POST", "PATCH", "OPTIONS", "get", ""]) | st.text(max_size=8)
SEGMENTS = st.sampled_from(
    [
        "storage", "v1", "b", "o", "upload", "resumable", "download", "batch", "acl", "iam", "copyTo", "rewriteTo",
        "folders", "projects", "p", "hmacKeys", "%2F", "..", "", "compose",
    ]
) | st.text(max_size=5)  # fmt: skip
QUERIES = st.lists(
    st.sampled_from(
        [
            "ifGenerationMatch=1", "ifMetagenerationMatch=2", "generation=3", "uploadType=media",
            "uploadType=resumable",
            "uploadType=x", "upload_id=1", "upload_id=", "alt=media", "%", "&", "=",
        ]
    )
    | st.text(max_size=10)
)  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from(["if-match", "content-range", "content-length", "x-http-method-override"]),
    st.sampled_from(["*", '"x"', "bytes */5", "0", "GET", "PATCH", ""]) | st.text(max_size=8),
)
HOSTS = st.sampled_from([HOST, "b.storage.googleapis.com", "localhost"])
SERVICES = st.sampled_from([RECOMMENDED, DISPUTED, DOCUMENTED])
PREFIXES = st.sampled_from(["", "/", "/storage/v1/b", "/upload/storage/v1/b", "/storage/v1/b/x/o"])


@given(
    METHODS, PREFIXES, st.lists(SEGMENTS, max_size=7), QUERIES, HEADERS, st.none() | st.binary(max_size=20),
    HOSTS, SERVICES,
)  # fmt: skip
def test_no_request_raises_and_no_unknown_mutation_is_repeatable(
    method: str, prefix: str, segments: list[str], query: list[str], headers: dict[str, str], body: bytes | None,
    host: str, service: CloudStorage,
) -> None:  # fmt: skip
    """Whatever is sent is judged, and only what is known, or a plain read, may be repeated."""
    target = "/".join([prefix, *segments]) + ("?" + "&".join(query) if query else "")
    judgement = service.classify(Request(method, host, target, headers, body))
    if judgement.operation is None:
        assert judgement.repeatable is (not judgement.mutation)
        assert judgement.mutation or method in {"GET", "HEAD", "OPTIONS", "TRACE"}
    if judgement.repeatable:
        assert judgement.refused is None
        assert judgement.safety is Safety.ALWAYS or judgement.met is not None
        assert judgement.safety is not Safety.NEVER

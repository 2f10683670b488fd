"""Whatever arrives, the response is well-formed and in the form of its API, and the state stays consistent."""

import json
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forbear_cloud import Cloud
from forbear_testkit.cloud.sockets import talk

STARTS = st.sampled_from([
    "", "/storage/v1/b/bkt", "/storage/v1/b/bkt/o/o", "/upload/storage/v1/b/bkt/o", "/v1/projects/p",
    "/v1/projects/p/serviceAccounts", "/v1/projects/p/serviceAccounts/worker@p.iam.gserviceaccount.com",
    "/v1/projects/p/roles/role", "/v1/projects/p/locations/l/instances", "/v1/projects/p/locations/l/clusters/c",
    "/bkt", "/bkt/o", "/bkt/new", "/storage/v1/b/bkt/folders", "/storage/v1/b/bkt/managedFolders", "/batch/storage/v1",
])  # fmt: skip
SEGMENTS = st.sampled_from([
    "storage", "v1", "b", "bkt", "o", "%00", "..", "acl", "iam", "compose", "%ff", "ü", "projects", "keys", "i",
    "operations", "folders", "managedFolders", "restore", "storageLayout", "deleteRecursive",
    "renameTo", "bkt%2F",
])  # fmt: skip
VERBS = st.sampled_from(["", "", "", ":getIamPolicy", ":setIamPolicy", ":undelete", ":upload", ":failover", ":", ":x"])
QUERIES = st.dictionaries(
    st.sampled_from([
        "uploadType", "name", "upload_id", "project", "generation", "pageToken", "alt", "versions", "ifGenerationMatch",
        "uploads", "uploadId", "partNumber", "compose", "prefix", "delimiter", "marker", "max-keys", "list-type",
        "continuation-token", "instanceId", "clusterId", "requestId", "updateMask", "pageSize", "etag", "acl",
        "softDeleted", "matchGlob", "includeTrailingDelimiter", "includeFoldersAsPrefixes", "recursive",
        "allowNonEmpty",
    ]),
    st.sampled_from([
        "", "media", "resumable", "multipart", "p", "0", "-1", "1", "2", "x", "\x00", "\ud7ff", "upload-1", "true",
        "multipart-1", "title", "labels", "/", "{*,b}**[a-]", "false",
    ]),
    max_size=4,
)  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from([
        "Range", "If-Match", "If-Range", "If-Modified-Since", "Content-Range", "Content-Type", "Content-MD5",
        "Accept-Encoding", "x-goog-hash", "x-goog-resumable", "x-goog-copy-source", "x-goog-acl", "x-goog-meta-a",
        "x-goog-if-generation-match", "x-goog-metadata-directive", "x-goog-copy-source-range",
        "x-goog-encryption-key", "x-goog-encryption-algorithm", "x-goog-copy-source-encryption-algorithm",
    ]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
    | st.sampled_from(["start", "/bkt/o", "0", "REPLACE", "bytes=0-0", "bytes */*", "bytes 0-0/1", "public-read"]),
    max_size=3,
)  # fmt: skip
NAMES = [
    "name", "acl", "metadata", "etag", "bindings", "state", "sourceObjects", "topic", "policy", "role", "roleId",
    "accountId", "serviceAccount", "memorySizeGb", "shardCount", "labels", "includedPermissions", "members", "tier",
    "retentionPolicy", "retentionPeriod", "softDeletePolicy", "retentionDurationSeconds", "hierarchicalNamespace",
    "enabled", "retention", "mode", "retainUntilTime", "temporaryHold", "eventBasedHold", "versioning", "generation",
]  # fmt: skip
TAGS = st.sampled_from([
    "ComposeRequest", "Component", "Name", "Generation", "CompleteMultipartUpload", "Part", "PartNumber", "ETag",
    "CreateBucketConfiguration", "LocationConstraint", "a:Part",
])  # fmt: skip


def element(tag: str, parts: list[str]) -> str:
    """Return an element with these contents."""
    return f"<{tag}>{''.join(parts)}</{tag}>"


DOCUMENTS = st.recursive(
    st.sampled_from(["", "o", "1", "&amp;", "&x;", "<!DOCTYPE x>", "x<"]),
    lambda inner: st.builds(element, TAGS, st.lists(inner, max_size=3)),
    max_leaves=6,
)
BODIES = st.one_of(
    st.binary(max_size=40),
    DOCUMENTS.map(str.encode),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
        max_leaves=6,
    ).map(lambda value: json.dumps(value).encode()),
)


@pytest.fixture(scope="module")
def battered() -> Iterator[Cloud]:
    """One cloud for all examples."""
    with Cloud() as cloud:
        yield cloud


@pytest.fixture(scope="module")
def http(battered: Cloud) -> Iterator[httpx.Client]:
    """A client of that cloud."""
    with httpx.Client(base_url=battered.url, verify=False) as client:
        yield client


@settings(max_examples=max(200, settings().max_examples))
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]),
    start=STARTS,
    segments=st.lists(SEGMENTS, max_size=3),
    verb=VERBS,
    query=QUERIES,
    headers=HEADERS,
    body=BODIES,
    host=st.sampled_from([None, None, None, "bkt.storage.googleapis.com", "x.localhost"]),
)
def test_no_request_makes_it_fail(
    battered: Cloud,
    http: httpx.Client,
    method: str,
    start: str,
    segments: list[str],
    verb: str,
    query: dict[str, str],
    headers: dict[str, str],
    body: bytes,
    host: str | None,
) -> None:
    """An error has the form of its API, and is never an internal one."""
    if "bkt" not in battered.store.buckets:
        tree = {"hierarchicalNamespace": {"enabled": len(battered.requests) % 2 == 0}}
        battered.store.create_bucket("bkt", fields=tree)
        battered.store.put("bkt", "o", b"x")
        battered.store.put("bkt", "o/i", b"x")
    if host is not None:
        headers = {**headers, "Host": host}
    path = "/".join([start, *segments]) + verb
    response = http.request(method, path or "/", params=query, headers=headers, content=body)
    assert response.status_code < 500 or response.status_code == 501
    if response.status_code < 400 or method == "HEAD":
        return
    if response.headers["content-type"].startswith("application/xml"):
        root = ET.fromstring(response.content)
        assert (root.tag, [child.tag for child in root]) == ("Error", ["Code", "Message"])
    else:
        assert response.json()["error"]["code"] == response.status_code


@settings(max_examples=max(80, settings().max_examples))
@given(
    st.lists(
        st.binary(max_size=30)
        | st.sampled_from(
            [
                b"GET ",
                b"POST ",
                b"/storage/v1/b",
                b" HTTP/1.1",
                b"\r\n",
                b"\r\n\r\n",
                b"Host: localhost\r\n",
                b"Content-Length: 5\r\n",
            ]
        ),
        max_size=12,
    ).map(b"".join)
)
def test_no_bytes_make_it_fail(battered: Cloud, data: bytes) -> None:
    """Whatever bytes arrive, responses are well-formed, the connection ends, and the next client is served."""
    answer = talk(battered, data)
    assert not answer or answer.startswith(b"HTTP/1.1 ")
    assert b"Traceback" not in answer
    assert talk(battered, b"GET /_cloud/health HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 200 ")

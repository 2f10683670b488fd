"""The proof of each operation by what is read, and all that comes close to one; the table names it for each."""

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import md5
from typing import Any

import pytest

from forbear.core.verdict import Safety
from forbear.http.request import Request
from forbear.services.cloud_storage.json_api import operations
from forbear.services.cloud_storage.service import RECOMMENDED
from forbear.services.cloud_storage.settling import Finding, Reading, proofs, settle, targets
from forbear_testkit.rows import for_each

DONE, NOT_DONE, UNKNOWN = Finding
HOST = "storage.googleapis.com"
BUCKET, OBJECT = "/storage/v1/b/bkt", "/storage/v1/b/bkt/o/a%2Fb"
UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=a%2Fb&ifGenerationMatch=0"
COPY = "/storage/v1/b/src/o/old/copyTo/b/bkt/o/new?ifGenerationMatch=0"
REWRITE = "/storage/v1/b/src/o/old/rewriteTo/b/bkt/o/new?ifGenerationMatch=0"
GONE = Reading(404)


def sent(method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Request:
    """A request whose body is bytes, or JSON."""
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request(method, HOST, target, headers or {}, content)


def found(**fields: Any) -> Reading:
    """A read that answers 200 with a resource."""
    return Reading(200, fields)


def content_of(data: bytes, **fields: Any) -> dict[str, Any]:
    """The fields of an object with this content."""
    digest = b64encode(md5(data, usedforsecurity=False).digest()).decode()
    return {"size": str(len(data)), "md5Hash": digest, "crc32c": "AAAAAA==", **fields}


def listed(*names: str) -> Reading:
    """A page of buckets."""
    return found(items=[{"name": name, "location": "EU", "labels": {"team": "a"}} for name in names])


def multipart(data: bytes, **metadata: Any) -> tuple[str, dict[str, Any], dict[str, str]]:
    """The target, body and headers of an upload with metadata."""
    head = b"--x\r\ncontent-type: application/json\r\n\r\n" + json.dumps(metadata).encode()
    body = head + b"\r\n--x\r\nContent-Type: text/plain\r\n\r\n" + data + b"\r\n--x--"
    target = "/upload/storage/v1/b/bkt/o?uploadType=multipart&ifGenerationMatch=0"
    return target, body, {"content-type": 'multipart/related; boundary="x"'}  # type: ignore[return-value]


ACL = [{"entity": "allUsers", "role": "READER"}]
OWNER = {"entity": "project-owners-1", "role": "OWNER"}
POLICY = {"etag": "a", "bindings": [{"role": "r", "members": ["b", "a"]}]}
READER = {"entity": "allUsers", "role": "READER", "id": "x", "etag": "y"}
SAME = content_of(b"x", contentType="text/plain")

# A request, the responses to its reads, and what they prove.
CASES: dict[str, tuple[Request, tuple[Reading, ...], Finding]] = {
    "nothing is live": (sent("DELETE", f"{OBJECT}?ifGenerationMatch=5"), (GONE,), DONE),
    "R2: somebody wrote a newer one": (
        sent("DELETE", f"{OBJECT}?ifGenerationMatch=5"), (found(generation="6"),), NOT_DONE,
    ),
    "R2: a newer one is live, though the generation is gone": (
        sent("DELETE", f"{OBJECT}?generation=5"), (GONE, found(generation="6")), NOT_DONE,
    ),
    "the generation that a DELETE names is noncurrent": (
        sent("DELETE", f"{OBJECT}?generation=5&ifMetagenerationMatch=1"), (found(generation="5"), GONE), NOT_DONE,
    ),
    "the generation and the name are gone": (sent("DELETE", f"{OBJECT}?generation=5"), (GONE, GONE), DONE),
    "a read that is refused": (sent("DELETE", f"{OBJECT}?ifGenerationMatch=5"), (Reading(403),), UNKNOWN),
    "no bucket": (sent("DELETE", BUCKET), (GONE,), DONE),
    "a bucket": (sent("DELETE", BUCKET), (found(name="bkt"),), NOT_DONE),
    "a notification": (sent("DELETE", f"{BUCKET}/notificationConfigs/1"), (GONE,), DONE),
    "a deleted HMAC key stays": (
        sent("DELETE", "/storage/v1/projects/p/hmacKeys/k"), (found(state="DELETED"),), DONE,
    ),
    "an HMAC key": (sent("DELETE", "/storage/v1/projects/p/hmacKeys/k"), (found(state="INACTIVE"),), NOT_DONE),
    "a bucket of the project with somebody's labels": (
        sent("POST", "/storage/v1/b?project=p", {"name": "bkt", "location": "eu"}), (listed("bkt"),), NOT_DONE,
    ),
    "a bucket of the project, as it was sent": (
        sent("POST", "/storage/v1/b?project=p", {"name": "bkt", "location": "eu", "labels": {"team": "a"}}),
        (listed("bkt"),),
        DONE,
    ),
    "R3: the bucket is not in the project": (
        sent("POST", "/storage/v1/b?project=p", {"name": "bkt"}), (listed("bkt-2"),), NOT_DONE,
    ),
    "no list of buckets": (sent("POST", "/storage/v1/b?project=p", {"name": "bkt"}), (Reading(403),), UNKNOWN),
    "the generation of a restored bucket": (
        sent("POST", f"{BUCKET}/restore?generation=5"), (found(generation="5"),), DONE,
    ),
    "another bucket than the restored one": (
        sent("POST", f"{BUCKET}/restore?generation=5"), (found(generation="6"),), NOT_DONE,
    ),
    "a locked policy": (
        sent("POST", f"{BUCKET}/lockRetentionPolicy?ifMetagenerationMatch=1"),
        (found(retentionPolicy={"isLocked": True}),),
        DONE,
    ),
    "an open policy": (
        sent("POST", f"{BUCKET}/lockRetentionPolicy?ifMetagenerationMatch=1"), (found(retentionPolicy={}),), NOT_DONE,
    ),
    "a patch": (
        sent("PATCH", f"{BUCKET}?ifMetagenerationMatch=1", {"labels": {"a": "b", "c": None}}),
        (found(labels={"a": "b", "more": "d"}, metageneration="9"),),
        DONE,
    ),
    "R1: a patch that only counts": (
        sent("PATCH", f"{BUCKET}?ifMetagenerationMatch=1", {"metageneration": "1"}), (), UNKNOWN,
    ),
    "a label that was to go": (
        sent("PATCH", f"{BUCKET}?ifMetagenerationMatch=1", {"labels": {"a": None}}),
        (found(labels={"a": "b"}),),
        NOT_DONE,
    ),
    "an update that left more": (
        sent("PUT", f"{BUCKET}?ifMetagenerationMatch=1", {"labels": {"a": "b"}}),
        (found(labels={"a": "b", "more": "d"}),),
        NOT_DONE,
    ),
    "an update that cleared less": (
        sent("PUT", f"{BUCKET}?ifMetagenerationMatch=1", {"labels": {"a": "b"}}),
        (found(labels={"a": "b"}, website={"mainPageSuffix": "x"}),),
        NOT_DONE,
    ),
    "an update": (
        sent("PUT", f"{OBJECT}?ifMetagenerationMatch=1", {"metageneration": "1", "cacheControl": "no-store"}),
        (found(metageneration="2", cacheControl="no-store", storageClass="STANDARD"),),
        DONE,
    ),
    "numbers, times and empty values in another form": (
        sent(
            "PATCH",
            f"{OBJECT}?ifMetagenerationMatch=1",
            {"customTime": "2026-01-02T03:04:05Z", "retention": {"n": 60}, "temporaryHold": False, "cacheControl": ""},
        ),
        (found(customTime="2026-01-02T03:04:05.000Z", retention={"n": "60"}),),
        DONE,
    ),
    "an access list": (
        sent("PATCH", f"{OBJECT}?ifMetagenerationMatch=1", {"acl": ACL}),
        (found(acl=[READER, OWNER], owner={"entity": "project-owners-1"}),),
        DONE,
    ),
    "an access list with somebody else": (
        sent("PATCH", f"{OBJECT}?ifMetagenerationMatch=1", {"acl": ACL}), (found(acl=[READER, OWNER]),), NOT_DONE,
    ),
    "an access list that the server expands": (
        sent("PATCH", f"{OBJECT}?ifMetagenerationMatch=1&predefinedAcl=private", {"acl": []}), (), UNKNOWN,
    ),
    "a parameter that nobody knows": (
        sent("PATCH", f"{OBJECT}?ifMetagenerationMatch=1&unheardOf=1", {"acl": []}), (), UNKNOWN,
    ),
    "bindings in any order": (
        sent("PUT", f"{BUCKET}/iam", POLICY),
        (found(etag="b", bindings=[{"role": "r", "members": ["a", "b"]}]),),
        DONE,
    ),
    "other bindings": (sent("PUT", f"{BUCKET}/iam", POLICY), (found(etag="b"),), NOT_DONE),
    "an upload": (sent("POST", UPLOAD, b"x", {"content-type": "text/plain"}), (Reading(200, SAME),), DONE),
    "an upload of another content": (
        sent("POST", UPLOAD, b"y", {"content-type": "text/plain"}), (Reading(200, SAME),), NOT_DONE,
    ),
    "an upload of another type": (
        sent("POST", UPLOAD, b"x", {"content-type": "text/html"}), (Reading(200, SAME),), NOT_DONE,
    ),
    "an upload without the metadata of the object": (
        sent("POST", UPLOAD, b"x", {"content-type": "text/plain"}), (found(**SAME, metadata={"a": "b"}),), NOT_DONE,
    ),
    "an upload that another key encrypts": (
        sent("POST", UPLOAD, b"x", {"x-goog-encryption-key-sha256": "k"}), (Reading(200, SAME),), NOT_DONE,
    ),
    "an upload without its key": (
        sent("POST", UPLOAD, b"x"), (found(**SAME, customerEncryption={"keySha256": "k"}),), NOT_DONE,
    ),
    "a key of the service, in its version": (
        sent("POST", f"{UPLOAD}&kmsKeyName=k", b"x"), (found(**SAME, kmsKeyName="k/cryptoKeyVersions/1"),), DONE,
    ),
    "a stream, which is not known": (Request("POST", HOST, UPLOAD, {}, None), (), UNKNOWN),
    "no object": (sent("POST", UPLOAD, b"x"), (GONE,), NOT_DONE),
    "a copy": (sent("POST", COPY), (Reading(200, SAME), Reading(200, SAME)), DONE),
    "a copy of another content": (
        sent("POST", COPY), (Reading(200, content_of(b"xy")), Reading(200, SAME)), NOT_DONE,
    ),
    "a copy with other metadata": (
        sent("POST", COPY), (found(**SAME, metadata={"a": "b"}), Reading(200, SAME)), NOT_DONE,
    ),
    "a copy whose source is gone": (sent("POST", COPY), (GONE, Reading(200, SAME)), UNKNOWN),
    "a copy whose hash is not shown": (sent("POST", COPY), (found(size="1"), found(size="1")), NOT_DONE),
    "a copy with settings of its own": (
        sent("POST", REWRITE, {"storageClass": "NEARLINE"}),
        (Reading(200, SAME), found(**{**SAME, "contentType": "x"}, storageClass="NEARLINE")),
        DONE,
    ),
    "a copy onto itself": (
        sent("POST", REWRITE.replace("/src/o/old", "/bkt/o/new"), {"storageClass": "NEARLINE"}), (), UNKNOWN,
    ),
    "a restored object": (
        sent("POST", f"{OBJECT}/restore?generation=5&ifGenerationMatch=0"),
        (Reading(200, SAME), Reading(200, SAME)),
        DONE,
    ),
    "what a compose was made of": (sent("POST", f"{OBJECT}/compose?ifGenerationMatch=0", {}), (), UNKNOWN),
    "what a move has moved": (sent("POST", f"{OBJECT}/moveTo/o/new?ifGenerationMatch=0"), (), UNKNOWN),
    "a managed folder": (sent("POST", f"{BUCKET}/managedFolders", {"name": "f/"}), (found(name="f/"),), DONE),
    "R4: a secret": (sent("POST", "/storage/v1/projects/p/hmacKeys?serviceAccountEmail=a"), (), UNKNOWN),
    "an id of the server": (sent("POST", f"{BUCKET}/notificationConfigs", {"topic": "t"}), (), UNKNOWN),
}  # fmt: skip


def settled(request: Request, read: tuple[Reading, ...], mine: Any = None) -> Finding:
    """The answer to a request and the responses to its reads, of which there are as many as it needs."""
    operation = RECOMMENDED.classify(request).operation
    assert operation is not None
    if mine is None or read:
        assert len(targets(operation, request, mine)) == len(read)
    return settle(operation, request, read, mine).finding


@for_each(CASES, "{0}")
def test_what_is_read_proves(name: str) -> None:
    """Each kind of proof, and what comes close to it."""
    request, read, finding = CASES[name]
    assert settled(request, read) is finding


def test_each_read_has_its_place() -> None:
    """The reads go to the live resource, a copy's to its source first, with what any request of the caller has."""
    query = "&userProject=u&key=k&fields=name&projection=noAcl"
    expected: list[tuple[Request, list[str]]] = [
        (sent("POST", UPLOAD + query, b"x"), [f"{OBJECT}?userProject=u&key=k&projection=noAcl"]),
        (
            sent("PATCH", f"{OBJECT}?generation=5&projection=noAcl", {"acl": ACL}),
            [f"{OBJECT}?projection=full&generation=5"],
        ),
        (
            sent("POST", f"{COPY}&sourceGeneration=7"),
            ["/storage/v1/b/src/o/old?generation=7", "/storage/v1/b/bkt/o/new"],
        ),
        (sent("POST", f"{OBJECT}/restore?generation=5"), [f"{OBJECT}?generation=5&softDeleted=true", OBJECT]),
        (sent("DELETE", f"{OBJECT}?generation=5"), [f"{OBJECT}?generation=5", OBJECT]),
        (
            sent("POST", "/storage/v1/b?project=p", {"name": "bkt"}),
            ["/storage/v1/b?project=p&prefix=bkt&maxResults=1"],
        ),
        (sent("PUT", f"{BUCKET}/iam", POLICY), [f"{BUCKET}/iam?optionsRequestedPolicyVersion=3"]),
        (sent("POST", f"{BUCKET}/folders", {"name": "a/b/"}), [f"{BUCKET}/folders/a%2Fb%2F"]),
    ]
    for request, places in expected:
        assert list(targets(RECOMMENDED.classify(request).operation or "", request)) == places


MARKED: dict[str, Request] = {
    "an upload": sent("POST", *multipart(b"x", name="a/b", metadata={"by": "1"})),
    "a compose": sent("POST", f"{OBJECT}/compose?ifGenerationMatch=0", {"destination": {"metadata": {"by": "1"}}}),
    "a rewrite": sent("POST", REWRITE, {"metadata": {"by": "1"}}),
    "a copy onto itself": sent("POST", REWRITE.replace("/src/o/old", "/bkt/o/new"), {"metadata": {"by": "1"}}),
    "a patch": sent("PATCH", f"{OBJECT}?ifMetagenerationMatch=1&predefinedAcl=private", {"metadata": {"by": "1"}}),
}


def is_mine(sent: Mapping[str, Any], read: Mapping[str, Any]) -> bool:
    """The recipe: the mark that was sent is there."""
    mark = sent.get("metadata", {}).get("by")
    return mark is not None and read.get("metadata", {}).get("by") == mark


@for_each(MARKED, "{0}")
def test_a_mark_decides(name: str) -> None:
    """With a function the state does not count: only one's own mark does (R1), which one read shows."""
    request = MARKED[name]
    assert settled(request, (found(metadata={"by": "1"}, size="99"),), is_mine) is DONE
    assert settled(request, (found(**content_of(b"x"), metadata={"by": "2"}),), is_mine) is NOT_DONE
    assert settled(request, (GONE,), is_mine) is NOT_DONE
    assert settled(request, (Reading(500),), is_mine) is UNKNOWN


def test_a_mark_cannot_prove_that_something_is_gone() -> None:
    """Nobody can tell whose DELETE it was."""
    assert settled(sent("DELETE", OBJECT), (), is_mine) is UNKNOWN


def _forget(sent: Mapping[str, Any], read: Mapping[str, Any]) -> None:
    """A function that has no answer."""


def test_a_function_must_answer_yes_or_no() -> None:
    """A value such as None is a mistake of the function."""
    with pytest.raises(TypeError, match="`settle` must return True or False, got None"):
        settled(sent("PATCH", OBJECT, {}), (found(),), _forget)


def test_an_upload_with_metadata_is_read_as_its_parts() -> None:
    """The metadata, the type of the media and the media of a multipart upload count."""
    target, body, headers = multipart(b"--x\r\n\r\ny", name="a/b", crc32c="AAAAAA==", metadata={"a": "b"})
    same = content_of(b"--x\r\n\r\ny", contentType="text/plain", metadata={"a": "b"})
    assert settled(sent("POST", target, body, headers), (Reading(200, same),)) is DONE
    assert settled(sent("POST", target, body, headers), (found(**{**same, "crc32c": "BBBBBB=="}),)) is NOT_DONE
    for broken in (b"", b"--x", b"--x\r\n\r\n{}\r\n--x", b"--x\r\n\r\n[]\r\n--x\r\n\r\ny\r\n--x--"):
        assert settled(sent("POST", target, broken, headers), ()) is UNKNOWN


def test_a_response_is_the_resource_as_it_was_read() -> None:
    """A DELETE has no body; a rewrite says that it is done; a new bucket is the entry of the list."""
    rewrite = settle("storage.objects.rewrite", sent("POST", REWRITE), (Reading(200, SAME), Reading(200, SAME)))
    assert json.loads(rewrite.body) == {
        "kind": "storage#rewriteResponse", "totalBytesRewritten": "1", "objectSize": "1", "done": True,
        "resource": SAME,
    }  # fmt: skip
    gone = settle("storage.buckets.delete", sent("DELETE", BUCKET), (GONE,))
    assert (gone.status, gone.body) == (204, b"")
    made = settle(
        "storage.buckets.insert",
        sent("POST", "/storage/v1/b?project=p", {"name": "b"}),
        (found(items=[{"name": "b"}]),),
    )
    assert (made.status, json.loads(made.body)) == (200, {"name": "b"})


def test_the_table_says_how_each_operation_is_proven() -> None:
    """Only known proofs stand there, all of them for operations that may find their own work done."""
    known = {"absence", "fields", "content", "copy", "listing", "policy", "lock", "generation", "author"}
    for row in operations():
        assert row.columns["settled_by"] in {"", *known}
        if row.columns["settled_by"]:
            assert row.maybe_done, row.id
    repeated = [row for row in operations() if row.maybe_done and row.rule.safety is not Safety.NEVER]
    assert {row.id for row in repeated if not proofs()[row.id]} == {
        "storage.buckets.operations.cancel", "storage.folders.deleteRecursive", "storage.managedFolders.update",
    }  # fmt: skip

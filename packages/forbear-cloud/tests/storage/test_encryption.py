"""Encryption keys: in both APIs, an object can only be read with its customer-supplied key; KMS keys have names."""

import base64
import hashlib
from collections.abc import Callable

import httpx
import pytest

from forbear_cloud import Cloud

OBJECT = "/storage/v1/b/bkt/o/o"
UPLOAD = "/upload/storage/v1/b/bkt/o"


def key(letter: bytes, prefix: str = "x-goog-encryption-") -> dict[str, str]:
    """Return the headers with a key."""
    raw = letter * 32
    return {
        f"{prefix}algorithm": "AES256",
        f"{prefix}key": base64.b64encode(raw).decode(),
        f"{prefix}key-sha256": base64.b64encode(hashlib.sha256(raw).digest()).decode(),
    }


A, B = key(b"a"), key(b"b")
SOURCE_A = key(b"a", "x-goog-copy-source-encryption-")
KMS = "projects/p/locations/us/keyRings/r/cryptoKeys/k"


def reason(response: httpx.Response) -> tuple[int, str]:
    """Return the status and the reason of an error."""
    return response.status_code, response.json()["error"]["errors"][0]["reason"]


def by_media(http: httpx.Client) -> httpx.Response:
    """Write in one request of the JSON API."""
    return http.post(f"{UPLOAD}?uploadType=media&name=o", content=b"secret", headers=A)


def by_session(http: httpx.Client) -> httpx.Response:
    """Write in a resumable session."""
    uri = http.post(f"{UPLOAD}?uploadType=resumable&name=o", headers=A).headers["location"]
    assert reason(http.put(uri, content=b"secret", headers=B)) == (400, "customerEncryptionKeyIsIncorrect")
    return http.put(uri, content=b"secret", headers=A)


def by_xml(http: httpx.Client) -> httpx.Response:
    """Write by the XML API."""
    return http.put("/bkt/o", content=b"secret", headers=A)


def by_parts(http: httpx.Client) -> httpx.Response:
    """Write in a multipart upload."""
    upload = http.post("/bkt/o?uploads", headers=A).text.partition("<UploadId>")[2].partition("<")[0]
    for wrong in ({}, B):
        assert http.put(f"/bkt/o?uploadId={upload}&partNumber=1", content=b"x", headers=wrong).status_code == 400
    etag = http.put(f"/bkt/o?uploadId={upload}&partNumber=1", content=b"secret", headers=A).headers["etag"]
    part = f"<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>"
    body = f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>"
    return http.post(f"/bkt/o?uploadId={upload}", content=body)


@pytest.mark.parametrize("write", [by_media, by_session, by_xml, by_parts])
def test_only_the_key_opens(http: httpx.Client, write: Callable[[httpx.Client], httpx.Response]) -> None:
    """Without the object's key or with another one, neither bytes nor hashes can be read."""
    assert write(http).status_code == 200
    for path in (f"{OBJECT}?alt=media", f"/download{OBJECT}"):
        assert reason(http.get(path)) == (400, "resourceIsEncryptedWithCustomerEncryptionKey")
        assert reason(http.get(path, headers=B)) == (400, "customerEncryptionKeyIsIncorrect")
        got = http.get(path, headers=A)
        assert got.content == b"secret"
        assert got.headers["x-goog-encryption-key-sha256"] == A["x-goog-encryption-key-sha256"]
    assert [http.get("/bkt/o", headers=each).status_code for each in ({}, B, A)] == [400, 400, 200]
    digest = A["x-goog-encryption-key-sha256"]
    assert reason(http.get(OBJECT, headers=B)) == (400, "customerEncryptionKeyIsIncorrect")
    for headers, shown in (({}, False), (A, True)):
        resource = http.get(OBJECT, headers=headers).json()
        assert resource["customerEncryption"] == {"encryptionAlgorithm": "AES256", "keySha256": digest}
        assert ("crc32c" in resource) is shown
    for headers in ({}, A):
        listed = http.get("/storage/v1/b/bkt/o", headers=headers).json()["items"][0]
        assert ("crc32c" in listed, listed["customerEncryption"]["keySha256"]) == (False, digest)


def test_copies_need_the_key(cloud: Cloud, http: httpx.Client) -> None:
    """A copy needs the source's key, and can be written with another key or without one."""
    by_media(http)
    rewrite = f"{OBJECT}/rewriteTo/b/bkt/o/"
    assert http.post(rewrite + "c").status_code == 400
    assert http.post(rewrite + "c", headers=key(b"b", "x-goog-copy-source-encryption-")).status_code == 400
    assert http.post(f"{OBJECT}/copyTo/b/bkt/o/c", headers=A).status_code == 400
    assert cloud.effects.count() == 1
    assert http.post(rewrite + "plain", headers=SOURCE_A).status_code == 200
    assert http.post(rewrite + "other", headers={**SOURCE_A, **B}).status_code == 200
    assert http.get("/bkt/plain").content == b"secret"
    assert http.get("/bkt/other", headers=B).content == b"secret"
    copy = {"x-goog-copy-source": "/bkt/o"}
    assert http.put("/bkt/x", headers=copy).status_code == 400
    assert http.put("/bkt/x", headers={**copy, **SOURCE_A}).status_code == 200
    assert http.post(f"{OBJECT}/moveTo/o/moved").status_code == 200
    assert [http.get("/bkt/moved", headers=each).status_code for each in ({}, A)] == [400, 200]


def test_compositions_need_the_key(http: httpx.Client) -> None:
    """All components need the key that the composite object gets."""
    by_media(http)
    http.put("/bkt/plain", content=b"x")
    for name, headers, status in (("o", A, 200), ("o", {}, 400), ("o", B, 400), ("plain", A, 400)):
        body = {"sourceObjects": [{"name": name}]}
        response = http.post("/storage/v1/b/bkt/o/c/compose", json=body, headers=headers)
        assert (name, response.status_code) == (name, status)
    component = "<ComposeRequest><Component><Name>o</Name></Component></ComposeRequest>"
    assert [http.put("/bkt/c?compose", content=component, headers=each).status_code for each in (A, B)] == [200, 400]
    assert http.get("/bkt/c", headers=A).content == b"secret"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"algorithm": "AES128"}, "customerEncryptionAlgorithmIsInvalid"),
        ({"algorithm": ""}, "customerEncryptionAlgorithmIsInvalid"),
        ({"key": "short"}, "customerEncryptionKeyFormatIsInvalid"),
        ({"key": "YQ=="}, "customerEncryptionKeyFormatIsInvalid"),
        ({"key-sha256": "YQ=="}, "customerEncryptionKeySha256IsInvalid"),
    ],
)
def test_bad_keys(cloud: Cloud, http: httpx.Client, change: dict[str, str], word: str) -> None:
    """An incomplete key is refused before anything is written."""
    headers = {**A, **{f"x-goog-encryption-{name}": value for name, value in change.items()}}
    for query in ("media", "resumable"):
        response = http.post(f"{UPLOAD}?uploadType={query}&name=o", content=b"", headers=headers)
        assert reason(response) == (400, word)
    assert cloud.effects.count() == 0


def test_a_key_for_nothing(http: httpx.Client) -> None:
    """Reading an object that has no key fails if the request has one."""
    http.put("/bkt/o", content=b"x")
    for query in ("?alt=media", ""):
        refused = reason(http.get(f"{OBJECT}{query}", headers=A))
        assert refused == (400, "resourceNotEncryptedWithCustomerEncryptionKey")


def test_each_round_of_a_rewrite_needs_the_keys(http: httpx.Client) -> None:
    """A token continues only the rewrite with the same keys for source and copy."""
    http.post(f"{UPLOAD}?uploadType=media&name=o", content=bytes(3 << 20), headers=A)
    rewrite = f"{OBJECT}/rewriteTo/b/bkt/o/c?maxBytesRewrittenPerCall={1 << 20}"
    assert reason(http.post(rewrite)) == (400, "resourceIsEncryptedWithCustomerEncryptionKey")
    token = http.post(rewrite, headers={**SOURCE_A, **B}).json()["rewriteToken"]
    for wrong in ({}, B, SOURCE_A, {**SOURCE_A, **A}):
        assert http.post(f"{rewrite}&rewriteToken={token}", headers=wrong).status_code == 400
    while "resource" not in (values := http.post(f"{rewrite}&rewriteToken={token}", headers={**SOURCE_A, **B}).json()):
        token = values["rewriteToken"]
    assert values["resource"]["customerEncryption"]["keySha256"] == B["x-goog-encryption-key-sha256"]


def test_kms_keys(http: httpx.Client) -> None:
    """An object has the KMS key of its request, or the bucket's; anybody reads it, and listings lack its hashes."""
    http.put("/bkt/o", content=b"x")
    rewrite = f"{OBJECT}/rewriteTo/b/bkt/o/copy"
    compose = {"sourceObjects": [{"name": "o"}]}
    writes: list[tuple[str, Callable[[], httpx.Response]]] = [
        ("media", lambda: http.post(f"{UPLOAD}?uploadType=media&name=media&kmsKeyName={KMS}", content=b"x")),
        ("copy", lambda: http.post(f"{rewrite}?destinationKmsKeyName={KMS}")),
        ("composed", lambda: http.post(f"/storage/v1/b/bkt/o/composed/compose?kmsKeyName={KMS}", json=compose)),
        ("xml", lambda: http.put("/bkt/xml", content=b"x", headers={"x-goog-encryption-kms-key-name": KMS})),
    ]
    for name, write in writes:
        assert (name, write().status_code) == (name, 200)
        resource = http.get(f"/storage/v1/b/bkt/o/{name}").json()
        assert (name, resource["kmsKeyName"]) == (name, f"{KMS}/cryptoKeyVersions/1")
        assert "crc32c" in resource
        read = http.get(f"/storage/v1/b/bkt/o/{name}?alt=media")
        assert (read.content, read.headers["x-goog-encryption-kms-key-name"]) == (b"x", resource["kmsKeyName"])
    listed = http.get("/storage/v1/b/bkt/o").json()["items"]
    assert ["crc32c" in each for each in listed] == ["kmsKeyName" not in each for each in listed]
    assert http.patch("/storage/v1/b/bkt", json={"encryption": {"defaultKmsKeyName": KMS}}).status_code == 200
    assert "kmsKeyName" in http.post(f"{UPLOAD}?uploadType=media&name=o", content=b"x").json()
    assert "kmsKeyName" not in by_media(http).json()
    for query, headers in ((KMS, A), ("a key", {})):
        refused = http.post(f"{UPLOAD}?uploadType=media&name=o&kmsKeyName={query}", content=b"x", headers=headers)
        assert reason(refused) == (400, "invalid")

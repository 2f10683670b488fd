"""Customer-supplied encryption keys: in both APIs, an object can only be read with its key."""

import base64
import hashlib
from collections.abc import Callable

import httpx
import pytest

from forbear.testing.cloud import Cloud

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
    for headers, shown in (({}, False), (A, True)):
        resource = http.get(OBJECT, headers=headers).json()
        assert resource["customerEncryption"] == {"encryptionAlgorithm": "AES256", "keySha256": digest}
        assert ("crc32c" in resource) is shown
    assert "crc32c" not in http.get("/storage/v1/b/bkt/o").json()["items"][0]


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
    assert reason(http.get(f"{OBJECT}?alt=media", headers=A)) == (400, "resourceNotEncryptedWithCustomerEncryptionKey")

"""Encryption keys: the bytes of an object written with a customer-supplied key can only be read with that key.

The cloud keeps the hash of a key, and stores the bytes without encryption. Of a Cloud KMS key it keeps the name.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping

from forbear_cloud.http.messages import ApiError, Headers, Json, invalid
from forbear_cloud.storage.model import DEFAULT_KEYS, Bucket, ObjectKeys, StoredObject, get_object

_ALGORITHM = "AES256"
_PREFIX, _SOURCE_PREFIX = "x-goog-encryption-", "x-goog-copy-source-encryption-"
_KMS_KEY = re.compile(r"projects/[^/]+/locations/[\w-]{1,63}/keyRings/[\w-]{1,63}/cryptoKeys/[\w-]{1,63}", re.ASCII)


def keys_for(bucket: Bucket, headers: Mapping[str, str], kms_key: Json = None) -> ObjectKeys:
    """Return the keys that a new object in `bucket` gets: the one in the headers, `kms_key`, or the bucket's default.

    `kms_key` is the name of a Cloud KMS key, None for none. Raise 400 for an incomplete key in the headers, for another
    `kms_key` than a name, and for both at once.
    """
    sha256 = read_key(headers)
    if sha256 is not None and kms_key:
        raise invalid("A request must not have both a customer-supplied encryption key and a Cloud KMS key.")
    if sha256 is not None:
        return ObjectKeys(sha256)
    name = kms_key or get_object(bucket.fields, "encryption").get("defaultKmsKeyName")
    if not name:
        return DEFAULT_KEYS
    if not isinstance(name, str) or not _KMS_KEY.fullmatch(name):
        raise invalid("The name of a Cloud KMS key must be projects/P/locations/L/keyRings/R/cryptoKeys/K.")
    return ObjectKeys(kms_version=f"{name}/cryptoKeyVersions/1")


def read_key(headers: Mapping[str, str], prefix: str = _PREFIX) -> str | None:
    """Return the SHA-256 in base64 of the key in the headers whose names begin with `prefix`; None without a key.

    Raise 400 unless the algorithm is AES256, the key is the base64 of 32 bytes, and the hash of the key is sent and
    right.
    """
    algorithm, key = headers.get(prefix + "algorithm"), headers.get(prefix + "key")
    digest = headers.get(prefix + "key-sha256")
    if algorithm is None and key is None and digest is None:
        return None
    if algorithm != _ALGORITHM:
        raise key_error(
            f"The encryption algorithm must be {_ALGORITHM}: send it as {prefix}algorithm.", "AlgorithmIsInvalid"
        )
    try:
        raw = base64.b64decode(key or "", validate=True)
    except binascii.Error:
        raw = b""
    if len(raw) != 32:
        raise key_error(
            f"The encryption key must be the base64 of 32 bytes: send it as {prefix}key.", "KeyFormatIsInvalid"
        )
    computed = base64.b64encode(hashlib.sha256(raw).digest()).decode()
    if digest != computed:
        raise key_error(
            "The hash of the encryption key is wrong or missing: send the base64 of its SHA-256 as "
            f"{prefix}key-sha256.",
            "KeySha256IsInvalid",
        )
    return computed


def check_key(item: StoredObject, headers: Mapping[str, str], prefix: str = _PREFIX) -> None:
    """Raise 400 unless the headers contain the key of the object, or no key for an object without one.

    `prefix` begins the names of the headers. An incomplete key raises 400 as well.
    """
    key = read_key(headers, prefix)
    if key == item.keys.sha256:
        return
    if key is None:
        raise ApiError(
            400,
            "The target object is encrypted by a customer-supplied encryption key: send it with the request.",
            "resourceIsEncryptedWithCustomerEncryptionKey",
        )
    if item.keys.sha256 is None:
        raise ApiError(
            400,
            "The target object is not encrypted by a customer-supplied encryption key.",
            "resourceNotEncryptedWithCustomerEncryptionKey",
        )
    raise key_error("The provided encryption key is not the one that the target object was written with.")


def key_error(message: str, reason: str = "KeyIsIncorrect") -> ApiError:
    """Return, not raise, a 400 error about the encryption key in a request.

    Its reason is "customerEncryption" and then `reason`, which by default says that the key is not the right one.
    """
    return ApiError(400, message, f"customerEncryption{reason}")


def check_source_key(item: StoredObject, headers: Mapping[str, str]) -> None:
    """Raise 400 unless the copy-source headers contain the key of `item`, the object to copy.

    If it was written without a key, raise 400 if they contain one. An incomplete key raises 400 as well.
    """
    check_key(item, headers, _SOURCE_PREFIX)


def is_readable(item: StoredObject, headers: Mapping[str, str]) -> bool:
    """Return whether the object has no key, or the headers contain its key; otherwise its hashes are not shown.

    Raise 400 if the object has a key and the key in the headers is incomplete.
    """
    return item.keys.sha256 is None or read_key(headers) == item.keys.sha256


def has_listed_hashes(item: StoredObject) -> bool:
    """Return whether a listing shows the hashes of an object: not for one that has a key of either kind."""
    return item.keys == DEFAULT_KEYS


def encryption_headers(item: StoredObject) -> Headers:
    """Return the response headers with the algorithm and the hash of an object's key; () if it has none.

    For an object with a Cloud KMS key, return the header with its name.
    """
    if item.keys.kms_version is not None:
        return ((_PREFIX + "kms-key-name", item.keys.kms_version),)
    if item.keys.sha256 is None:
        return ()
    return ((_PREFIX + "algorithm", _ALGORITHM), (_PREFIX + "key-sha256", item.keys.sha256))

"""Customer-supplied encryption keys: an object written with a key can only be read with that key.

The cloud keeps the hash of a key, and stores the bytes without encryption.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping

from forbear.testing.cloud.http.messages import ApiError, Headers
from forbear.testing.cloud.storage.model import StoredObject

_ALGORITHM = "AES256"
_PREFIX, _SOURCE_PREFIX = "x-goog-encryption-", "x-goog-copy-source-encryption-"


def read_key(headers: Mapping[str, str], prefix: str = _PREFIX) -> str | None:
    """Return the hash of the key in the headers, or None without a key; raise 400 if the key is not complete."""
    algorithm, key = headers.get(prefix + "algorithm"), headers.get(prefix + "key")
    digest = headers.get(prefix + "key-sha256")
    if algorithm is None and key is None and digest is None:
        return None
    if algorithm != _ALGORITHM:
        text = f"The encryption algorithm must be {_ALGORITHM}: send it as {prefix}algorithm."
        raise ApiError(400, text, "customerEncryptionAlgorithmIsInvalid")
    try:
        raw = base64.b64decode(key or "", validate=True)
    except binascii.Error:
        raw = b""
    if len(raw) != 32:
        text = f"The encryption key must be the base64 of 32 bytes: send it as {prefix}key."
        raise ApiError(400, text, "customerEncryptionKeyFormatIsInvalid")
    computed = base64.b64encode(hashlib.sha256(raw).digest()).decode()
    if digest != computed:
        text = (
            f"The hash of the encryption key is wrong or missing: send the base64 of its SHA-256 as {prefix}key-sha256."
        )
        raise ApiError(400, text, "customerEncryptionKeySha256IsInvalid")
    return computed


def check_key(item: StoredObject, headers: Mapping[str, str], prefix: str = _PREFIX) -> None:
    """Raise 400 unless the headers contain the key of the object, or no key for an object without one."""
    key = read_key(headers, prefix)
    if key == item.key_sha256:
        return
    if key is None:
        text = "The target object is encrypted by a customer-supplied encryption key: send it with the request."
        raise ApiError(400, text, "resourceIsEncryptedWithCustomerEncryptionKey")
    if item.key_sha256 is None:
        text = "The target object is not encrypted by a customer-supplied encryption key."
        raise ApiError(400, text, "resourceNotEncryptedWithCustomerEncryptionKey")
    raise wrong_key("The provided encryption key is not the one that the target object was written with.")


def wrong_key(message: str) -> ApiError:
    """Return a 400 for a key that differs from the one used before."""
    return ApiError(400, message, "customerEncryptionKeyIsIncorrect")


def check_source_key(item: StoredObject, headers: Mapping[str, str]) -> None:
    """Raise 400 unless the headers contain the key of the source of a copy."""
    check_key(item, headers, _SOURCE_PREFIX)


def is_readable(item: StoredObject, headers: Mapping[str, str]) -> bool:
    """Return whether the object has no key, or the headers contain it; otherwise its hashes are not shown."""
    return item.key_sha256 is None or read_key(headers) == item.key_sha256


def encryption_headers(item: StoredObject) -> Headers:
    """Return the response headers that describe the key of a downloaded object."""
    if item.key_sha256 is None:
        return ()
    return ((_PREFIX + "algorithm", _ALGORITHM), (_PREFIX + "key-sha256", item.key_sha256))

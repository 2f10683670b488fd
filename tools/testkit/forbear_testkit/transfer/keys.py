"""Helpers of the tests of encryption keys: two keys, the name of one in Cloud KMS, and objects that have a key."""

import base64
from typing import Any

from forbear.services import cloud_storage
from forbear_cloud import Cloud
from forbear_testkit.transfer.uploads import TARGET
from forbear_transfer import EncryptionKey, Url
from forbear_transfer.encryption import ObjectEncryption

A, B = EncryptionKey(b"a" * 32), EncryptionKey(b"b" * 32)
SECRETS = [base64.b64encode(letter * 32).decode() for letter in (b"a", b"b")]
KMS = "projects/p/locations/us/keyRings/r/cryptoKeys/k"
REWRITE = "storage.objects.rewrite"
IMPATIENT = cloud_storage.policy.with_attempts(1)
COPY = Url("bkt", "copy")


def sha256(cloud: Cloud, name: str = TARGET.name) -> str | None:
    """Return the hash of the key of the live object."""
    return cloud.store.object("bkt", name).keys.sha256


def put(cloud: Cloud, data: bytes, key: EncryptionKey | None = A, name: str = TARGET.name, **fields: Any) -> int:
    """Store an object with a key; return its generation."""
    keys = ObjectEncryption(key=key).identity
    stored = cloud.store.put("bkt", name, data, fields)
    stored.keys = stored.keys._replace(sha256=keys.get("key_sha256"))
    return stored.generation

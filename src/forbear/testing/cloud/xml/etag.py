"""The entity tags of the XML API: the MD5 in hexadecimal digits where there is one; without quotes."""

import base64
import hashlib

from forbear.testing.cloud.model import StoredObject


def etag_of(item: StoredObject) -> str:
    """The tag of an object; one that was made of parts has no MD5, and a tag of another form."""
    return f"-{item.etag}" if item.md5 is None else base64.b64decode(item.md5).hex()


def etag_of_part(data: bytes) -> str:
    """The tag of a part of a multipart upload."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()

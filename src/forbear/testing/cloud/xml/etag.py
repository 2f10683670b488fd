"""The entity tags of the XML API: the MD5 in hexadecimal digits where there is one; without quotes."""

import base64

from forbear.testing.cloud.content import Content
from forbear.testing.cloud.model import StoredObject


def etag_of(item: StoredObject) -> str:
    """The tag of an object; one that was made of parts has no MD5, and a tag of another form."""
    return f"-{item.etag}" if item.md5 is None else _hexadecimal(item.md5)


def etag_of_part(data: Content) -> str:
    """The tag of a part of a multipart upload."""
    return _hexadecimal(data.md5)


def _hexadecimal(md5: str) -> str:
    return base64.b64decode(md5).hex()

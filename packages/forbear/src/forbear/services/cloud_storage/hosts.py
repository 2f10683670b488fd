"""The host names of Cloud Storage, and the APIs that each of them serves. Importing this loads no table."""

import re
from enum import Enum
from functools import lru_cache

from forbear.tables import google_apis

_ENDPOINT = (
    r"(?P<bucket>.+\.)?"
    r"(?:storage|storage\.mtls|content-storage|storage\.[^.]+\.rep|storage-[^.]+\.p)\.googleapis\.com"
)
_XML_ONLY = (
    r"(?P<bucket>.+\.)?(?:storage-upload|storage-download|commondatastorage)\.googleapis\.com"
    r"|storage\.cloud\.google\.com"
)
_SHARED = frozenset({"www.googleapis.com", "www.mtls.googleapis.com"})
_STORAGE_PATHS = tuple(f"{prefix}/storage/" for prefix in ("", "/upload", "/resumable/upload", "/download", "/batch"))


class HostKind(Enum):
    """The kinds of Cloud Storage's hosts, by the APIs that each serves."""

    JSON = "the JSON API, and the XML API on all other paths"
    XML = "the XML API only: the path names a bucket and an object, whatever it looks like"
    BUCKET = "the XML API of the bucket in the host name: the path names an object, whatever it looks like"
    SHARED = "many APIs, ours only on its own paths"


@lru_cache(maxsize=256)
def kind_of(host: str) -> HostKind | None:
    """Return the kind of `host`, None for a host that is not Cloud Storage's. Its port and the case do not matter."""
    name = google_apis.name_of(host)
    if name in _SHARED:
        return HostKind.SHARED
    match = re.fullmatch(_ENDPOINT, name)
    kind = HostKind.JSON
    if match is None:
        match, kind = re.fullmatch(_XML_ONLY, name), HostKind.XML
    if match is None:
        return None
    return HostKind.BUCKET if match["bucket"] else kind


def serves(host: str, path: str) -> bool:
    """Return whether a request goes to Cloud Storage; the path matters only on hosts that many APIs share."""
    spoken = kind_of(host)
    return spoken is not None and (spoken is not HostKind.SHARED or path.startswith(_STORAGE_PATHS))

"""The hosts of Cloud Storage and what they speak. It knows no operation and loads no table."""

import re
from enum import Enum
from functools import lru_cache

_ENDPOINT = re.compile(
    r"(?P<bucket>.+\.)?"
    r"(?:storage|storage\.mtls|content-storage|storage\.[^.]+\.rep|storage-[^.]+\.p)\.googleapis\.com"
)
_XML_ONLY = re.compile(
    r"(?:.+\.)?(?:storage-upload|storage-download|commondatastorage)\.googleapis\.com|storage\.cloud\.google\.com"
)
_SHARED = frozenset({"www.googleapis.com", "www.mtls.googleapis.com"})
_STORAGE_PATHS = tuple(f"{prefix}/storage/" for prefix in ("", "/upload", "/resumable/upload", "/download", "/batch"))


class Speech(Enum):
    """What a host of Cloud Storage speaks."""

    JSON = "the JSON API, and the XML API on all other paths"
    XML = "the XML API only: the path names an object, whatever it looks like"
    SHARED = "many APIs, ours only on its own paths"


@lru_cache(maxsize=256)
def speech(host: str) -> Speech | None:
    """What `host` (with or without a port) speaks, None for hosts that are not known."""
    name = host.lower().partition(":")[0].rstrip(".")
    endpoint = _ENDPOINT.fullmatch(name)
    if endpoint is not None:
        return Speech.XML if endpoint["bucket"] else Speech.JSON
    if name in _SHARED:
        return Speech.SHARED
    return Speech.XML if _XML_ONLY.fullmatch(name) else None


def serves(host: str, path: str) -> bool:
    """Whether a request for `path` on `host` is one to Cloud Storage."""
    spoken = speech(host)
    return spoken is not None and (spoken is not Speech.SHARED or path.startswith(_STORAGE_PATHS))

"""Find the operation of the XML API that a request means, from its method, path, query and headers."""

from collections.abc import Mapping
from urllib.parse import unquote

from forbear.testing.cloud.api.resumable import is_status_query
from forbear.testing.cloud.http.messages import HttpRequest
from forbear.testing.cloud.xml.headers import goog

_HOSTS = (".storage.googleapis.com", ".localhost")
_JSON = ("/storage/v1/", "/upload/storage/v1/", "/resumable/upload/storage/v1/", "/download/storage/v1/", "/batch/")
_SUBRESOURCES = (
    "acl", "billing", "compose", "cors", "defaultObjectAcl", "delete", "encryption", "encryptionConfig", "legal-hold",
    "lifecycle", "location", "logging", "object-lock", "policy", "publicAccessBlock", "retention", "storageClass",
    "tagging", "uploads", "versioning", "website", "websiteConfig",
)  # fmt: skip


def in_host(request: HttpRequest) -> bool:
    """Return whether the host names a bucket; only the XML API has such hosts."""
    return _host_bucket(request) is not None


def in_path(request: HttpRequest) -> bool:
    """Return whether the path begins with a bucket, not with the prefix of the JSON API."""
    return request.path.startswith("/") and not f"{request.path}/".startswith(_JSON)


def find(request: HttpRequest) -> tuple[str, dict[str, str]]:
    """Return the operation id, which the cloud may not serve, and the names of the bucket and the object."""
    bucket, path = _host_bucket(request), request.path.removeprefix("/")
    if bucket is None:
        bucket, _, path = path.partition("/")
    level = "object" if path else "bucket" if bucket else "service"
    names = {"bucket": _decoded(bucket), "object": _decoded(path)}
    kind = _kind(request, names)
    return f"xml.{level}.{request.method.lower()}{kind and '.' + kind}", names


def source(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the bucket and the object that a request is to copy, or None if it is not a copy."""
    value = goog(headers, "copy-source")
    if value is None:
        return None
    bucket, _, name = value.removeprefix("/").partition("/")
    return _decoded(bucket), _decoded(name)


def _kind(request: HttpRequest, names: Mapping[str, str]) -> str:
    """Return the last part of the operation id, which the query and the headers determine; "" for a plain request."""
    query, copied = request.query, source(request.headers) if request.method == "PUT" else None
    if "upload_id" in query:
        return "session.status" if request.method == "PUT" and is_status_query(request) else "session"
    if "uploadId" in query:
        if request.method != "PUT":
            return "uploadId"
        return "part" if copied is None else "part.copy"
    for name in _SUBRESOURCES:
        if name in query:
            return name
    if request.method == "POST" and goog(request.headers, "resumable") is not None:
        return "resumable"
    if copied is None:
        return ""
    replaces = (goog(request.headers, "metadata-directive") or "").upper() == "REPLACE"
    return "metadata" if replaces and copied == (names["bucket"], names["object"]) else "copy"


def _host_bucket(request: HttpRequest) -> str | None:
    """Return the bucket that the host names, or None."""
    host = request.host.lower().partition(":")[0]
    return next((host.removesuffix(end) for end in _HOSTS if host.endswith(end)), None)


def _decoded(text: str) -> str:
    """Decode a percent-encoded name.

    Invalid UTF-8 becomes lone surrogates, which no stored name contains.
    """
    return unquote(text, errors="surrogateescape")

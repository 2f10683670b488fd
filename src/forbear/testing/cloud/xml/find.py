"""Which operation of the XML API a request is: by its method, what it names, its query and a few headers."""

from collections.abc import Mapping
from urllib.parse import unquote

from forbear.testing.cloud.api.resumable import asks
from forbear.testing.cloud.http.messages import Request
from forbear.testing.cloud.xml.headers import goog

_HOSTS = (".storage.googleapis.com", ".localhost")
_JSON = ("/storage/v1/", "/upload/storage/v1/", "/resumable/upload/storage/v1/", "/download/storage/v1/", "/batch/")
_SUBRESOURCES = (
    "acl", "billing", "compose", "cors", "defaultObjectAcl", "delete", "encryption", "encryptionConfig", "legal-hold",
    "lifecycle", "location", "logging", "object-lock", "policy", "publicAccessBlock", "retention", "storageClass",
    "tagging", "uploads", "versioning", "website", "websiteConfig",
)  # fmt: skip


def in_host(request: Request) -> bool:
    """Whether the host names a bucket, as it does in this API only."""
    return _host_bucket(request) is not None


def in_path(request: Request) -> bool:
    """Whether the path begins with a bucket, and not with the name of another API of Cloud Storage."""
    return request.path.startswith("/") and not f"{request.path}/".startswith(_JSON)


def find(request: Request) -> tuple[str, dict[str, str]]:
    """The operation, served or not, and the bucket and object that are named."""
    bucket, path = _host_bucket(request), request.path.removeprefix("/")
    if bucket is None:
        bucket, _, path = path.partition("/")
    place = "object" if path else "bucket" if bucket else "service"
    names = {"bucket": _decoded(bucket), "object": _decoded(path)}
    kind = _kind(request, names)
    return f"xml.{place}.{request.method.lower()}{kind and '.' + kind}", names


def source(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """The bucket and the object that are to be copied."""
    given = goog(headers, "copy-source")
    if given is None:
        return None
    bucket, _, name = given.removeprefix("/").partition("/")
    return _decoded(bucket), _decoded(name)


def _kind(request: Request, names: Mapping[str, str]) -> str:
    query, copied = request.query, source(request.headers) if request.method == "PUT" else None
    if "upload_id" in query:
        return "session.status" if request.method == "PUT" and asks(request) else "session"
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


def _host_bucket(request: Request) -> str | None:
    host = request.host.lower().partition(":")[0]
    return next((host.removesuffix(end) for end in _HOSTS if host.endswith(end)), None)


def _decoded(text: str) -> str:
    """Undecodable bytes become lone surrogates, which no stored name contains and no new one may."""
    return unquote(text, errors="surrogateescape")

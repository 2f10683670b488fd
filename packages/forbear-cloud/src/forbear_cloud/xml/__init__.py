"""The XML API of Cloud Storage: its handlers by operation, and the operation that a request means."""

from collections.abc import Mapping
from functools import lru_cache

from forbear_cloud.api.resumable import cancel, is_status_query
from forbear_cloud.call import Handlers
from forbear_cloud.http.messages import HttpRequest
from forbear_cloud.operations import XML_CANCEL, XML_GET, XML_PART, XML_PUT, XML_SESSION, XML_STATUS
from forbear_cloud.xml import buckets, multipart, objects
from forbear_cloud.xml.headers import copy_source, decode, goog

XML_HANDLERS: Handlers = {
    "xml.service.get": buckets.list_buckets,
    "xml.bucket.get": buckets.get,
    "xml.bucket.get.uploads": multipart.list_uploads,
    "xml.bucket.head": buckets.head,
    "xml.bucket.put": buckets.put,
    "xml.bucket.delete": buckets.delete,
    XML_GET: objects.get,
    "xml.object.get.uploadId": multipart.list_parts,
    "xml.object.head": objects.get,
    XML_PUT: objects.put,
    "xml.object.put.copy": objects.copy,
    "xml.object.put.metadata": objects.copy,
    "xml.object.put.compose": objects.compose,
    XML_PART: multipart.put_part,
    "xml.object.put.part.copy": multipart.copy_part,
    XML_SESSION: objects.continue_session,
    XML_STATUS: objects.continue_session,
    "xml.object.post.resumable": objects.start_session,
    "xml.object.post.uploads": multipart.start,
    "xml.object.post.uploadId": multipart.complete,
    "xml.object.delete": objects.delete,
    "xml.object.delete.uploadId": multipart.abort,
    XML_CANCEL: cancel,
}

_HOSTS = (".storage.googleapis.com", ".localhost")
_JSON = ("/storage/v1/", "/upload/storage/v1/", "/resumable/upload/storage/v1/", "/download/storage/v1/", "/batch/")
_SUBRESOURCES = (
    "acl", "billing", "compose", "cors", "defaultObjectAcl", "delete", "encryption", "encryptionConfig", "legal-hold",
    "lifecycle", "location", "logging", "object-lock", "policy", "publicAccessBlock", "retention", "storageClass",
    "tagging", "uploads", "versioning", "website", "websiteConfig",
)  # fmt: skip


def is_in_host(request: HttpRequest) -> bool:
    """Return whether the host is BUCKET.storage.googleapis.com or BUCKET.localhost, as in the XML API only."""
    return _host_bucket(request.host) is not None


def is_in_path(request: HttpRequest) -> bool:
    """Return whether the path begins with "/", but with no prefix of the JSON API, such as /storage/v1/."""
    return request.path.startswith("/") and not f"{request.path}/".startswith(_JSON)


def operation_of(request: HttpRequest) -> tuple[str, dict[str, str]]:
    """Return the operation id of a request, such as "xml.object.put.copy", and the names of its "bucket" and "object".

    The cloud may not serve this operation. Names are decoded, and "" if the request has none.
    """
    bucket, path = _host_bucket(request.host), request.path.removeprefix("/")
    if bucket is None:
        bucket, _, path = path.partition("/")
    level = "object" if path else "bucket" if bucket else "service"
    names = {"bucket": decode(bucket), "object": decode(path)}
    kind = _kind(request, names)
    return f"xml.{level}.{request.method.lower()}{kind and '.' + kind}", names


def _kind(request: HttpRequest, names: Mapping[str, str]) -> str:
    """Return the end of the operation id, such as "copy" or "session.status"; "" for a plain request.

    The query, the headers and the method determine it; `names` are those of the path.
    """
    query, copied = request.query, copy_source(request.headers) if request.method == "PUT" else None
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


@lru_cache(256)
def _host_bucket(host: str) -> str | None:
    """Return the bucket that a Host header names, in lower case; None if it names none."""
    host = host.lower().partition(":")[0]
    return next((host.removesuffix(end) for end in _HOSTS if host.endswith(end)), None)

"""The XML API of Cloud Storage: find the operation of a request.

The method, the resource that the path names, the subresources in the query (in any order) and a few headers determine
the operation. An unknown query parameter may be an unknown subresource, so it makes the operation unknown. Known
parameters that only select, order, sign, pay or label do not change it.
"""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from forbear.core.service import Judgement
from forbear.http import preconditions
from forbear.http.request import Request
from forbear.services.cloud_storage.json_api import NAME, SessionRequests, choose
from forbear.tables.operations import HttpOperation, http_operation
from forbear.tables.table import Row, load

_COPY = "x-goog-copy-source"
_REPLACE = "x-goog-metadata-directive: REPLACE"
_START = "x-goog-resumable: start"
_FORM = "content-type: multipart/form-data"
_ODD = "an upload of no known kind"

_SESSION = "upload_id"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_QUOTED = re.compile(r"[\w.-]{1,63}", re.ASCII)
_DOTS = frozenset({".", ".."})

# Parameters that do not change the operation: they select, order, sign, pay or (x-id, of the S3 SDKs) label.
_NEUTRAL = frozenset({
    "generation", "prefix", "delimiter", "marker", "max-keys", "versions", "list-type", "continuation-token",
    "start-after", "encoding-type", "fetch-owner", "generation-marker", "key-marker", "upload-id-marker", "max-uploads",
    "max-parts", "part-number-marker", "response-content-disposition", "response-content-type",
    "userproject", "username", "accesskeyid", "status", "maxitems",
    "googleaccessid", "expires", "signature", "awsaccesskeyid", "x-id",
    *(f"x-{vendor}-{name}" for vendor in ("goog", "amz")
      for name in ("algorithm", "credential", "date", "expires", "signedheaders", "signature", "security-token")),
})  # fmt: skip

Key = tuple[str, str, frozenset[str], str]


@cache
def operations() -> tuple[Row, ...]:
    """Return the rows of the XML API's table.

    `where` of a row has the HTTP method, the resource (service, bucket or object), the subresources in the query,
    joined by "&", and the header that distinguishes the operation. "|" joins alternatives.
    """
    return load(Path(__file__).with_name("xml_api.csv"), ("method", "resource"), ("query", "header"))


class XmlApi:
    """The operations of the XML API, compiled to judge requests. `disputed` and `documented` choose the rules."""

    __slots__ = ("_operations", "_session", "_subresources")

    def __init__(self, disputed: bool, documented: bool) -> None:
        self._operations: dict[Key, HttpOperation] = {}
        for row in operations():
            method, resources, queries, header = row.where
            if queries == _SESSION:
                continue
            operation = http_operation(NAME, row, choose(row, disputed=disputed, documented=documented))
            for resource in resources.split("|"):
                for query in queries.split("|"):
                    self._operations[method, resource, frozenset(filter(None, query.split("&"))), header] = operation
        self._subresources = frozenset(name for key in self._operations for name in key[2])
        self._session = SessionRequests(
            NAME,
            chunk="xml.object.put.session",
            status="xml.object.put.session.status",
            cancel="xml.object.delete.session",
        )

    def judge(self, request: Request, path: str, query: str, *, in_bucket: bool) -> Judgement | None:
        """Return the judgement on a request whose target has this path and query, None for an unknown operation.

        With `in_bucket` the host names the bucket, and the path an object in it or, as "/", the bucket itself.
        """
        resource = _resource(path, in_bucket=in_bucket)
        if resource is None:
            return None
        if resource == "service" and request.method == "POST" and request.body != b"":
            return None  # a form in the body may name another action than the query does
        if resource == "object" and preconditions.values(query, _SESSION):
            return self._session.judge(request, query)
        subresources = self._find_subresources(query) if query else frozenset[str]()
        if subresources is None:
            return None
        operation = self._operations.get((request.method, resource, subresources, _kind(request)))
        return None if operation is None else operation.judge(request, query)

    def _find_subresources(self, query: str) -> frozenset[str] | None:
        """Return the names of the subresources in a query; None if a parameter is unknown or has two values."""
        values: dict[str, str] = {}
        subresources: set[str] = set()
        for pair in query.split("&"):
            name, _, value = pair.partition("=")
            if "%" in pair:
                name, value = unquote(name), unquote(value)
            if values.setdefault(name, value) != value:
                return None
            subresource = f"Action={value}" if name == "Action" else name
            if subresource in self._subresources:
                subresources.add(subresource)
            elif name and name.lower() not in _NEUTRAL:
                return None
        return frozenset(subresources)


def explain_unknown(path: str) -> str | None:
    """Return why no operation has this path, where the host names no bucket: an invalid name; None otherwise."""
    bucket = path[1:].partition("/")[0]
    if path[:1] != "/" or not bucket or _BUCKET.fullmatch(bucket):
        return None
    name = f"{bucket!r}" if _QUOTED.fullmatch(bucket) else "the first part of the path"
    return f"{name} is no valid name of a bucket"


def _resource(path: str, *, in_bucket: bool) -> str | None:
    """Return the kind of resource that a path names; None for a path that servers and proxies may read differently."""
    if path[:1] != "/":
        return None
    bucket, _, name = ("", "", path[1:]) if in_bucket else path[1:].partition("/")
    if not in_bucket:
        if path == "/":
            return "service"
        if not _BUCKET.fullmatch(bucket):
            return None
    if name and not _DOTS.isdisjoint((unquote(name) if "%" in name else name).split("/")):
        return None
    return "object" if name else "bucket"


def _kind(request: Request) -> str:
    """Return the header, as the table spells it, that distinguishes a PUT or POST from others, "" for none."""
    headers, method = request.headers, request.method
    if method == "PUT":
        if "x-goog-resumable" in headers:
            return _ODD
        if _COPY not in headers and "x-amz-copy-source" not in headers:
            return ""
        directives = (headers.get(f"x-{vendor}-metadata-directive", "") for vendor in ("goog", "amz"))
        return _REPLACE if any(directive.strip().upper() == "REPLACE" for directive in directives) else _COPY
    if method == "POST":
        if "x-goog-resumable" in headers:
            return _START if headers["x-goog-resumable"].strip().lower() == "start" else _ODD
        if headers.get("content-type", "").strip().lower().startswith("multipart/form-data"):
            return _FORM
    return ""

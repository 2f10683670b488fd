"""Read what a request of the JSON API sent, and compare it with a resource that was read back."""

from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from hashlib import md5
from json import loads
from typing import Any, cast

from forbear.core.dataclass import dataclass
from forbear.http import preconditions
from forbear.http.request import Request

COPIED = (
    "contentType",
    "contentEncoding",
    "contentDisposition",
    "contentLanguage",
    "cacheControl",
    "metadata",
    "customTime",
)
"""The fields of an object that a copy without a body takes over from its source."""

_SERVERS = frozenset({
    "kind", "id", "selfLink", "mediaLink", "name", "bucket", "etag", "generation", "metageneration", "timeCreated",
    "updated", "timeDeleted", "timeStorageClassUpdated", "timeFinalized", "size", "componentCount", "owner",
    "softDeleteTime", "hardDeleteTime", "retentionExpirationTime", "customerEncryption", "projectNumber",
    "locationType", "resourceId", "satisfiesPZS", "satisfiesPZI", "accessId", "projectId", "serviceAccountEmail",
    "createTime", "updateTime", "sourceObjects", "destination",
})  # fmt: skip
"""The fields that the server sets, whatever a request has in their place."""

_CLEARED = frozenset({
    *COPIED, "labels", "cors", "lifecycle", "logging", "website", "retentionPolicy", "versioning", "billing",
    "temporaryHold", "eventBasedHold",
}) - {"contentType"}  # fmt: skip
"""The fields that are absent where a request that sets the whole resource does not send them."""

_MAPS = ("labels", "metadata")
"""The fields that have only the entries of the user."""

_ACLS = ("acl", "defaultObjectAcl")
_ANY_CASE = ("location",)


@dataclass(frozen=True, slots=True)
class SentWrite:
    """The parts of a request: the `fields` of the resource in its body, and what else a read can show.

    `name` is the resource's, from the query or the body, and `generation` the one in the query, both None without one.
    `content` is the object in an upload, None for another request. `settings` has parameters by the field they set.
    """

    fields: Mapping[str, Any]
    name: str | None
    generation: str | None
    content: memoryview | None
    settings: Mapping[str, str | None]

    @classmethod
    def of(cls, request: Request, query: str, *, is_upload: bool) -> "SentWrite | None":
        """Return the parts of a request, None if its body is not known or cannot be read."""
        headers, body = request.headers, request.body
        if body is None or "content-encoding" in headers or "+" in query:
            return None
        content, kind = None, headers.get("content-type", "")
        if is_upload and preconditions.value(query, "uploadType") == "multipart":
            parts = _split(kind, body)
            if parts is None:
                return None
            body, kind, content = parts
        elif is_upload:
            body, content = b"", memoryview(body)
        fields = _parse(body)
        if fields is None:
            return None
        fields = read_object(fields.get("destination")) or fields  # of a compose
        if is_upload and kind:
            fields = {"contentType": kind, **fields}
        name: Any = preconditions.value(query, "name") or fields.get("name")
        settings = {
            "kmsKeyName": preconditions.value(query, "kmsKeyName")
            or preconditions.value(query, "destinationKmsKeyName"),
            "contentEncoding": preconditions.value(query, "contentEncoding"),
            "objectRetention": preconditions.value(query, "enableObjectRetention"),
            "customerEncryption": headers.get("x-goog-encryption-key-sha256"),
            "crc32c": _find_hash(headers.get("x-goog-hash", ""), "crc32c"),
        }
        own = name if isinstance(name, str) else None
        return cls(fields, own, preconditions.value(query, "generation"), content, settings)

    @property
    def is_empty(self) -> bool:
        """True if the body has no field that a read could show."""
        return not self.fields.keys() - _SERVERS

    def has_content_of(self, found: Mapping[str, Any]) -> bool:
        """Return whether an object has the size and the MD5 of the upload."""
        if self.content is None or str(found.get("size")) != str(len(self.content)):
            return False
        digest = b64encode(md5(self.content, usedforsecurity=False).digest()).decode()
        return found.get("md5Hash") == digest

    def find_odd_setting(self, found: Mapping[str, Any]) -> str | None:
        """Return the field that a parameter or header of the request set otherwise than it was read, None without."""
        if read_object(found.get("customerEncryption")).get("keySha256") != self.settings["customerEncryption"]:
            return "customerEncryption"
        for name in ("kmsKeyName", "contentEncoding", "crc32c"):
            wanted, read = self.settings[name], str(found.get(name, ""))
            if wanted and read != wanted and not (name == "kmsKeyName" and read.startswith(f"{wanted}/")):
                return name
        if (self.settings["objectRetention"] or "").lower() == "true":
            return None if read_object(found.get("objectRetention")).get("mode") == "Enabled" else "objectRetention"
        return None


def is_same_content(source: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Return whether two objects have the same size and CRC32C; False if a hash is not shown."""
    return all(source.get(name) is not None and source.get(name) == found.get(name) for name in ("size", "crc32c"))


def find_difference(sent: Mapping[str, Any], read: Mapping[str, Any], *, whole: bool) -> str | None:
    """Return the name of a field that was read otherwise than sent; with `whole`, others must be absent."""
    for name, value in sent.items():
        if name in _SERVERS:
            continue
        if name in _ACLS:
            same = _is_same_list(value, read.get(name), read.get("owner") if name == "acl" else None)
        elif name in _ANY_CASE and isinstance(value, str):
            same = value.casefold() == str(read.get(name, "")).casefold()
        elif name == "kmsKeyName" and isinstance(value, str):
            same = str(read.get(name, "")).startswith((value, f"{value}/")) or not value
        else:
            same = _is_same(value, read.get(name))
            if whole and same and name in _MAPS:
                wanted = {key for key, each in read_object(value).items() if each is not None}
                same = wanted == set(read_object(read.get(name)))
        if not same:
            return name
    if whole:
        return next((name for name in sorted(_CLEARED) if name not in sent and read.get(name)), None)
    return None


def _is_same(sent: Any, read: Any) -> bool:
    """Return whether a value was read as it was sent. An object may have more entries; null and empty mean absent."""
    if isinstance(sent, dict):
        known = read_object(read)
        return all(_is_same(value, known.get(name)) for name, value in read_object(sent).items())
    if isinstance(sent, list):
        wanted, listed = read_list(sent), read_list(read)
        return len(wanted) == len(listed) and all(map(_is_same, wanted, listed))
    if sent in (None, "", False):
        return read in (None, "", False)
    if isinstance(sent, bool) or isinstance(read, bool | dict | list):
        return sent is read
    return str(sent) == str(read) or (isinstance(sent, str) and isinstance(read, str) and _is_same_time(sent, read))


def _is_same_time(sent: str, read: str) -> bool:
    try:
        return datetime.fromisoformat(sent) == datetime.fromisoformat(read)
    except (ValueError, TypeError):  # no times, or one without an offset
        return False


def _is_same_list(sent: Any, read: Any, owner: Any) -> bool:
    """Return whether an access control list has what was sent, and besides that only the entry of its owner."""
    roles, known = _read_roles(sent), _read_roles(read)
    more = {each: role for each, role in known.items() if each not in roles}
    return roles.items() <= known.items() and more.items() <= {(read_object(owner).get("entity"), "OWNER")}


def _read_roles(listed: Any) -> dict[Any, Any]:
    """Return the roles in an access control list by their entities."""
    entries = map(read_object, read_list(listed))
    return {each.get("entity"): each.get("role") for each in entries}


def _split(kind: str, body: bytes) -> tuple[bytes, str, memoryview] | None:
    """Return the metadata, the media type and the media in the body of a multipart upload; None for another shape."""
    boundary = kind.partition("boundary=")[2].partition(";")[0].strip().strip("\"'").encode("latin-1", "replace")
    line = b"\r\n--" + boundary
    begin = 0 if body.startswith(line[2:]) else body.find(line)
    middle = body.find(line, begin + len(line))
    end = body.find(line + b"--", middle + 1)
    metadata = body.find(b"\r\n\r\n", begin, middle)
    media = body.find(b"\r\n\r\n", middle + len(line), end)
    if not boundary or min(begin, metadata) < 0 or not begin < middle < media < end:
        return None
    heads = (each.partition(b":") for each in body[middle + len(line) : media].split(b"\r\n"))
    types = [value.strip().decode("latin-1") for name, _, value in heads if name.strip().lower() == b"content-type"]
    return body[metadata + 4 : middle], "".join(types[:1]), memoryview(body)[media + 4 : end]


def _parse(body: bytes) -> Mapping[str, Any] | None:
    """Return the JSON object in a body, {} for an empty one; None for anything else, and above 1 MiB."""
    if not body:
        return {}
    try:
        parsed: Any = loads(body) if len(body) <= preconditions.MAX_BODY else None
    except (ValueError, RecursionError):
        return None
    return read_object(parsed) if isinstance(parsed, dict) else None


def read_object(value: Any) -> Mapping[str, Any]:
    """Return a value of JSON that is an object, {} for any other."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def read_list(value: Any) -> list[Any]:
    """Return a value of JSON that is a list, [] for any other."""
    known: Any = value
    return [*known] if isinstance(value, list) else []


def _find_hash(header: str, kind: str) -> str | None:
    """Return the hash of one kind in an x-goog-hash header, None without it."""
    found = (part.strip().partition("=") for part in header.split(","))
    return next((value for name, _, value in found if name == kind), None)

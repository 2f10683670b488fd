"""What the headers of the XML API say: preconditions, metadata, access controls and validators; changes nothing."""

import base64
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from forbear.testing.cloud.api.acls import predefined_acl
from forbear.testing.cloud.http.content import Content
from forbear.testing.cloud.http.errors import ApiError, invalid
from forbear.testing.cloud.http.messages import Headers, JsonObject
from forbear.testing.cloud.storage.conditions import Conditions, check_etag, read_conditions
from forbear.testing.cloud.storage.model import StoredObject, nested

_FIELDS = {
    "cache-control": "cacheControl",
    "content-disposition": "contentDisposition",
    "content-encoding": "contentEncoding",
    "content-language": "contentLanguage",
    "content-type": "contentType",
    "x-goog-storage-class": "storageClass",
    "x-goog-custom-time": "customTime",
}
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_META = ("x-goog-meta-", "x-amz-meta-")


def goog(headers: Mapping[str, str], name: str) -> str | None:
    """A header of the API, or its twin that clients of S3 send."""
    return headers.get(f"x-goog-{name}", headers.get(f"x-amz-{name}"))


def conditions(headers: Mapping[str, str], prefix: str = "x-goog-if-") -> Conditions:
    """The preconditions on the target; with another prefix, those on the source of a copy."""
    given = {
        f"if{name}Match": headers[f"{prefix}{name.lower()}-match"]
        for name in ("Generation", "Metageneration")
        if f"{prefix}{name.lower()}-match" in headers
    }
    return read_conditions(given)


def check_read(headers: Mapping[str, str], item: StoredObject) -> None:
    """Raise 412 or 304 unless the reader wants this version of the object."""
    conditions(headers).check_read(item)
    check_etag(headers, etag_of(item))
    since, until = _moment(headers, "if-modified-since"), _moment(headers, "if-unmodified-since")
    updated = datetime.fromtimestamp(int(item.updated), UTC)
    if until is not None and "if-match" not in headers and updated > until:
        raise ApiError(412, "The object has been modified since the time of If-Unmodified-Since.")
    if since is not None and "if-none-match" not in headers and updated <= since:
        raise ApiError(304, "Not Modified", headers=(("ETag", f'"{etag_of(item)}"'),))


def fields(headers: Mapping[str, str]) -> JsonObject:
    """The metadata of an object to be, custom metadata included."""
    found: JsonObject = {field: headers[name] for name, field in _FIELDS.items() if name in headers}
    found.setdefault("contentType", "application/octet-stream")
    custom: JsonObject = {
        name.removeprefix(start): value for start in _META for name, value in headers.items() if name.startswith(start)
    }
    return {**found, "metadata": custom} if custom else found


def acl(headers: Mapping[str, str], project: str) -> dict[str, str] | None:
    """The predefined access controls that `x-goog-acl` asks for."""
    given = goog(headers, "acl")
    if given is None:
        return None
    first, *rest = given.split("-")
    word = first + "".join(part.capitalize() for part in rest)
    return predefined_acl({"x-goog-acl": word}, "x-goog-acl", project)


def custom_metadata(item: StoredObject) -> Headers:
    """The custom metadata of an object, as headers of a reply: all whose name can be that of a header."""
    found = nested(item.fields, "metadata").items()
    return tuple((f"x-goog-meta-{name}", str(value)) for name, value in found if _NAME.fullmatch(name))


def version(item: StoredObject) -> Headers:
    """What tells the version of an object, as headers of a reply to a write."""
    hashes = f"crc32c={item.crc32c}" + (f",md5={item.md5}" if item.md5 is not None else "")
    return (
        ("ETag", f'"{etag_of(item)}"'),
        ("x-goog-generation", str(item.generation)),
        ("x-goog-metageneration", str(item.metageneration)),
        ("x-goog-hash", hashes),
        ("x-goog-stored-content-length", str(len(item.content))),
        ("x-goog-stored-content-encoding", item.string("contentEncoding") or "identity"),
    )


def _moment(headers: Mapping[str, str], name: str) -> datetime | None:
    text = headers.get(name)
    if text is None:
        return None
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        raise invalid(f"Invalid value for {name}: '{text[:80]}'. It must be an HTTP date.") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def etag_of(item: StoredObject) -> str:
    """The tag of an object; one that was made of parts has no MD5, and a tag of another form."""
    return f"-{item.etag}" if item.md5 is None else _hexadecimal(item.md5)


def etag_of_part(data: Content) -> str:
    """The tag of a part of a multipart upload."""
    return _hexadecimal(data.md5)


def _hexadecimal(md5: str) -> str:
    return base64.b64decode(md5).hex()

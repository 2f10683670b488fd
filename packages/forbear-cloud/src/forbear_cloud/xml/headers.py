"""Read the request headers of the XML API, and write its response headers and entity tags."""

import base64
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import unquote

from forbear_cloud.http.content import Content
from forbear_cloud.http.messages import ApiError, Headers, JsonObject, invalid
from forbear_cloud.storage.conditions import Conditions, check_etag, read_conditions
from forbear_cloud.storage.encryption import keys_for
from forbear_cloud.storage.model import Bucket, StoredObject, get_object
from forbear_cloud.storage.sessions import TargetObject
from forbear_cloud.storage.writable import check_object_name, find_predefined_acl

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
    """Return the header `x-goog-NAME`, or `x-amz-NAME`, which S3 clients send; None if both are absent."""
    return headers.get(f"x-goog-{name}", headers.get(f"x-amz-{name}"))


def copy_source(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the bucket and the object, decoded, that the header x-goog-copy-source names; None without it.

    The header x-amz-copy-source counts, too.
    """
    value = goog(headers, "copy-source")
    if value is None:
        return None
    bucket, _, name = value.removeprefix("/").partition("/")
    return decode(bucket), decode(name)


def decode(text: str) -> str:
    """Decode the percent-encoded `text`, a name.

    Invalid UTF-8 becomes lone surrogates, which no stored name contains.
    """
    return unquote(text, errors="surrogateescape")


def target(headers: Mapping[str, str], bucket: Bucket, name: str) -> TargetObject:
    """Return the description of the object `name` that a request is to create in `bucket`.

    Metadata, access controls, preconditions and encryption key are those in the headers. Raise 400 for an invalid name
    or header.
    """
    check_object_name(name)
    grants = acl(headers, bucket.project)
    keys = keys_for(bucket, headers, headers.get("x-goog-encryption-kms-key-name"))
    return TargetObject(bucket.name, name, fields(headers), grants, conditions(headers), keys)


def conditions(headers: Mapping[str, str], prefix: str = "x-goog-if-") -> Conditions:
    """Return the preconditions in the headers x-goog-if-generation-match and x-goog-if-metageneration-match.

    With another `prefix`, read the headers that begin with it, such as those on the source of a copy.
    """
    return read_conditions({
        f"if{name}Match": headers[f"{prefix}{name.lower()}-match"]
        for name in ("Generation", "Metageneration")
        if f"{prefix}{name.lower()}-match" in headers
    })  # fmt: skip


def check_read(headers: Mapping[str, str], item: StoredObject) -> None:
    """Raise 412 or 304 unless the preconditions, entity tags and dates in the headers allow a read of the object.

    304 says that the client has this version: If-None-Match or If-Modified-Since does not hold.
    """
    conditions(headers).check_read(item)
    check_etag(headers, etag_of(item))
    since, until = _date(headers, "if-modified-since"), _date(headers, "if-unmodified-since")
    updated = datetime.fromtimestamp(int(item.updated), UTC)
    if until is not None and "if-match" not in headers and updated > until:
        raise ApiError(412, "The object has been modified since the time of If-Unmodified-Since.")
    if since is not None and "if-none-match" not in headers and updated <= since:
        raise ApiError(304, "Not Modified", headers=(("ETag", quote_etag(etag_of(item))),))


def fields(headers: Mapping[str, str]) -> JsonObject:
    """Return the metadata in the headers for an object to create, including custom metadata.

    Without a Content-Type, its content type is application/octet-stream.
    """
    metadata: JsonObject = {field: headers[name] for name, field in _FIELDS.items() if name in headers}
    metadata.setdefault("contentType", "application/octet-stream")
    custom: JsonObject = {
        name.removeprefix(start): value for start in _META for name, value in headers.items() if name.startswith(start)
    }
    return {**metadata, "metadata": custom} if custom else metadata


def acl(headers: Mapping[str, str], project: str) -> dict[str, str] | None:
    """Return the predefined access control list that the header x-goog-acl (or x-amz-acl) names; None without it.

    The owners of `project` are among its entries. Raise 400 for an unknown list.
    """
    value = goog(headers, "acl")
    if value is None:
        return None
    first, *rest = value.split("-")
    name = first + "".join(part.capitalize() for part in rest)
    return find_predefined_acl({"x-goog-acl": name}, "x-goog-acl", project)


def custom_metadata(item: StoredObject) -> Headers:
    """Return the custom metadata of an object as response headers, such as x-goog-meta-mtime.

    Keys that cannot be header names are left out.
    """
    custom = get_object(item.fields, "metadata").items()
    return tuple((f"x-goog-meta-{name}", str(value)) for name, value in custom if _NAME.fullmatch(name))


def version(item: StoredObject) -> Headers:
    """Return the response headers that describe a version: its entity tag, and those of the function `generation`."""
    return (("ETag", quote_etag(etag_of(item))), *generation(item))


def generation(item: StoredObject) -> Headers:
    """Return the response headers with generation, metageneration, hashes, stored size and encoding of a version.

    The entity tag is left out, as the body of such a response contains it.
    """
    return (
        ("x-goog-generation", str(item.generation)),
        ("x-goog-metageneration", str(item.metageneration)),
        ("x-goog-hash", item.hashes),
        ("x-goog-stored-content-length", str(len(item.content))),
        ("x-goog-stored-content-encoding", item.string("contentEncoding") or "identity"),
    )


def etag_of(item: StoredObject) -> str:
    """Return the entity tag of an object: its MD5 in hexadecimal digits, or another unique text if it has no MD5.

    Composite objects have none.
    """
    return f"-{item.etag}" if item.md5 is None else _hexadecimal(item.md5)


def etag_of_part(data: Content) -> str:
    """Return the entity tag of a part of a multipart upload: its MD5 in hexadecimal digits."""
    return _hexadecimal(data.md5)


def quote_etag(etag: str) -> str:
    """Return an entity tag in double quotes."""
    return f'"{etag}"'


def _hexadecimal(md5: str) -> str:
    return base64.b64decode(md5).hex()


def _date(headers: Mapping[str, str], name: str) -> datetime | None:
    text = headers.get(name)
    if text is None:
        return None
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        raise invalid(f"Invalid value for {name}: '{text[:80]}'. It must be an HTTP date.") from None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)

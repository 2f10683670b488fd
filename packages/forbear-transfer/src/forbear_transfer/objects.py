"""Objects of Cloud Storage as values: their addresses, such as gs://bucket/name, and their metadata."""

import re
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Self
from urllib.parse import quote

from forbear.adapters import dataclass, error_text, field
from forbear_transfer.errors import UnsafeName, WrongResponse

SCHEME = "gs://"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]|[a-z0-9]")
_GENERATION = re.compile(r"(.+)#([0-9]+)", re.DOTALL)
_LONGEST_NAME = 1024
_SPECIAL = re.compile(r"[*?\[]|#(?=[0-9]+\Z)")
_ESCAPED = re.compile(r"\[([*?\[#])\]")
_ZERO = "[!\x01-\U0010ffff]"
"""The set of only the zero character, which no word of a shell can hold: what follows it would be cut off."""
_PLAIN = re.compile(r"[\w@%+=:,./-][\w@%+=:,./#-]*", re.ASCII)
_UNRESERVED = re.compile(r"[A-Za-z0-9_.~/-]*")
_OTHER_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://).*", re.DOTALL)

FIELDS = (
    "bucket,name,generation,metageneration,size,crc32c,md5Hash,contentType,contentEncoding,updated,metadata,"
    "cacheControl,contentDisposition,contentLanguage,storageClass,customTime,customerEncryption,kmsKeyName,"
    "temporaryHold,eventBasedHold,retentionExpirationTime"
)
"""The fields that requests ask for, because `Object.of` reads them."""

MTIME = "goog-reserved-file-mtime"
"""The metadata key for the modification time of the file in whole seconds, as gsutil and gcloud write it."""

MODE = "goog-reserved-posix-mode"
"""The metadata key for the permissions of the file in octal digits, such as 644, as gsutil and gcloud write it."""

_TEXT = {str}
_OPTIONAL = {str, type(None)}
_TEXTS = (
    "crc32c", "contentType", "contentEncoding", "cacheControl", "contentDisposition", "contentLanguage",
    "storageClass", "customTime", "md5Hash", "kmsKeyName",
)  # fmt: skip
_END_OF_TIME = 2.0**62
_LARGEST = 2**63 - 1
_DIGITS = 19
_PERMISSIONS = re.compile(r"[0-7]{3}")


@dataclass(frozen=True, slots=True)
class Url:
    """The address of a bucket (`name` is empty), of an object, or of all objects with a prefix.

    `generation` is the number of one version of the object, None for the live one.

    >>> url = Url("my-bucket", "photos/1.jpg")
    >>> str(url), url.name
    ('gs://my-bucket/photos/1.jpg', 'photos/1.jpg')
    """

    bucket: str
    name: str = ""
    generation: int | None = None

    @classmethod
    def parse(cls, text: str, *, versions: bool = True) -> Self:
        """Return the Url of "gs://bucket", "gs://bucket/name" or "gs://bucket/name#generation" (digits).

        Without `versions`, a number after # is part of the name. ValueError if the text does not begin with gs://, the
        bucket's name is not valid, the generation has more than 63 bits, or the rest has more than 1024 bytes.
        """
        if not is_cloud(text):
            raise ValueError(f"an address must begin with {SCHEME}, got {text!r}")
        bucket, _, name = text.removeprefix(SCHEME).partition("/")
        if not _BUCKET.fullmatch(bucket):
            raise ValueError(
                f"an address must name a bucket (lower-case letters, digits, dots, dashes and underscores) after "
                f"{SCHEME}, got {text!r}; write {SCHEME}bucket or {SCHEME}bucket/name"
            )
        match = _GENERATION.fullmatch(name) if versions else None
        meant = _ESCAPED.sub(r"\1", name if match is None else match[1])
        if len(meant.encode("utf-8", "surrogateescape")) > _LONGEST_NAME:
            raise ValueError(f"an address names an object of more than {_LONGEST_NAME} bytes, the longest name")
        if match is None:
            return cls(bucket, name)
        if len(match[2]) > _DIGITS or int(match[2]) > _LARGEST:
            raise ValueError(
                f"an address must have a generation below 2**63 after #, got {text!r}; for a # in the name write [#]"
            )
        return cls(bucket, match[1], int(match[2]))

    def __str__(self) -> str:
        version = "" if self.generation is None else f"#{self.generation}"
        text = f"{SCHEME}{self.bucket}/{self.name}{version}"
        # A name that is not Unicode, from a listing or the command line, must not raise where it is printed.
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()

    def __format__(self, _: str) -> str:
        """Return the address for messages: it can be pasted back, for it is quoted for the shell and no pattern."""
        address = f"{SCHEME}{self.bucket}/{self.name}"
        if self.generation is None and "#" not in address and _PLAIN.fullmatch(address):
            return address  # as most are: of what is special in a pattern, only # is plain for a shell
        version = "" if self.generation is None else f"#{self.generation}"
        name = _SPECIAL.sub(r"[\g<0>]", self.name).replace("\0", _ZERO)
        return quote_for_shell(f"{SCHEME}{self.bucket}/{name}{version}")

    def check_object(self, parameter: str) -> None:
        """Raise ValueError, which names `parameter`, if this is the address of a bucket: its `name` is empty."""
        if not self.name:
            raise ValueError(f"`{parameter}` must name an object, such as {self}name, got {self}")

    @property
    def path(self) -> str:
        """The URL path of the object in the JSON API, percent-encoded, without the generation."""
        return f"/storage/v1{self._resource}"

    def rewrite_path(self, target: "Url") -> str:
        """Return the URL path of a request that copies this object to `target`, without generations."""
        return f"{self.path}/rewriteTo{target._resource}"

    @property
    def _resource(self) -> str:
        return f"/b/{_quote_bucket(self.bucket)}/o/{quote_all(self.name)}"

    @property
    def prefix(self) -> str:
        """The prefix of the objects in this folder: the name with a slash at its end, or empty for a bucket."""
        return self.name if not self.name or self.name.endswith("/") else f"{self.name}/"

    @property
    def list_path(self) -> str:
        """The URL path of requests that list the objects of this bucket."""
        return f"/storage/v1/b/{_quote_bucket(self.bucket)}/o"

    @property
    def upload_path(self) -> str:
        """The URL path of uploads to this bucket."""
        return f"/upload/storage/v1/b/{_quote_bucket(self.bucket)}/o"


def quote_for_shell(text: str) -> str:
    """Return a name so that a shell takes it as one word, without control characters."""
    if _PLAIN.fullmatch(text):
        return text
    if text.isprintable():
        return shlex.quote(text)
    pieces = (one if one.isprintable() and one not in "\\'" else _escape(one) for one in text)
    return f"$'{''.join(pieces)}'"


def _escape(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def unescape(pattern: str) -> str | None:
    """Return the name of a pattern whose wildcards are all sets of one special character, such as [*]; else None."""
    pattern = pattern.replace(_ZERO, "\0")
    rest = _ESCAPED.sub("", pattern)
    return None if re.search(r"[*?\[]", rest) else _ESCAPED.sub(r"\1", pattern)


@lru_cache(64)
def _quote_bucket(name: str) -> str:
    return quote(name, safe="")


def quote_all(text: str) -> str:
    """Return text percent-encoded for a URL, slashes included; UnsafeName for text that is not Unicode."""
    if _UNRESERVED.fullmatch(text):  # as most names are; `quote` looks at each character
        return text.replace("/", "%2F")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:
        raise UnsafeName(f"{text!r} is not Unicode, as the names of objects are", "rename it") from error


def is_cloud(text: str) -> bool:
    """Return whether `text`, a source or target, begins with gs://. Nothing else is checked."""
    return text.startswith(SCHEME)


def check_scheme(parameter: str, text: str) -> None:
    """Raise ValueError, which names `parameter`, for an address with another scheme than gs://, such as s3://."""
    match = _OTHER_SCHEME.fullmatch(text)
    if match is not None and not is_cloud(text):
        raise ValueError(
            f"`{parameter}` must be a path or begin with {SCHEME}, the only scheme that is known, got {text}; "
            f"for a path write ./{text}"
        )


@dataclass(slots=True)
class Object:
    """One version of an object: `size` is in bytes as stored, `updated` is in epoch seconds.

    `crc32c` and `md5` are base64; a composite object has no `md5`. `key_sha256` is the SHA-256, in base64, of the
    customer-supplied key that encrypts it, and `kms_key` the name of the Cloud KMS key. Listings have no checksums of
    objects with such keys.

    An object under a hold, or until `retention_expires` (in epoch seconds), can be neither replaced nor deleted.

    `generation` is the number of this version, and `metageneration` that of its metadata. `metadata` are the custom
    keys and values. None means that the service did not state a value. Example: see `ls`.
    """

    bucket: str
    name: str
    generation: int
    size: int
    crc32c: str | None = None
    metageneration: int = 1
    content_type: str | None = None
    content_encoding: str | None = None
    updated: float | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    cache_control: str | None = None
    content_disposition: str | None = None
    content_language: str | None = None
    storage_class: str | None = None
    custom_time: str | None = None
    md5: str | None = None
    key_sha256: str | None = None
    kms_key: str | None = None
    temporary_hold: bool = False
    event_based_hold: bool = False
    retention_expires: float | None = None

    @classmethod
    def of(cls, resource: Mapping[str, Any]) -> Self:
        """Return the object that `resource`, decoded JSON of the API, describes; WrongResponse if it describes none."""
        try:
            get = resource.get
            bucket, name, key = resource["bucket"], resource["name"], None
            custom: dict[str, str] = get("metadata") or {}
            generation, size, change = int(resource["generation"]), int(get("size", 0)), int(get("metageneration", 1))
            if not (0 <= generation <= _LARGEST and 0 <= size <= _LARGEST and 0 <= change <= _LARGEST):
                raise ValueError("a number is out of range")
            texts = list(map(get, _TEXTS))
            if {*map(type, (bucket, name, *custom, *custom.values()))} != _TEXT or not {*map(type, texts)} <= _OPTIONAL:
                raise TypeError("a text must be a string")
            crc32c, kind, encoding, cache, disposition, language, storage, time, md5, kms = (
                [text or None for text in texts] if "" in texts else texts
            )
            if encryption := get("customerEncryption"):
                key = encryption.get("keySha256") or None
                if not isinstance(key, str | None):
                    raise TypeError("a key must be a string")
            updated, expires = get("updated"), get("retentionExpirationTime")
            return cls(
                bucket, name, generation, size, crc32c, change, kind, encoding,
                None if updated is None else seconds_of_time(updated), custom, cache, disposition, language, storage,
                time, md5, key, kms, get("temporaryHold") is True, get("eventBasedHold") is True,
                None if expires is None else seconds_of_time(expires),
            )  # fmt: skip
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
            raise WrongResponse(f"the server's response does not describe an object: {error_text(error)}") from error

    @property
    def url(self) -> Url:
        """The address of exactly this version: bucket, name and generation."""
        return Url(self.bucket, self.name, self.generation)

    @property
    def mtime(self) -> float | None:
        """The modification time of the uploaded file in epoch seconds, by `metadata`; None if it has no valid time."""
        text = self.metadata.get(MTIME)
        if text is None:
            return None
        try:
            seconds = float(text)
        except (ValueError, TypeError):
            return None
        return seconds if abs(seconds) < _END_OF_TIME else None  # anybody may write it; this refuses nan and inf

    @property
    def mode(self) -> int | None:
        """The permissions of the uploaded file, by `metadata`; None without a valid mode of three octal digits."""
        text = self.metadata.get(MODE, "")
        return int(text, 8) if _PERMISSIONS.fullmatch(text) else None


def format_mode(mode: int) -> str:
    """Return the permissions in a mode of the system in three octal digits, as `MODE` has them."""
    return f"{mode & 0o777:03o}"


def seconds_of_time(text: str) -> float:
    """Return a time of the API, such as "2026-01-31T12:00:00Z", in epoch seconds; without a zone it is UTC.

    ValueError, TypeError or OverflowError for anything else, and for a time outside the years 1 to 9999 in UTC.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is UTC:  # as the API writes it
        return time.timestamp()
    return (time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)).timestamp()

"""The stored resources as plain data: buckets, object versions, folders, IAM policies and HMAC keys."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from forbear_cloud.http.content import Content, content_of
from forbear_cloud.http.messages import Json, JsonObject


def crc32c_of(data: bytes) -> str:
    """Return the CRC32C of `data` as the API writes it: base64 of the four big-endian bytes."""
    return content_of(data).crc32c


@lru_cache(1024)
def etag_of(*numbers: int) -> str:
    """Return an entity tag (ETag) made of the numbers, so that it changes whenever one of them does."""
    return base64.b64encode("/".join(map(str, numbers)).encode()).decode()


@dataclass(slots=True)
class Revised:
    """Something with a `revision`, which is 1 at first and is to be raised by every write."""

    revision: int = field(default=1, init=False)

    @property
    def etag(self) -> str:
        """The entity tag, which changes whenever `revision` does."""
        return etag_of(self.revision)


@dataclass(slots=True)
class IamPolicy(Revised):
    """An IAM policy: its `body` has the version and the bindings, none at first."""

    body: JsonObject = field(default_factory=lambda: {"version": 1, "bindings": []})

    def write(self, body: JsonObject) -> None:
        """Replace the body of the policy and raise its revision."""
        self.body = body
        self.revision += 1


class ObjectKeys(NamedTuple):
    """The keys that an object is encrypted with; both are None for the default encryption.

    `sha256` is the hash of a customer-supplied key in base64, `kms_version` the name of a version of a Cloud KMS key.
    """

    sha256: str | None = None
    kms_version: str | None = None


DEFAULT_KEYS = ObjectKeys()


@dataclass(slots=True)
class StoredObject:
    """One version of an object; `fields` holds the metadata that clients may write, and `acl` a role for each entity.

    `deleted` is the time at which it became noncurrent, None for a live version. Times are in seconds since the epoch.
    """

    bucket: str
    name: str
    generation: int
    content: Content
    created: float
    updated: float
    fields: JsonObject
    acl: dict[str, str]
    metageneration: int = 1
    deleted: float | None = None
    components: int | None = None
    """The number of objects that a composite object was joined from; None for any other object."""
    policy: IamPolicy = field(default_factory=IamPolicy)
    keys: ObjectKeys = DEFAULT_KEYS
    released: float | None = None
    """The time at which its event-based hold was released."""
    soft_deleted: tuple[float, float] | None = None
    """The time of its deletion, and the time until which it can be restored."""

    @property
    def data(self) -> bytes:
        """The content as one bytes object; each access joins the pieces, which copies a large object."""
        return bytes(self.content)

    @property
    def crc32c(self) -> str:
        """The CRC32C as the API writes it: base64 of the four big-endian bytes."""
        return self.content.crc32c

    @property
    def md5(self) -> str | None:
        """The MD5 as the API writes it, in base64; None for a composite object."""
        return self.content.md5 if self.components is None else None

    @property
    def hashes(self) -> str:
        """The value of the x-goog-hash header: "crc32c=...,md5=...", for a composite object without the MD5."""
        return f"crc32c={self.crc32c}" + (f",md5={self.md5}" if self.md5 is not None else "")

    @property
    def etag(self) -> str:
        """The entity tag, which changes with the generation and with the metageneration."""
        return etag_of(self.generation, self.metageneration)

    @property
    def resource(self) -> str:
        """The object's name in the journal: bucket/name."""
        return f"{self.bucket}/{self.name}"

    def string(self, name: str) -> str | None:
        """Return the writable field `name` if it is a non-empty string, otherwise None."""
        value = self.fields.get(name)
        return value if isinstance(value, str) and value else None


@dataclass(slots=True)
class Folder:
    """A managed folder, or a folder of a bucket with a hierarchical namespace; its name ends with a slash."""

    name: str
    created: float
    updated: float
    metageneration: int = 1
    policy: IamPolicy = field(default_factory=IamPolicy)
    generation: int = 0

    @property
    def etag(self) -> str:
        """The entity tag, made of the time of creation and the metageneration."""
        return etag_of(int(self.created * 1_000_000), self.metageneration)


@dataclass(slots=True)
class Bucket:
    """A bucket with its folders and all versions of its objects, live and noncurrent, the oldest version first.

    `fields` holds the metadata that clients may write. `acl` and `default_acl`, the list for new objects, have a role
    for each entity. Times are in seconds since the epoch.
    """

    name: str
    project: str
    generation: int
    created: float
    updated: float
    fields: JsonObject
    acl: dict[str, str]
    default_acl: dict[str, str]
    metageneration: int = 1
    policy: IamPolicy = field(default_factory=IamPolicy)
    notifications: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    objects: dict[str, list[StoredObject]] = field(default_factory=dict[str, list[StoredObject]])
    deleted_objects: list[StoredObject] = field(default_factory=list[StoredObject])
    """The soft-deleted objects that can be restored, the oldest deletion first."""
    soft_deleted: tuple[float, float] | None = None
    """The time of its deletion, and the time until which it can be restored."""
    folders: dict[str, Folder] = field(default_factory=dict[str, Folder])
    managed_folders: dict[str, Folder] = field(default_factory=dict[str, Folder])
    operations: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Long-running operations by id; the cloud finishes each one before it responds."""

    @property
    def resource(self) -> str:
        """The bucket's name in the journal, which is its plain name."""
        return self.name

    @property
    def etag(self) -> str:
        """The entity tag, which changes with the generation and with the metageneration."""
        return etag_of(self.generation, self.metageneration)

    @property
    def versioned(self) -> bool:
        """Return whether versioning is on, so that overwritten and deleted versions are kept as noncurrent."""
        return get_object(self.fields, "versioning").get("enabled") is True

    @property
    def hierarchical(self) -> bool:
        """Return whether the bucket has a hierarchical namespace, in which folders are resources."""
        return get_object(self.fields, "hierarchicalNamespace").get("enabled") is True

    @property
    def soft_delete_seconds(self) -> int:
        """Return for how many seconds deleted objects can be restored; 0 if soft delete is off."""
        seconds = get_object(self.fields, "softDeletePolicy").get("retentionDurationSeconds", 0)
        return int(seconds) if isinstance(seconds, str | int) else 0

    def live(self, name: str) -> StoredObject | None:
        """Return the live version of the object `name`, or None if it has none."""
        versions = self.objects.get(name)
        return versions[-1] if versions and versions[-1].deleted is None else None

    def find(self, name: str, generation: int | None) -> StoredObject | None:
        """Return the version of the object `name` with this generation, for None the live one.

        None if it does not exist.
        """
        if generation is None:
            return self.live(name)
        return next((version for version in self.objects.get(name, ()) if version.generation == generation), None)

    def versions(self) -> Iterator[StoredObject]:
        """Yield all live and noncurrent versions of all objects, by name, and for each name the oldest first."""
        for name in sorted(self.objects):
            yield from self.objects[name]


@dataclass(slots=True)
class HmacKey(Revised):
    """An HMAC key of a service account, ACTIVE, INACTIVE or DELETED.

    The cloud shows the `secret` only in the response that creates the key.
    """

    access_id: str
    secret: str
    project: str
    email: str
    created: float
    updated: float
    state: str = "ACTIVE"


def get_object(fields: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """Return the JSON object in the field `name`; empty if the field is absent or has another type."""
    value = fields.get(name)
    # Most fields are absent, and to ask an abstract class takes longer than to look.
    return value if value is not None and isinstance(value, Mapping) else {}

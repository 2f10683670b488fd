"""What the cloud keeps: buckets, object versions, policies and keys as plain data; knows no HTTP."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from forbear.testing.cloud.http.content import Content, content_of
from forbear.testing.cloud.http.messages import Json, JsonObject


def crc32c_of(data: bytes) -> str:
    """CRC32C as the API writes it: base64 of the big-endian bytes."""
    return content_of(data).crc32c


def etag_of(*numbers: int) -> str:
    """An entity tag that changes whenever one of the numbers does."""
    return base64.b64encode("/".join(map(str, numbers)).encode()).decode()


@dataclass(slots=True)
class Policy:
    """An IAM policy and how often it was written; the count makes its etag."""

    body: JsonObject = field(default_factory=lambda: {"version": 1, "bindings": []})
    revision: int = 1

    @property
    def etag(self) -> str:
        """Changes with every write."""
        return etag_of(self.revision)


@dataclass(slots=True)
class StoredObject:
    """One version of an object; `fields` holds what clients may write, `components` counts a composite's parts."""

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
    policy: Policy = field(default_factory=Policy)
    key_sha256: str | None = None
    """The hash of the customer's key that it was written with."""
    released: float | None = None
    """When its event-based hold was released."""
    soft_deleted: tuple[float, float] | None = None
    """When it was deleted, and until when it can be restored."""

    @property
    def data(self) -> bytes:
        """The content in one piece: joined each time, which costs with a large object."""
        return bytes(self.content)

    @property
    def crc32c(self) -> str:
        """CRC32C as the API writes it: base64 of the big-endian bytes."""
        return self.content.crc32c

    @property
    def md5(self) -> str | None:
        """MD5 as the API writes it: base64; a composite has none."""
        return self.content.md5 if self.components is None else None

    @property
    def etag(self) -> str:
        """Changes with every generation and metageneration."""
        return etag_of(self.generation, self.metageneration)

    @property
    def resource(self) -> str:
        """How the journal names it."""
        return f"{self.bucket}/{self.name}"

    def string(self, name: str) -> str | None:
        """A writable field, if it is a string that is not empty."""
        value = self.fields.get(name)
        return value if isinstance(value, str) and value else None


@dataclass(slots=True)
class Folder:
    """A folder, of a bucket with a hierarchical namespace or a managed one; its name ends with a slash."""

    name: str
    created: float
    updated: float
    metageneration: int = 1
    policy: Policy = field(default_factory=Policy)
    generation: int = 0

    @property
    def etag(self) -> str:
        """Changes with every metageneration."""
        return etag_of(int(self.created * 1_000_000), self.metageneration)


@dataclass(slots=True)
class Bucket:
    """A bucket with the versions of its objects, oldest version first."""

    name: str
    project: str
    generation: int
    created: float
    updated: float
    fields: JsonObject
    acl: dict[str, str]
    default_acl: dict[str, str]
    metageneration: int = 1
    policy: Policy = field(default_factory=Policy)
    notifications: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    objects: dict[str, list[StoredObject]] = field(default_factory=dict[str, list[StoredObject]])
    deleted_objects: list[StoredObject] = field(default_factory=list[StoredObject])
    """Those that can be restored, oldest deletion first."""
    soft_deleted: tuple[float, float] | None = None
    """When it was deleted, and until when it can be restored."""
    folders: dict[str, Folder] = field(default_factory=dict[str, Folder])
    managed_folders: dict[str, Folder] = field(default_factory=dict[str, Folder])
    operations: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Long-running operations by id; here they are always done."""

    @property
    def etag(self) -> str:
        """Changes with every metageneration."""
        return etag_of(self.generation, self.metageneration)

    @property
    def versioned(self) -> bool:
        """Whether overwritten and deleted versions stay."""
        return nested(self.fields, "versioning").get("enabled") is True

    @property
    def hierarchical(self) -> bool:
        """Return whether it has folders that are resources of their own."""
        return nested(self.fields, "hierarchicalNamespace").get("enabled") is True

    @property
    def soft_delete_seconds(self) -> int:
        """Seconds for which deleted objects can be restored."""
        seconds = nested(self.fields, "softDeletePolicy").get("retentionDurationSeconds", 0)
        return int(seconds) if isinstance(seconds, str | int) else 0

    def live(self, name: str) -> StoredObject | None:
        """The current version of an object, if there is one."""
        versions = self.objects.get(name)
        return versions[-1] if versions and versions[-1].deleted is None else None

    def find(self, name: str, generation: int | None) -> StoredObject | None:
        """One version by its generation, or the live one."""
        if generation is None:
            return self.live(name)
        return next((v for v in self.objects.get(name, ()) if v.generation == generation), None)

    def versions(self) -> Iterator[StoredObject]:
        """All versions of all objects, by name, then by age."""
        for name in sorted(self.objects):
            yield from self.objects[name]


@dataclass(slots=True)
class HmacKey:
    """An HMAC key; the secret is told once, at creation."""

    access_id: str
    secret: str
    project: str
    email: str
    created: float
    updated: float
    state: str = "ACTIVE"
    revision: int = 1

    @property
    def etag(self) -> str:
        """Changes with every update."""
        return etag_of(self.revision)


def nested(fields: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """A field that is an object; empty when it is absent or something else."""
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}

"""What the XML API keeps beside objects: multipart uploads that are not complete; plain data."""

from dataclasses import dataclass, field

from forbear.testing.cloud.content import Content
from forbear.testing.cloud.wire import JsonObject


@dataclass(slots=True)
class Upload:
    """A multipart upload begun but not complete."""

    bucket: str
    name: str
    fields: JsonObject
    acl: dict[str, str] | None
    key_sha256: str | None = None
    parts: dict[int, Content] = field(default_factory=dict[int, Content])

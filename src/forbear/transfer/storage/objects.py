"""Object: what Cloud Storage says of one version of an object, reduced to what transfers need."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from forbear.core.report import text_of
from forbear.transfer.errors import WrongReply
from forbear.transfer.storage.address import Url

FIELDS = "bucket,name,generation,metageneration,size,crc32c,md5Hash,contentType,contentEncoding,updated,metadata"
"""What to ask for: the fields that `Object.of` reads."""

MTIME = "goog-reserved-file-mtime"
"""The metadata key under which gsutil and gcloud keep the modification time of the file, in whole seconds."""

_END_OF_TIME = 2.0**62
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Object:
    """One version of an object: `size` in bytes as stored, `crc32c` as the API writes it, times in epoch seconds.

    `mtime` is that of the file that was uploaded, None where nobody noted it.
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

    @classmethod
    def of(cls, resource: Mapping[str, Any]) -> Self:
        """Read the resource of the JSON API; TransferError where it is none."""
        try:
            updated = resource.get("updated")
            return cls(
                bucket=_text(resource["bucket"]),
                name=_text(resource["name"]),
                generation=_number(resource["generation"]),
                size=_number(resource.get("size", 0)),
                crc32c=_optional(resource.get("crc32c")),
                metageneration=_number(resource.get("metageneration", 1)),
                content_type=_optional(resource.get("contentType")),
                content_encoding=_optional(resource.get("contentEncoding")),
                updated=None if updated is None else datetime.fromisoformat(updated).timestamp(),
                metadata=_texts(resource.get("metadata") or {}),
            )
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
            raise WrongReply(f"the server's reply does not describe an object: {text_of(error)}") from error

    @property
    def url(self) -> Url:
        """Where it is; it names the version."""
        return Url(self.bucket, self.name, self.generation)

    @property
    def mtime(self) -> float | None:
        """When the file that it was uploaded from was last modified; None where what is noted is no such time."""
        try:
            found = float(self.metadata[MTIME])
        except (KeyError, ValueError, TypeError):
            return None
        return found if abs(found) < _END_OF_TIME else None  # anybody may write there; neither nan nor inf is less


def _number(value: Any) -> int:
    """Return a number of the API, a string or a number in JSON; ValueError for one that it cannot have."""
    number = int(value)
    if not 0 <= number <= _LARGEST:
        raise ValueError("a number is out of range")
    return number


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name must be a string, got {type(value).__name__}")
    return value


def _optional(value: object) -> str | None:
    return None if value is None or value == "" else _text(value)


def _texts(values: Mapping[object, object]) -> dict[str, str]:
    return {_text(key): _text(value) for key, value in values.items()}

"""Unfinished work: resumable upload sessions, multipart uploads and rewrites, as data without HTTP."""

from dataclasses import dataclass, field
from typing import NamedTuple

from forbear_cloud.http.content import Content, Growing
from forbear_cloud.http.messages import ApiError, JsonObject, invalid
from forbear_cloud.storage.conditions import Conditions
from forbear_cloud.storage.model import ObjectKeys, StoredObject

CHUNK = 262_144
"""The size in bytes of which every chunk but the last must be a multiple: 256 KiB."""


class TargetObject(NamedTuple):
    """The description of an object that an upload is to create: everything but its bytes.

    `fields` may contain the hashes that the client states, and `acl` is None for the bucket's default.
    """

    bucket: str
    name: str
    fields: JsonObject
    acl: dict[str, str] | None
    conditions: Conditions
    keys: ObjectKeys


@dataclass(slots=True)
class UploadSession:
    """A resumable upload; `total` is the size of the object in bytes, None while the client has not said it."""

    id: str
    target: TargetObject
    total: int | None
    data: Growing = field(default_factory=Growing)
    finished: StoredObject | None = None
    """The object that the upload has created, without its bytes."""
    gone: int | None = None
    """The status of every further response, once the session has expired or is cancelled."""

    @property
    def complete(self) -> bool:
        """Return whether the total size is known and every byte has arrived, so that the object can be created."""
        return self.total is not None and len(self.data) == self.total

    def end(self, status: int) -> None:
        """Drop the bytes received; every further request to the session gets the response status `status`."""
        self.gone = status
        self.data = Growing()

    def finish(self, item: StoredObject) -> None:
        """Record the created object, and drop the received bytes."""
        self.finished = item
        self.data = Growing()

    def set_total(self, total: int) -> None:
        """Set the total size in bytes; raise 400 if it contradicts the size or the bytes received before."""
        if self.total is not None and self.total != total:
            raise invalid(f"The total size {total} differs from {self.total}, the size stated before.")
        if total < len(self.data):
            raise invalid(f"The total size {total} is less than the {len(self.data)} bytes received.")
        self.total = total

    def receive(self, offset: int, body: Content, *, enforce: bool = True) -> None:
        """Append a chunk that starts at `offset`, without those of its bytes that have arrived before.

        Raise 400 for a gap before it, and for bytes after the total size. Raise 400 also if neither its size nor its
        end is a multiple of 256 KiB, unless it is the last. `enforce=False` allows that, for a chunk whose connection
        broke.
        """
        have = len(self.data)
        end = offset + len(body)
        if offset > have:
            raise ApiError(400, f"Invalid request: the chunk starts at byte {offset}, but {have} was expected.")
        if self.total is not None and end > self.total:
            raise invalid(f"The chunk ends at byte {end}, after the total size {self.total}.")
        # After a chunk that broke off anywhere, a client may send whole chunks or go on to the next multiple.
        if enforce and end != self.total and len(body) % CHUNK and end % CHUNK:
            raise invalid(
                f"Invalid request: a chunk other than the last must be a multiple of {CHUNK} bytes, got {len(body)}."
            )
        if end > have:
            self.data.add(body.cut(have - offset))


@dataclass(slots=True)
class MultipartUpload:
    """A multipart upload of the XML API that is not complete; `parts` maps the number of each part to its content."""

    target: TargetObject
    parts: dict[int, Content] = field(default_factory=dict[int, Content])


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite (a copy in several calls) in progress: the first `copied` bytes of an object are done.

    `plan` identifies it: the source (bucket/name), its generation, the destination bucket, the destination name and the
    keys of the copy.
    """

    plan: tuple[str, int, str, str, ObjectKeys]
    copied: int

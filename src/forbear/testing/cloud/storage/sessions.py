"""A resumable upload: which bytes have arrived and which may follow; pure, and knows neither HTTP nor the store."""

from dataclasses import dataclass, field

from forbear.testing.cloud.http.content import Content, Growing
from forbear.testing.cloud.http.errors import ApiError, invalid
from forbear.testing.cloud.http.messages import JsonObject
from forbear.testing.cloud.storage.conditions import Conditions
from forbear.testing.cloud.storage.model import StoredObject

CHUNK = 262_144


@dataclass(slots=True)
class Session:
    """An upload begun but perhaps not finished; everything but the bytes is fixed when it starts."""

    id: str
    bucket: str
    name: str
    fields: JsonObject
    conditions: Conditions
    total: int | None
    acl: dict[str, str] | None = None
    key_sha256: str | None = None
    data: Growing = field(default_factory=Growing)
    finished: StoredObject | None = None
    gone: int | None = None

    @property
    def complete(self) -> bool:
        """Whether every byte is here, and only the commit is missing."""
        return self.total is not None and len(self.data) == self.total

    def set_total(self, total: int) -> None:
        """Learn the final size; 400 when it contradicts what is known."""
        if self.total is not None and self.total != total:
            raise invalid(f"The total size {total} differs from {self.total}, the size given before.")
        if total < len(self.data):
            raise invalid(f"The total size {total} is less than the {len(self.data)} bytes received.")
        self.total = total

    def receive(self, offset: int, body: Content, *, enforce: bool = True) -> None:
        """Add a chunk at `offset`, skipping what is already here; `enforce=False` is a chunk that broke off."""
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
class Upload:
    """A multipart upload begun but not complete."""

    bucket: str
    name: str
    fields: JsonObject
    acl: dict[str, str] | None
    key_sha256: str | None = None
    parts: dict[int, Content] = field(default_factory=dict[int, Content])

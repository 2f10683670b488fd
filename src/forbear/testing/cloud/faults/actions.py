"""What can go wrong: the kinds of failure as plain data; who meets them and how they are done is decided elsewhere."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from forbear.testing.cloud.http.messages import Headers

When: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class RespondWith:
    """Answer with this status instead."""

    code: int
    headers: Headers
    reason: str | None
    message: str | None
    body: str | None


@dataclass(frozen=True, slots=True)
class Reset:
    """TCP RST, without a response."""


@dataclass(frozen=True, slots=True)
class Close:
    """FIN, without a response."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Promise the whole body, send `keep` bytes of it (or this `share`), then FIN or RST."""

    keep: int
    share: float | None
    reset: bool


@dataclass(frozen=True, slots=True)
class Stall:
    """Send `keep` bytes of the body, then nothing until the client leaves or `limit` seconds pass."""

    keep: int
    limit: float


@dataclass(frozen=True, slots=True)
class Partial:
    """Keep only the first bytes of an uploaded chunk; answer with `status`, or RST when None. 308 tells how many."""

    keep: int
    status: int | None


@dataclass(frozen=True, slots=True)
class ExpireSession:
    """Forget the upload session; it answers `status` from now on."""

    status: int


@dataclass(frozen=True, slots=True)
class Rewind:
    """Have the upload session lose what it has acknowledged, all but `to` bytes, and say so with 308."""

    to: int


@dataclass(frozen=True, slots=True)
class CorruptUpload:
    """Flip every bit of one of the bytes to be stored."""

    at: int


@dataclass(frozen=True, slots=True)
class IgnoreRange:
    """Send the whole, as if no range had been asked for."""


@dataclass(frozen=True, slots=True)
class OtherRange:
    """Send another range than the one asked for, and say which."""

    first: int
    last: int | None


@dataclass(frozen=True, slots=True)
class RefuseRange:
    """Answer 416, as if the range lay beyond the end."""


@dataclass(frozen=True, slots=True)
class ReplaceObject:
    """Have somebody else write the object; None flips every bit of its bytes, so that the size stays."""

    content: bytes | None


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Have somebody else delete the object."""


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Flip every bit of one byte of the body sent."""

    at: int


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait, then go on as if nothing had happened."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Lag:
    """Hide what the request makes from the next `reads`."""

    reads: int


@dataclass(frozen=True, slots=True)
class LongRunning:
    """Have the long-running operation that the request starts take so many polls, and fail with `error` if given."""

    polls: int
    error: int | None


Action: TypeAlias = (
    RespondWith
    | Reset
    | Close
    | Truncate
    | Stall
    | Partial
    | ExpireSession
    | Rewind
    | CorruptUpload
    | IgnoreRange
    | OtherRange
    | RefuseRange
    | ReplaceObject
    | DeleteObject
    | Corrupt
    | Delay
    | Lag
    | LongRunning
)

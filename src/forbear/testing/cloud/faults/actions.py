"""The actions of faults, as plain data; `faults.injection` performs them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from forbear.testing.cloud.http.messages import Headers

When: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class RespondWith:
    """Respond with this status, headers and body; `body` None stands for the API's JSON with `reason` and `message`."""

    code: int
    headers: Headers
    reason: str | None
    message: str | None
    body: str | None


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection (TCP RST) without a response."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection (TCP FIN) without a response."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Announce the whole body, send `keep` bytes of it (or this `share`), then close or reset the connection."""

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
    """Store only the first `keep` bytes of an uploaded chunk; respond with `status` (None: reset the connection)."""

    keep: int
    status: int | None


@dataclass(frozen=True, slots=True)
class ExpireSession:
    """Delete the upload session; it responds with `status` from now on."""

    status: int


@dataclass(frozen=True, slots=True)
class Rewind:
    """Make the upload session lose all but the first `to` bytes that it has acknowledged, and respond with 308."""

    to: int


@dataclass(frozen=True, slots=True)
class CorruptUpload:
    """Flip every bit of byte `at` of the bytes to be stored."""

    at: int


@dataclass(frozen=True, slots=True)
class IgnoreRange:
    """Send the whole object, as if the request had no Range header."""


@dataclass(frozen=True, slots=True)
class OtherRange:
    """Send this range instead of the requested one, with a Content-Range that says so."""

    first: int
    last: int | None


@dataclass(frozen=True, slots=True)
class RefuseRange:
    """Respond with 416, as if the range began beyond the end."""


@dataclass(frozen=True, slots=True)
class ReplaceObject:
    """Replace the object, as another client would; `content` None flips every bit of the old one."""

    content: bytes | None


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete the object, as another client would."""


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Flip every bit of byte `at` of the response body."""

    at: int


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait so many seconds, then continue as usual."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Lag:
    """Hide what the request creates from the next `reads` reads."""

    reads: int


@dataclass(frozen=True, slots=True)
class LongRunning:
    """Make the long-running operation that the request starts take so many polls, and fail if `error` is not None."""

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

"""The actions of faults, as plain data; `faults.injection` performs them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from forbear_cloud.http.messages import Headers

When: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class RespondWith:
    """Respond with the status `code`, these headers and this body.

    `body` None stands for the API's own JSON or XML of an error, with `reason` and `message`.
    """

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
    """Announce the whole body, send `keep` bytes of it, then close the connection, or reset it if `reset`.

    `share` (0 to 1), if not None, is the part of the body to send instead.
    """

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
    """Store only the first `keep` bytes of an uploaded chunk; respond with `status` (None: reset the connection).

    A 308 says which bytes the session has. It is not sent if the chunk has no more bytes than `keep`: the response is
    then the usual one.
    """

    keep: int
    status: int | None


@dataclass(frozen=True, slots=True)
class ExpireSession:
    """End the upload session; it responds with `status` from now on, to this request too."""

    status: int


@dataclass(frozen=True, slots=True)
class Rewind:
    """Make the upload session lose all but the first `to` bytes that it has, and respond with 308.

    The request's own bytes are lost too. A session that has ended, or has no more than `to` bytes, handles the request
    as usual.
    """

    to: int


@dataclass(frozen=True, slots=True)
class CorruptUpload:
    """Flip every bit of byte `at` (from 0) of the bytes to be stored; a shorter upload stays as it is."""

    at: int


@dataclass(frozen=True, slots=True)
class IgnoreRange:
    """Send the whole object, as if the request had no Range header."""


@dataclass(frozen=True, slots=True)
class OtherRange:
    """Send the bytes from `first` to `last` (None: to the end) instead of the requested range.

    The Content-Range says so.
    """

    first: int
    last: int | None


@dataclass(frozen=True, slots=True)
class RefuseRange:
    """Respond with 416, as if the range began beyond the end."""


@dataclass(frozen=True, slots=True)
class ReplaceObject:
    """Replace the object that the request is about, as another client would, or create it if it is missing.

    `content` None flips every bit of the old object.
    """

    content: bytes | None


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete the object that the request is about, if it exists, as another client would."""


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Flip every bit of byte `at` (from 0) of the response body; a shorter body stays as it is."""

    at: int


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait so many seconds before the request takes effect, or after that before the response is sent."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Lag:
    """Hide what the request creates: the first `reads` reads of it respond with 404."""

    reads: int


@dataclass(frozen=True, slots=True)
class LongRunning:
    """Make the long-running operation that the request starts end only at its `polls`-th poll.

    It fails with the code `error` of google.rpc, or succeeds if `error` is None.
    """

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

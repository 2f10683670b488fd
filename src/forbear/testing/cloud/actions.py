"""What can go wrong: the kinds of failure as plain data; who meets them and how they are done is decided elsewhere."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from forbear.testing.cloud.wire import Headers

When: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Status:
    """Answer with this status instead."""

    code: int
    headers: Headers
    reason: str | None
    message: str | None
    body: str | None


@dataclass(frozen=True, slots=True)
class Reset:
    """TCP RST, without a reply."""


@dataclass(frozen=True, slots=True)
class Close:
    """FIN, without a reply."""


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
    """Keep only the first bytes of an uploaded chunk; answer with `status`, or RST when None."""

    keep: int
    status: int | None


@dataclass(frozen=True, slots=True)
class ExpireSession:
    """Forget the upload session; it answers `status` from now on."""

    status: int


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
    Status | Reset | Close | Truncate | Stall | Partial | ExpireSession | Corrupt | Delay | Lag | LongRunning
)

"""Request bodies, and whole responses read within limits of size and time. Data of objects has no limit."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from forbear import Policy
from forbear.adapters import dataclass
from forbear_transfer.errors import HttpError, Stalled, WrongResponse
from forbear_transfer.wire.response import Response, WireError

ANSWER = 1024 * 1024
"""The largest response in bytes about one object, a session or a token. An object with all its metadata has 12 KiB."""

LONGEST_TOKEN = 16 * 1024
"""The longest token for the next page of a listing or the next call of a rewrite, in characters.

It becomes part of a URL; most are no longer than 1 KiB.
"""

_LONGEST = 600.0
"""Seconds that a response may take if the policy has no timeout; the default timeout is the same."""

_LONGEST_MESSAGE = 64 * 1024
_SPENT = "the body can be read only once"
_decode = json.JSONDecoder().decode  # `json.loads` looks for options first


class RequestBody:
    """`size` bytes of data, read anew for each attempt, with a few more before (`opening`) and after (`ending`).

    `moved` is called with the number of bytes of data that were sent, and with a negative number if they must be sent
    again; `moved_bytes` is their sum. A body that is not `repeatable` is sent again only by the transfer itself.
    `failed` says that the data could not be read.
    """

    once = False

    def __init__(
        self,
        pieces: Callable[[], Iterable[bytes]],
        size: int,
        moved: Callable[[int], None],
        opening: bytes = b"",
        ending: bytes = b"",
        *,
        repeatable: bool = True,
    ) -> None:
        self.moved_bytes = 0
        self.failed = False
        self._pieces = pieces
        self._size = len(opening) + size + len(ending)
        self._moved = moved
        self._opening = opening
        self._ending = ending
        self._repeatable = repeatable

    def __len__(self) -> int:
        return self._size

    def why_not_again(self) -> str | None:
        """Return the reason why the body cannot be sent again, None if it can.

        It cannot if it is not `repeatable`, or if its data could not be read.
        """
        return None if self._repeatable and not self.failed else _SPENT

    def pieces(self) -> Iterator[bytes]:
        """Yield the body from its start; bytes that an earlier attempt has moved are taken back first.

        A piece counts as moved when the next one is requested.
        """
        before, self.moved_bytes = self.moved_bytes, 0
        self._moved(-before)
        if self._opening:
            yield self._opening
        for piece in self._read():
            yield piece
            self.moved_bytes += len(piece)
            self._moved(len(piece))
        if self._ending:
            yield self._ending

    def _read(self) -> Iterator[bytes]:
        try:
            yield from self._pieces()
        except Exception:
            self.failed = True
            raise


def seconds_of(policy: Policy) -> float:
    """Return the seconds within which a whole response must arrive after its request was sent.

    That is the smaller one of the policy's attempt timeout and timeout, or 600 if it has neither.
    """
    limits = [limit for limit in (policy.attempt_timeout, policy.limits.timeout) if limit is not None]
    return min(limits, default=_LONGEST)


async def read_whole(response: Response, most: int, seconds: float | None = None) -> bytes:
    """Read and return the whole body of a response, and close the response.

    Raise WrongResponse if the body exceeds `most` bytes, and Stalled if it takes too long: longer than the request
    allows, or `seconds` from now.
    """
    try:
        if seconds is not None:
            response.limit(seconds)
        body = await response.read(most)
        if len(body) > most:
            raise WrongResponse(f"the server's response goes on after {most} bytes: no valid one is as long")
    finally:
        response.close()
    return body


@dataclass(slots=True)
class WholeResponse:
    """A response whose whole body was read; `headers` ignores the case of names."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """Return the JSON object in the body; WrongResponse if the body is no JSON, or another value than an object."""
        try:
            value = _decode(self.body.decode())
        except (ValueError, RecursionError) as error:
            raise WrongResponse(f"the server's response is not JSON: {self.body[:80]!r}") from error
        if not isinstance(value, dict):
            raise WrongResponse(f"the server's response is not JSON with fields: {self.body[:80]!r}")
        return cast("dict[str, Any]", value)


async def http_error(what: str, response: Response, seconds: float) -> HttpError:
    """Return an HttpError for a response with a status from 300 on; `what` names the request in it.

    It has the server's message if the body has one and arrives within `seconds`.
    """
    body = b""
    with suppress(WireError, Stalled, WrongResponse):
        body = await read_whole(response, _LONGEST_MESSAGE, seconds)
    message, cause = _read_message(body)
    return HttpError(what, response.status, message, response.headers, cause)


def _read_message(body: bytes) -> tuple[str, str]:
    """Return the message in the body of an error, and the word for the reason; "" for one that it does not have."""
    message = cause = ""
    with suppress(ValueError, RecursionError, LookupError, TypeError):
        error = json.loads(body)["error"]
        message = str(error["message"])
        cause = str(error["errors"][0]["reason"])
    return message, cause

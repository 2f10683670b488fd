"""Body: what a request for an upload carries, read piece by piece as the server takes it. It knows no file."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, cast

from forbear.policy import Policy
from forbear.transfer.errors import HttpError, Stalled, WrongResponse
from forbear.transfer.wire.response import Response, WireError

_SPENT = "the body can be read only once"


class RequestBody:
    """`size` bytes of data, read anew for each attempt, with a few more before (`opening`) and after (`ending`).

    `moved` is called with the bytes that the server takes, and with a negative count where they must go again; `told`
    is their sum. A body that is not `repeatable` is sent again by nobody but the transfer itself. `failed` is whether
    it could not be read. `sent` is called when all is written.
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
        self.told = 0
        self.failed = False
        self.sent: Callable[[], object] = _nothing
        self._pieces = pieces
        self._size = len(opening) + size + len(ending)
        self._moved = moved
        self._opening = opening
        self._ending = ending
        self._repeatable = repeatable

    def __len__(self) -> int:
        return self._size

    def why_not_again(self) -> str | None:
        """Return why the body cannot be sent again, None if it can."""
        return None if self._repeatable and not self.failed else _SPENT

    def pieces(self) -> Iterator[bytes]:
        """Read all of it; a piece counts as moved once the next one is asked for."""
        told, self.told = self.told, 0
        self._moved(-told)
        if self._opening:
            yield self._opening
        for piece in self._read():
            yield piece
            self.told += len(piece)
            self._moved(len(piece))
        if self._ending:
            yield self._ending
        self.sent()

    def _read(self) -> Iterator[bytes]:
        try:
            yield from self._pieces()
        except Exception:
            self.failed = True
            raise


def _nothing() -> None:
    """Nobody waits for it."""


ANSWER = 1024 * 1024
"""The most bytes of a response about one object, a session or a token: one with all its metadata has some 12 KiB."""

PAGE = 32 * 1024 * 1024
"""The most bytes of a page of a listing: 1 000 objects with names of 1 KiB and 8 KiB of metadata each have 10 MiB, and
three times as many where every character is escaped."""

LONGEST_TOKEN = 16 * 1024
"""The longest token of a next page or call: it goes into a URL, and has hardly more than a name, which has 1 KiB."""

EMPTY_PAGES = 1000
"""How many pages in a row may list nothing: the service sends some where it has skipped other objects."""

_LONGEST = 600.0
"""How many seconds a response may take where the policy has no timeout: as the one that it has by default."""

_CURE = "check the network and what answers, or allow for more (`timeout` of the policy)"


def seconds_of(policy: Policy) -> float:
    """Return how many seconds one response may take to be there whole, from when its request is sent."""
    limits = [limit for limit in (policy.attempt_timeout, policy.limits.timeout) if limit is not None]
    return min(limits, default=_LONGEST)


class Deadline:
    """When one response must be there whole: `seconds` after its request, or after the end of the Body that it sends.

    A Body has a limit of its own for each of its pieces.
    """

    __slots__ = ("_at", "_seconds", "_timer")

    def __init__(self, seconds: float, body: object = None) -> None:
        self._seconds = seconds
        self._timer: asyncio.Timeout | None = None
        self._at: float | None = None
        if isinstance(body, RequestBody):
            body.sent = self.begin
        else:
            self.begin()

    def begin(self) -> None:
        """Count from now on, unless it has begun."""
        if self._at is not None:
            return
        self._at = asyncio.get_running_loop().time() + self._seconds
        if self._timer is not None:
            with suppress(RuntimeError):  # the response was there before all of the body had gone
                self._timer.reschedule(self._at)

    async def __aenter__(self) -> None:
        """Cut the block short at the deadline, however much keeps coming: it raises Stalled."""
        self._timer = asyncio.timeout_at(self._at)
        await self._timer.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        timer, self._timer = self._timer, None
        if timer is None:
            return
        try:
            await timer.__aexit__(kind, error, trace)
        except TimeoutError as late:  # by the timer: it lets those of the block pass
            raise Stalled(f"the server's response was not there after {self._seconds:g} s", _CURE) from late


async def read_whole(response: Response, most: int, deadline: Deadline) -> bytes:
    """Read the body of a response; WrongResponse where it has more than `most` bytes, Stalled where it takes too long."""
    deadline.begin()
    try:
        async with deadline:
            body = await response.read(most)
        if len(body) > most:
            raise WrongResponse(f"the server's response goes on after {most} bytes, more than any that was asked for")
    finally:
        response.close()
    return body


class Pages:
    """The tokens of a listing, seen one by one: notices a circle of any length, and remembers no more than one token.

    The token to compare with is replaced at the 1st, 2nd, 4th, 8th … page (Brent's algorithm).
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._seen: str | None = None
        self._count = 0
        self._next = 1
        self._empty = 0

    def turned(self, token: object, *, empty: bool) -> str | None:
        """See the token of the next page, and whether this one is empty; None at the end.

        WrongResponse where there is no end to be expected.
        """
        if token is None or token == "":
            return None
        if not isinstance(token, str) or len(token) > LONGEST_TOKEN:
            raise WrongResponse(
                f"{self._what}: the token of the next page is no text of at most {LONGEST_TOKEN} characters"
            )
        if token == self._seen:
            raise WrongResponse(f"{self._what}: the next page is one of those before")
        self._count += 1
        if self._count == self._next:
            self._seen, self._next = token, self._next * 2
        self._empty = self._empty + 1 if empty else 0
        if self._empty > EMPTY_PAGES:
            raise WrongResponse(f"{self._what}: {EMPTY_PAGES} pages in a row list nothing")
        return token


_LONGEST_MESSAGE = 64 * 1024


@dataclass(frozen=True, slots=True)
class WholeResponse:
    """A reply that was read whole; `headers` are found by names in lower or upper case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body as an object of JSON; WrongResponse where it is none."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise WrongResponse(f"the server's reply is not JSON: {self.body[:80]!r}") from error
        if not isinstance(found, dict):
            raise WrongResponse(f"the server's reply is not JSON with fields: {self.body[:80]!r}")
        return cast("dict[str, Any]", found)


async def refusal(what: str, response: Response, seconds: float) -> HttpError:
    """Return the error for a response of 300 or more; the message is the server's own, where its body has one."""
    body = b""
    with suppress(WireError, Stalled, WrongResponse):
        body = await read_whole(response, _LONGEST_MESSAGE, Deadline(seconds))
    return HttpError(what, response.status, _message(body), response.headers)


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""

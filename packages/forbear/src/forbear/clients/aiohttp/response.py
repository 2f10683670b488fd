"""Responses of aiohttp whose body comes from memory, or from a reader that continues it where it breaks.

Everything in aiohttp that reads a body, `response.content` included, waits for more of it in one place
(`StreamReader._wait`). There a broken body is continued.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

from aiohttp import ClientPayloadError, ClientResponse, StreamReader
from aiohttp.base_protocol import BaseProtocol

from forbear.core.report import Report
from forbear.exchange.http.areader import AsyncReader
from forbear.exchange.http.responses import GivenUp, make_given_up

_LIMIT = 64 * 1024


class Pieces(AsyncIterator[bytes]):
    """The body of a response as it arrives, decoded if it was compressed; after an error it yields nothing more."""

    def __init__(self, response: ClientResponse) -> None:
        self._content: StreamReader | None = response.content

    @property
    def is_open(self) -> bool:
        """True until the body has ended or its reading has failed."""
        return self._content is not None

    async def __anext__(self) -> bytes:
        try:
            piece = b"" if self._content is None else await self._content.readany()
        except Exception:
            self._content = None
            raise
        if not piece:
            self._content = None
            raise StopAsyncIteration
        return piece


def keep(response: ClientResponse, content: bytes, *, is_all: bool = True) -> None:
    """Let the `content` of a response yield these bytes, decoded, and then the rest of it unless they are all."""
    if not is_all:
        response.content = _BegunBody(content, response.content)
        return
    response.content = _Fed(content)
    response.content.feed_eof()


def set_headers(response: ClientResponse, headers: Any, raw: Any) -> None:
    """Replace the headers of a response."""
    known: Any = response
    known._headers, known._raw_headers = headers, raw
    for name in ("headers", "raw_headers", "content_disposition"):
        known._cache.pop(name, None)


def attach_report(response: ClientResponse, report: Report) -> None:
    """Attach a report to a response, and to the error that its `raise_for_status()` raises."""
    untyped, kind = cast("Any", response), cast("Any", type(response))
    untyped.__forbear_report__ = report
    if GivenUp not in kind.__mro__:
        untyped.__class__ = make_given_up(kind)


class _Fed(StreamReader):
    """A body whose bytes begin with `content`, which is in memory."""

    __slots__ = ()

    def __init__(self, content: bytes) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(_Idle(loop), _LIMIT, loop=loop)
        if content:
            self.feed_data(content)


class _BegunBody(_Fed):
    """A body of which `head` was read from `rest`, which has the others."""

    __slots__ = ("_rest",)

    def __init__(self, head: bytes, rest: StreamReader) -> None:
        super().__init__(head)
        self._rest = rest

    async def _wait(self, func_name: str) -> None:
        piece = await self._rest.readany()
        if piece:
            self.feed_data(piece)
        else:
            self.feed_eof()


class Continued(_Fed):
    """The body of a response, continued by further responses: `reader` yields all of it.

    `first` is the part in the first response. `close` is called once the body ends with an error.
    """

    __slots__ = ("_close", "_first", "_reader")

    def __init__(self, first: Pieces, reader: AsyncReader[ClientResponse], close: Callable[[], object]) -> None:
        super().__init__(b"")
        self._first = first
        self._reader = reader
        self._close = close

    def set_exception(self, exc: BaseException, *args: Any, **kwargs: Any) -> None:
        """End the body with the error `exc` and call `close`, which closes the response that is being read."""
        super().set_exception(exc, *args, **kwargs)
        self._reader.end()
        self._close()

    async def read(self, n: int = -1) -> bytes:
        if n < 0 and not self.total_bytes:
            self._reader.whole = True
        return await super().read(n)

    async def _wait(self, func_name: str) -> None:
        try:
            piece = await anext(self._reader)
        except StopAsyncIteration:
            self.feed_eof()
        except BaseException:
            if not self._first.is_open:  # otherwise a reader has stopped waiting, and may continue later
                self.set_exception(ClientPayloadError("the body has broken off before"))
            raise
        else:
            self.feed_data(piece)


class _Idle(BaseProtocol):
    """A stand-in for the connection of a body that forbear feeds: its reading cannot be paused."""

    __slots__ = ()

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Do nothing."""

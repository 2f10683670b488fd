"""The bodies of aiohttp's requests: bytes, streams that can be read only once, and payloads that may rewind themselves.

One attempt at a time reads a file. aiohttp reads files in threads, and abandons an attempt while its thread still
reads.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from aiohttp import ClientConnectionResetError, MultipartWriter
from aiohttp.multipart import BodyPartReaderPayload
from aiohttp.payload import AsyncIterablePayload, BytesPayload, IOBasePayload, Payload

from forbear.exchange.http.send import Fixed
from forbear.http.bodies import AsyncOnce, position


class Reusable:
    """The body of a request, made of an aiohttp payload that may be written again, such as a form or a file.

    `in_turn` is the payload as an InTurn, which attempts write one after the other.
    """

    once = False
    failed = False

    def __init__(self, payload: Payload) -> None:
        self.in_turn = payload if isinstance(payload, InTurn) else InTurn(payload)  # a redirected request has one
        self._content: bytes | None = None

    def why_not_again(self) -> str | None:
        """Return the reason why the payload cannot be sent again, None if it can.

        A file may have been closed or be a pipe, and a part of a form may be readable only once. None also before the
        first attempt writes it, and once `content` has read it.
        """
        if self._content is not None or not self.in_turn.is_begun:
            return None
        if self.in_turn.is_spent():
            return "the body can no longer be rewound; keep its files open until the response is there, or pass bytes"
        return None

    async def content(self) -> bytes:
        """Return the whole body as bytes, read once and then kept; an upload session gets the part that it lacks."""
        if self._content is None:
            self._content = await self.in_turn.as_bytes()
        return self._content


class InTurn(Payload):
    """A payload around another one: an attempt writes it only after the previous one has stopped reading it.

    That holds even if the previous attempt reads it in a thread.
    """

    def __init__(self, payload: Payload) -> None:
        super().__init__(payload)
        self.is_begun = False
        self._payload = payload
        self._parts = tuple(_parts(payload))
        self._rewinds = all(map(_rewinds, self._parts))
        self._has_files = any(isinstance(part, IOBasePayload) for part in self._parts)
        self._reading: asyncio.Task[None] | None = None

    def is_spent(self) -> bool:
        """Return whether the payload cannot be read from its start again; a file that is being read is not checked."""
        if self.consumed or not self._rewinds:
            return True
        return not self._is_read and not all(map(_rewinds, self._parts))

    @property
    def _is_read(self) -> bool:
        return self._reading is not None and not self._reading.done()

    async def _free(self) -> None:
        """Wait until no attempt reads the payload."""
        while (reading := self._reading) is not None and not reading.done():
            await asyncio.wait({reading})

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:
        """Write at most `content_length` bytes of the payload (None: all) for one attempt, once no other reads it.

        If the attempt is cancelled, nothing more is sent. The reading is cancelled, too, except of files that can be
        rewound: their thread ends by itself, and the next attempt waits for that.
        """
        await self._free()
        self.is_begun = True
        gate: Any = _Gate(writer)
        reading = self._reading = asyncio.create_task(self._payload.write_with_length(gate, content_length))
        reading.add_done_callback(_observe)
        try:
            await asyncio.wait({reading})
        except BaseException:
            gate.is_shut = True
            if not (self._has_files and self._rewinds):
                reading.cancel()
            raise
        self._reading = None
        try:
            reading.result()
        finally:
            del reading  # otherwise the error's traceback would refer to the attempt

    async def write(self, writer: Any) -> None:
        await self.write_with_length(writer, None)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._payload.decode(encoding, errors)

    async def as_bytes(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        await self._free()
        return await self._payload.as_bytes(encoding, errors)

    @property
    def headers(self) -> Any:
        return self._payload.headers

    @property
    def size(self) -> int | None:
        return self._payload.size

    @property
    def consumed(self) -> bool:
        return self._payload.consumed

    @property
    def autoclose(self) -> bool:
        return self._payload.autoclose

    def _close(self) -> None:
        self._payload._close()

    async def close(self) -> None:
        await self._payload.close()


class _Gate:
    """A writer around that of one attempt: once `is_shut` is true (the attempt is over), it sends nothing more."""

    def __init__(self, writer: Any) -> None:
        self.is_shut = False
        self._writer = writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    async def write(self, chunk: Any, **options: Any) -> None:
        """Send a chunk; ClientConnectionResetError if the gate is shut."""
        if self.is_shut:
            raise ClientConnectionResetError("the attempt is over")
        await self._writer.write(chunk, **options)


def body_of(body: Any, limit: int) -> Fixed | AsyncOnce | Reusable:
    """Return forbear's form of a request's body: Fixed for bytes, AsyncOnce for an async iterable, else Reusable."""
    if isinstance(body, bytes):
        return Fixed(body)
    if isinstance(body, BytesPayload):
        return Fixed(bytes(body._value))
    if isinstance(body, AsyncIterablePayload) and body._cached_chunks is None:
        return AsyncOnce(body._value, limit)
    return Reusable(body)


def _parts(payload: Payload) -> Iterator[Payload]:
    """Yield the parts of a form, those of nested forms included, or the payload itself if it is no form."""
    if isinstance(payload, MultipartWriter):
        for part, _, _ in payload:
            yield from _parts(part)
    else:
        yield payload


def _rewinds(part: Payload) -> bool:
    """Return whether a payload that was partly read can be read from its start again.

    A file must be open and seekable, an async iterable must be kept by aiohttp, and a part of a received form never
    can.
    """
    if isinstance(part, IOBasePayload):
        return position(part._value) is not None
    if isinstance(part, AsyncIterablePayload):
        return part._cached_chunks is not None
    return not isinstance(part, BodyPartReaderPayload)


def _observe(reading: "asyncio.Task[None]") -> None:
    """Retrieve the error of a finished `reading` task, because asyncio would log it if the attempt was abandoned."""
    if not reading.cancelled():
        reading.exception()

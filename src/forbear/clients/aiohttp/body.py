"""The bodies of aiohttp's requests: bytes, streams that come once, and payloads that rewind themselves or cannot."""

from typing import Any

from aiohttp.payload import AsyncIterablePayload, BytesPayload, IOBasePayload, Payload

from forbear.exchange.body import AsyncOnce, Fixed
from forbear.http.bodies import position


class Reusable:
    """A payload that can be written anew as long as it says so: a form, or a file, which goes back to where it was."""

    once = False
    failed = False

    def __init__(self, payload: Payload) -> None:
        self._payload = payload
        self._content: bytes | None = None

    def why_not_again(self) -> str | None:
        """A file may have been closed meanwhile, or be a pipe, and a form may have a part that comes only once."""
        payload = self._payload
        if self._content is not None:
            return None
        if payload.consumed or (isinstance(payload, IOBasePayload) and position(payload._value) is None):
            return "the body can no longer be rewound; keep its files open until the reply is there, or pass bytes"
        return None

    async def content(self) -> bytes:
        """All of it, for the parts of it that a session asks for."""
        if self._content is None:
            self._content = await self._payload.as_bytes()
        return self._content


def bodied(body: Any, limit: int) -> Fixed | AsyncOnce | Reusable:
    """The body of a request; `limit` bytes of one that comes only once are kept."""
    if isinstance(body, bytes):
        return Fixed(body)
    if isinstance(body, BytesPayload):
        return Fixed(bytes(body._value))
    if isinstance(body, AsyncIterablePayload) and body._cached_chunks is None:
        return AsyncOnce(body._value, limit)
    return Reusable(body)

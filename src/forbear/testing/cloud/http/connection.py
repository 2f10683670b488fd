"""One client connection: read requests, have the application answer them, and send the responses."""

import asyncio
import logging
import time
from contextlib import suppress
from typing import Protocol

from forbear.testing.cloud.http.errors import ApiError, storage_error
from forbear.testing.cloud.http.hosts import Hosts
from forbear.testing.cloud.http.incoming import Incoming
from forbear.testing.cloud.http.memory import Space
from forbear.testing.cloud.http.messages import HttpRequest, HttpResponse
from forbear.testing.cloud.http.outgoing import Delivery, ResponseEnd, framed
from forbear.testing.cloud.http.stream import SocketStream, pause

_log = logging.getLogger(__name__)
_READS = ("GET", "HEAD")
_SMALL = 65_536
_PIECE = 1024 * 1024
_SECONDS_TO_READ_A_REFUSAL = 2.0


class Application(Protocol):
    """The service behind a connection: it answers requests."""

    @property
    def space(self) -> Space:
        """The limit of memory for requests and responses."""
        ...

    async def answer(self, request: HttpRequest) -> Delivery:
        """Return the response to a request, and how to deliver it."""
        ...

    def interrupted(self, request: HttpRequest) -> None:
        """Note a request whose body broke off."""
        ...


class ServerConnection:
    """Serves requests one after the other until either side ends it."""

    def __init__(self, app: Application, stream: SocketStream, hosts: Hosts, body_limit: int) -> None:
        self._app = app
        self._stream = stream
        self._incoming = Incoming(stream, hosts, body_limit, app.interrupted)

    @property
    def waiting_since(self) -> float | None:
        """Return when it began to wait for a request with its head, on the loop's clock; None while it serves one."""
        return self._incoming.waiting_since

    async def run(self) -> None:
        """Serve until the end; errors of the peer end the connection, and never more."""
        try:
            while await self._serve_one():
                pass
        except OSError:
            self._stream.abort()
        except Exception:
            _log.exception("a connection of the embedded cloud failed")
            self._stream.abort()
        except asyncio.CancelledError:
            # The server ends: what the peer has not read by now it will not get.
            self._stream.abort()
            raise
        finally:
            await self._stream.close()

    async def _serve_one(self) -> bool:
        """Serve one request; False when the connection has ended."""
        try:
            with self._app.space.moving() as moving:
                request = await self._incoming.next(moving)
                if request is None:
                    return False
                self._stream.allow(None)
                delivery = await self._app.answer(request)
                moving.stored = request.method not in _READS
            with self._app.space.moving() as moving:
                if delivery.response is not None and isinstance(delivery.response.body, bytes):
                    moving.add(len(delivery.response.body))
                return await self._deliver(delivery)
        except ApiError as error:
            await self._refuse(error)
            return False

    async def _deliver(self, delivery: Delivery) -> bool:
        """Send what is to be sent; True when the connection may be used again."""
        if delivery.delay:
            await pause(delivery.delay)
        if delivery.response is not None:
            await self._send(delivery.response, delivery)
        match delivery.ending:
            case ResponseEnd.STALL:
                await self._gone(delivery.limit)
            case ResponseEnd.RESET:
                await self._stream.reset()
            case ResponseEnd.CLOSE:
                pass
            case ResponseEnd.KEEP:
                return self._incoming.lasting
        return False

    async def _send(self, response: HttpResponse, delivery: Delivery) -> None:
        """Send head and body; one write for the usual small response, pieces with back pressure for a large one."""
        # A response that will not end as it should does not say so beforehand.
        whole = delivery.ending is ResponseEnd.KEEP
        lasting, chunked = self._incoming.lasting or not whole, not response.measured and self._incoming.takes_chunks
        head_only = self._incoming.head_only
        before, body, after = framed(response, time.time(), lasting=lasting, chunked=chunked, head_only=head_only)
        body = body.cut(0, delivery.cut)
        if len(body) <= _SMALL:
            await self._stream.write(before + bytes(body) + (after if whole else b""))
            return
        await self._stream.write(before)
        for piece in body.pieces:
            view = memoryview(piece)
            for start in range(0, len(view), _PIECE):
                await self._stream.write(view[start : start + _PIECE])
        if whole:
            await self._stream.write(after)

    async def _refuse(self, error: ApiError) -> None:
        """Answer what could not be understood, and close once the client has had the chance to read it."""
        self._stream.allow(None)
        self._incoming.lasting = False
        response = storage_error(error)
        await self._send(response, Delivery(response))
        # Closing with unread data would reset the connection, and the client would lose the answer.
        self._stream.write_end()
        await self._gone(_SECONDS_TO_READ_A_REFUSAL)

    async def _gone(self, limit: float) -> None:
        """Wait until the client has left, dropping what it sends, or until the limit in seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._stream.drop()

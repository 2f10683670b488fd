"""One client connection: read requests, have the application answer them, and send the responses."""

import asyncio
import logging
import time
from contextlib import suppress
from typing import Protocol

from forbear_cloud.http.hosts import Hosts
from forbear_cloud.http.incoming import Incoming
from forbear_cloud.http.memory import MemoryLimit, Transit
from forbear_cloud.http.messages import ApiError, HttpRequest, HttpResponse, storage_error
from forbear_cloud.http.outgoing import Delivery, ResponseEnd, frame
from forbear_cloud.http.stream import SocketStream, pause

_log = logging.getLogger(__name__)
_READS = ("GET", "HEAD")
_SMALL = 65_536
_PIECE = 1024 * 1024
_SECONDS_TO_READ_A_REFUSAL = 2.0


class Application(Protocol):
    """The service behind a connection: it answers requests."""

    async def answer(self, request: HttpRequest) -> Delivery:
        """Return the response to a request, and how to deliver it."""
        ...

    def interrupted(self, request: HttpRequest) -> None:
        """Log a request whose body broke off; keep the part that arrived (`request.content`) if it is of use."""
        ...


class ServerConnection:
    """Serve the requests of one connection, one after the other.

    `memory` counts the bytes of requests and responses, `hosts` checks the host that each request names, and
    `body_limit` is the largest request body in bytes.
    """

    def __init__(
        self, app: Application, memory: MemoryLimit, hosts: Hosts, body_limit: int, stream: SocketStream
    ) -> None:
        self._app = app
        self._memory = memory
        self.stream = stream
        self._incoming = Incoming(stream, hosts, body_limit, app.interrupted)

    @property
    def waiting_since(self) -> float | None:
        """Return when the wait for the next request began, in seconds on the event loop's clock.

        None while a request is read or served, and after `abort`.
        """
        return self._incoming.waiting_since

    def abort(self) -> None:
        """Close the connection at once, and discard what is not sent yet."""
        self._incoming.waiting_since = None
        self.stream.abort()

    async def run(self) -> None:
        """Serve requests until the connection ends. An error ends only this connection, and is logged if no OSError.

        A cancellation closes the connection at once and is raised.
        """
        try:
            while await self._serve_one():
                pass
        except OSError:
            self.stream.abort()
        except Exception:
            _log.exception("a connection of the embedded cloud failed")
            self.stream.abort()
        except asyncio.CancelledError:
            # The server stops: it discards what the client has not read yet.
            self.stream.abort()
            raise
        finally:
            await self.stream.close()

    async def _serve_one(self) -> bool:
        """Serve one request; return whether the connection can serve another. An ApiError is the last response."""
        try:
            with Transit(self._memory) as transit:
                request = await self._incoming.next(transit)
                if request is None:
                    return False
                self.stream.allow(None)
                delivery = await self._app.answer(request)
                transit.stored = request.method not in _READS
            with Transit(self._memory) as transit:
                if delivery.response is not None and isinstance(delivery.response.body, bytes):
                    transit.add(len(delivery.response.body))
                return await self._deliver(delivery)
        except ApiError as error:
            await self._refuse(error)
            return False

    async def _deliver(self, delivery: Delivery) -> bool:
        """Wait, send and end the response as `delivery` says; return whether the connection can serve another."""
        if delivery.delay:
            await pause(delivery.delay)
        if delivery.response is not None:
            await self._send(delivery.response, delivery)
        match delivery.ending:
            case ResponseEnd.STALL:
                await self._drain(delivery.limit)
            case ResponseEnd.RESET:
                await self.stream.reset()
            case ResponseEnd.CLOSE:
                pass
            case ResponseEnd.KEEP:
                return self._incoming.lasting
        return False

    async def _send(self, response: HttpResponse, delivery: Delivery) -> None:
        """Send the head and the body up to `delivery.cut`, a body of at most 64 KiB with the head in one write.

        A larger body is sent piece by piece, with back pressure. The end of a chunked body is sent only if the
        connection is to be kept (`ResponseEnd.KEEP`).
        """
        # A response that is going to break off looks like any other until then.
        whole = delivery.ending is ResponseEnd.KEEP
        lasting, chunked = self._incoming.lasting or not whole, not response.measured and self._incoming.takes_chunks
        head_only = self._incoming.head_only
        before, body, after = frame(response, time.time(), lasting=lasting, chunked=chunked, head_only=head_only)
        body = body.cut(0, delivery.cut)
        if len(body) <= _SMALL:
            await self.stream.write(before + bytes(body) + (after if whole else b""))
            return
        await self.stream.write(before)
        for piece in body.pieces:
            view = memoryview(piece)
            for start in range(0, len(view), _PIECE):
                await self.stream.write(view[start : start + _PIECE])
        if whole:
            await self.stream.write(after)

    async def _refuse(self, error: ApiError) -> None:
        """Send an error for a request that cannot be served, then FIN; wait at most 2 s until the client has left."""
        self.stream.allow(None)
        self._incoming.lasting = False
        response = storage_error(error)
        await self._send(response, Delivery(response))
        # Closing with unread data would reset the connection, and the client would lose the error.
        self.stream.write_end()
        await self._drain(_SECONDS_TO_READ_A_REFUSAL)

    async def _drain(self, limit: float) -> None:
        """Discard what the client sends until it leaves, for at most `limit` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self.stream.drop()

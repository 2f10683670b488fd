"""One client connection: bytes in, requests out to the app, deliveries back; knows HTTP/1.1 but no operation."""

import asyncio
import logging
import re
import socket
import struct
import sys
from array import array
from collections.abc import Iterable
from contextlib import suppress
from email.utils import formatdate

try:
    import h11
except ModuleNotFoundError as error:
    text = 'forbear.testing.cloud needs h11; install it with: pip install "forbear[cloud]"'
    raise ModuleNotFoundError(text, name="h11") from error

from forbear.testing.cloud.app import App
from forbear.testing.cloud.delivery import Delivery, Ending
from forbear.testing.cloud.errors import ApiError, storage_error
from forbear.testing.cloud.wire import Reply, Request, read_request

_log = logging.getLogger(__name__)
_PIECE = 262_144
_UNSENDABLE = re.compile(rb"[\x00-\x1f\x7f]")
_SECONDS_TO_READ_A_REFUSAL = 2.0
_MILLISECONDS_TO_ARRIVE = 5_000
_LINGER_ZERO = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)


class Connection:
    """Serves requests one after the other until either side ends it."""

    def __init__(self, app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body_limit: int) -> None:
        self._app = app
        self._reader = reader
        self._writer = writer
        self._body_limit = body_limit
        self._head_only = False
        self._http = h11.Connection(h11.SERVER)
        host, port = writer.get_extra_info("sockname")[:2]
        self._host = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def run(self) -> None:
        """Serve until the end; errors of the peer end the connection, and never more."""
        try:
            while await self._serve_one():
                self._http.start_next_cycle()
        except OSError:
            self._writer.transport.abort()
        except Exception:
            _log.exception("a connection of the embedded cloud failed")
            self._writer.transport.abort()
        except asyncio.CancelledError:
            # The server ends: what the peer has not read by now it will not get.
            self._writer.transport.abort()
            raise
        finally:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()

    async def _serve_one(self) -> bool:
        """Serve one request; False when the connection has ended."""
        try:
            request = await self._receive()
        except h11.RemoteProtocolError as error:
            await self._refuse(ApiError(error.error_status_hint, f"Bad request: {error}", "badRequest"))
            return False
        except ApiError as error:
            await self._refuse(error)
            return False
        if request is None:
            return False
        if self._app.administers(request):
            return await self._deliver(self._app.administer(request))
        admitted = self._app.admit(request)
        if admitted.wait:
            await self._pause(admitted.wait)
        return await self._deliver(self._app.answer(admitted))

    async def _receive(self) -> Request | None:
        """The next whole request, or None at the end of the connection."""
        self._head_only = False
        head: h11.Request | None = None
        body: list[bytes] = []
        size = 0
        try:
            while True:
                match await self._next_event():
                    case h11.Request() as head:
                        self._head_only = head.method == b"HEAD"
                        # Refused before the body is asked for: a client waiting for "100 Continue" need not send it.
                        self._check_size(_content_length(head))
                    case h11.Data(data=data):
                        size += len(data)
                        self._check_size(size)
                        body.append(data)
                    case h11.EndOfMessage() if head is not None:
                        return self._request(head, b"".join(body))
                    case _:
                        return None
        except (OSError, h11.RemoteProtocolError):
            if head is not None:
                self._app.interrupted(self._request(head, b"".join(body)))
            raise

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._writer.write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            self._http.receive_data(await self._reader.read(_PIECE))
        return event

    def _request(self, head: h11.Request, body: bytes) -> Request:
        headers: dict[str, str] = {}
        for name, value in head.headers:
            text = value.decode("latin-1")
            key = name.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        return read_request(head.method.decode(), head.target.decode("latin-1"), headers, body, self._host)

    def _check_size(self, size: int) -> None:
        if size > self._body_limit:
            raise ApiError(413, f"The request body is larger than {self._body_limit} bytes, the limit of this server.")

    async def _deliver(self, delivery: Delivery) -> bool:
        """Send what is to be sent; True when the connection may be used again."""
        if delivery.delay:
            await self._pause(delivery.delay)
        if delivery.reply is not None:
            await self._send(delivery.reply, delivery)
        match delivery.ending:
            case Ending.STALL:
                await self._gone(delivery.limit)
            case Ending.RESET:
                await self._reset()
            case Ending.CLOSE:
                pass
            case Ending.KEEP:
                return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        return False

    async def _send(self, reply: Reply, delivery: Delivery) -> None:
        """Send head and body; one write for the usual small reply, pieces with back pressure for a large one."""
        headers = [("Date", formatdate(usegmt=True)), ("Server", "forbear-cloud"), *reply.headers]
        bodiless = reply.status in (204, 304)
        if not bodiless:
            headers.append(("Content-Length", str(len(reply.body))))
        out = [self._http.send(h11.Response(status_code=reply.status, headers=_clean(headers))) or b""]
        body = b"" if bodiless or self._head_only else reply.body[: delivery.cut]
        for start in range(0, len(body), _PIECE):
            out.append(self._http.send(h11.Data(data=body[start : start + _PIECE])) or b"")
            if start + _PIECE < len(body):
                self._writer.write(b"".join(out))
                await self._writer.drain()
                out.clear()
        if delivery.ending is Ending.KEEP:
            out.append(self._http.send(h11.EndOfMessage()) or b"")
        self._writer.write(b"".join(out))
        await self._writer.drain()

    async def _refuse(self, error: ApiError) -> None:
        """Answer what could not be understood, and close once the client has had the chance to read it."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        reply = storage_error(error)
        closing = Reply(reply.status, (*reply.headers, ("Connection", "close")), reply.body)
        await self._send(closing, Delivery(closing))
        # Closing with unread data would reset the connection, and the client would lose the answer.
        if self._writer.can_write_eof():
            self._writer.write_eof()
        await self._gone(_SECONDS_TO_READ_A_REFUSAL)

    async def _gone(self, limit: float) -> None:
        """Wait until the client has left, dropping what it sends, or until the limit in seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while await self._reader.read(_PIECE):
                    pass

    async def _pause(self, seconds: float) -> None:
        """Wait; the server's end cancels it."""
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.get_running_loop().create_future(), seconds)

    async def _reset(self) -> None:
        """End the connection with RST, after everything sent has arrived: an RST discards what is still queued."""
        sock: socket.socket = self._writer.get_extra_info("socket")
        for _ in range(_MILLISECONDS_TO_ARRIVE):
            if not unacknowledged(sock):
                break
            await self._pause(0.001)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self._writer.transport.abort()


if sys.platform == "win32":

    def unacknowledged(sock: socket.socket) -> int:
        """Windows cannot tell how many bytes sent are still under way."""
        return 0

else:
    import fcntl
    import termios

    def unacknowledged(sock: socket.socket) -> int:
        """How many bytes sent are not yet with the peer; 0 on systems that do not tell of sockets."""
        count = array("i", [0])
        with suppress(OSError):
            fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, count)
        return count[0]


def _content_length(head: h11.Request) -> int:
    return next((int(value) for name, value in head.headers if name == b"content-length"), 0)


def _clean(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers as bytes the wire can carry: stored metadata may hold anything."""
    return [(name.encode(), _UNSENDABLE.sub(b"?", value.encode("ascii", "replace")).strip()) for name, value in headers]

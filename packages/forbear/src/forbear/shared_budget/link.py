"""`SocketLink`: a connection of the budget's own, on a non-blocking socket that is driven only when it is looked at."""

import errno
import os
import select
import socket
import threading
from contextlib import suppress
from typing import Any

from forbear.shared_budget.address import Address
from forbear.shared_budget.script import Command, NonsenseResponse
from forbear.shared_budget.wire import LONGEST, ErrorResponse, decode, encode
from forbear.text.redact import redact

_IDLE = 30.0
"""Seconds after which an unused connection is closed at the next ask: something between may have dropped it."""

_NOT_YET = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOTCONN, errno.EINPROGRESS, errno.EALREADY)


class LinkFailed(Exception):
    """The server cannot be asked, or its answer is lost; the text says why, without secrets."""


class SocketLink:
    """A connection to `address`, over TCP without TLS or a Unix socket; it opens with the first command.

    No method but `wait` blocks. Responses come in the order of the commands. LinkFailed means that what was sent is
    given up; close the link then. It has no lock.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._addresses: list[tuple[int, Any]] = []  # addresses left to try
        self._resolver: threading.Thread | None = None
        self._resolved: list[list[tuple[int, Any]] | OSError] = []
        self._socket: socket.socket | None = None
        self._written = False  # some byte has left
        self._out = bytearray()
        self._in = bytearray()
        self._greetings = 0  # responses to AUTH and SELECT still to come
        self._due = 0  # responses still to come, those to the greeting too
        self._used = 0.0

    def send(self, command: Command, now: float) -> None:
        """Send `command` as far as that does not block, on a new connection if need be; `now` is monotonic time."""
        if self._socket is not None and not self._due and (now - self._used > _IDLE or self._is_stale()):
            self.close()
        self._used = now
        if self._socket is None and self._resolver is None:
            greeting = self._address.greeting()
            self._greetings = self._due = len(greeting)
            for first in greeting:
                self._out += encode(first)
            self._resolve()
        self._out += encode(command)
        self._due += 1
        self._flush()

    def receive(self) -> list[object]:
        """Return the responses that have arrived since the last call, an error response as an ErrorResponse."""
        self._flush()
        if self._socket is None:
            return []
        try:
            data = self._socket.recv(LONGEST)
        except OSError as error:
            if error.errno not in _NOT_YET:
                raise self._failure(error) from None
            return []
        if not data:
            raise LinkFailed("the server closed the connection")
        self._in += data
        return self._responses()

    def wait(self, seconds: float) -> None:
        """Wait until there may be more to do, for at most so many real seconds."""
        resolver, connection = self._resolver, self._socket
        if connection is None:
            if resolver is not None:
                resolver.join(seconds)
            return
        writing = [connection] if self._out else []
        with suppress(OSError, ValueError):  # another thread may have closed it
            if hasattr(select, "poll"):  # select() refuses descriptors from 1024 on
                poll = select.poll()
                poll.register(connection, select.POLLIN | (select.POLLOUT if writing else 0))
                poll.poll(seconds * 1000)
            else:
                select.select([connection], writing, [], seconds)

    def close(self) -> None:
        """Close the connection at once; the next command opens a new one."""
        if self._socket is not None:
            self._socket.close()
        self.__init__(self._address)  # type: ignore[misc]

    def _is_stale(self) -> bool:
        """Return whether the other side has closed the idle connection, or has sent a response to nothing."""
        try:
            self.receive()
        except LinkFailed:
            return True
        return False

    def _responses(self) -> list[object]:
        responses: list[object] = []
        at = 0
        try:
            while at < len(self._in) and (one := decode(self._in, at)) is not None:
                response, at = one
                if not self._due:
                    raise NonsenseResponse("a response to nothing that was sent")
                self._due -= 1
                if isinstance(response, ErrorResponse):
                    response = ErrorResponse(self._shown(str(response)))
                if not self._greetings:
                    responses.append(response)
                elif isinstance(response, ErrorResponse):
                    raise LinkFailed(str(response))
                elif response == b"OK":
                    self._greetings -= 1
                else:
                    raise NonsenseResponse("a response to AUTH or SELECT that is not OK")
        except NonsenseResponse as error:
            raise LinkFailed(f"the server sent {error}") from None
        del self._in[:at]
        if len(self._in) > LONGEST:
            raise LinkFailed("the server sent a response that is too long")
        return responses

    def _resolve(self) -> None:
        """Look the host up, in a thread unless it is an address; then open the connection."""
        address = self._address
        if address.path is not None:
            self._addresses = [(socket.AF_UNIX, address.path)]
        else:
            for family in (socket.AF_INET, socket.AF_INET6):
                try:
                    socket.inet_pton(family, address.host)
                except OSError:
                    continue
                self._addresses = [(family, (address.host, address.port))]
        if self._addresses:
            self._connect(None)
            return
        resolved = self._resolved

        def look_up() -> None:
            try:
                rows = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
                resolved.append([(row[0], row[4]) for row in rows])
            except (OSError, UnicodeError) as error:
                resolved.append(error if isinstance(error, OSError) else OSError(str(error)))

        self._resolver = threading.Thread(target=look_up, name="forbear-shared-budget-dns", daemon=True)
        try:
            self._resolver.start()
        except RuntimeError as error:  # the interpreter is about to end
            raise LinkFailed(str(error)) from None

    def _connect(self, failure: OSError | None) -> None:
        """Begin to connect to the next address; LinkFailed with the last `failure` if none is left."""
        while self._addresses:
            family, target = self._addresses.pop(0)
            try:
                self._socket = connection = socket.socket(family, socket.SOCK_STREAM)
                connection.setblocking(False)
                if family != getattr(socket, "AF_UNIX", None):
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                code = connection.connect_ex(target)
                if code in (0, *_NOT_YET):
                    return
                connection.close()
                failure = OSError(code, os.strerror(code))
            except (OSError, ValueError) as error:  # no descriptor is left, or the path is too long
                failure = error if isinstance(error, OSError) else OSError(str(error))
        raise self._failure(failure or OSError("no address"))

    def _flush(self) -> None:
        """Write what waits to be written, as far as that does not block."""
        if self._resolver is not None and self._socket is None:
            if not self._resolved:
                return
            result = self._resolved[0]
            if isinstance(result, OSError):
                raise self._failure(result)
            self._addresses = result
            self._connect(None)
        while self._out and self._socket is not None:
            code = 0 if self._written else self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            try:
                if code:
                    raise OSError(code, os.strerror(code))
                count = self._socket.send(self._out)
            except OSError as error:
                if error.errno in _NOT_YET:
                    return
                if self._written:
                    raise self._failure(error) from None
                self._socket.close()  # nothing has left: another address of the server may work
                self._connect(error)
            else:
                self._written = True
                del self._out[:count]

    def _failure(self, error: OSError) -> LinkFailed:
        return LinkFailed(self._shown(f"cannot reach {self._address.shown}: {error.strerror or error}"))

    def _shown(self, text: str) -> str:
        return redact(self._address.hidden(text))[:300]

"""`SocketLink`: a connection of the budget's own, on a non-blocking socket that is driven only when it is looked at.

It has TCP, TLS, Unix sockets, AUTH, SELECT and EVALSHA, and no more; the rest is for client objects (`ClientLink`).
"""

import errno
import re
import selectors
import socket
import ssl
import threading
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from forbear.shared_budget.script import DIGEST, SCRIPT, Command, LinkFailed, decode, encode
from forbear.text.redact import HIDDEN, redact

_IDLE = 30.0  # seconds after which an unused connection is closed: something between may have dropped it
_NOT_YET = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_FORMS = "redis://[user:password@]host[:6379][/0], rediss://... (TLS) or unix://[user:password@]/path[?db=0]"


Login = tuple[str | None, str | None]  # the user and the password


class Address(NamedTuple):
    """A server. `target` is the family and address of its socket, None if a name must be looked up first, or for TLS.

    `greeting` has the commands that log in and choose the database, `shown` is the URL without user and password.
    """

    host: str
    port: int
    target: tuple[int, Any] | None
    tls: ssl.SSLContext | None
    login: Login
    greeting: list[Command]
    shown: str


def parse_url(name: str, url: str) -> Address:
    """Return the address in `url`, a parameter called `name`; ValueError, without the URL's text, for another form."""
    try:
        url.encode()  # a UnicodeEncodeError is a ValueError
        parts = urlsplit(url)
        port = 6379 if parts.port is None else parts.port
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise _wrong_url(name, "it cannot be parsed") from None
    scheme, host, is_path = parts.scheme, parts.hostname or "", parts.scheme == "unix"
    in_query, in_path = query.pop("db", ""), "" if is_path else parts.path.removeprefix("/")
    db = in_path or in_query
    faults: dict[str, object] = {
        "it has a zero character": "\0" in url,
        "it has no scheme": not scheme,
        "its scheme is another one": scheme not in ("redis", "rediss", "unix"),
        "it has a user without a password": parts.username and parts.password is None,
        f"its option `{min(query, default='')[:40]}` is not known; pass a client object for other options": query,
        "it has a fragment (#)": parts.fragment,
        "it has no path": is_path and not parts.path,
        "its path must begin with a slash": is_path and host,
        "it has no host": not is_path and not host,
        "its port is 0": not port,
        "it names the database twice": in_path and in_query,
        "its database is not a number": db and not re.fullmatch("[0-9]{1,5}", db),
    }
    if why := next((fault for fault, is_so in faults.items() if is_so), None):
        raise _wrong_url(name, why)
    login = (parts.username and unquote(parts.username)) or None, parts.password and unquote(parts.password)
    words = [word.encode() for word in login if word is not None]
    number, path, target = int(db or 0), unquote(parts.path), None
    greeting: list[Command] = [(b"AUTH", *words)] * bool(words) + [(b"SELECT", b"%d" % number)] * bool(number)
    if is_path:
        shown = f"unix://{path}" + f"?db={number}" * bool(number)
        return Address("", 0, (socket.AF_UNIX, path), None, login, greeting, shown)
    tls = ssl.create_default_context() if scheme == "rediss" else None  # now, because it reads files
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with suppress(OSError):  # for a name
        socket.inet_pton(family, host)
        target = None if tls else (family, (host, port))
    shown = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/{number}"
    return Address(host, port, target, tls, login, greeting, shown)


def _wrong_url(name: str, why: str) -> ValueError:
    return ValueError(f"`{name}` must be a URL such as {_FORMS}, but {why}")


def hide_login(text: str, login: Login) -> str:
    """Return `text` for display: without the password, and without the user where it is a word of its own."""
    user, password = login
    if password:
        text = text.replace(password, HIDDEN)
    return redact(re.sub(rf"(?<!\w){re.escape(user)}(?!\w)", HIDDEN, text) if user else text)[:300]


def _connect(address: Address) -> socket.socket:
    """Return a socket to the server that does not block; it blocks itself where `address` has no `target`."""
    if address.target is None:
        connection = socket.create_connection((address.host, address.port), 5)  # tries all addresses of the name
        if address.tls is not None:
            connection = address.tls.wrap_socket(connection, server_hostname=address.host)
        connection.setblocking(False)
    else:
        connection = socket.socket(address.target[0], socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            with suppress(BlockingIOError):  # it goes on by itself
                connection.connect(address.target[1])
        except (OSError, ValueError):
            connection.close()
            raise
    if address.host:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class SocketLink:
    """A connection to `address`, without a lock; it opens with the first command, and each one is that of the script.

    No method but `wait` blocks. Responses come in the order of the commands. LinkFailed means that what was sent is
    given up; close the link then.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._opener: threading.Thread | None = None
        self._opened: list[socket.socket | Exception | None] = []  # the first item counts; None: it was closed before
        self._in, self._out, self._last_use = bytearray(), bytearray(), 0.0
        self._due: deque[tuple[Command, list[object] | None]] = deque()  # commands sent, each with its box
        self._boxes: deque[list[object]] = deque()  # for the responses of the script, in the order of the asks

    def send(self, command: Command, now: float) -> None:
        """Send `command` as far as that does not block, on a new connection if need be; `now` is monotonic time."""
        if self._socket is not None and not self._due:
            try:
                self.receive()
            except LinkFailed:  # the other side has closed it
                self._last_use = float("-inf")
            if now - self._last_use > _IDLE:
                self.close()
        self._last_use = now
        if self._socket is None and not self._due:
            for first in self._address.greeting:
                self._write(first, None)
            self._open()
        self._boxes.append([])
        self._write((b"EVALSHA", DIGEST, *command[2:]), self._boxes[-1])
        self._flush()

    def receive(self) -> list[object]:
        """Return the responses of the script that have arrived since the last call."""
        self._flush()
        if self._socket is None:
            return []
        try:
            data = self._socket.recv(16_384)
        except OSError as error:
            self._check(error)
            return []
        if not data:
            raise LinkFailed("the server closed the connection")
        self._in += data
        while (decoded := decode(self._in)) is not None:
            del self._in[: decoded[1]]
            self._take(decoded[0])
        self._flush()
        responses: list[object] = []
        while self._boxes and self._boxes[0]:
            responses += self._boxes.popleft()
        return responses

    def wait(self, seconds: float) -> None:
        opener, connection = self._opener, self._socket
        if connection is not None:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._out else 0)
            with suppress(OSError, ValueError), selectors.DefaultSelector() as selector:  # it may be closed meanwhile
                selector.register(connection, events)
                selector.select(seconds)
        elif opener is not None:
            opener.join(seconds)

    def close(self) -> None:
        self._opened.append(None)
        if isinstance(self._opened[0], socket.socket):
            self._opened[0].close()
        self.__init__(self._address)  # type: ignore[misc]

    def _write(self, command: Command, box: list[object] | None) -> None:
        self._out += encode(command)
        self._due.append((command, box))

    def _take(self, response: object) -> None:
        """Put a response into its box; if the server does not know the script, send it."""
        if not self._due:
            raise LinkFailed("the server sent a response to nothing that was sent")
        command, box = self._due.popleft()
        if command[0] == b"EVALSHA" and isinstance(response, LinkFailed) and str(response).startswith("NOSCRIPT"):
            self._write((b"EVAL", SCRIPT, *command[2:]), box)
        elif isinstance(response, LinkFailed):
            name = command[0].decode() if box is None else "the script"
            raise LinkFailed(hide_login(f"the server refused {name}: {response}", self._address.login))
        elif box is not None:
            box.append(response)
        elif response != b"OK":
            raise LinkFailed("the server sent a response to AUTH or SELECT that is not OK")

    def _open(self) -> None:
        """Connect, in a thread where that may block: to look up a name, or to shake hands for TLS."""
        address, opened = self._address, self._opened

        def connect() -> None:
            try:
                opened.append(connection := _connect(address))
                if opened[0] is not connection:
                    connection.close()
            except (OSError, ValueError) as error:  # a path or a name may be too long
                opened.append(error)

        if address.target is not None:
            connect()
            return
        self._opener = threading.Thread(target=connect, name="forbear-shared-budget-connect", daemon=True)
        self._opener.start()

    def _flush(self) -> None:
        """Write what waits to be written, as far as that does not block."""
        if self._socket is None and self._opened:
            if isinstance(self._opened[0], Exception):
                self._check(self._opened[0])
            self._socket = self._opened[0]  # type: ignore[assignment]
        try:
            while self._out and self._socket is not None:
                del self._out[: self._socket.send(self._out)]
        except OSError as error:
            self._check(error)

    def _check(self, error: Exception) -> None:
        """Raise LinkFailed unless the error says only that a step would block."""
        if not isinstance(error, _NOT_YET) and getattr(error, "errno", None) != errno.ENOTCONN:  # it connects
            why = getattr(error, "strerror", None) or error
            raise LinkFailed(hide_login(f"cannot reach {self._address.shown}: {why}", self._address.login)) from None

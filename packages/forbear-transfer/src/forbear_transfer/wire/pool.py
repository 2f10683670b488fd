"""A pool of connections to the origins of requests, direct or through a proxy, kept open for the next requests."""

import asyncio
import base64
import os
import socket
import ssl
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from forbear.adapters import HiddenBytes, HiddenText, current_runtime, redact_address
from forbear.verdicts import PERMANENT
from forbear_transfer.errors import Stalled
from forbear_transfer.wire.connection import Connection
from forbear_transfer.wire.origin import Origin, parse_address, split
from forbear_transfer.wire.response import NotConnected, ProxyFailed, ProxyRefused, Response, Untrusted, WireError
from forbear_transfer.wire.watched import Payload, RateLimit

CONNECT_TIMEOUT = 30.0
"""Seconds for opening a connection, including the TLS handshake and the proxy's tunnel."""

_IDLE = 15.0
"""Seconds after which an idle connection is not reused, but closed: the server may be about to close it."""

_STAGGER = 0.25
"""Seconds after which the next address of a host is tried in parallel (RFC 8305)."""

_WRITE_AHEAD = 256 * 1024
_NO_SUCH_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
_GOOGLE = ".googleapis.com"
_WRONG_NAME = "check the name of the host: `endpoint` or STORAGE_EMULATOR_HOST selects the service"
_CLOSED = "the pool of connections is closed: `async with Storage() as storage:` around all that uses it"


class Pool:
    """Sends requests, at most `limit` at a time; the others wait. No two share a connection at the same time.

    A request counts until its response is read or closed. A connection is kept open for the next request to its origin.
    `headers` are added to every request. `proxy` is the URL of a proxy for all requests, None for direct connections.
    `stall_timeout` is in seconds. `rate` limits the bytes per second of all bodies together.
    """

    def __init__(
        self,
        limit: int,
        stall_timeout: float,
        headers: Mapping[str, str],
        proxy: str | None = None,
        rate: RateLimit | None = None,
    ) -> None:
        self.closed = False
        self._stall_timeout = stall_timeout
        self._headers = dict(headers)
        self._rate = rate
        self._proxy = None if proxy is None else _parse_proxy(proxy)
        self._proxy_headers = {} if proxy is None else _make_authorization(proxy)
        self._slots = asyncio.Semaphore(limit)
        self._idle: dict[Origin, list[Connection]] = {}
        self._open: dict[Connection, Origin] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._tls: ssl.SSLContext | None = None
        self._reached: set[Origin] = set()

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: "bytes | Payload | None" = None,
        seconds: float | None = None,
    ) -> Response:
        """Send a request once, and return its response once the headers have arrived. `method` must not be HEAD.

        The whole response must arrive within `seconds` after the request was sent (None: no limit), or it is Stalled;
        a reader may be slower.
        Raises NotConnected if no byte of the request was sent; a subclass says that the certificate is not valid or the
        proxy refuses. Raises another WireError, or Stalled, if its outcome is unknown. Errors of reading `body` are
        raised unchanged. RuntimeError once the pool is closed; ValueError for a wrong URL or header.
        """
        origin, target = split(url)
        head = self._make_full_head(method, origin, target, headers, body)
        await self._slots.acquire()
        try:
            if self._rate is not None and isinstance(body, bytes) and (delay := self._rate.delay(len(body))) > 0:
                await current_runtime().asleep(delay)  # before a connection is taken: the server may close an idle one
            connection = self._reuse(origin) or await self._connect(origin, seconds)
        except BaseException:
            self._slots.release()
            raise
        return await connection.request(head, body, seconds)  # at the end, `_take_back` releases the slot

    async def close(self) -> None:
        """Close all connections; running requests raise Broken, and later ones RuntimeError."""
        self.closed = True
        for connection in list(self._open):
            connection.abort()
        self._open.clear()
        self._idle.clear()
        if self._sweeper is not None:
            self._sweeper.cancel()
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, in which it closes the sockets

    def _make_full_head(
        self, method: str, origin: Origin, target: str, headers: Mapping[str, str], body: "bytes | Payload | None"
    ) -> bytes:
        fields = {**self._headers, **headers}
        if self._proxy is not None and origin.scheme == "http":
            target = HiddenText(f"http://{origin.netloc}{target}")
            fields.update(self._proxy_headers)
        if body is not None or method not in {"GET", "DELETE"}:
            fields["Content-Length"] = str(len(body) if body is not None else 0)
        return _make_head(method, target, origin.netloc, fields)

    def _reuse(self, origin: Origin) -> Connection | None:
        """Take a connection that was idle for less than 15 seconds; those that are older or closed are forgotten."""
        kept = self._idle.get(origin)
        oldest = asyncio.get_running_loop().time() - _IDLE
        while kept:
            connection = kept.pop()
            if self._is_usable(connection, oldest):
                return connection
        return None

    def _is_usable(self, connection: Connection, oldest: float) -> bool:
        """Return whether an idle connection is open, and idle since a time after `oldest`; else close and forget it."""
        if connection.is_open and connection.idle_since > oldest:
            return True
        connection.abort()
        self._open.pop(connection, None)
        return False

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        oldest = loop.time() - _IDLE
        idle = {origin: [one for one in kept if self._is_usable(one, oldest)] for origin, kept in self._idle.items()}
        self._idle = {origin: kept for origin, kept in idle.items() if kept}
        self._sweeper = loop.call_later(_IDLE, self._sweep) if self._idle else None

    async def _connect(self, origin: Origin, seconds: float | None) -> Connection:
        """Open a connection to an origin, through the proxy if there is one, and return it.

        NotConnected if that fails or takes over 30 seconds, or over `seconds`; its subclasses for a certificate that is
        not valid and for a proxy that refuses or cannot be reached. RuntimeError if the pool is closed.
        """
        if self.closed:
            raise RuntimeError(_CLOSED)
        at = self._proxy or origin
        connection = None
        limit = CONNECT_TIMEOUT if seconds is None else min(CONNECT_TIMEOUT, seconds)
        try:
            async with asyncio.timeout(limit):
                connection = await self._open_to(at)
                if at is not origin and origin.scheme == "https":
                    await self._open_tunnel(connection, at, origin)
            if self.closed:  # closed in the meantime
                raise RuntimeError(_CLOSED)
        except BaseException as error:
            if connection is not None:
                connection.abort()
            if isinstance(error, ssl.SSLCertVerificationError):
                owner = at if connection is None else origin  # a proxy may have a certificate as well
                raise Untrusted(f"the certificate of {owner.netloc} is not valid: {error.verify_message}") from error
            failure, peer = (NotConnected, origin.netloc)
            if at is not origin:
                through = f"the proxy {at.netloc}"
                failure, peer = ProxyFailed, through if connection is None else f"{peer} through {through}"
            if isinstance(error, TimeoutError):
                raise failure(f"no connection to {peer} within {limit:g} s") from error
            if isinstance(error, OSError):
                raised = failure(f"cannot connect to {peer}: {_explain(error)}")
                if self._is_wrong_name(at, error):
                    raised.verdict = PERMANENT
                    raised.hint = raised.hint if isinstance(raised, ProxyFailed) else _WRONG_NAME
                raise raised from error
            raise
        self._open[connection] = origin
        self._reached.add(at)
        return connection

    def _is_wrong_name(self, at: Origin, error: OSError) -> bool:
        """Return whether an error of connecting says that no host of this name exists, so that a retry is useless.

        A name that led to a server before may come back, and so may a host of Google: a machine that is offline can
        have the same error.
        """
        unknown = isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_NAME
        return unknown and at not in self._reached and not at.host.endswith(_GOOGLE)

    async def _open_to(self, at: Origin) -> Connection:
        loop = asyncio.get_running_loop()
        context, name = (self._find_context(), at.host) if at.scheme == "https" else (None, None)
        open_: Callable[..., Coroutine[Any, Any, tuple[asyncio.Transport, Connection]]] = partial(
            loop.create_connection,
            lambda: Connection(self._stall_timeout, self._take_back, self._rate),
            at.host,
            at.port,
            ssl=context,
            server_hostname=name,
        )
        try:
            opening = open_(happy_eyeballs_delay=_STAGGER if parse_address(at.host) is None else None)
        except TypeError:  # uvloop tries one address after the other
            opening = open_()
        transport, connection = await opening
        transport.set_write_buffer_limits(_WRITE_AHEAD)
        return connection

    async def _open_tunnel(self, connection: Connection, proxy: Origin, origin: Origin) -> None:
        """Ask the proxy for a tunnel to the origin, and start TLS through it."""
        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        target = f"{host}:{origin.port}"
        try:
            status = await connection.tunnel(_make_head("CONNECT", target, target, self._proxy_headers))
        except (WireError, Stalled) as error:
            raise ProxyFailed(f"the proxy {proxy.netloc} opened no tunnel: {error}") from error
        if not 200 <= status < 300:
            raise ProxyRefused(proxy.netloc, status)
        transport = await asyncio.get_running_loop().start_tls(
            connection.transport, connection, self._find_context(), server_hostname=origin.host
        )
        if transport is None:
            raise ConnectionResetError("the connection was closed during the TLS handshake")
        transport.set_write_buffer_limits(_WRITE_AHEAD)
        connection.transport = transport

    def _find_context(self) -> ssl.SSLContext:
        if self._tls is None:  # creating it reads all certificates of the machine
            self._tls = ssl.create_default_context()
            self._tls.hostname_checks_common_name = False  # only a subjectAltName names a host (RFC 9525)
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    def _take_back(self, connection: Connection) -> None:
        origin = self._open.get(connection)
        if origin is None:  # the request was the CONNECT to a proxy
            return
        self._slots.release()
        if connection.is_open and not self.closed:
            self._idle.setdefault(origin, []).append(connection)
            if self._sweeper is None:
                self._sweeper = asyncio.get_running_loop().call_later(_IDLE, self._sweep)
        else:
            self._open.pop(connection)


def _parse_proxy(url: str) -> Origin:
    """Return the origin of a proxy's URL; the text of a ValueError leaves out the URL's user and password."""
    try:
        return split(url)[0]
    except ValueError:
        raise ValueError(
            f"`proxy` must be an http:// or https:// URL with a host and a valid port, got {redact_address(url)}; "
            "look at HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment"
        ) from None


def _make_head(method: str, target: str, host: str, headers: Mapping[str, str]) -> bytes:
    """Return the head of a request; ValueError for a line end in it, or a space in the target."""
    first = HiddenText(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n")
    text = HiddenText("".join((first, *map("%s: %s\r\n".__mod__, headers.items()), "\r\n")))
    lines = len(headers) + 3
    if text.count("\n") != lines or text.count("\r") != lines or " " in target:
        raise ValueError(f"`headers` must hold no line end, `url` no line end or space, got one in {method} {host}")
    return HiddenBytes(text.encode("latin-1"))


def _explain(error: OSError) -> str:
    """Return the system's text for an error of connecting: asyncio replaces it by one with addresses."""
    known = error.errno if isinstance(error.errno, int) and not isinstance(error, socket.gaierror | ssl.SSLError) else 0
    return os.strerror(known) if known > 0 else error.strerror or str(error)


def _make_authorization(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": HiddenText(f"Basic {base64.b64encode(pair.encode()).decode()}")}

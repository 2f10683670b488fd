"""The transport that makes each attempt: TLS, proxies, addresses, and the time limit of an attempt."""

import ssl
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import Any

import httpx

from forbear.cli.kit.output import BadInput
from forbear_transfer.cli.curl.errors import BAD_CA_FILE, BAD_CERTIFICATE, CurlFailed
from forbear_transfer.cli.curl.settings import STALL_TIMEOUT, CurlSettings

_environment: Any = urllib.request
_OPENED = (".connect_tcp.complete", ".connect_unix_socket.complete", ".start_tls.complete")
_PROXY_PORT = 1080
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class CurlTransport(httpx.BaseTransport):
    """Sends each attempt of each hop, as the settings of the line say; `on_sent` is called before each.

    The environment's proxies apply as in curl (http_proxy, HTTPS_PROXY, ALL_PROXY, NO_PROXY). Each attempt has a
    connection of its own.
    """

    def __init__(self, settings: CurlSettings, on_sent: Callable[[httpx.Request], object]) -> None:
        self._settings = settings
        self._on_sent = on_sent
        self._transports: dict[tuple[str, str | None], httpx.HTTPTransport] = {}

    @property
    def timeouts(self) -> dict[str, float | None]:
        """The timeouts of an attempt in seconds, as a request's extension "timeout"."""
        limit, connect = self._settings.max_time, self._settings.connect_timeout
        connect = connect if limit is None else min(limit, connect)
        return {"connect": connect, "read": STALL_TIMEOUT, "write": STALL_TIMEOUT, "pool": STALL_TIMEOUT}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one attempt and return the response; raise ReadTimeout or ConnectTimeout at its time limit."""
        self._on_sent(request)
        proxy = _find_proxy(request.url, self._settings.values)
        transport = self._find_transport(request.url.scheme, proxy)
        limit = self._settings.max_time
        clock = None if limit is None else _AttemptClock(limit)
        changed = self._set_address(request, {} if clock is None else {"trace": clock.trace}, proxy)
        if clock is None:
            return transport.handle_request(changed)
        try:
            response = transport.handle_request(changed)
        except Exception as error:
            if clock.stop():
                raise clock.error(error, request) from error
            raise
        response.stream = _Timed(response.stream, clock, request)
        return response

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()

    def _set_address(self, request: httpx.Request, extensions: Mapping[str, Any], proxy: str | None) -> httpx.Request:
        """Return the request with these extensions, and the address of `--resolve` or `--connect-to`."""
        url, extensions = request.url, {**request.extensions, **extensions}
        port = url.port or (443 if url.scheme == "https" else 80)
        keys = ((url.host, port), (url.host, 0), ("", port), ("", 0))
        address = next((self._settings.resolved[key] for key in keys if key in self._settings.resolved), None)
        if proxy is not None and not proxy.startswith("socks") and "target" in extensions:
            if url.scheme == "https":  # httpcore would send it in the CONNECT request, too
                raise BadInput("this URL cannot go through the proxy as it is", "percent-encode its special characters")
            extensions["target"] = b"http://" + url.netloc + extensions["target"]
        if address is not None:
            if proxy is not None:
                raise BadInput("--resolve and --connect-to do not go with a proxy", "add --noproxy '*'")
            extensions.setdefault("target", url.raw_path)
            extensions["sni_hostname"] = url.host
            url = url.copy_with(host=address[0] or url.host, port=address[1] or port)
        return httpx.Request(request.method, url, headers=request.headers, stream=request.stream, extensions=extensions)

    def _find_transport(self, scheme: str, proxy: str | None) -> httpx.HTTPTransport:
        if (scheme, proxy) not in self._transports:
            self._transports[scheme, proxy] = self._make_transport(scheme, proxy)
        return self._transports[scheme, proxy]

    def _make_transport(self, scheme: str, proxy: str | None) -> httpx.HTTPTransport:
        settings = self._settings
        # Loading certificates takes long; without TLS a context that trusts none is enough.
        context = _make_tls(settings) if scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        user, colon, password = settings.values.get("proxy-user", "").partition(":")
        if user and not colon:
            raise BadInput("-U needs USER:PASSWORD", "add a colon and the password")
        try:
            return httpx.HTTPTransport(
                verify=context,
                http1=not settings.has("http2-prior-knowledge"),
                http2=settings.has("http2", "http2-prior-knowledge"),
                proxy=None if proxy is None else httpx.Proxy(proxy, auth=(user, password) if user else None),
                uds=settings.values.get("unix-socket"),
                local_address=_find_local_address(settings),
                limits=httpx.Limits(max_keepalive_connections=0),
                trust_env=False,
            )
        except ImportError:
            what, extra = ("--http2", "http2") if settings.has("http2", "http2-prior-knowledge") else ("SOCKS", "socks")
            raise BadInput(f"{what} needs a package that is missing", f'pip install "httpx[{extra}]"') from None
        except (ValueError, httpx.InvalidURL):
            raise BadInput("this is not the URL of a proxy", "write it as -x http://HOST:PORT") from None


class _AttemptClock:
    """The time limit of one attempt, in seconds: when it is over, the attempt's connection is shut down.

    The timeouts of httpx limit single waits only, and a slow server can be just in time for each.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._socket: socket | None = None
        self._is_over = False
        self._timer = threading.Timer(limit, self._end)
        self._timer.daemon = True
        self._timer.start()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        if not event.endswith(_OPENED):
            return
        with self._lock:
            self._socket = info["return_value"].get_extra_info("socket")
            self._shut_down()

    def stop(self) -> bool:
        self._timer.cancel()
        with self._lock:
            return self._is_over

    def error(self, error: Exception | None, request: httpx.Request) -> httpx.TimeoutException:
        """Return the error for an attempt whose time is over; `error` is what httpx raised, None if nothing."""
        kind = httpx.ConnectTimeout if isinstance(error, _UNSENT) else httpx.ReadTimeout
        return kind(f"the attempt took longer than --max-time {self._limit:g} s", request=request)

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            self._shut_down()

    def _shut_down(self) -> None:
        if self._is_over and self._socket is not None:
            with suppress(OSError):  # that of an SSLSocket would interfere with the thread that reads
                socket.shutdown(self._socket, SHUT_RDWR)


class _Timed(httpx.SyncByteStream):
    def __init__(self, stream: Any, clock: _AttemptClock, request: httpx.Request) -> None:
        self._stream = stream
        self._clock = clock
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._stream
        except Exception as error:
            if self._clock.stop():
                raise self._clock.error(error, self._request) from error
            raise
        if self._clock.stop():  # the end of the connection is no proof of the body's end then
            raise self._clock.error(None, self._request)

    def close(self) -> None:
        self._clock.stop()
        self._stream.close()


def _make_tls(settings: CurlSettings) -> ssl.SSLContext:
    values = settings.values
    if settings.has("insecure"):
        context = httpx.create_ssl_context(verify=False)
    elif "cacert" in values or "capath" in values:
        try:
            context = ssl.create_default_context(cafile=values.get("cacert"), capath=values.get("capath"))
        except (OSError, ValueError) as error:
            name = values.get("cacert") or values["capath"]
            raise _describe_failure(f"cannot use the CA certificates in {name}", error, BAD_CA_FILE) from None
    else:
        context = httpx.create_ssl_context()
    if settings.has("tlsv1.2", "tlsv1.3"):
        context.minimum_version = ssl.TLSVersion.TLSv1_3 if settings.has("tlsv1.3") else ssl.TLSVersion.TLSv1_2
    if "cert" in values:
        file, _, password = values["cert"].partition(":")
        if Path(values["cert"]).exists():
            file, password = values["cert"], ""
        try:
            context.load_cert_chain(file, values.get("key"), values.get("pass", password))
        except (OSError, ValueError) as error:
            raise _describe_failure(f"cannot use the certificate in {file}", error, BAD_CERTIFICATE) from None
    return context


def _describe_failure(text: str, error: Exception, code: int) -> CurlFailed:
    reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
    return CurlFailed(f"{text}: {reason}", code, "name a PEM file that you may read")


def _find_local_address(settings: CurlSettings) -> str | None:
    address = settings.values.get("interface")
    if address is not None:
        try:
            return str(ip_address(address))
        except ValueError:
            raise BadInput("--interface needs an IP address of this machine", "see `ip address`") from None
    return "0.0.0.0" if settings.has("ipv4") else "::" if settings.has("ipv6") else None  # noqa: S104 - nothing listens


def _find_proxy(url: httpx.URL, values: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for a request, by `-x` or else by the environment; None for none."""
    host = url.host if url.port is None else f"{url.host}:{url.port}"
    listed = values.get("noproxy")
    if _environment.proxy_bypass_environment(host, None if listed is None else {"no": listed}):
        return None
    proxy = values.get("proxy")
    if proxy is None:
        proxies: dict[str, str] = _environment.getproxies_environment()
        proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    authority = proxy.partition("://")[2].rpartition("@")[2].partition("/")[0]
    has_port = ":" in authority.rpartition("]")[2]
    return proxy if has_port or proxy.startswith("https:") else f"{proxy.rstrip('/')}:{_PROXY_PORT}"

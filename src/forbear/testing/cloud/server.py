"""The embedded cloud as users hold it: a server on loopback in a thread of its own, and its state within reach."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import FrameType, TracebackType
from typing import Self, TypeAlias

from forbear.testing.cloud.app import CloudApp
from forbear.testing.cloud.faults.checks import whole
from forbear.testing.cloud.faults.fault import Fault
from forbear.testing.cloud.faults.plan import Storm
from forbear.testing.cloud.http.connection import ServerConnection
from forbear.testing.cloud.http.hosts import Hosts, is_loopback
from forbear.testing.cloud.http.stream import BUFFER, SocketStream
from forbear.testing.cloud.journal import Effects, Requests
from forbear.testing.cloud.state import CloudState
from forbear.testing.cloud.storage.store import Store


class Cloud:
    """Cloud Storage (JSON and XML), IAM and Memorystore for Redis on loopback, with scripted faults and a journal.

    For tests only: it checks no credentials. Never expose it, also not through a proxy or a tunnel.

    `with Cloud() as cloud:` or `async with`. `host` is an address of loopback; `port=0` takes a free port; `seed` feeds
    faults that have a probability. `body_limit` (64 MiB) bounds one request and `memory_limit` (1 GiB) everything that
    is stored or on its way, in bytes; `connection_limit` (1024) the connections at once. Requests may name loopback and
    hosts of Google's APIs in their Host header, and the `allowed_hosts`. OSError when the port is taken.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        seed: int = 0,
        body_limit: int = 64 * 1024 * 1024,
        memory_limit: int = 1024**3,
        connection_limit: int = 1024,
        allowed_hosts: Sequence[str] = (),
    ) -> None:
        if not is_loopback(host):
            rule = "an address of loopback, such as 127.0.0.1 or ::1: the embedded cloud is for tests on this machine"
            raise ValueError(f"`host` must be {rule}, got {host!r}")
        if isinstance(allowed_hosts, str):
            raise TypeError(f"`allowed_hosts` must be a sequence of names, got {allowed_hosts!r}: write it as a list")
        self._host = host
        self._port = whole("port", port, maximum=65_535)
        self._limits = ServerLimits(
            Hosts(allowed_hosts),
            whole("body_limit", body_limit, minimum=1),
            whole("connection_limit", connection_limit, minimum=1),
        )
        self._state = CloudState(seed, whole("memory_limit", memory_limit, minimum=1))
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        """Where it listens: "http://127.0.0.1:PORT"; RuntimeError unless it is running."""
        if self._server is None:
            raise RuntimeError("the cloud has no `url` before it runs: use `with Cloud() as cloud:` or call `start()`")
        return self._server.url

    @property
    def store(self) -> Store:
        """The state itself, to set up and to look at."""
        return self._state.store

    @property
    def effects(self) -> Effects:
        """Every committed change."""
        return self._state.effects

    @property
    def requests(self) -> Requests:
        """Every request, with what it was told."""
        return self._state.requests

    @property
    def connections(self) -> int:
        """Return the number of connections that clients have open."""
        return 0 if self._server is None else len(self._server.connections)

    @property
    def pending_faults(self) -> int:
        """How many faults may still strike."""
        with self.store.lock:
            return self._state.plan.pending

    def fault(self, *faults: Fault | Storm) -> None:
        """Arm faults; of several that meet a request, the one added first strikes."""
        for fault in faults:
            if not isinstance(fault, Fault | Storm):
                raise TypeError(
                    f"`fault` takes what Fault.status(...) and its like or storm(...) return, got {fault!r}"
                )
        with self.store.lock:
            for fault in faults:
                self._state.plan.add(fault)

    def clear_faults(self) -> None:
        """Disarm all faults."""
        with self.store.lock:
            self._state.plan.clear()

    def reset(self) -> None:
        """Forget everything: what is stored, faults, effects and requests."""
        self._state.reset()

    def start(self) -> Self:
        """Start listening; does nothing when it already does."""
        if self._server is None:
            self._server = _Server(CloudApp(self._state), listen(self._host, self._port), self._limits)
        return self

    def stop(self) -> None:
        """Close every connection and end the thread; the state stays."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; OSError with a clear text when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        reason = error.strerror or str(error)
        text = f"`port` {port} on {host} cannot be listened on ({reason}): choose another, or 0 for a free one"
        raise OSError(error.errno, text) from None


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Which hosts requests may name, how large a body may be in bytes, and how many connections there may be."""

    hosts: Hosts
    body: int
    connections: int


Connections: TypeAlias = "dict[asyncio.Task[None], SocketStream]"


async def serve_until(
    stop: asyncio.Event, app: CloudApp, sock: socket.socket, limits: ServerLimits, connections: Connections
) -> None:
    """Serve `connections` on `sock` until `stop` is set, then end them all.

    One connection too many takes the place of the one that has waited longest for a request, if there is one.
    """
    loop = asyncio.get_running_loop()
    served: dict[asyncio.Task[None], ServerConnection] = {}

    def connected(stream: SocketStream) -> None:
        if len(connections) >= limits.connections:
            idle = [(since, task) for task, each in served.items() if (since := each.waiting_since) is not None]
            if not idle:
                stream.abort()
                return
            _, longest = min(idle, key=itemgetter(0))
            del served[longest]
            connections[longest].abort()
        connection = ServerConnection(app, stream, limits.hosts, limits.body)
        task = loop.create_task(connection.run())
        connections[task], served[task] = stream, connection
        task.add_done_callback(left)

    def left(task: asyncio.Task[None]) -> None:
        connections.pop(task, None)
        served.pop(task, None)

    buffer = memoryview(bytearray(BUFFER))
    server = await loop.create_server(lambda: SocketStream(connected, buffer), sock=sock)
    try:
        await stop.wait()
    finally:
        # A connection that asyncio is just accepting when the server closes would be left open: first no more of them,
        # then those to their end, then the close.
        loop.remove_reader(sock.fileno())
        accepting = asyncio.all_tasks() - connections.keys() - {asyncio.current_task()}
        await asyncio.gather(*accepting, return_exceptions=True)
        server.close()
        open_ones = dict(connections)
        for task, stream in open_ones.items():
            # Both, because a task that has not begun yet would not get to close its connection.
            task.cancel()
            stream.abort()
        await asyncio.gather(*open_ones, *(stream.close() for stream in open_ones.values()), return_exceptions=True)
        await server.wait_closed()


class _Server:
    """One run of the server: a thread with a loop of its own, because the caller's loop may be busy or not there."""

    def __init__(self, app: CloudApp, sock: socket.socket, limits: ServerLimits) -> None:
        host, port = sock.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._app = app
        self._sock = sock
        self._limits = limits
        self.connections: Connections = {}
        self._loop = asyncio.SelectorEventLoop()  # on Windows too: the other kind cannot stop accepting
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="forbear-cloud", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(serve_until(self._stop, self._app, self._sock, self._limits, self.connections))

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def serve(
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    seed: int = 0,
    body_limit: int = 64 * 1024 * 1024,
    memory_limit: int = 1024**3,
    allowed_hosts: Sequence[str] = (),
    on_ready: Callable[[Cloud], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; `on_ready` gets the running cloud once, to announce its URL and arm faults.

    The other arguments are those of `Cloud`. For tests only: never expose it. Only in the main thread (ValueError
    elsewhere: signals arrive there). OSError when the port is taken.
    """
    stop = threading.Event()

    def leave(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with Cloud(
            host=host,
            port=port,
            seed=seed,
            body_limit=body_limit,
            memory_limit=memory_limit,
            allowed_hosts=allowed_hosts,
        ) as cloud:
            if on_ready is not None:
                on_ready(cloud)
            # In short waits, because on Windows a signal does not end a wait.
            while not stop.wait(0.5):
                pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

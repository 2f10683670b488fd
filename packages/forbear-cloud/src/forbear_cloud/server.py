"""The embedded cloud that users start: a server on loopback in its own thread, with access to its state."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self
from weakref import WeakSet

from forbear_cloud.admin import CloudState
from forbear_cloud.app import CloudApp
from forbear_cloud.faults.fault import Fault
from forbear_cloud.faults.parameters import whole
from forbear_cloud.faults.plan import RandomFaults
from forbear_cloud.http.connection import ServerConnection
from forbear_cloud.http.hosts import Hosts, is_loopback
from forbear_cloud.http.stream import BUFFER, SocketStream
from forbear_cloud.journal import Effects, Requests
from forbear_cloud.storage.store import Store


class Cloud:
    """Cloud Storage (JSON and XML), IAM and Memorystore for Redis on loopback, with scripted faults and a journal.

    Use it as `with Cloud() as cloud:` or `async with`. It is for tests only: it checks no credentials. Never expose it,
    not even through a proxy or a tunnel.

    `host` is a loopback address, and `port=0` takes a free port. `seed` is for faults that have a probability.
    `body_limit` (64 MiB) is the largest body of a request, and `memory_limit` (1 GiB) limits all that is stored or in
    transit; both are in bytes. `connection_limit` (1024) is the most connections at once. The Host header of a request
    must name loopback, a host of Google's APIs, or one of the `allowed_hosts`. Starting raises OSError if the port is
    taken.

    >>> import requests
    >>> from forbear.clients.requests import RetryAdapter
    >>> with Cloud() as cloud, requests.Session() as session:
    ...     bucket = cloud.store.create_bucket("my-bucket")
    ...     cloud.fault(Fault.status(503, times=2))
    ...     session.mount("http://", RetryAdapter())
    ...     session.get(cloud.url + "/storage/v1/b/my-bucket").status_code, len(cloud.requests)
    (200, 3)
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
            rule = "a loopback address, such as 127.0.0.1 or ::1: the embedded cloud is for tests on this machine"
            raise ValueError(f"`host` must be {rule}, got {host!r}")
        if isinstance(allowed_hosts, str):
            raise TypeError(f"`allowed_hosts` must be a sequence of names, got {allowed_hosts!r}: write it as a list")
        self._host = host
        self._port = whole("port", port, maximum=65_535)
        self._limits = (
            Hosts(allowed_hosts),
            whole("body_limit", body_limit, minimum=1),
            whole("connection_limit", connection_limit, minimum=1),
        )
        self._state = CloudState(seed, whole("memory_limit", memory_limit, minimum=1))
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        """Return the URL, such as "http://127.0.0.1:PORT" (no slash at the end); RuntimeError unless the cloud runs."""
        if self._server is None:
            raise RuntimeError("the cloud has no `url` before it runs: use `with Cloud() as cloud:` or call `start()`")
        return self._server.url

    @property
    def store(self) -> Store:
        """Return the store of buckets, objects and other resources, through which a test prepares and inspects them."""
        return self._state.store

    @property
    def effects(self) -> Effects:
        """Return the journal of committed changes, in which reads and failed requests do not appear."""
        return self._state.effects

    @property
    def requests(self) -> Requests:
        """Return the log of requests, with the status of each response; requests to /_cloud/ are not in it."""
        return self._state.requests

    @property
    def connections(self) -> int:
        """Return how many connections clients have open; 0 if the cloud is not running."""
        return 0 if self._server is None else len(self._server.connections)

    @property
    def pending_faults(self) -> int:
        """Return how many of the added faults may still occur.

        A fault that may occur without limit counts as one, and random faults do not count.
        """
        with self.store.lock:
            return self._state.plan.pending

    def fault(self, *faults: Fault | RandomFaults) -> None:
        """Add faults; a request gets the one that was added first of those that apply to it, and random ones last.

        TypeError, and none is added, if one of them is neither a Fault nor RandomFaults.
        """
        for fault in faults:
            if not isinstance(fault, Fault | RandomFaults):
                raise TypeError(f"`fault` takes faults, such as Fault.status(503) or random_faults(1), got {fault!r}")
        with self.store.lock:
            for fault in faults:
                self._state.plan.add(fault)

    def clear_faults(self) -> None:
        """Remove all faults, also random ones, and start the random numbers of those with a probability anew."""
        with self.store.lock:
            self._state.plan.clear()

    def reset(self) -> None:
        """Delete everything stored, all faults, the effects and the requests; ids and generations keep rising."""
        self._state.reset()

    def start(self) -> Self:
        """Start the server in its own thread, unless it is running, and return this cloud.

        OSError if the port is taken.
        """
        if self._server is None:
            self._server = _Server(self._state, listen(self._host, self._port), *self._limits)
            RUNNING.add(self)
        return self

    def stop(self) -> None:
        """Stop the server, if it is running, and close every connection; what is stored and logged stays."""
        server, self._server = self._server, None
        RUNNING.discard(self)
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
    """Return a TCP socket that listens on an IPv4 or IPv6 address and a port (0: a free one).

    OSError with a message that names both if they cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        reason = error.strerror or str(error)
        text = f"`port` {port} on {host} cannot be listened on ({reason}): choose another, or 0 for a free one"
        raise OSError(error.errno, text) from None


RUNNING: WeakSet[Cloud] = WeakSet()
"""The embedded clouds that run in this process."""


class _Server:
    """One run of the server, in a thread with its own event loop, because the caller's loop may be busy or absent.

    A connection beyond the limit replaces the one that has waited longest for a request. If none is waiting, the new
    one is refused.
    """

    def __init__(
        self, state: CloudState, sock: socket.socket, hosts: Hosts, body_limit: int, connection_limit: int
    ) -> None:
        host, port = sock.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self.connections: dict[asyncio.Task[None], ServerConnection] = {}
        self._sock = sock
        self._connection_limit = connection_limit
        self._connection = partial(ServerConnection, CloudApp(state), state.store.space, hosts, body_limit)
        self._loop = asyncio.SelectorEventLoop()  # also on Windows, where the default loop cannot stop accepting
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="forbear-cloud", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        """Accept connections and serve them until `stop` is called, then close them all."""
        buffer = memoryview(bytearray(BUFFER))
        server = await self._loop.create_server(lambda: SocketStream(self._accept, buffer), sock=self._sock)
        try:
            await self._stop.wait()
        finally:
            # A connection that asyncio is just accepting when the server closes would stay open. So stop accepting
            # first, wait for those in progress, and then close.
            self._loop.remove_reader(self._sock.fileno())
            accepting = asyncio.all_tasks() - self.connections.keys() - {asyncio.current_task()}
            await asyncio.gather(*accepting, return_exceptions=True)
            server.close()
            remaining = dict(self.connections)
            for task, connection in remaining.items():
                # Abort as well, because a task that has not started yet would not close its connection.
                task.cancel()
                connection.abort()
            closing = (connection.stream.close() for connection in remaining.values())
            await asyncio.gather(*remaining, *closing, return_exceptions=True)
            await server.wait_closed()

    def _accept(self, stream: SocketStream) -> None:
        if len(self.connections) >= self._connection_limit:
            waiting = [each for each in self.connections.values() if each.waiting_since is not None]
            if not waiting:
                stream.abort()
                return
            min(waiting, key=attrgetter("waiting_since")).abort()
        connection = self._connection(stream)
        task = self._loop.create_task(connection.run())
        self.connections[task] = connection
        task.add_done_callback(self.connections.pop)


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
    """Run a cloud until SIGINT or SIGTERM; `on_ready` is called once with it, to announce its URL or add faults.

    The other arguments are those of `Cloud`. It is for tests only: never expose it. Call it in the main thread, which
    receives signals; elsewhere it raises ValueError. OSError if the port is taken. The handlers of both signals are
    restored at the end. Example: see `Cloud`.
    """
    # Not an Event: its lock is not reentrant, so a handler that sets it may wait for ever for the code it interrupted.
    stop: SimpleQueue[None] = SimpleQueue()
    before = {
        number: signal.signal(number, lambda _number, _frame: stop.put(None))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
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
            while True:
                with suppress(Empty):
                    stop.get(timeout=0.5)  # in short steps, because a signal does not interrupt a wait on Windows
                    break
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""A TCP proxy on loopback that cuts connections at the moments that a function chooses."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from types import TracebackType
from typing import Self, TypeAlias

_PIECE = 65_536

Cut: TypeAlias = Callable[[bytes, bytes | None], bool]
"""A function that returns whether to cut the connection instead of forwarding a piece.

The first argument is the request: what the client has sent since it last received anything. The second is None if the
proxy is about to forward the request, which a cut then loses. Otherwise it is the piece of the response that the proxy
is about to forward, and a cut loses that.
"""


class Proxy:
    """Forward TCP connections to a server, until `cut` returns True: `with Proxy(path, cut) as proxy:`.

    `target` is the path of a Unix socket, or a host and a port. `cut` is called in the proxy's thread, one call at a
    time, for each piece that arrives (at most 64 KiB). When it returns True, the piece is lost, and both ends of that
    connection are closed. An error in `cut` closes the connection too; the first one is raised at the end of the `with`
    block.

    >>> from forbear.clients.redis import Redis
    >>> with Proxy(valkey, lambda request, response: response is not None and b"INCR" in request) as proxy:
    ...     with Redis(port=proxy.port) as client:
    ...         client.incr("count")  # is executed, and its response is lost
    Traceback (most recent call last):
        ...
    redis.exceptions.ConnectionError: ...
    >>> with Redis(unix_socket_path=valkey) as client:
    ...     client.get("count")
    b'1'
    """

    def __init__(self, target: str | tuple[str, int], cut: Cut) -> None:
        self.host = "127.0.0.1"
        self.port = 0
        """The port that the proxy listens on, within the `with` block."""
        self.cuts: Counter[str] = Counter()
        """The number of lost messages under two keys: `"requests"` for requests, `"responses"` for responses."""
        self._target = target
        self._cut = cut
        self._connections = set[asyncio.Task[None]]()
        self._errors = list[Exception]()
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="forbear-proxy", daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, self.host, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._connected(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            upstream, onward = await self._connect()
            ends.append(onward)
            exchange = _Exchange()
            requests = self._forward(exchange, reader, onward, is_response=False)
            responses = self._forward(exchange, upstream, writer, is_response=True)
            for direction in asyncio.as_completed([requests, responses]):
                await direction  # when one direction ends, end the other
                break
        except OSError:
            pass  # the server or the client closed the connection
        except Exception as error:
            self._errors.append(error)
        finally:
            for end in ends:
                end.transport.abort()
            for end in ends:
                with suppress(OSError):
                    await end.wait_closed()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, str):
            return await asyncio.open_unix_connection(self._target)
        return await asyncio.open_connection(*self._target)

    async def _forward(
        self, exchange: "_Exchange", reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_response: bool
    ) -> None:
        while piece := await reader.read(_PIECE):
            if not is_response:
                exchange.add(piece)
            exchange.responded = is_response
            if self._cut(exchange.request, piece if is_response else None):
                self.cuts["responses" if is_response else "requests"] += 1
                return
            writer.write(piece)
            await writer.drain()


class _Exchange:
    """The latest request of one connection; `responded` is true if the latest piece was one of a response."""

    def __init__(self) -> None:
        self.request = b""
        self.responded = False

    def add(self, piece: bytes) -> None:
        self.request = piece if self.responded else self.request + piece


def at_random(rate: float, seed: int) -> Cut:
    """Return a function that cuts at this rate (0 to 1) for each piece, in both directions, the same for one `seed`.

    >>> cut = at_random(0.5, seed=1)
    >>> [cut(b"request", None) for _ in range(6)]
    [True, False, False, True, True, True]
    """
    dice = Random(seed)
    return lambda request, response: dice.random() < rate

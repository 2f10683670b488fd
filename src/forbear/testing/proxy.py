"""A proxy on loopback that cuts connections where it is told to; it knows no protocol and no server."""

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
"""Whether to cut the connection instead of passing a piece on.

The first argument is what the client has sent since it was last sent anything. The second is None where that is about
to be passed on, so that a cut loses a request, and a piece of the reply where a cut loses that.
"""


class Proxy:
    """Passes on what comes over TCP to a server and back, until `cut` says to cut: `with Proxy(path, cut) as proxy:`.

    `target` is the path of a Unix socket, or a host and a port. `cut` is called in the proxy's thread, once at a time,
    for each piece as it arrives (64 KiB at most): where it says True, the piece is lost and both ends are closed. An
    error of `cut` ends that connection, and comes out when the proxy is left.
    """

    def __init__(self, target: str | tuple[str, int], cut: Cut) -> None:
        self.host = "127.0.0.1"
        self.port = 0
        """Where it listens, once it has been entered."""
        self.cuts: Counter[str] = Counter()
        """How many "requests" and "replies" were lost."""
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
        left = list(self._connections)
        for connection in left:
            connection.cancel()
        await asyncio.gather(*left, return_exceptions=True)
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
            ways = [self._requests(exchange, reader, onward), self._replies(exchange, upstream, writer)]
            for way in asyncio.as_completed(ways):
                await way  # when either way ends, both do
                break
        except OSError:
            pass  # the server is gone, or the client
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

    async def _requests(
        self, exchange: "_Exchange", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while piece := await reader.read(_PIECE):
            exchange.sent(piece)
            if self._cut(exchange.asked, None):
                self.cuts["requests"] += 1
                return
            writer.write(piece)
            await writer.drain()

    async def _replies(self, exchange: "_Exchange", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE):
            exchange.replied = True
            if self._cut(exchange.asked, piece):
                self.cuts["replies"] += 1
                return
            writer.write(piece)
            await writer.drain()


class _Exchange:
    """What a client has sent last."""

    def __init__(self) -> None:
        self.asked = b""
        self.replied = False

    def sent(self, piece: bytes) -> None:
        self.asked = piece if self.replied else self.asked + piece
        self.replied = False


def at_random(rate: float, seed: int) -> Cut:
    """Cut at this rate (0 to 1) for each piece, either way."""
    dice = Random(seed)
    return lambda asked, reply: dice.random() < rate

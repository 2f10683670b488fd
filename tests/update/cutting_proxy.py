"""A proxy on loopback that cuts connections at random: before a request gets through, or before its reply does."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from random import Random


class CuttingProxy:
    """Forwards to a Unix socket, and cuts at this `rate` per piece; counts the `cuts` on either way."""

    def __init__(self, target: str, rate: float, seed: int) -> None:
        self.port = 0
        self.cuts = {"requests": 0, "replies": 0}
        self._target = target
        self._rate = rate
        self._dice = Random(seed)
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()

    def run(self) -> None:
        """Serve until it is told to stop."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    def wait_until_ready(self) -> None:
        """Wait until it listens."""
        self._ready.wait()

    def stop(self) -> None:
        """Have it end; to be called from another thread."""
        self._loop.call_soon_threadsafe(self._stop.set)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        async with server:
            await self._stop.wait()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, to_server = await asyncio.open_unix_connection(self._target)
        try:
            ways = [self._forward("requests", reader, to_server), self._forward("replies", upstream, writer)]
            for way in asyncio.as_completed(ways):
                await way  # when either way ends, both do
                break
        finally:
            for end in (to_server, writer):
                end.transport.abort()
                with suppress(OSError):
                    await end.wait_closed()

    async def _forward(self, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                if self._dice.random() < self._rate:
                    self.cuts[way] += 1
                    return
                writer.write(piece)
                await writer.drain()


@contextmanager
def cutting_proxy(target: str, *, rate: float, seed: int) -> Generator[CuttingProxy]:
    """A proxy in a thread of its own."""
    proxy = CuttingProxy(target, rate, seed)
    thread = threading.Thread(target=proxy.run)
    thread.start()
    proxy.wait_until_ready()
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join()

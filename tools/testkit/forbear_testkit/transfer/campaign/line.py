"""A line to a server that counts what passes, breaks where a test says, and wakes it when so much has passed."""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from forbear_testkit.transfer.campaign.plans import Cut, Way

_PIECE = 256 * 1024
_RESET = struct.pack("ii", 1, 0)


class Line:
    """Passes on what comes over TCP to a server on loopback, and back: `with Line(cloud.url) as line:`.

    The bytes are counted over all connections, and those of headers count, too. `cuts` break the connection on which
    the byte comes that they name. `held` is how many bytes the system may keep for it on each side.
    """

    def __init__(self, url: str, cuts: Sequence[Cut] = (), *, held: int | None = None) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._target = host, int(port)
        self._held = held
        self._cuts = list(cuts)
        self._alarms: list[tuple[Way, int, Callable[[], object]]] = []
        self._connections = set[asyncio.Task[None]]()
        self._listener = socket.socket()
        self.passed: dict[Way, int] = {"up": 0, "down": 0}
        """The number of bytes that have come in to be passed on."""
        self.url = ""
        """The port on which it listens, once it has been entered."""

    def when(self, way: Way, count: int, act: Callable[[], object]) -> None:
        """Call `act` once `count` more bytes have come in, before they are passed on."""
        self._alarms.append((way, self.passed[way] + count, act))

    def mend(self) -> None:
        """Break no connection any more."""
        self._cuts.clear()

    def __enter__(self) -> Self:
        self._hold(self._listener)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="line", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, sock=self._listener)
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
        ends, ways = [writer], list[asyncio.Task[str]]()
        try:
            upstream, onward = await self._connect()
            ends.append(onward)
            ways.append(asyncio.create_task(self._pass("up", reader, onward)))
            ways.append(asyncio.create_task(self._pass("down", upstream, writer)))
            ended, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)  # when either way ends, both do
            if any(way.result() == "reset" for way in ended):
                for end in ends:
                    end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        except OSError:
            pass  # the server is gone
        finally:
            for way in ways:
                way.cancel()
            for end in ends:
                end.transport.abort()
            await asyncio.gather(*ways, *(end.wait_closed() for end in ends), return_exceptions=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        sock = socket.socket()
        self._hold(sock)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, self._target)
        return await asyncio.open_connection(sock=sock)

    def _hold(self, sock: socket.socket) -> None:
        if self._held is not None:
            for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                sock.setsockopt(socket.SOL_SOCKET, buffer, self._held)

    async def _pass(self, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """Pass on what comes, and return how it ended."""
        try:
            while data := await reader.read(_PIECE):
                cut = self._counted(way, len(data))
                writer.write(data if cut is None else data[: cut.at])
                await writer.drain()
                if cut is not None:
                    while cut.how == "silence" and await reader.read(_PIECE):
                        pass
                    return cut.how
        except OSError:
            return "reset"
        return "close"

    def _counted(self, way: Way, size: int) -> Cut | None:
        """Count a piece; where the line is to break in it, after how many bytes of it, and how."""
        before = self.passed[way]
        after = self.passed[way] = before + size
        for alarm in [each for each in self._alarms if each[0] == way and each[1] <= after]:
            self._alarms.remove(alarm)
            alarm[2]()
        for cut in self._cuts:
            if cut.way == way and cut.at < after:
                self._cuts.remove(cut)
                return Cut(way, max(cut.at - before, 0), cut.how)
        return None

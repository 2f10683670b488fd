"""The upload part: kill the process of `forbear cp` in the middle of an upload, and run the same command again.

Each run is a process of its own. The first one gets a SIGKILL, which no process can handle. The results come from the
request log of the embedded cloud, its state after the kill and at the end, and the exit codes of the processes.
"""

import asyncio
import math
import os
import random
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from forbear_cloud import Cloud
from forbear_cloud.http.content import Content
from forbear_cloud.journal import LoggedRequest
from forbear_cloud.operations import SEND

MIB = 1024 * 1024
SIZE = 48 * MIB
_BYTES_BEFORE_KILL = 31 * MIB + 200_000
"""The most bytes of requests that reach the server before the kill; the last of them are in the middle of a chunk."""
_PIECE = 65_536
_LONGEST_WAIT = 10.0
_TICK = 0.001


@dataclass(frozen=True, slots=True)
class UploadResult:
    """The result of uploading a file of `size` bytes, as the server saw it.

    The server had `kept` bytes when the first process was dead. The second process began to send at byte `continued_at`
    (None: it sent nothing). Both together sent `sent` bytes of data. `generations` is the number of versions that the
    object now has. `equal` is true if its CRC32C is the file's. `codes` are the exit codes of the two processes.
    """

    size: int
    kept: int
    continued_at: int | None
    sent: int
    generations: int
    equal: bool
    codes: tuple[int | None, int | None]

    @property
    def is_clean(self) -> bool:
        """Return whether the second process ended with 0 and sent no kept byte again, and one correct object exists.

        The server must have kept some bytes, and the object must have one version.
        """
        return self.continued_at == self.kept > 0 and self.generations == 1 and self.equal and self.codes[1] == 0


def kill_and_run_again(seed: int) -> UploadResult:
    """Upload random bytes to an embedded cloud, kill the process on the way, and run the same command again.

    Returns the result. The bytes depend on the seed only.
    """
    with TemporaryDirectory() as folder, Cloud() as cloud:
        cloud.store.create_bucket("demo", fields={"versioning": {"enabled": True}})
        source = Path(folder, "big.bin")
        data = random.Random(seed).randbytes(SIZE)
        source.write_bytes(data)
        return asyncio.run(_upload_twice(cloud, source, data))


async def _upload_twice(cloud: Cloud, source: Path, data: bytes) -> UploadResult:
    proxy = _LimitedProxy(cloud.url, _BYTES_BEFORE_KILL)
    async with await asyncio.start_server(proxy.connected, "127.0.0.1", 0) as server:
        states = str(source.parent / "states")
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        command = ("-P", "-m", "forbear", "cp", "--quiet", str(source), "gs://demo/big.bin")
        env = os.environ | {"STORAGE_EMULATOR_HOST": url, "FORBEAR_STATE_DIR": states}
        first = await asyncio.create_subprocess_exec(sys.executable, *command, env=env)
        ended = asyncio.ensure_future(first.wait())
        await asyncio.wait({ended, asyncio.ensure_future(proxy.full.wait())}, return_when=asyncio.FIRST_COMPLETED)
        with suppress(ProcessLookupError):
            first.kill()
        await ended
        await proxy.lift_limit()
        await asyncio.to_thread(_wait_for_broken_chunk, cloud)
        before, kept = cloud.requests.total, sum(len(session.data) for session in cloud.store.sessions.values())
        second = await asyncio.create_subprocess_exec(sys.executable, *command, env=env)
        await second.wait()
        await proxy.lift_limit()
    chunks, versions = _chunks(cloud), list(cloud.store.bucket("demo").versions())
    return UploadResult(
        size=SIZE,
        kept=kept,
        continued_at=next((_start(chunk) for chunk in chunks if chunk.number > before), None),
        sent=sum(chunk.size for chunk in chunks),
        generations=len(versions),
        equal=[item.crc32c for item in versions] == [Content([data]).crc32c],
        codes=(first.returncode, second.returncode),
    )


class _LimitedProxy:
    """A TCP proxy in front of the cloud, which passes at most `limit` bytes of requests, from all connections together.

    Before it would exceed the limit, it sets `full` and passes no more requests. Responses still pass.
    """

    def __init__(self, url: str, limit: int) -> None:
        self.full = asyncio.Event()
        self._host, _, self._port = url.removeprefix("http://").partition(":")
        self._left: float = limit
        self._tasks = set[asyncio.Task[None]]()

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a new connection's bytes between the client and the cloud, in a task of its own."""
        self._tasks.add(asyncio.ensure_future(self._serve(reader, writer)))

    async def lift_limit(self) -> None:
        """Close all connections, and pass on without a limit what arrives on new ones."""
        self._left = math.inf
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        responses, server = await asyncio.open_connection(self._host, int(self._port))
        back = asyncio.ensure_future(_pass_on(responses, writer))
        try:
            while piece := await reader.read(_PIECE):
                self._left -= len(piece)
                if self._left < 0:
                    self.full.set()
                    await asyncio.Future()  # until this is cancelled
                server.write(piece)
                await server.drain()
        except OSError:
            pass  # one end is gone
        finally:
            back.cancel()
            for end in (server, writer):
                end.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()


def _chunks(cloud: Cloud) -> list[LoggedRequest]:
    """Return the logged requests that sent data to an upload session, complete or not."""
    return [request for request in cloud.requests if request.operation == SEND]


def _start(chunk: LoggedRequest) -> int:
    return int(chunk.headers["content-range"].removeprefix("bytes ").partition("-")[0])


def _wait_for_broken_chunk(cloud: Cloud) -> None:
    """Wait until the log has a data request without a status: the broken chunk. Return after 10 s in any case."""
    pause, end = threading.Event(), time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < end and not any(chunk.status is None for chunk in _chunks(cloud)):
        pause.wait(_TICK)

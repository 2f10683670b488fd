"""The part about transfers: the process of an upload is killed in mid-way, and the same command is run again.

Both runs are real ones of `forbear cp`, each in a process of its own, and the first one gets a SIGKILL, which no
process can answer. What is told of them comes from the log of the embedded cloud and from what it holds in the end.
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

from forbear.testing.cloud import Cloud
from forbear.testing.cloud.http.content import Content
from forbear.testing.cloud.journal import LoggedRequest
from forbear.testing.cloud.operations import SEND

MIB = 1024 * 1024
SIZE = 48 * MIB
_ROOM = 31 * MIB + 200_000
"""Bytes that get through before the kill: it comes in the middle of a chunk."""
_PIECE = 65_536
_PATIENCE = 10.0
_TICK = 0.001


@dataclass(frozen=True, slots=True)
class Killed:
    """What became of a file of `size` bytes, by the server's account.

    It had `kept` bytes when the first process was dead, and the second one began to send at byte `continued_at` (None:
    it sent nothing). `sent` bytes of data arrived from both. In the end there were so many `generations` of the object,
    and its bytes were `equal` to those of the file, by their CRC32C, or not. `codes` are how the processes ended.
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
        """Whether the object is there, once, and right, and nothing was sent again that the server had."""
        return self.continued_at == self.kept > 0 and self.generations == 1 and self.equal and self.codes[1] == 0


def kill_and_run_again(seed: int) -> Killed:
    """Upload a file whose bytes the seed decides, kill the process, and run the same command again."""
    with TemporaryDirectory() as folder, Cloud() as cloud:
        cloud.store.create_bucket("demo", fields={"versioning": {"enabled": True}})
        source = Path(folder, "big.bin")
        data = random.Random(seed).randbytes(SIZE)
        source.write_bytes(data)
        return asyncio.run(_upload_twice(cloud, source, data))


async def _upload_twice(cloud: Cloud, source: Path, data: bytes) -> Killed:
    road = _Road(cloud.url, _ROOM)
    async with await asyncio.start_server(road.travel, "127.0.0.1", 0) as server:
        states = str(source.parent / "states")
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        words = ("-m", "forbear.cli", "cp", "--quiet", str(source), "gs://demo/big.bin")
        env = os.environ | {"STORAGE_EMULATOR_HOST": url, "FORBEAR_STATE_DIR": states}
        first = await asyncio.create_subprocess_exec(sys.executable, *words, env=env)
        ended = asyncio.ensure_future(first.wait())
        await asyncio.wait({ended, asyncio.ensure_future(road.full.wait())}, return_when=asyncio.FIRST_COMPLETED)
        with suppress(ProcessLookupError):
            first.kill()
        await ended
        await road.clear()
        await asyncio.to_thread(_see_break, cloud)
        before, kept = cloud.requests.total, sum(len(session.data) for session in cloud.store.sessions.values())
        second = await asyncio.create_subprocess_exec(sys.executable, *words, env=env)
        await second.wait()
        await road.clear()
    chunks, versions = _chunks(cloud), list(cloud.store.bucket("demo").versions())
    return Killed(
        size=SIZE,
        kept=kept,
        continued_at=next((_start(chunk) for chunk in chunks if chunk.number > before), None),
        sent=sum(chunk.size for chunk in chunks),
        generations=len(versions),
        equal=[item.crc32c for item in versions] == [Content([data]).crc32c],
        codes=(first.returncode, second.returncode),
    )


class _Road:
    """Passes on what comes for the cloud; when so many bytes are through it is full, and holds back all that follows.

    After the traveller's death it is cleared, and then has room for everything.
    """

    def __init__(self, url: str, room: int) -> None:
        self.full = asyncio.Event()
        self._host, _, self._port = url.removeprefix("http://").partition(":")
        self._room: float = room
        self._trips = set[asyncio.Task[None]]()

    def travel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what goes over a connection."""
        self._trips.add(asyncio.ensure_future(self._travel(reader, writer)))

    async def clear(self) -> None:
        """Close what is left of connections, and have room."""
        self._room = math.inf
        for trip in self._trips:
            trip.cancel()
        await asyncio.gather(*self._trips, return_exceptions=True)
        self._trips.clear()

    async def _travel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replies, onward = await asyncio.open_connection(self._host, int(self._port))
        back = asyncio.ensure_future(_pass_on(replies, writer))
        try:
            while piece := await reader.read(_PIECE):
                self._room -= len(piece)
                if self._room < 0:
                    self.full.set()
                    await asyncio.Future()  # until this is cancelled
                onward.write(piece)
                await onward.drain()
        except OSError:
            pass  # an end is dead
        finally:
            back.cancel()
            for end in (onward, writer):
                end.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()


def _chunks(cloud: Cloud) -> list[LoggedRequest]:
    """The requests that brought data, whole or in part."""
    return [request for request in cloud.requests if request.operation == SEND]


def _start(chunk: LoggedRequest) -> int:
    return int(chunk.headers["content-range"].removeprefix("bytes ").partition("-")[0])


def _see_break(cloud: Cloud) -> None:
    """Wait until the cloud has seen that a chunk broke off, for a while at most."""
    pause, end = threading.Event(), time.monotonic() + _PATIENCE
    while time.monotonic() < end and not any(chunk.status is None for chunk in _chunks(cloud)):
        pause.wait(_TICK)

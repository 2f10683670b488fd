"""Helpers of the tests of downloads: a download in virtual time, a listener that acts at a byte, odd servers."""

import asyncio
import os
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from forbear.core.events import Scheduled
from forbear.testing import virtual_time
from forbear_cloud import Cloud
from forbear_testkit.transfer.recorder import Receiver
from forbear_transfer.downloads.download import download
from forbear_transfer.objects import Object, Url
from forbear_transfer.progress import Progress, current_progress
from forbear_transfer.storage.client import Storage

MIB = 1024 * 1024
URL = Url("bkt", "folder/name")


class Count(Receiver):
    """Count the bytes that have moved, and call a function once there are enough."""

    def __init__(self, at: int | None = None, act: Callable[[], object] = lambda: None) -> None:
        self.bytes = 0
        self.retries: list[str] = []
        self._at = at
        self.act = act

    def moved(self, count: int) -> None:
        self.bytes += count
        if self._at is not None and self.bytes >= self._at:
            self._at = None
            self.act()

    def retried(self, event: Scheduled) -> None:
        self.retries.append(event.failure.error)


async def fetched(
    where: Cloud | str,
    target: str | os.PathLike[str] | BinaryIO,
    source: Url | Object = URL,
    *,
    count: Count | None = None,
    stall_timeout: float = 60,
    **options: Any,
) -> Object:
    """Download in virtual time."""
    current_progress.set(Progress(count or Count()))
    url = where if isinstance(where, str) else where.url
    with virtual_time(seed=1):
        async with Storage(endpoint=url, stall_timeout=stall_timeout) as storage:
            return await download(storage, source, target, **options)


async def looked_up(cloud: Cloud, source: Url = URL) -> Object:
    """Return the metadata of the object, as a listing has them."""
    async with Storage(endpoint=cloud.url) as storage:
        found = await storage.stat(source)
    assert found is not None
    return found


def random_bytes(size: int) -> bytes:
    """Return random bytes, which do not compress, other ones each time."""
    start = random.randrange(16 * MIB)
    return _block()[start : start + size] if size <= 16 * MIB else os.urandom(size)


@cache
def _block() -> bytes:
    """32 MiB: to cut pieces out of it takes less than to make each of them."""
    return os.urandom(32 * MIB)


def put(cloud: Cloud, data: bytes, fields: dict[str, Any] | None = None) -> int:
    """Store an object at URL; return its generation."""
    return cloud.store.put(URL.bucket, URL.name, data, fields).generation


def names(folder: Path) -> list[str]:
    """Return the sorted names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def ranges(cloud: Cloud) -> list[str]:
    """Return the ranges of object data that were requested, in order; "" for a request without a range."""
    return [each.headers.get("range", "") for each in cloud.requests if "alt=media" in each.query]


@asynccontextmanager
async def odd_server(*replies: bytes) -> AsyncGenerator[str]:
    """Answer each request with the next of some raw responses, and close the connection."""
    left = list(replies)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.close()
        await server.wait_closed()


def reply(status: str, body: bytes, *headers: str) -> bytes:
    """Return a raw response."""
    return "\r\n".join((f"HTTP/1.1 {status}", *headers, "", "")).encode() + body


def described(data: bytes, crc32c: str) -> Sequence[str]:
    """Return the headers by which a response describes its object."""
    return (
        "x-goog-generation: 7",
        f"x-goog-hash: crc32c={crc32c}",
        f"x-goog-stored-content-length: {len(data)}",
        "x-goog-stored-content-encoding: identity",
    )

"""Headers of a response never replace the metadata of its object: contradictions, missing labels, endless bodies."""

import asyncio
import gzip
import io
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud.storage.model import crc32c_of
from forbear_testkit.transfer.downloads import URL, Count, names, random_bytes
from forbear_transfer.downloads.download import download
from forbear_transfer.errors import ChecksumMismatch, TransferError, WrongResponse
from forbear_transfer.objects import Object
from forbear_transfer.progress import Progress, current_progress
from forbear_transfer.storage.client import Storage

pytestmark = pytest.mark.anyio

PLAIN = bytes(500) + random_bytes(300)
PACKED = gzip.compress(PLAIN, mtime=0)
EVIL = b"EVIL-BYTES"


class Served:
    """An object as a server describes it: its metadata, and the responses with its bytes."""

    def __init__(self, stored: bytes, body: bytes, *headers: str, encoding: str | None = None) -> None:
        self.stored = stored
        self.encoding = encoding
        self.bodies = [body]
        self.headers = headers
        self.forever = b""
        self.length = True
        self.media = 0
        self.looks = 0
        self.patched: Callable[[], object] = lambda: None

    @property
    def found(self) -> Object:
        """Return its resource in a listing."""
        return Object.of(self.resource())

    def resource(self) -> dict[str, Any]:
        """Return its metadata."""
        own = {"bucket": URL.bucket, "name": URL.name, "generation": "7", "size": str(len(self.stored))}
        encoding = {} if self.encoding is None else {"contentEncoding": self.encoding}
        return {**own, **encoding, "crc32c": crc32c_of(self.stored)}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        media = "alt=media" in head
        body, headers = json.dumps(self.resource()).encode(), ["Content-Type: application/json"]
        if media:
            self.media += 1
            body = self.bodies.pop(0) if len(self.bodies) > 1 else self.bodies[0]
            headers = ["x-goog-generation: 7", f"x-goog-hash: crc32c={crc32c_of(self.stored)}", *self.headers]
        else:
            self.looks += 1
        if self.length and not (media and self.forever):
            headers.append(f"Content-Length: {len(body)}")
        status = (
            "206 Partial Content" if media and any(each.startswith("Content-Range") for each in headers) else "200 OK"
        )
        writer.write("\r\n".join((f"HTTP/1.1 {status}", *headers, "Connection: close", "", "")).encode() + body)
        while media and self.forever and not writer.is_closing():
            writer.write(self.forever)
            await writer.drain()
        await writer.drain()
        writer.close()
        if media:
            self.patched()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[str]:
        """Serve it."""
        handlers: set[asyncio.Task[None]] = set()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self.quietly(reader, writer))
            handlers.add(task)
            await task

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        try:
            host, port = server.sockets[0].getsockname()
            yield f"http://{host}:{port}"
        finally:
            server.close()
            for task in handlers:
                task.cancel()
            await asyncio.gather(*handlers, return_exceptions=True)

    async def quietly(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request; ignore a client that closes the connection."""
        try:
            await self.answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    async def fetched(self, target: Any, *, pinned: bool, count: Count | None = None, **options: Any) -> Object:
        """Download it with three attempts; `pinned` with the metadata of a listing."""
        policy = cloud_storage.policy.with_attempts(3)
        async with self.listening() as url:
            with virtual_time(seed=1):
                async with Storage(endpoint=url, policy=policy) as storage:
                    return await download(storage, self.found if pinned else URL, target, **options)


GZIP_SAYS = "x-goog-stored-content-encoding: gzip"


@pytest.mark.parametrize(
    "headers",
    [
        [GZIP_SAYS],
        [GZIP_SAYS, "Content-Encoding: gzip"],
        ["x-goog-stored-content-encoding: br", "Content-Encoding: br"],
        ["x-goog-stored-content-length: 10"],
    ],
    ids=["gzip that was undone", "gzip", "another encoding", "another size"],
)
@pytest.mark.parametrize("pinned", [True, False], ids=["listed", "named"])
@pytest.mark.parametrize("stream", [False, True], ids=["file", "stdout"])
async def test_the_metadata_decide(tmp_path: Path, headers: Sequence[str], pinned: bool, stream: bool) -> None:
    """A response that contradicts the metadata of the object is an error, and nothing is written."""
    served = Served(PLAIN, EVIL, *headers)
    out = io.BytesIO()
    with pytest.raises((WrongResponse, ChecksumMismatch)):
        await served.fetched(out if stream else tmp_path / "file", pinned=pinned)
    assert names(tmp_path) == []
    if pinned:  # else the response's own headers are all that is known before its bytes pass on
        assert out.getvalue() == b""


async def test_metadata_that_have_changed_are_read_again(tmp_path: Path) -> None:
    """If contentEncoding is set after the listing, the metadata is read again, and the download succeeds."""
    served = Served(PACKED, PACKED, GZIP_SAYS, "Content-Encoding: gzip")
    listed = served.found
    served.encoding = "gzip"
    async with served.listening() as url:
        with virtual_time(seed=1):
            async with Storage(endpoint=url) as storage:
                made = await download(storage, listed, tmp_path / "file")
    assert (made.content_encoding, (tmp_path / "file").read_bytes()) == ("gzip", PLAIN)
    assert (served.looks, served.media) == (1, 2)


@pytest.mark.parametrize("pinned", [True, False], ids=["listed", "named"])
@pytest.mark.parametrize("length", [True, False], ids=["length", "until it closes"])
@pytest.mark.parametrize("stream", [False, True], ids=["file", "stdout"])
async def test_stored_bytes_without_a_label(tmp_path: Path, pinned: bool, length: bool, stream: bool) -> None:
    """A gzip object whose response lacks Content-Encoding is verified and decoded like one that has it."""
    served = Served(PACKED, PACKED, GZIP_SAYS, encoding="gzip")
    if not length:
        served.headers = (*served.headers, "Transfer-Encoding: chunked")
        served.length = False
        served.bodies = [b"%x\r\n%b\r\n0\r\n\r\n" % (len(PACKED), PACKED)]
    out = io.BytesIO()
    made = await served.fetched(out if stream else tmp_path / "file", pinned=pinned)
    assert (out.getvalue() if stream else (tmp_path / "file").read_bytes()) == PLAIN
    assert made.crc32c == crc32c_of(PACKED)


async def test_stored_bytes_without_a_label_can_be_kept(tmp_path: Path) -> None:
    """With decode=False the file has the stored bytes."""
    served = Served(PACKED, PACKED, encoding="gzip")
    await served.fetched(tmp_path / "file", pinned=True, decode=False)
    assert (tmp_path / "file").read_bytes() == PACKED


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stdout"])
async def test_wrong_stored_bytes_without_a_label(tmp_path: Path, stream: bool) -> None:
    """Wrong stored bytes are not taken for bytes that the server has decoded."""
    wrong = PACKED[:-30] + bytes(30)
    with pytest.raises((ChecksumMismatch, TransferError)):
        await Served(PACKED, wrong, encoding="gzip").fetched(io.BytesIO() if stream else tmp_path / "file", pinned=True)
    assert names(tmp_path) == []


async def test_bytes_that_only_are_called_gzip_are_checked_without_a_label(tmp_path: Path) -> None:
    """If the received bytes have the checksum of the object, they are the stored ones, and were never gzip."""
    made = await Served(PLAIN, PLAIN, encoding="gzip").fetched(tmp_path / "file", pinned=True)
    assert ((tmp_path / "file").read_bytes(), made.crc32c) == (PLAIN, crc32c_of(PLAIN))


async def test_a_part_without_a_label_is_no_whole(tmp_path: Path) -> None:
    """After a lost connection, the rest of the stored bytes is appended."""
    half = len(PACKED) // 2
    served = Served(PACKED, PACKED[:half], "Content-Encoding: gzip", encoding="gzip")
    served.bodies = [PACKED[:half], PACKED[half:]]
    first = served.headers
    served.length = False

    def then() -> None:
        served.headers = (f"Content-Range: bytes {half}-{len(PACKED) - 1}/{len(PACKED)}",)

    served.patched = then
    served.headers = (*first, f"Content-Length: {len(PACKED)}")
    made = await served.fetched(tmp_path / "file", pinned=True)
    assert ((tmp_path / "file").read_bytes(), made.crc32c) == (PLAIN, crc32c_of(PACKED))
    assert served.media == 2


@pytest.mark.parametrize("encoding", [None, "gzip"])
@pytest.mark.parametrize("chunked", [True, False])
async def test_a_body_without_end_ends(tmp_path: Path, encoding: str | None, chunked: bool) -> None:
    """However a response labels its body, no more is written than the metadata allow, and no part file is left."""
    served = Served(PACKED, b"", *([GZIP_SAYS] if encoding else []), encoding=encoding)
    piece = b"x" * 65536
    served.forever = b"10000\r\n%b\r\n" % piece if chunked else piece
    if chunked:
        served.headers = (*served.headers, "Transfer-Encoding: chunked")
    most = 0

    class Most(Count):
        def moved(self, count: int) -> None:
            nonlocal most
            super().moved(count)
            most = max(most, self.bytes)

    current_progress.set(Progress(Most()))
    with pytest.raises(WrongResponse):
        await served.fetched(tmp_path / "file", pinned=True)
    assert most <= len(PACKED) * 1032
    assert names(tmp_path) == []


@pytest.mark.parametrize(("size", "right"), [(len(PLAIN), True), (2000 * len(PACKED), False)], ids=["right", "far"])
async def test_how_far_gzip_can_unfold(tmp_path: Path, size: int, right: bool) -> None:
    """A decoded body that states more bytes than gzip of that size can have is refused at once."""
    served = Served(PACKED, PLAIN, f"Content-Length: {size}", encoding="gzip")
    served.length = False
    if right:
        assert (await served.fetched(tmp_path / "file", pinned=True)).crc32c is None
        assert (tmp_path / "file").read_bytes() == PLAIN
        return
    with pytest.raises(WrongResponse, match="can decode to"):
        await served.fetched(tmp_path / "file", pinned=True)
    assert names(tmp_path) == []

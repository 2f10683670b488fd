"""Uploads of streams: bytes that can be read once are kept until the server has them, and no longer."""

import asyncio
import io
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.uploads import (
    CHUNK,
    SEND,
    TARGET,
    data_of,
    file_of,
    metered,
    open_files,
    steps,
    stored,
    storing,
    versions,
)
from forbear_transfer.errors import ChecksumMismatch, TargetExists, TransferError
from forbear_transfer.uploads.upload import upload

pytestmark = pytest.mark.anyio

SIZE = 5 * CHUNK + 1000


async def pieces(size: int = SIZE, each: int = 100_000) -> AsyncIterator[bytes]:
    """Yield random bytes in pieces."""
    data = data_of(size)
    for place in range(0, size, each):
        yield data[place : place + each]


class Once(io.RawIOBase):
    """A file that cannot seek."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._data.readinto(buffer)


@pytest.mark.parametrize("size", [CHUNK, CHUNK + 1, 2 * CHUNK, SIZE, 6 * CHUNK])
@pytest.mark.parametrize("each", [1000, CHUNK, 10 * CHUNK])
async def test_iterables_go_in_chunks_of_unknown_number(cloud: Cloud, size: int, each: int) -> None:
    """Only the last chunk states the size and the checksum."""
    with metered() as told:
        async with storing(cloud) as storage:
            made = await upload(storage, pieces(size, each), TARGET, chunk_size=CHUNK)
    assert stored(cloud) == data_of(size)
    assert (made.size, told.size, told.bytes, versions(cloud)) == (size, size, size, 1)
    sent = [each for each in cloud.requests if each.operation == SEND]
    assert len(sent) == (0 if size <= CHUNK else -(-size // CHUNK))
    for chunk in sent:
        is_last = chunk is sent[-1]
        assert chunk.headers["content-range"].endswith(f"/{size}" if is_last else "/*")
        assert ("x-goog-hash" in chunk.headers) is is_last


@pytest.mark.parametrize("buffered", [False, True])
async def test_files_go_from_where_they_stand(cloud: Cloud, tmp_path: Path, buffered: bool) -> None:
    """A file object is uploaded from its position to its end."""
    with file_of(tmp_path, SIZE).open("rb", buffering=-1 if buffered else 0) as file:
        file.seek(500)
        async with storing(cloud) as storage:
            await upload(storage, file, TARGET, chunk_size=CHUNK)
    assert stored(cloud) == data_of(SIZE)[500:]


FAULTS = {
    "a reset before": Fault.reset(operation=SEND, nth=3),
    "a reset after": Fault.reset(when="after", operation=SEND, nth=3),
    "a part, then a reset": Fault.partial(100_000, nth=3),
    "a part, told": Fault.partial(100_000, status=308, nth=2),
    "nothing kept, told": Fault.partial(0, status=308, nth=1),
    "429": Fault.status(429, operation=SEND, nth=1),
    "a stall": Fault.stall(operation=SEND, nth=6),
    "a lost final reply": Fault.reset(when="after", operation=SEND, nth=6),
}


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
async def test_what_the_server_has_not_confirmed_goes_again(cloud: Cloud, fault: str, older: bool) -> None:
    """Unconfirmed bytes are sent again from memory, and one version is made, whatever fails."""
    if older:
        cloud.store.put("bkt", "thing", b"older", {})
    cloud.fault(FAULTS[fault])
    with metered() as told:
        async with storing(cloud, stall_timeout=0.2) as storage:
            source = Once(data_of(SIZE))
            made = await upload(storage, source, TARGET, chunk_size=CHUNK)  # type: ignore[arg-type]
    assert stored(cloud) == data_of(SIZE)
    assert (versions(cloud), made.size, told.bytes) == (1, SIZE, SIZE)


LOSSES = {
    "forgotten bytes": Fault.rewind(0, nth=4),
    "a session gone": Fault.expire_session(nth=4),
}


@pytest.mark.parametrize("loss", LOSSES)
async def test_bytes_that_are_gone_are_an_error(cloud: Cloud, loss: str) -> None:
    """If the server loses confirmed bytes of a stream, the upload fails."""
    cloud.fault(LOSSES[loss])
    async with storing(cloud) as storage:
        with pytest.raises(TransferError, match="a stream cannot be read again") as caught:
            await upload(storage, pieces(), TARGET, chunk_size=CHUNK)
    assert caught.value.hint is not None
    assert versions(cloud) == 0


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_file_that_can_go_back_does(cloud: Cloud, tmp_path: Path, loss: str) -> None:
    """If the server loses confirmed bytes of a seekable file, they are read again."""
    cloud.fault(LOSSES[loss])
    with metered() as told, file_of(tmp_path, SIZE).open("rb") as file:
        file.seek(7)
        async with storing(cloud) as storage:
            await upload(storage, file, TARGET, chunk_size=CHUNK)
    assert stored(cloud) == data_of(SIZE)[7:]
    assert (versions(cloud), told.bytes) == (1, SIZE - 7)


@pytest.mark.parametrize("nth", [2, 6])
async def test_bytes_changed_on_the_way_are_never_seen(cloud: Cloud, tmp_path: Path, nth: int) -> None:
    """After a mismatch a seekable file is sent again; a stream cannot be."""
    cloud.fault(Fault.corrupt_upload(5, operation=SEND, nth=nth))
    async with storing(cloud) as storage:
        with pytest.raises(ChecksumMismatch):
            await upload(storage, pieces(), TARGET, chunk_size=CHUNK)
        assert versions(cloud) == 0
        cloud.fault(Fault.corrupt_upload(5, operation=SEND, nth=nth))
        with file_of(tmp_path, SIZE).open("rb") as file:
            await upload(storage, file, TARGET, chunk_size=CHUNK)
    assert stored(cloud) == data_of(SIZE)


async def test_what_the_caller_raises_comes_out(cloud: Cloud) -> None:
    """An exception of the source ends the upload unchanged, even if it looks like a lost connection."""

    async def broken() -> AsyncIterator[bytes]:
        async for piece in pieces(3 * CHUNK):
            yield piece
        raise ConnectionResetError("mine")

    async with storing(cloud) as storage:
        with pytest.raises(ConnectionResetError, match="mine"):
            await upload(storage, broken(), TARGET, chunk_size=CHUNK)
    assert steps(cloud)[-1] == "cancel"
    assert versions(cloud) == 0


@pytest.mark.parametrize("wrong", ["text", 5, None])
async def test_bytes_are_asked_for(cloud: Cloud, wrong: Any) -> None:
    """A source that yields anything but bytes is refused."""

    async def pieces() -> AsyncIterator[Any]:
        yield wrong

    async with storing(cloud) as storage:
        with pytest.raises(TypeError, match="`source` must yield bytes"):
            await upload(storage, pieces(), TARGET)
        with pytest.raises(TypeError, match="binary mode"):
            await upload(storage, io.StringIO("text"), TARGET)  # type: ignore[arg-type]
    assert len(cloud.requests) == 0


async def test_bytearrays_are_bytes(cloud: Cloud) -> None:
    """Bytearrays are copied."""

    async def pieces() -> AsyncIterator[Any]:
        yield bytearray(b"abc")

    async with storing(cloud) as storage:
        await upload(storage, pieces(), TARGET)
    assert stored(cloud) == b"abc"


async def test_a_stream_that_has_nothing_yet_is_refused(cloud: Cloud) -> None:
    """A non-blocking file that returns None is refused: that is not its end."""

    class Empty(Once):
        def readinto(self, buffer: Any) -> Any:
            return None

    async with storing(cloud) as storage:
        with pytest.raises(TransferError, match="nothing to read yet"):
            await upload(storage, Empty(b""), TARGET)  # type: ignore[arg-type]


async def test_nothing_is_clobbered_on_demand(cloud: Cloud) -> None:
    """With generation=0, an existing target is refused before any byte is sent."""
    cloud.store.put("bkt", "thing", b"older", {})
    async with storing(cloud) as storage:
        with pytest.raises(TargetExists):
            await upload(storage, pieces(), TARGET, generation=0, chunk_size=CHUNK)
    assert versions(cloud) == 0


async def test_a_cancelled_stream_ends_at_once(cloud: Cloud) -> None:
    """Nothing is sent after a cancellation, not even to delete the session that nobody can continue."""

    async def stopped() -> AsyncIterator[bytes]:
        async for piece in pieces(3 * CHUNK):
            yield piece
        task.cancel()
        await asyncio.Event().wait()

    async with storing(cloud) as storage:
        task = asyncio.ensure_future(upload(storage, stopped(), TARGET, chunk_size=CHUNK))
        with pytest.raises(asyncio.CancelledError):
            await task
    assert steps(cloud)[:2] == ["start", "send"]
    assert "cancel" not in steps(cloud)


async def test_nobody_waits_for_a_pipe_when_cancelled(cloud: Cloud, tmp_path: Path) -> None:
    """A cancelled upload does not wait for a read that blocks."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb"):
        async with storing(cloud) as storage:
            task = asyncio.ensure_future(upload(storage, pipe, TARGET))
            done, _ = await asyncio.wait([task], timeout=0.05)
            assert not done
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len(cloud.requests) == 0
    assert open_files(tmp_path) == 0

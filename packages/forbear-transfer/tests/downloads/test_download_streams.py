"""Downloads to streams, which cannot be rewound: no byte is written twice, and a mismatch is an error at the end."""

import asyncio
import io
import os
import select
import stat
import threading
from pathlib import Path

import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.downloads import MIB, URL, Count, fetched, looked_up, put, random_bytes, ranges
from forbear_transfer.errors import ChecksumMismatch, SourceChanged, TransferError


@pytest.mark.parametrize("size", [0, 1, 300_000, 9 * MIB])
async def test_a_stream_gets_all_bytes(cloud: Cloud, size: int) -> None:
    """A stream gets all bytes in order, whatever their number, and stays open."""
    data = random_bytes(size)
    put(cloud, data)
    stream = io.BytesIO()
    found = await fetched(cloud, stream, slices=4)
    assert stream.getvalue() == data
    assert found.size == size
    assert ranges(cloud) == [""]


@pytest.mark.parametrize("fault", [Fault.ignore_range(), Fault.refuse_range(), Fault.other_range(3), Fault.status(503)])
@pytest.mark.parametrize("known", [False, True])
async def test_no_byte_goes_out_twice(cloud: Cloud, fault: Fault, known: bool) -> None:
    """After a lost connection only new bytes are written; those that come again are skipped."""
    data = random_bytes(1_000_000)
    put(cloud, data)
    source = await looked_up(cloud) if known else URL
    cloud.fault(Fault.truncate(400_000), fault)
    stream, count = io.BytesIO(), Count()
    await fetched(cloud, stream, source, count=count)
    assert stream.getvalue() == data
    assert count.bytes == len(data)


async def test_a_change_after_the_first_byte_is_an_error(cloud: Cloud) -> None:
    """If the object is replaced after bytes were written, the download raises SourceChanged."""
    data = random_bytes(1_000_000)
    put(cloud, data)
    cloud.fault(Fault.truncate(400_000), Fault.replace_object(header=("range", "bytes")))
    stream = io.BytesIO()
    with pytest.raises(SourceChanged, match="after 400000 bytes"):
        await fetched(cloud, stream)
    assert stream.getvalue() == data[:400_000]


async def test_a_change_before_the_first_byte_is_none(cloud: Cloud) -> None:
    """If the object is replaced before a byte was written, the new version is downloaded."""
    put(cloud, b"old")
    item = await looked_up(cloud)
    put(cloud, b"new one")
    stream = io.BytesIO()
    assert (await fetched(cloud, stream, item)).size == 7
    assert stream.getvalue() == b"new one"


async def test_wrong_bytes_are_told_in_the_end(cloud: Cloud) -> None:
    """A checksum mismatch is final, because the bytes are written already."""
    put(cloud, random_bytes(1000))
    cloud.fault(Fault.corrupt(5))
    stream = io.BytesIO()
    with pytest.raises(ChecksumMismatch):
        await fetched(cloud, stream)
    assert len(cloud.requests) == 1


async def test_a_raw_stream_may_take_less_than_it_is_given(cloud: Cloud) -> None:
    """Short writes are completed."""

    class Slow(io.RawIOBase):
        def __init__(self) -> None:
            self.taken = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            piece = bytes(memoryview(data)[:1000])  # type: ignore[arg-type]
            self.taken += piece
            return len(piece)

    data = random_bytes(5500)
    put(cloud, data)
    stream = Slow()
    await fetched(cloud, stream)  # type: ignore[arg-type]
    assert bytes(stream.taken) == data


async def test_a_text_stream_is_refused(cloud: Cloud) -> None:
    """The error says which stream takes bytes."""
    with pytest.raises(TypeError, match=r"sys\.stdout\.buffer"):
        await fetched(cloud, io.StringIO())  # type: ignore[arg-type]


async def test_a_pipe_with_a_slow_reader_gets_all(cloud: Cloud) -> None:
    """A slow reader gets all bytes, and does not block the event loop."""
    data = random_bytes(1_000_000)
    put(cloud, data)
    read, write = os.pipe()
    got: list[bytes] = []

    def drain() -> None:
        with os.fdopen(read, "rb") as file:
            got.append(file.read())

    reader = threading.Thread(target=drain)
    with os.fdopen(write, "wb") as stream:
        task = asyncio.ensure_future(fetched(cloud, stream))
        while len(ranges(cloud)) == 0:
            await asyncio.wait({task}, timeout=0.001)
        reader.start()
        await task
    reader.join()
    assert got == [data]


async def test_a_pipe_whose_reader_is_gone_is_a_clear_error(cloud: Cloud) -> None:
    """A broken pipe, as with `| head`, is a TransferError."""
    put(cloud, random_bytes(1_000_000))
    read, write = os.pipe()
    os.close(read)
    stream = os.fdopen(write, "wb", buffering=0)
    with stream, pytest.raises(TransferError, match="Broken pipe"):
        await fetched(cloud, stream)


async def test_devices_are_written_to_and_not_replaced(cloud: Cloud) -> None:
    """/dev/null takes all bytes, and the error of /dev/full is clear."""
    put(cloud, random_bytes(1000))
    assert (await fetched(cloud, "/dev/null")).size == 1000
    with pytest.raises(TransferError, match=r"/dev/full: No space left") as caught:
        await fetched(cloud, "/dev/full")
    assert caught.value.hint == "make room, then start again"
    for device in ("null", "full"):
        assert stat.S_ISCHR(os.stat(f"/dev/{device}").st_mode)  # noqa: PTH116 - in an async test


async def test_a_named_pipe_gets_all_bytes(cloud: Cloud, tmp_path: Path) -> None:
    """A named pipe is written to while a process reads it."""
    data = random_bytes(1_000_000)
    put(cloud, data)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    got: list[bytes] = []

    def drain() -> None:
        select.select([reader], [], [])  # until somebody writes it reads as if it had ended
        with os.fdopen(reader, "rb") as file:
            got.append(file.read())

    thread = threading.Thread(target=drain)
    thread.start()
    await fetched(cloud, pipe)
    thread.join()
    assert got == [data]


async def test_a_named_pipe_without_a_reader_is_not_waited_for(cloud: Cloud, tmp_path: Path) -> None:
    """A named pipe without a reader is an error at once."""
    os.mkfifo(tmp_path / "pipe")
    put(cloud, b"data")
    with pytest.raises(TransferError, match="it has no reader"):
        await fetched(cloud, tmp_path / "pipe")

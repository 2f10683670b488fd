"""Objects that are stored as gzip: verified as stored, decoded by the client; servers that decode them themselves."""

import gzip
import io
import os
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_cloud.storage.model import crc32c_of
from forbear_testkit.transfer.downloads import MIB, URL, Count, fetched, names, put, random_bytes, ranges
from forbear_transfer.downloads.download import download
from forbear_transfer.downloads.sinks import GzipDecoder
from forbear_transfer.errors import SourceChanged, TransferError
from forbear_transfer.files import PIECE
from forbear_transfer.storage.client import Storage
from forbear_transfer.wire.response import Response

GZIP = {"contentEncoding": "gzip"}


@cache
def plain_of(size: int) -> bytes:
    """So many bytes, the same in all tests here."""
    return random_bytes(size)


@cache
def zipped(plain: bytes) -> bytes:
    """These bytes as gzip; millions of them take a while."""
    return gzip.compress(plain, 1)


class Deaf(Storage):
    """A Storage behind a proxy that drops Accept-Encoding."""

    async def stream(self, method: str, url: str, headers: Mapping[str, str], body: Any = None) -> Response:
        heard = {name: value for name, value in headers.items() if name != "Accept-Encoding"}
        return await super().stream(method, url, heard, body)


@pytest.mark.parametrize("size", [0, 1000, 9 * MIB])
@pytest.mark.parametrize("slices", [1, 3])
async def test_gzip_is_undone_here(cloud: Cloud, tmp_path: Path, size: int, slices: int) -> None:
    """The stored bytes are requested and verified; the file has the decoded ones."""
    plain = plain_of(size)
    stored = zipped(plain)
    put(cloud, stored, GZIP)
    count = Count()
    found = await fetched(cloud, tmp_path / "file", count=count, slices=slices)
    assert (tmp_path / "file").read_bytes() == plain
    assert names(tmp_path) == ["file"]
    assert (found.size, found.crc32c, found.content_encoding) == (len(stored), crc32c_of(stored), "gzip")
    assert count.bytes == len(stored)


async def test_what_a_large_object_decodes_to_is_synced_before_its_part_goes(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a crash of the machine could leave neither of them."""
    synced, sync = list[int](), os.fsync

    def count(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", count)
    put(cloud, zipped(plain_of(9 * MIB)), GZIP)
    await fetched(cloud, tmp_path / "file")
    assert (tmp_path / "file").stat().st_ino in synced


@pytest.mark.parametrize("size", [1000, 9 * MIB])
async def test_gzip_can_be_kept(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """With decode=False the file has the stored bytes."""
    stored = zipped(plain_of(size))
    put(cloud, stored, GZIP)
    await fetched(cloud, tmp_path / "file", decode=False)
    assert (tmp_path / "file").read_bytes() == stored


@pytest.mark.parametrize("size", [1000, 9 * MIB])
async def test_gzip_goes_on_after_a_break(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """The ranges of a continued download count stored bytes."""
    plain = plain_of(size)
    put(cloud, zipped(plain), GZIP)
    cloud.fault(Fault.truncate(size // 2))
    await fetched(cloud, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == plain
    assert ranges(cloud) == ["", f"bytes={size // 2}-"]


async def test_a_stream_gets_what_is_in_the_gzip(cloud: Cloud) -> None:
    """A stream gets decoded bytes, also after a lost connection."""
    plain = random_bytes(1_000_000) + bytes(3 * MIB)
    put(cloud, gzip.compress(plain), GZIP)
    cloud.fault(Fault.truncate(400_000), Fault.ignore_range())
    stream = io.BytesIO()
    await fetched(cloud, stream)
    assert stream.getvalue() == plain
    stream = io.BytesIO()
    await fetched(cloud, stream, decode=False)
    assert gzip.decompress(stream.getvalue()) == plain


@pytest.mark.parametrize("size", [1000, 9 * MIB])
async def test_what_is_only_called_gzip_is_kept(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """Data with the label gzip that is not gzip passes through unchanged."""
    data = b"no gzip" + random_bytes(size)
    put(cloud, data, GZIP)
    await fetched(cloud, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == data


async def test_broken_gzip_is_a_clear_error(cloud: Cloud, tmp_path: Path) -> None:
    """If verified bytes cannot be decoded, the hint says how to get them as stored."""
    put(cloud, gzip.compress(random_bytes(1000))[:-4], GZIP)
    (tmp_path / "file").write_bytes(b"older")
    with pytest.raises(TransferError, match="its end is missing") as caught:
        await fetched(cloud, tmp_path / "file")
    assert caught.value.hint == "download it as it is stored, with `decode=False`"
    assert (tmp_path / "file").read_bytes() == b"older"
    assert names(tmp_path) == ["file"]


async def deaf(cloud: Cloud, target: Any, **options: Any) -> Any:
    """Download from a server that decodes gzip."""
    with virtual_time(seed=1):
        async with Deaf(endpoint=cloud.url) as storage:
            return await download(storage, URL, target, **options)


@pytest.mark.parametrize("size", [1000, 9 * MIB])
@pytest.mark.parametrize("slices", [None, 3])
async def test_what_the_server_decodes_is_taken_and_said_to_be_unchecked(
    cloud: Cloud, tmp_path: Path, size: int, slices: int | None
) -> None:
    """If the server decodes, the returned crc32c is None, and after a lost connection the download starts again."""
    plain = plain_of(size)
    put(cloud, zipped(plain), GZIP)
    cloud.fault(Fault.truncate(share=0.5))
    found = await deaf(cloud, tmp_path / "file", slices=slices)
    assert (tmp_path / "file").read_bytes() == plain
    assert found.crc32c is None
    assert names(tmp_path) == ["file"]
    assert ranges(cloud)[-1] == ""


async def test_what_the_server_decodes_goes_out_once(cloud: Cloud) -> None:
    """After a restart, a stream gets only the bytes that it does not have."""
    plain = random_bytes(1_000_000)
    put(cloud, zipped(plain), GZIP)
    cloud.fault(Fault.truncate(400_000))
    stream = io.BytesIO()
    assert (await deaf(cloud, stream)).crc32c is None
    assert stream.getvalue() == plain


async def test_stored_bytes_that_cannot_be_had_are_an_error(cloud: Cloud, tmp_path: Path) -> None:
    """With decode=False, a server that decodes is an error."""
    put(cloud, gzip.compress(b"plain"), GZIP)
    with pytest.raises(TransferError, match="stored bytes are not available"):
        await deaf(cloud, tmp_path / "file", decode=False)
    assert names(tmp_path) == []


async def test_a_stream_is_not_given_both(cloud: Cloud) -> None:
    """If the server begins to decode after bytes were written to a stream, the download fails."""
    put(cloud, gzip.compress(random_bytes(1_000_000), 1), GZIP)
    cloud.fault(Fault.truncate(400_000))
    stream = io.BytesIO()

    class Turned(Deaf):
        asked = 0

        async def stream(self, method: str, url: str, headers: Mapping[str, str], body: Any = None) -> Response:
            self.asked += 1
            way = Storage.stream if self.asked == 1 else Deaf.stream
            return await way(self, method, url, headers, body)

    with virtual_time(seed=1):
        async with Turned(endpoint=cloud.url) as storage:
            with pytest.raises(SourceChanged, match="encodes the object differently"):
                await download(storage, URL, stream)


@given(st.lists(st.binary(max_size=2000), max_size=4), st.integers(0, 600), st.integers(1, 700), st.booleans())
def test_members_are_joined_however_they_are_cut(parts: list[bytes], zeros: int, cut: int, far: bool) -> None:
    """A gzip file of several members, with padding, is decoded completely, however its bytes are split."""
    plain = [part * (500 if far else 1) for part in parts]
    stored = b"".join(gzip.compress(part) for part in plain) + (bytes(zeros) if parts else b"")
    decoder = GzipDecoder("it")
    pieces = [piece for at in range(0, len(stored), cut) for piece in decoder.feed(stored[at : at + cut])]
    pieces.append(decoder.finish())
    assert b"".join(pieces) == b"".join(plain)
    assert all(len(piece) <= PIECE for piece in pieces)


STORED = gzip.compress(b"data" * 100)


@pytest.mark.parametrize("stored", [STORED[:-1], STORED + b"more", STORED[:15] + b"!!"], ids=["cut", "more", "junk"])
def test_broken_members_are_refused(stored: bytes) -> None:
    """A missing end, trailing bytes and invalid deflate data are errors."""
    decoder = GzipDecoder("it")

    def decode() -> None:
        for _ in decoder.feed(stored):
            pass
        decoder.finish()

    with pytest.raises(TransferError, match="it is stored as gzip and cannot be decoded"):
        decode()


def test_memory_stays_flat_however_far_it_unfolds() -> None:
    """A gigabyte of zeros is decoded in small pieces."""
    packer = zlib.compressobj(9, wbits=31)
    stored = b"".join(packer.compress(bytes(MIB)) for _ in range(64)) + packer.flush()
    decoder = GzipDecoder("it")
    sizes = [len(piece) for piece in decoder.feed(stored)]
    assert max(sizes) <= PIECE
    assert sum(sizes) == 64 * MIB


@pytest.mark.parametrize("data", [b"", b"\x1f", b"x", b"\x1fx"])
def test_what_is_too_short_to_be_gzip_is_kept(data: bytes) -> None:
    """Data that is too short for gzip, or has only its first byte, passes through unchanged."""
    decoder = GzipDecoder("it")
    assert b"".join([*decoder.feed(data[:1]), *decoder.feed(data[1:]), decoder.finish()]) == data

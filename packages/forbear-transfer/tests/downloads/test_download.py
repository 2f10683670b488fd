"""Downloads to files: the requests, the files on disk, the result and the errors."""

import os
import stat
from pathlib import Path

import pytest

from forbear_cloud import Cloud, Fault
from forbear_cloud.storage.model import crc32c_of
from forbear_testkit.transfer.downloads import (
    MIB,
    URL,
    Count,
    fetched,
    looked_up,
    names,
    odd_server,
    put,
    random_bytes,
    ranges,
)
from forbear_testkit.transfer.downloads import described as said
from forbear_testkit.transfer.downloads import reply as made
from forbear_transfer.errors import ChecksumMismatch, HttpError, SourceChanged, TargetExists, TransferError
from forbear_transfer.objects import Object, Url

SIZES = [0, 1, 4096, 300_000, 8 * MIB, 8 * MIB + 1]


@pytest.mark.parametrize("size", SIZES)
async def test_one_request_brings_an_object(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """A download takes a single request, and leaves no other file beside the target."""
    data = random_bytes(size)
    generation = put(cloud, data, {"contentType": "text/x-test"})
    count = Count()
    found = await fetched(cloud, tmp_path / "file", count=count)
    assert (tmp_path / "file").read_bytes() == data
    assert names(tmp_path) == ["file"]
    assert (found.generation, found.size, found.crc32c) == (generation, size, crc32c_of(data))
    assert found.content_type == "text/x-test"
    assert count.bytes == size
    assert len(cloud.requests) == 1


async def test_what_a_listing_said_pins_the_request(cloud: Cloud, tmp_path: Path) -> None:
    """An Object is requested by its generation, and returned with all of its metadata."""
    put(cloud, b"data")
    item = await looked_up(cloud)
    assert await fetched(cloud, tmp_path / "file", item) == item
    assert f"generation={item.generation}" in cloud.requests[-1].query


async def test_a_bucket_is_no_object(cloud: Cloud, tmp_path: Path) -> None:
    """The error names the parameter."""
    with pytest.raises(ValueError, match="`source` must name an object, such as gs://bkt/name, got gs://bkt/"):
        await fetched(cloud, tmp_path / "file", Url("bkt"))


async def test_a_generation_in_the_url_is_the_one_that_comes(cloud: Cloud, tmp_path: Path) -> None:
    """A Url with a generation downloads that version, also if it is not the live one."""
    cloud.store.create_bucket("kept", fields={"versioning": {"enabled": True}})
    old = cloud.store.put("kept", "name", b"old").generation
    cloud.store.put("kept", "name", b"new")
    found = await fetched(cloud, tmp_path / "file", Url("kept", "name", old))
    assert (tmp_path / "file").read_bytes() == b"old"
    assert found.generation == old


async def test_the_file_has_the_time_of_the_one_uploaded(cloud: Cloud, tmp_path: Path) -> None:
    """The file gets the modification time in the metadata."""
    put(cloud, b"data", {"metadata": {"goog-reserved-file-mtime": "1234567890"}})
    await fetched(cloud, tmp_path / "file", await looked_up(cloud))
    assert (tmp_path / "file").stat().st_mtime == 1234567890


@pytest.mark.parametrize("size", [10, 9 * MIB])
async def test_the_file_is_private_until_it_is_right(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """Only its owner may read the part file; the finished file has the default mode."""
    put(cloud, random_bytes(size))
    (tmp_path / "new").touch()
    seen: list[int] = []

    def look() -> None:
        parts = [name for name in names(tmp_path) if name.endswith(".forbear")]
        seen.extend(stat.S_IMODE((tmp_path / name).stat().st_mode) for name in parts)

    await fetched(cloud, tmp_path / "file", count=Count(1, look))
    assert seen == [0o600]
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "new").stat().st_mode


async def test_a_file_that_is_replaced_keeps_its_mode(cloud: Cloud, tmp_path: Path) -> None:
    """A private or executable file stays private or executable."""
    put(cloud, b"data")
    (tmp_path / "file").touch(mode=0o700)
    await fetched(cloud, tmp_path / "file")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o700


@pytest.mark.parametrize("size", [10, 9 * MIB])
@pytest.mark.parametrize("status", [403, 404, 503])
async def test_a_failure_leaves_the_older_file_alone(cloud: Cloud, tmp_path: Path, size: int, status: int) -> None:
    """On an error response, the target stays as it was, and no other file is left beside it."""
    put(cloud, random_bytes(size))
    (tmp_path / "file").write_bytes(b"older")
    cloud.fault(Fault.status(status, times=None, message="no"))
    with pytest.raises(HttpError) as caught:
        await fetched(cloud, tmp_path / "file")
    assert caught.value.status == status
    assert (tmp_path / "file").read_bytes() == b"older"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("size", [10, 9 * MIB])
async def test_wrong_bytes_come_again_once(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """After a checksum mismatch the object is downloaded again."""
    data = random_bytes(size)
    put(cloud, data)
    cloud.fault(Fault.corrupt(5))
    count = Count()
    await fetched(cloud, tmp_path / "file", count=count)
    assert (tmp_path / "file").read_bytes() == data
    assert count.retries == ["ChecksumMismatch"]
    assert count.bytes == size


@pytest.mark.parametrize("size", [10, 9 * MIB])
async def test_bytes_that_stay_wrong_are_never_seen(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """The second mismatch is final: the older file stays, and no part file."""
    put(cloud, random_bytes(size))
    (tmp_path / "file").write_bytes(b"older")
    cloud.fault(Fault.corrupt(5, times=None))
    with pytest.raises(ChecksumMismatch, match="CRC32C") as caught:
        await fetched(cloud, tmp_path / "file")
    assert "gave up after 2 attempts" in caught.value.__notes__[-1]
    assert (tmp_path / "file").read_bytes() == b"older"
    assert names(tmp_path) == ["file"]
    assert names(Path(os.environ["FORBEAR_STATE_DIR"])) == []
    assert len(cloud.requests) == 2


@pytest.mark.parametrize("size", [10, 9 * MIB])
async def test_no_clobber_asks_for_nothing_where_a_file_is(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """With `no_clobber`, an existing target is refused before the request."""
    put(cloud, random_bytes(size))
    (tmp_path / "file").write_bytes(b"older")
    with pytest.raises(TargetExists):
        await fetched(cloud, tmp_path / "file", no_clobber=True)
    assert len(cloud.requests) == 0


@pytest.mark.parametrize("size", [10, 9 * MIB])
async def test_no_clobber_loses_no_race(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """With `no_clobber`, a file that appears during the download stays, and no part file."""
    put(cloud, random_bytes(size))
    target = tmp_path / "file"
    with pytest.raises(TargetExists):
        await fetched(cloud, target, no_clobber=True, count=Count(1, lambda: target.write_bytes(b"theirs")))
    assert target.read_bytes() == b"theirs"
    assert names(tmp_path) == ["file"]
    target.unlink()
    await fetched(cloud, target, no_clobber=True)
    assert target.stat().st_size == size


@pytest.mark.parametrize("size", [3000, 9 * MIB])
@pytest.mark.parametrize("known", [False, True])
async def test_a_version_that_is_gone_gives_way_to_the_new_one(
    cloud: Cloud, tmp_path: Path, size: int, known: bool
) -> None:
    """If the object is replaced during the download, the new version is downloaded from its beginning."""
    old, new = random_bytes(size), random_bytes(size + 1000)
    put(cloud, old)
    source = await looked_up(cloud) if known else URL
    cloud.fault(Fault.truncate(share=0.5, operation="storage.objects.get"))
    cloud.fault(Fault.replace_object(new, header=("range", "bytes")))
    count = Count()
    found = await fetched(cloud, tmp_path / "file", source, count=count)
    assert (tmp_path / "file").read_bytes() == new
    assert found.crc32c == crc32c_of(new)
    assert count.bytes == len(new)
    assert "SourceChanged" in count.retries


async def test_a_version_that_was_asked_for_is_not_replaced_by_another(cloud: Cloud, tmp_path: Path) -> None:
    """If the generation in the URL is gone, the download fails."""
    generation = put(cloud, b"old")
    put(cloud, b"new")
    with pytest.raises(HttpError, match="404"):
        await fetched(cloud, tmp_path / "file", Url(URL.bucket, URL.name, generation))
    assert names(tmp_path) == []


@pytest.mark.parametrize("size", [3000, 9 * MIB])
async def test_an_object_deleted_halfway_is_not_found(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """The error is the 404, and the part file is deleted."""
    put(cloud, random_bytes(size))
    cloud.fault(Fault.truncate(share=0.5), Fault.delete_object(header=("range", "bytes")))
    with pytest.raises(HttpError, match="404"):
        await fetched(cloud, tmp_path / "file")
    assert names(tmp_path) == []


async def test_an_object_replaced_without_end_is_given_up(cloud: Cloud, tmp_path: Path) -> None:
    """If the object is replaced again and again, the download ends at the limits of the policy."""
    put(cloud, random_bytes(3000))
    item = await looked_up(cloud)
    cloud.fault(Fault.replace_object(path="alt=media", times=None))
    with pytest.raises(SourceChanged, match="replaced"):
        await fetched(cloud, tmp_path / "file", item)


async def test_what_tells_no_checksum_is_refused(tmp_path: Path) -> None:
    """An object without a CRC32C is refused, because its bytes cannot be verified."""
    resource = b'{"bucket": "bkt", "name": "folder/name", "generation": "7", "size": "4"}'
    first = made("200 OK", b"data", "content-length: 4")
    look = made("200 OK", resource, f"content-length: {len(resource)}", "content-type: application/json")
    async with odd_server(first, look) as url:
        with pytest.raises(TransferError, match="no CRC32C"):
            await fetched(url, tmp_path / "file")
    assert names(tmp_path) == []


async def test_what_a_response_does_not_tell_is_looked_up(tmp_path: Path) -> None:
    """If the headers do not describe the object, the metadata is requested."""
    crc32c = crc32c_of(b"data")
    resource = f'{{"bucket": "b", "name": "n", "generation": "7", "size": "4", "crc32c": "{crc32c}"}}'.encode()
    first = made("200 OK", b"data", "content-length: 4")
    look = made("200 OK", resource, f"content-length: {len(resource)}", "content-type: application/json")
    async with odd_server(first, look, first) as url:
        found = await fetched(url, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"data"
    assert found.generation == 7


async def test_a_response_longer_than_the_object_is_refused(tmp_path: Path) -> None:
    """A response with more bytes than the object has is retried."""
    crc32c = crc32c_of(b"data")
    long = made("200 OK", b"8\r\ndatadata\r\n0\r\n\r\n", "transfer-encoding: chunked", *said(b"data", crc32c))
    right = made("200 OK", b"4\r\ndata\r\n0\r\n\r\n", "transfer-encoding: chunked", *said(b"data", crc32c))
    count = Count()
    async with odd_server(long, right) as url:
        await fetched(url, tmp_path / "file", count=count)
    assert (tmp_path / "file").read_bytes() == b"data"
    assert count.retries == ["WrongResponse"]


async def test_a_response_that_ends_with_the_connection_is_measured(tmp_path: Path) -> None:
    """A truncated response without a Content-Length is recognized by the size of the object."""
    crc32c = crc32c_of(b"data")
    short = made("200 OK", b"da", *said(b"data", crc32c))
    rest = made("206 Partial Content", b"ta", "content-range: bytes 2-3/4", *said(b"data", crc32c))
    count = Count()
    async with odd_server(short, rest) as url:
        await fetched(url, tmp_path / "file", count=count)
    assert (tmp_path / "file").read_bytes() == b"data"
    assert count.retries == ["WrongResponse"]


async def test_what_is_compressed_on_the_way_is_asked_for_plainly(tmp_path: Path) -> None:
    """After a response that a proxy compressed, the request says "Accept-Encoding: identity"."""
    crc32c = crc32c_of(b"data")
    packed = made("200 OK", b"junk", "content-encoding: gzip", "content-length: 4", *said(b"data", crc32c))
    plain = made("200 OK", b"data", "content-length: 4", *said(b"data", crc32c))
    item = Object("bkt", "folder/name", 7, 4, crc32c)
    count = Count()
    async with odd_server(packed, plain) as url:
        await fetched(url, tmp_path / "file", item, count=count)
    assert (tmp_path / "file").read_bytes() == b"data"
    assert count.retries == ["WrongEncoding"]


@pytest.mark.parametrize("slices", [0, -1])
async def test_slices_are_checked(cloud: Cloud, tmp_path: Path, slices: int) -> None:
    """`slices` must be at least 1."""
    with pytest.raises(ValueError, match="`slices` must be at least 1"):
        await fetched(cloud, tmp_path / "file", slices=slices)


async def test_a_break_continues_where_it_was(cloud: Cloud, tmp_path: Path) -> None:
    """After a lost connection, the rest of the same generation is requested."""
    data = random_bytes(100_000)
    generation = put(cloud, data)
    cloud.fault(Fault.truncate(40_000))
    await fetched(cloud, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == data
    assert ranges(cloud) == ["", "bytes=40000-"]
    assert f"generation={generation}" in cloud.requests[-1].query

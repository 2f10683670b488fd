"""Interrupted downloads continue: in the same process after a fault, and in the next one after a crash."""

import asyncio
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from forbear_cloud import Cloud, Fault
from forbear_cloud.storage.model import crc32c_of
from forbear_testkit import ROOT
from forbear_testkit.transfer.downloads import (
    MIB,
    URL,
    Count,
    described,
    fetched,
    looked_up,
    names,
    odd_server,
    put,
    random_bytes,
    ranges,
    reply,
)
from forbear_transfer.downloads import resume
from forbear_transfer.errors import ChecksumMismatch, HttpError, Locked, TransferError
from forbear_transfer.wire.response import Broken

SIZE = 9 * MIB


def states() -> list[str]:
    """Return the states on disk of unfinished transfers."""
    return names(Path(os.environ["FORBEAR_STATE_DIR"]))


async def stopped_at(cloud: Cloud, target: Path, size: int, **options: Any) -> None:
    """Begin a download, and cancel it once a number of bytes has arrived."""
    task = asyncio.current_task()
    assert task is not None
    with pytest.raises(asyncio.CancelledError):
        await fetched(cloud, target, count=Count(size, task.cancel), **options)
    task.uncancel()


REST = f"bytes={4 * MIB}-"
FAULTS = {
    "end": ([], ["", REST]),
    "reset": ([Fault.reset()], ["", "bytes="]),
    "503": ([Fault.status(503)], ["", REST, REST]),
    "429": ([Fault.status(429)], ["", REST, REST]),
    "all again": ([Fault.ignore_range()], ["", REST]),
    "416": ([Fault.refuse_range()], ["", REST, ""]),
    "other": ([Fault.other_range(5)], ["", REST, REST]),
    "twice": ([Fault.truncate(MIB)], ["", REST, f"bytes={5 * MIB}-"]),
    "close": ([Fault.close()], ["", REST]),
}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("size", [SIZE, 6 * MIB], ids=["large", "small"])
async def test_a_fault_is_survived(cloud: Cloud, tmp_path: Path, size: int, kind: str) -> None:
    """After a fault the rest is requested where that is safe, otherwise everything."""
    data = random_bytes(size)
    put(cloud, data)
    faults, asked = FAULTS[kind]
    cloud.fault(Fault.truncate(4 * MIB, reset=kind == "reset"), *faults)
    count = Count()
    await fetched(cloud, tmp_path / "file", count=count)
    assert (tmp_path / "file").read_bytes() == data
    assert names(tmp_path) == ["file"]
    assert states() == []
    assert count.bytes == size
    found = ranges(cloud)
    assert len(found) >= len(asked)
    assert all(each.startswith(begin) for each, begin in zip(found, asked, strict=False))


async def test_progress_renews_the_patience(cloud: Cloud, tmp_path: Path) -> None:
    """A download that makes progress may lose its connection more often than the policy has attempts."""
    data = random_bytes(60_000)
    put(cloud, data)
    cloud.fault(Fault.truncate(1000, times=59))
    count = Count()
    await fetched(cloud, tmp_path / "file", count=count)
    assert (tmp_path / "file").read_bytes() == data
    assert len(count.retries) == 59


async def test_no_progress_ends_the_patience(tmp_path: Path) -> None:
    """Bytes that arrive again, and no new ones, are no progress: the download fails."""
    short = reply("200 OK", b"da", "content-length: 4", *described(b"data", crc32c_of(b"data")))
    async with odd_server(short) as url:
        with pytest.raises(Broken, match="after 2 of 4 bytes") as caught:
            await fetched(url, tmp_path / "file")
    assert "gave up after" in caught.value.__notes__[-1]
    assert names(tmp_path) == []


async def test_a_stall_is_left(cloud: Cloud, tmp_path: Path) -> None:
    """A response that stops is abandoned, and the rest is requested."""
    data = random_bytes(100_000)
    put(cloud, data)
    cloud.fault(Fault.stall(40_000))
    count = Count()
    await fetched(cloud, tmp_path / "file", stall_timeout=0.1, count=count)
    assert (tmp_path / "file").read_bytes() == data
    assert set(count.retries) == {"Stalled"}  # a busy machine may seem to stall, too
    assert len(ranges(cloud)) == 1 + len(count.retries)
    assert count.bytes == len(data)


@pytest.mark.parametrize("known", [False, True])
async def test_the_next_run_goes_on(cloud: Cloud, tmp_path: Path, known: bool) -> None:
    """After a large download was cancelled, the next run requests only the missing bytes."""
    data = random_bytes(SIZE)
    put(cloud, data)
    target = tmp_path / "file"
    target.write_bytes(b"older")
    await stopped_at(cloud, target, 5 * MIB)
    assert target.read_bytes() == b"older"
    (part,) = [name for name in names(tmp_path) if name.endswith(".forbear")]
    kept = (tmp_path / part).stat().st_size
    assert kept >= 5 * MIB
    assert part.startswith(".file.")
    assert len(states()) == 1
    count = Count()
    await fetched(cloud, target, await looked_up(cloud) if known else URL, count=count)
    assert target.read_bytes() == data
    assert ranges(cloud)[-1] == f"bytes={kept}-"
    assert names(tmp_path) == ["file"]
    assert states() == []
    assert count.bytes == SIZE


@pytest.mark.parametrize("slices", [1, 3])
async def test_a_run_that_only_lacked_its_end_asks_for_no_bytes(cloud: Cloud, tmp_path: Path, slices: int) -> None:
    """If all bytes are on disk, the next run verifies and publishes them without a request for data."""
    data = random_bytes(SIZE)
    put(cloud, data)
    await stopped_at(cloud, tmp_path / "file", SIZE, slices=slices)
    before = len(ranges(cloud))
    await fetched(cloud, tmp_path / "file", slices=slices)
    assert (tmp_path / "file").read_bytes() == data
    assert len(ranges(cloud)) == before


@pytest.mark.parametrize("slices", [1, 3])
async def test_a_file_that_cannot_be_published_keeps_its_bytes(cloud: Cloud, tmp_path: Path, slices: int) -> None:
    """If a complete download cannot take its name, the next run requests no data."""
    data, target = random_bytes(SIZE), tmp_path / "file"
    put(cloud, data)
    with pytest.raises(TransferError, match="cannot write"):
        await fetched(cloud, target, count=Count(SIZE, target.mkdir), slices=slices)
    target.rmdir()
    before = len(ranges(cloud))
    await fetched(cloud, target, slices=slices)
    assert target.read_bytes() == data
    assert len(ranges(cloud)) == before
    assert states() == []


async def test_bytes_of_another_version_are_not_gone_on_with(cloud: Cloud, tmp_path: Path) -> None:
    """If the object was replaced between two runs, the second one starts again."""
    put(cloud, random_bytes(SIZE))
    await stopped_at(cloud, tmp_path / "file", 5 * MIB)
    data = random_bytes(SIZE)
    put(cloud, data)
    await fetched(cloud, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == data
    assert ranges(cloud)[-1] == ""


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_replaced_version_is_looked_up_once(cloud: Cloud, tmp_path: Path, resumed: bool) -> None:
    """If the version in a listing is gone, three requests follow: for its bytes, the new metadata, the new bytes."""
    put(cloud, random_bytes(SIZE))
    listed = await looked_up(cloud)
    if resumed:
        await stopped_at(cloud, tmp_path / "file", 5 * MIB)
    data = random_bytes(SIZE)
    put(cloud, data)
    before = len(cloud.requests)
    await fetched(cloud, tmp_path / "file", listed)
    assert (tmp_path / "file").read_bytes() == data
    assert ["alt=media" in each.query for each in list(cloud.requests)[before:]] == [True, False, True]


async def test_a_part_is_cleared_away_when_the_object_is_small_now(cloud: Cloud, tmp_path: Path) -> None:
    """The part file of a large version is deleted if the new version is small."""
    put(cloud, random_bytes(SIZE))
    await stopped_at(cloud, tmp_path / "file", 5 * MIB)
    put(cloud, b"small")
    await fetched(cloud, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"small"
    assert names(tmp_path) == ["file"]
    assert states() == []


@pytest.mark.parametrize("slices", [1, 3])
async def test_bytes_that_went_wrong_on_disk_come_again(cloud: Cloud, tmp_path: Path, slices: int) -> None:
    """A mismatch in a resumed download restarts it, and does not count as a mismatch of the server."""
    data = random_bytes(SIZE)
    put(cloud, data)
    await stopped_at(cloud, tmp_path / "file", 5 * MIB, slices=slices)
    (part,) = names(tmp_path)
    with (tmp_path / part).open("r+b") as file:
        file.write(bytes([data[0] ^ 1]))
    cloud.fault(Fault.corrupt(5, path="alt=media", nth=2 if slices == 1 else 4))
    count = Count()
    await fetched(cloud, tmp_path / "file", count=count, slices=slices)
    assert (tmp_path / "file").read_bytes() == data
    assert "ChecksumMismatch" in count.retries
    assert count.bytes == SIZE


@pytest.mark.parametrize("slices", [1, 3])
@pytest.mark.parametrize("resumed", [True, False])
async def test_bytes_that_stay_wrong_leave_nothing(cloud: Cloud, tmp_path: Path, slices: int, resumed: bool) -> None:
    """After a second mismatch, a third one for a resumed download, neither part file nor state is kept."""
    put(cloud, random_bytes(SIZE))
    if resumed:
        await stopped_at(cloud, tmp_path / "file", 5 * MIB, slices=slices)
    cloud.fault(Fault.corrupt(5, path="alt=media", times=None))
    count = Count()
    with pytest.raises(ChecksumMismatch):
        await fetched(cloud, tmp_path / "file", count=count, slices=slices)
    assert count.retries == ["ChecksumMismatch"] * (2 if resumed else 1)
    assert names(tmp_path) == []
    assert states() == []


@pytest.mark.parametrize("slices", [1, 3])
async def test_what_came_stays_when_the_patience_is_over(cloud: Cloud, tmp_path: Path, slices: int) -> None:
    """When the limits of the policy are reached, part file and state are kept."""
    data = random_bytes(SIZE)
    put(cloud, data)
    source = await looked_up(cloud)
    rest = f"bytes={2 * MIB}-"
    cloud.fault(Fault.truncate(2 * MIB, path="alt=media", header=("range", "bytes=0-") if slices > 1 else None))
    cloud.fault(Fault.status(503, header=("range", rest), times=None))
    with pytest.raises(HttpError, match="503"):
        await fetched(cloud, tmp_path / "file", source, slices=slices)
    assert len(names(tmp_path)) == 1
    cloud.clear_faults()
    before = len(ranges(cloud))
    await fetched(cloud, tmp_path / "file", source, slices=slices)
    assert (tmp_path / "file").read_bytes() == data
    assert any(each.startswith(rest) for each in ranges(cloud)[before:])


@pytest.mark.parametrize("spoil", ["state", "part", "both", "longer"])
async def test_what_was_tampered_with_is_begun_anew(cloud: Cloud, tmp_path: Path, spoil: str) -> None:
    """Without its part file, without its state, or with a part file that is too long, the download starts again."""
    data = random_bytes(SIZE)
    put(cloud, data)
    await stopped_at(cloud, tmp_path / "file", 5 * MIB)
    (part,) = names(tmp_path)
    state = states()[0]
    if spoil in ("part", "both"):
        (tmp_path / part).unlink()
    if spoil in ("state", "both"):
        (Path(os.environ["FORBEAR_STATE_DIR"]) / state).write_text("{")
    if spoil == "longer":
        (tmp_path / part).write_bytes(bytes(SIZE + 1))
    await fetched(cloud, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == data
    assert ranges(cloud)[-1] == ""
    assert states() == []


@pytest.mark.parametrize("layout", [[[0, 5, 1]], [[0, SIZE, -1]], [[0, SIZE, SIZE + 1]], [[1, SIZE, 0]], "x", [[0]], 3])
def test_slices_that_make_no_sense_are_begun_anew(layout: object) -> None:
    """An invalid layout in a state is not used."""
    assert not resume._covers(layout, SIZE)
    assert resume._covers([[0, MIB, 5], [MIB, SIZE, 0]], SIZE)


async def test_the_part_removed_in_mid_download_is_a_clear_error(cloud: Cloud, tmp_path: Path) -> None:
    """If the part file is deleted during the download, the error says so, and the next run works."""
    data = random_bytes(SIZE)
    put(cloud, data)

    def clear() -> None:
        for name in names(tmp_path):
            (tmp_path / name).unlink()

    with pytest.raises(Exception, match=r"cannot write .*No such file"):
        await fetched(cloud, tmp_path / "file", count=Count(5 * MIB, clear))
    await fetched(cloud, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == data
    assert states() == []


async def test_two_at_one_large_file_exclude_each_other(cloud: Cloud, tmp_path: Path) -> None:
    """The second download of a large object to one file raises Locked; the first one succeeds."""
    data = random_bytes(SIZE)
    put(cloud, data)
    errors: list[BaseException | None] = []

    def begin_another() -> None:
        with ThreadPoolExecutor(1) as pool:  # it has a loop of its own, and the first one waits for it
            errors.append(pool.submit(lambda: asyncio.run(fetched(cloud, tmp_path / "file"))).exception())

    await fetched(cloud, tmp_path / "file", count=Count(5 * MIB, begin_another))
    assert [type(each) for each in errors] == [Locked]
    assert (tmp_path / "file").read_bytes() == data


async def test_two_at_one_small_file_are_both_right(cloud: Cloud, tmp_path: Path) -> None:
    """Several downloads of a small object to one file have a part file each, and all succeed."""
    put(cloud, b"data")
    await asyncio.gather(*(fetched(cloud, tmp_path / "file") for _ in range(5)))
    assert (tmp_path / "file").read_bytes() == b"data"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("slices", [1, 4])
def test_sigkill_loses_no_more_than_was_in_flight(cloud: Cloud, tmp_path: Path, slices: int) -> None:
    """After a process was killed, the next one requests only what was not written."""
    size = 40 * MIB
    data = random_bytes(size)
    put(cloud, data)
    target = tmp_path / "file"
    killed = subprocess.run(
        [
            sys.executable,
            "-m",
            "forbear_testkit.transfer.download_child",
            cloud.url,
            target,
            str(slices),
            str(size * 3 // 4),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert not target.exists()
    count = Count()
    asyncio.run(fetched(cloud, target, count=count))
    assert target.read_bytes() == data
    assert names(tmp_path) == ["file"]
    assert states() == []
    assert count.bytes == size
    again = sum(missing(each, size) for each in ranges(cloud)[slices:])
    assert again <= size // 4 + (0 if slices == 1 else 12 * MIB)


def missing(asked: str, size: int) -> int:
    """Return how many bytes a request asked for."""
    first, _, last = asked.removeprefix("bytes=").partition("-")
    return (int(last) + 1 if last else size) - int(first or 0)

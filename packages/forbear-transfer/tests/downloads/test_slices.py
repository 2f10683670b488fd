"""Downloads in slices: the ranges that are requested, faults in each of them, and servers without ranges."""

import asyncio
import itertools
import json
import os
import threading
from pathlib import Path

import pytest

from forbear_cloud import Cloud, Fault
from forbear_cloud.storage.model import crc32c_of
from forbear_testkit.transfer.downloads import MIB, URL, Count, fetched, looked_up, names, put, random_bytes, ranges
from forbear_transfer.downloads import resume
from forbear_transfer.downloads import slices as sliced
from forbear_transfer.downloads.slices import layout_for
from forbear_transfer.errors import HttpError

SIZE = 9 * MIB + 12345


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
async def test_the_parts_make_the_whole(cloud: Cloud, tmp_path: Path, count: int) -> None:
    """The requested number of ranges of one generation is fetched, and joined without a gap."""
    data = random_bytes(SIZE)
    put(cloud, data)
    item = await looked_up(cloud)
    meter = Count()
    found = await fetched(cloud, tmp_path / "file", item, slices=count, count=meter)
    assert (tmp_path / "file").read_bytes() == data
    assert found == item
    assert len(ranges(cloud)) == count
    assert meter.bytes == SIZE
    assert meter.retries == []
    assert all(f"generation={item.generation}" in each.query for each in cloud.requests if "alt=media" in each.query)


async def test_the_first_response_serves_the_first_slice(cloud: Cloud, tmp_path: Path) -> None:
    """The response to the first request, which tells the size, is used for the first slice."""
    data = random_bytes(SIZE)
    put(cloud, data)
    await fetched(cloud, tmp_path / "file", slices=3)
    assert (tmp_path / "file").read_bytes() == data
    asked = ranges(cloud)
    assert len(asked) == 3
    assert asked[0] == ""


@pytest.mark.parametrize(
    ("size", "slices", "connections", "count"),
    [
        (149 * MIB, None, 64, 1),
        (150 * MIB, None, 64, 4),
        (150 * MIB, None, 2, 2),
        (150 * MIB, None, 1, 1),
        (1024 * MIB, None, 64, 4),
        (1024 * MIB, 16, 64, 16),
        (1024 * MIB, 1, 64, 1),
        (3 * MIB + 1, 16, 64, 3),
        (0, 4, 64, 1),
    ],
)
def test_how_many_slices_there_are(size: int, slices: int | None, connections: int, count: int) -> None:
    """The number of slices depends on the size unless the caller sets it; connections and MiB limit it."""
    layout = layout_for(size, slices, connections)
    assert (1 if layout is None else len(layout)) == count
    if layout is not None:
        assert layout[0][0] == 0
        assert layout[-1][1] == size
        assert all(one[1] == two[0] for one, two in itertools.pairwise(layout))
        assert all(start < end and done == 0 for start, end, done in layout)


FAULTS = {
    "truncate": [Fault.truncate(MIB, times=5)],
    "reset": [Fault.truncate(MIB, reset=True, times=3), Fault.reset(times=2)],
    "503": [Fault.status(503, times=6)],
    "429": [Fault.status(429, times=3), Fault.truncate(5)],
    "416": [Fault.truncate(MIB), Fault.refuse_range()],
    "all": [Fault.ignore_range()],
    "always all": [Fault.ignore_range(times=None)],
    "other": [Fault.other_range(5)],
    "corrupt": [Fault.corrupt(7)],
    "corrupt later": [Fault.corrupt(7, header=("range", f"{SIZE // 3 // MIB}"))],
}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("known", [False, True])
async def test_faults_of_slices_are_survived(cloud: Cloud, tmp_path: Path, kind: str, known: bool) -> None:
    """Each slice continues by itself; if the server serves no ranges, the object is fetched in one."""
    data = random_bytes(SIZE)
    put(cloud, data)
    source = await looked_up(cloud) if known else URL
    cloud.fault(*FAULTS[kind])
    count = Count()
    await fetched(cloud, tmp_path / "file", source, slices=3, count=count)
    assert (tmp_path / "file").read_bytes() == data
    assert names(tmp_path) == ["file"]
    assert count.bytes == SIZE


@pytest.mark.parametrize("known", [False, True])
async def test_slices_are_of_one_version(cloud: Cloud, tmp_path: Path, known: bool) -> None:
    """If the object is replaced, all slices start again."""
    new = random_bytes(SIZE)
    put(cloud, random_bytes(SIZE))
    source = await looked_up(cloud) if known else URL
    cloud.fault(Fault.replace_object(new, header=("range", "bytes"), nth=2))
    count = Count()
    found = await fetched(cloud, tmp_path / "file", source, slices=3, count=count)
    assert (tmp_path / "file").read_bytes() == new
    assert found.crc32c == crc32c_of(new)
    assert count.bytes == SIZE


async def test_one_slice_that_fails_ends_the_others(cloud: Cloud, tmp_path: Path) -> None:
    """The error is that of the failed slice, not an exception group."""
    put(cloud, random_bytes(SIZE))
    item = await looked_up(cloud)
    cloud.fault(Fault.status(403, path="alt=media", times=None))
    with pytest.raises(HttpError, match="403"):
        await fetched(cloud, tmp_path / "file", item, slices=4)
    assert names(tmp_path) == []


async def test_a_fast_connection_takes_all_slices_alone(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default one connection fetches all slices if it is fast."""
    monkeypatch.setattr(sliced, "SLICED_FROM", MIB)
    monkeypatch.setattr(sliced, "_WORTHWHILE", float("inf"))
    data = random_bytes(SIZE)
    put(cloud, data)
    item = await looked_up(cloud)
    await fetched(cloud, tmp_path / "file", item)
    assert (tmp_path / "file").read_bytes() == data
    mine = [each for each in cloud.requests if f"generation={item.generation}" in each.query]  # others may come late
    firsts = [int(each.headers["range"].removeprefix("bytes=").partition("-")[0]) for each in mine]
    assert len(firsts) == 4
    assert firsts == sorted(firsts)


async def test_others_join_in_where_one_is_slow(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default more connections fetch slices if the first one is slow."""
    monkeypatch.setattr(sliced, "SLICED_FROM", MIB)
    data = random_bytes(SIZE)
    put(cloud, data)
    item = await looked_up(cloud)
    cloud.fault(Fault.stall(1000, path="alt=media"))
    count = Count()
    await fetched(cloud, tmp_path / "file", item, stall_timeout=0.5, count=count)
    assert (tmp_path / "file").read_bytes() == data
    assert set(count.retries) == {"Stalled"}  # a busy machine may seem to stall, too
    assert len(ranges(cloud)) == 4 + len(count.retries)
    assert sum(each.startswith("bytes=1000-") for each in ranges(cloud)) == 1


def _kept() -> dict[str, int]:
    """Return the number of bytes in each layout of the state: all of them, and the synced ones."""
    (state,) = Path(os.environ["FORBEAR_STATE_DIR"]).glob("*.json")
    values = json.loads(state.read_bytes())["values"]
    return {name: sum(done for _, _, done in values[name]) for name in ("slices", "synced")}


async def test_who_is_cancelled_during_a_sync_does_not_stop_the_event_loop(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may take seconds to sync, and other transfers go on meanwhile."""
    monkeypatch.setattr(sliced, "_SAVED_EVERY", MIB)
    monkeypatch.setattr(sliced, "_SYNCED_AFTER", 0.0)
    put(cloud, random_bytes(SIZE))
    item = await looked_up(cloud)
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    began, ticked, in_time = threading.Event(), threading.Event(), list[bool]()
    sync = os.fsync

    def tick(left: int) -> None:
        if left:
            loop.call_soon(tick, left - 1)
        else:
            ticked.set()

    def wait_for_ticks(descriptor: int) -> None:
        if threading.current_thread() is not threading.main_thread() and not in_time:
            began.set()
            in_time.append(ticked.wait(5))
        sync(descriptor)

    def cancel_during_sync() -> None:
        assert began.wait(5)
        task.cancel()
        loop.call_soon(tick, 1000)

    monkeypatch.setattr(os, "fsync", wait_for_ticks)
    with pytest.raises(asyncio.CancelledError):
        await fetched(cloud, tmp_path / "file", item, slices=3, count=Count(6 * MIB, cancel_during_sync))
    task.uncancel()
    assert in_time == [True]


@pytest.mark.parametrize("machine", ["the same", "another run of it"])
async def test_what_is_noted_of_slices_is_on_disk(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    """A cancelled download keeps all its bytes; after a crash of the machine only those that were synced count."""
    monkeypatch.setattr(sliced, "_SAVED_EVERY", MIB)
    monkeypatch.setattr(sliced, "_SYNCED_AFTER", 0.0)
    data = random_bytes(SIZE)
    put(cloud, data)
    task = asyncio.current_task()
    assert task is not None

    def cancel_once_synced() -> None:
        wait = threading.Event()
        for _ in range(10_000):
            if _kept()["synced"]:
                break
            wait.wait(0.001)  # the sync is in a thread
        task.cancel()

    count = Count(6 * MIB, cancel_once_synced)
    with pytest.raises(asyncio.CancelledError):
        await fetched(cloud, tmp_path / "file", await looked_up(cloud), slices=3, count=count)
    task.uncancel()
    kept = _kept()
    assert kept["slices"] == count.bytes
    assert 0 < kept["synced"] <= count.bytes
    if machine != "the same":
        monkeypatch.setattr(resume, "_find_boot_id", lambda: machine)
    before = len(ranges(cloud))
    await fetched(cloud, tmp_path / "file", slices=3)
    assert (tmp_path / "file").read_bytes() == data
    asked = [each.removeprefix("bytes=").partition("-") for each in ranges(cloud)[before:]]
    missing = SIZE - kept["slices" if machine == "the same" else "synced"]
    assert sum(int(last or SIZE - 1) + 1 - int(first or 0) for first, _, last in asked) == missing
    assert names(Path(os.environ["FORBEAR_STATE_DIR"])) == []

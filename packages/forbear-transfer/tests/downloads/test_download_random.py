"""Downloads under random faults, lost connections and cancellation: the right bytes or a clear failure."""

import asyncio
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.downloads import MIB, URL, Count, fetched, names, random_bytes
from forbear_transfer.downloads import download as downloads
from forbear_transfer.downloads import slices as sliced
from forbear_transfer.errors import TransferError

SIZES = [0, 1, 5000, 300_000, 2 * MIB + 77, 5 * MIB]
CONTENTS = {size: random_bytes(size) for size in SIZES}

offsets = st.integers(0, 5 * MIB)
faults = st.one_of(
    st.builds(Fault.truncate, offsets, reset=st.booleans()),
    st.builds(Fault.truncate, share=st.floats(0, 1)),
    st.builds(Fault.status, st.sampled_from([408, 429, 500, 502, 503, 504])),
    st.builds(Fault.corrupt, offsets),
    st.builds(Fault.other_range, st.integers(0, 1000)),
    st.sampled_from([Fault.reset(), Fault.close(), Fault.ignore_range(), Fault.refuse_range()]),
)


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower all thresholds of sizes."""
    monkeypatch.setattr(downloads, "SMALL", 200_000)
    monkeypatch.setattr(sliced, "_SAVED_EVERY", 100_000)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(SIZES), st.lists(faults, max_size=5), st.integers(1, 4), st.booleans())
def test_faults_change_nothing(
    cloud: Cloud, little: None, size: int, plan: list[Fault], slices: int, older: bool
) -> None:
    """Once the faults end, the file has the right bytes, and progress counts each byte once."""
    data = CONTENTS[size]
    cloud.clear_faults()
    cloud.store.put(URL.bucket, URL.name, data)
    cloud.fault(*plan)
    wrong = sum(fault.name.startswith("corrupt") for fault in plan)
    with tempfile.TemporaryDirectory() as folder:
        target, count = Path(folder) / "file", Count()
        if older:
            target.write_bytes(b"older")
        try:
            asyncio.run(fetched(cloud, target, slices=slices, count=count))
        except TransferError:
            assert wrong > 1
            assert not target.exists() or target.read_bytes() == b"older"
        else:
            assert target.read_bytes() == data
            assert count.bytes == size
            assert names(Path(folder)) == ["file"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=settings().max_examples // 3)
@given(st.lists(st.integers(1, 5 * MIB), max_size=4), st.lists(faults, max_size=2), st.integers(1, 4), st.booleans())
def test_runs_that_end_anywhere_are_gone_on_with(
    cloud: Cloud, little: None, ends: list[int], plan: list[Fault], slices: int, replaced: bool
) -> None:
    """However often a download is cancelled, and wherever, the last run downloads the version that is live then."""
    data = CONTENTS[5 * MIB]
    cloud.clear_faults()
    cloud.store.put(URL.bucket, URL.name, data)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "file"
        cloud.fault(*plan)
        for end in ends:
            asyncio.run(_cancelled(cloud, target, end, slices))
            assert not target.exists() or target.read_bytes() == data
        cloud.clear_faults()
        if replaced:
            data = data[::-1]
            cloud.store.put(URL.bucket, URL.name, data)
        count = Count()
        asyncio.run(fetched(cloud, target, slices=slices, count=count))
        assert target.read_bytes() == data
        assert count.bytes == len(data)
        assert names(Path(folder)) == ["file"]
        assert names(Path(os.environ["FORBEAR_STATE_DIR"])) == []


async def _cancelled(cloud: Cloud, target: Path, end: int, slices: int) -> None:
    """Download until a number of bytes has arrived, or to the end."""
    count = Count(end)
    task = asyncio.ensure_future(fetched(cloud, target, slices=slices, count=count))
    count.act = task.cancel
    await asyncio.wait({task})
    if not task.cancelled():
        assert task.exception() is None or isinstance(task.exception(), TransferError)

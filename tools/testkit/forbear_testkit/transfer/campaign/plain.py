"""Transfers without ado, for tests of their surroundings: in chunks of 256 KiB, with the state below a folder."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.campaign.plans import CHUNK, GET, INSERT, Json
from forbear_testkit.transfer.campaign.trial import small_thresholds
from forbear_transfer.downloads.download import download
from forbear_transfer.objects import Object, Url
from forbear_transfer.storage.client import Storage
from forbear_transfer.uploads.upload import upload

T = TypeVar("T")

SIZE = 6 * CHUNK
DATA = Random(9).randbytes(SIZE)
OLDER = b"what was there before"
SOURCE, TARGET = Url("bkt", "source"), Url("bkt", "target")


def run(work: Coroutine[object, object, T]) -> T:
    """Run it where a mebibyte is much, and waits take no time."""
    with small_thresholds(), virtual_time(seed=5):
        return asyncio.run(work)


def up(url: str, source: Path, folder: Path, generation: int | None = None) -> Object:
    """Upload in chunks."""
    return run(aup(url, source, folder, generation))


async def aup(url: str, source: Path, folder: Path, generation: int | None = None) -> Object:
    """Upload in chunks."""
    async with Storage(endpoint=url) as storage:
        return await upload(storage, source, TARGET, generation=generation, chunk_size=CHUNK, state=folder / "state")


def down(url: str, target: Path | str, folder: Path) -> Object:
    """Download."""
    return run(adown(url, target, folder))


async def adown(url: str, target: Path | str, folder: Path, source: Url = SOURCE) -> Object:
    """Download."""
    async with Storage(endpoint=url) as storage:
        return await download(storage, source, target, state=folder / "state")


def names(folder: Path) -> list[str]:
    """Return the names in a folder, or none if it does not exist."""
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def put(cloud: Cloud, data: bytes = DATA, name: str = "source", **fields: object) -> int:
    """Have something to download."""
    return cloud.store.put("bkt", name, data, fields).generation  # type: ignore[arg-type]


def broken_off(cloud: Cloud, transfer: Callable[[], object]) -> None:
    """Have a transfer end halfway, for it is asked to wait longer than it may."""
    late: Json = {"action": "status", "code": 503, "retry_after": 10_000, "times": None}
    cloud.fault(
        Fault.from_json({**late, "operation": f"{INSERT}.send", "skip": 3}),
        Fault.truncate(SIZE // 2, operation=GET, path="alt=media"),
        Fault.from_json({**late, "operation": GET, "path": "alt=media"}),
    )
    with pytest.raises(Exception, match="503"):
        transfer()
    cloud.clear_faults()

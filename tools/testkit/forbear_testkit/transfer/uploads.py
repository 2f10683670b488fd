"""Helpers of the tests of uploads: a Storage in virtual time, files, listeners that add up, and what the cloud did."""

import contextlib
import os
import random
from collections.abc import AsyncGenerator, Callable, Generator
from functools import lru_cache
from pathlib import Path
from typing import Any

from forbear.core.events import Scheduled
from forbear.testing import virtual_time
from forbear_cloud import Cloud
from forbear_testkit.transfer.recorder import Receiver
from forbear_transfer.objects import Url
from forbear_transfer.progress import listening
from forbear_transfer.storage.client import Storage

KIB = 1024
MIB = 1024 * KIB
CHUNK = 256 * KIB
TARGET = Url("bkt", "thing")
INSERT = "storage.objects.insert"
START, SEND, QUERY, CANCEL = (f"{INSERT}.{step}" for step in ("start", "send", "query", "cancel"))


@contextlib.asynccontextmanager
async def storing(cloud: Cloud | str, **settings: Any) -> AsyncGenerator[Storage]:
    """Yield a Storage of the cloud, or of another endpoint, in virtual time."""
    with virtual_time(seed=7):
        async with Storage(endpoint=cloud if isinstance(cloud, str) else cloud.url, **settings) as storage:
            yield storage


@lru_cache(8)
def data_of(size: int, seed: int = 1) -> bytes:
    """Return random bytes of a seed."""
    return random.Random(seed).randbytes(size)


def file_of(folder: Path, size: int, name: str = "source.bin", seed: int = 1) -> Path:
    """Make a file of random bytes."""
    path = folder / name
    path.write_bytes(data_of(size, seed))
    return path


def stored(cloud: Cloud, name: str = TARGET.name) -> bytes:
    """Return the data of the live object."""
    return cloud.store.object("bkt", name).data


def versions(cloud: Cloud, name: str = TARGET.name) -> int:
    """Return how many versions the clients have made."""
    return cloud.effects.count(resource=f"bkt/{name}")


def steps(cloud: Cloud) -> list[str]:
    """Return the operations of all requests in order; those of sessions by one word."""
    return [each.operation.removeprefix(f"{INSERT}.") for each in cloud.requests if each.operation is not None]


class Sum(Receiver):
    """Add up the bytes that have moved, and the retries."""

    def __init__(self) -> None:
        self.bytes = 0
        self.most = 0
        self.retries = 0
        self.size: int | None = None

    def moved(self, count: int) -> None:
        self.bytes += count
        self.most = max(self.most, self.bytes)

    def retried(self, event: Scheduled) -> None:
        self.retries += 1

    def sized(self, size: int) -> None:
        self.size = size


class When(Sum):
    """Call a function once a number of bytes has moved."""

    def __init__(self, count: int, act: Callable[[], object]) -> None:
        super().__init__()
        self._count = count
        self._act = act

    def moved(self, count: int) -> None:
        before = self.bytes
        super().moved(count)
        if before < self._count <= self.bytes:
            self._act()


@contextlib.contextmanager
def metered(told: Sum | None = None) -> Generator[Sum]:
    """Add up what moves within the block."""
    told = told or Sum()
    with listening(told):
        yield told


def open_files(folder: Path) -> int:
    """Return how many files below a folder this process has open."""
    descriptors = Path("/proc/self/fd")
    files: list[str] = []
    for descriptor in descriptors.iterdir() if descriptors.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):  # a thread of the server has just closed it
            files.append(str(descriptor.readlink()))
    return sum(file.startswith(str(folder)) for file in files)


def states() -> list[Path]:
    """Return the files of states."""
    return sorted(Path(os.environ["FORBEAR_STATE_DIR"]).iterdir())

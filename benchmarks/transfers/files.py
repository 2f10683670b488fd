"""The files that are sent and fetched: made in memory where there is room, and known by their CRC32C."""

import base64
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import google_crc32c

_extend = cast("Callable[[int, bytes], int]", google_crc32c.extend)  # pyright: ignore[reportUnknownMemberType]
_MIB = 1024 * 1024
SMALL_SIZE = 4096


@contextmanager
def workplace(needed: int) -> Generator[Path]:
    """A folder on tmpfs, or among the temporary files where there is none with so many bytes free."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > needed
    with tempfile.TemporaryDirectory(prefix="transfers-", dir=memory if roomy else None) as folder:
        yield Path(folder)


def make_large(folder: Path, size: int) -> None:
    """One file of so many MiB of random bytes."""
    folder.mkdir()
    with (folder / "large").open("wb") as file:
        for _ in range(size):
            file.write(random.randbytes(_MIB))


def make_small(folder: Path, count: int) -> None:
    """So many files of 4 KiB."""
    folder.mkdir()
    for number in range(count):
        (folder / f"f{number:05}").write_bytes(random.randbytes(SMALL_SIZE))


def checksums(folder: Path) -> dict[str, str]:
    """The CRC32C of each file, as Cloud Storage writes it."""
    return {path.name: _checksum(path) for path in folder.iterdir() if path.is_file()}


def _checksum(path: Path) -> str:
    value = 0
    with path.open("rb") as file:
        while piece := file.read(_MIB):
            value = _extend(value, piece)
    return base64.b64encode(value.to_bytes(4, "big")).decode()

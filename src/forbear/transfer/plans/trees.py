"""The files in local folders, in the order in which Cloud Storage lists names.

Symbolic links to files are followed, and links to folders too unless they lead back to a folder above them.
"""

import asyncio
import errno
import os
import stat
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from forbear.transfer.downloads.target import is_part
from forbear.transfer.state import default_directory

_BATCH = 500
_DEEPEST = 520
_STATES = "the states of transfers under way"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: its path, its name below the folder that is walked, `size` in bytes, `mtime` in epoch seconds.

    The name has slashes as separators on every system. A `problem` says why it cannot be read; a `note` says why it is
    nothing that can be copied.
    """

    path: str
    name: str
    size: int = 0
    mtime: float = 0.0
    note: str = ""
    problem: str = ""


def walk(folder: str, *, follow: bool = True, recursive: bool = True) -> Iterator[Entry]:
    """Yield all files below a folder, or only those directly in it; `follow=False` does not follow links to folders.

    The folder with the states of transfers is left out: states are secret and short-lived.
    """
    try:
        closed = [_identity(os.stat(folder))]
    except OSError as error:
        yield Entry(folder, "", problem=_text(error))
        return
    with suppress(OSError):
        closed.append(_identity(os.stat(default_directory())))
    yield from _walk(folder, "", closed, follow=follow, recursive=recursive)


def _walk(folder: str, prefix: str, closed: list[tuple[int, int]], *, follow: bool, recursive: bool) -> Iterator[Entry]:
    if len(closed) > _DEEPEST:
        yield Entry(
            folder, prefix.removesuffix("/"), problem="it lies in more folders than the name of an object can have"
        )
        return
    try:
        with os.scandir(folder) as entries:  # names only: there may be a million
            names = sorted(f"{entry.name}/" if _has_names(entry, closed, follow) else entry.name for entry in entries)
    except OSError as error:
        yield Entry(folder, prefix, problem=_text(error))
        return
    for slashed in names:
        name = slashed.removesuffix("/")
        path = os.path.join(folder, name)
        try:
            status = _stat(path)
        except FileNotFoundError:  # removed meanwhile
            continue
        except OSError as error:
            yield Entry(path, prefix + name, problem=_text(error))
            continue
        if not stat.S_ISDIR(status.st_mode):
            yield Entry(path, prefix + name, status.st_size, status.st_mtime, _note(name, status))
        elif recursive and not follow and os.path.islink(path):
            yield Entry(path, prefix + name, note="a symbolic link to a folder")
        elif recursive and _identity(status) in closed:
            linked = os.path.islink(path)
            yield Entry(path, prefix + name, note="a symbolic link to a folder that it lies in" if linked else _STATES)
        elif recursive:
            inside = [*closed, _identity(status)]
            yield from _walk(path, f"{prefix}{name}/", inside, follow=follow, recursive=recursive)


def _stat(path: str) -> os.stat_result:
    """Return the status of a path, through links; of the link itself if it leads nowhere."""
    try:
        return os.stat(path)
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ELOOP}:
            raise
        return os.lstat(path)


def _has_names(entry: os.DirEntry[str], closed: list[tuple[int, int]], follow: bool) -> bool:
    """Return whether the contents of an entry will be listed; a folder that is left out counts as a file."""
    if not is_folder(entry) or (entry.is_symlink() and not follow):
        return False
    try:
        return _identity(entry.stat()) not in closed
    except OSError:
        return False


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _note(name: str, status: os.stat_result) -> str:
    """Return why a file is not copied, empty if it is."""
    if stat.S_ISLNK(status.st_mode):
        return "a symbolic link to nothing"
    if not stat.S_ISREG(status.st_mode):
        return "neither a file nor a folder"
    return "a part of an unfinished download" if is_part(name) else ""


async def batched(values: Iterable[_T]) -> AsyncGenerator[_T]:
    """Iterate over a slow iterable in another thread, and yield its values in batches."""
    iterator = iter(values)
    while batch := await asyncio.to_thread(lambda: list(islice(iterator, _BATCH))):
        for one in batch:
            yield one


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _text(error: OSError) -> str:
    return error.strerror or str(error)

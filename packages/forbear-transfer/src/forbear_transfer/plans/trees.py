"""The files in local folders, in the order in which Cloud Storage lists names.

Symbolic links to files are followed, and links to folders too unless they lead back to a folder above them.
"""

import asyncio
import errno
import os
import stat
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TypeVar

from forbear.adapters import dataclass
from forbear_transfer.downloads.target import is_part
from forbear_transfer.files import FileIdentity, identify
from forbear_transfer.plans.filters import FOLLOW, LEFT_OUT, Links
from forbear_transfer.state import default_directory

_BATCH = 500
_DEEPEST = 520
EMPTY_FOLDER = "an empty folder"
SUBFOLDER = "a folder"
_STATES = "the states of transfers under way"
_ABOVE = "a folder that it lies in, by a symbolic link"
_LINK_ABOVE = "a symbolic link to a folder that it lies in"

_T = TypeVar("_T")


@dataclass(slots=True)
class Entry:
    """A file, or another entry that cannot be copied, found by `walk`; `size` is in bytes, `mtime` in epoch seconds.

    `name` is its name below the folder that is walked, with slashes as separators on every system. A `problem` says why
    it cannot be read; a `note` says why it is nothing that can be copied. `identity` is that of its version, and `mode`
    has its permissions.
    """

    path: str
    name: str
    size: int = 0
    mtime: float = 0.0
    note: str = ""
    problem: str = ""
    identity: FileIdentity = ()
    mode: int = 0


def walk(
    folder: str, *, follow: bool = True, recursive: bool = True, empty: bool = False, links: Links = FOLLOW
) -> Iterator[Entry]:
    """Yield an Entry for each file below a folder, in the order in which Cloud Storage lists names.

    Without `recursive`, only the files directly in it count, and each folder is an entry with a note; without `follow`,
    links to folders are not followed. Other folders are not yielded, but with `empty` those that hold nothing: their
    names end with a slash. A folder that cannot be read is an entry with a problem. A link to a folder that is not
    followed is one with a note, and with `follow`, every link that `links` leaves out. So is the folder with the states
    of transfers, which are secret and short-lived: its contents are left out.
    """
    try:
        closed = {_identify(os.stat(folder)): _ABOVE}
    except OSError as error:
        yield Entry(folder, "", problem=_describe(error))
        return
    with suppress(OSError):
        closed.setdefault(_identify(os.stat(default_directory())), _STATES)
    with suppress(OSError):
        closed.setdefault(_identify(os.stat(links.states or folder)), _STATES)
    leaves_out: Callable[[str], bool] = partial(links.leaves_out, folder) if follow else lambda _: False
    yield from _walk(folder, "", closed, leaves_out, follow=follow, recursive=recursive, empty=empty)


def _walk(
    folder: str,
    prefix: str,
    closed: Mapping[tuple[int, int], str],
    leaves_out: Callable[[str], bool],
    *,
    follow: bool,
    recursive: bool,
    empty: bool,
) -> Iterator[Entry]:
    if len(closed) > _DEEPEST:
        yield Entry(
            folder, prefix.removesuffix("/"), problem="it lies in more folders than the name of an object can have"
        )
        return
    try:
        with os.scandir(folder) as entries:  # names only: there may be a million
            left_out, names = set[str](), list[str]()
            for entry in entries:
                if entry.is_symlink() and leaves_out(entry.path):
                    left_out.add(entry.name)
                    names.append(entry.name)
                else:
                    names.append(f"{entry.name}/" if _has_names(entry, closed, follow) else entry.name)
            names.sort()
    except OSError as error:
        yield Entry(folder, prefix, problem=_describe(error))
        return
    if empty and prefix and not names:
        yield Entry(folder, prefix, note=EMPTY_FOLDER)
    for slashed in names:
        name = slashed.removesuffix("/")
        path = os.path.join(folder, name)
        if name in left_out:
            yield Entry(path, prefix + name, note=LEFT_OUT)
            continue
        try:
            status = _stat(path)
        except FileNotFoundError:  # removed meanwhile
            continue
        except OSError as error:
            yield Entry(path, prefix + name, problem=_describe(error))
            continue
        if not stat.S_ISDIR(status.st_mode):
            note = _find_note(name, status)
            mode = stat.S_IMODE(status.st_mode) & 0o777
            yield Entry(path, prefix + name, status.st_size, status.st_mtime, note, "", identify(status), mode)
        elif recursive and not follow and os.path.islink(path):
            yield Entry(path, prefix + name, note="a symbolic link to a folder")
        elif recursive and (why := closed.get(_identify(status))) is not None:
            yield Entry(path, prefix + name, note=_LINK_ABOVE if why == _ABOVE and os.path.islink(path) else why)
        elif recursive:
            inside = {**closed, _identify(status): _ABOVE}
            below = f"{prefix}{name}/"
            yield from _walk(path, below, inside, leaves_out, follow=follow, recursive=recursive, empty=empty)
        else:
            yield Entry(path, prefix + name, note=SUBFOLDER)


def _stat(path: str) -> os.stat_result:
    """Return the os.stat_result of a path, through symbolic links; that of the link itself if it leads nowhere."""
    try:
        return os.stat(path)
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            raise
        return os.lstat(path)


def _has_names(entry: os.DirEntry[str], closed: Container[tuple[int, int]], follow: bool) -> bool:
    """Return whether the contents of an entry will be listed; a folder that is left out counts as a file."""
    if not is_folder(entry) or (entry.is_symlink() and not follow):
        return False
    try:
        return _identify(entry.stat()) not in closed
    except OSError:
        return False


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder, or a link to one; False if the system cannot tell."""
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _find_note(name: str, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return "a symbolic link to nothing"
    if not stat.S_ISREG(status.st_mode):
        return "neither a file nor a folder"
    return "a part of an unfinished download" if is_part(name) else ""


def is_kept_as(entry: Entry, mtime: float) -> bool:
    """Return whether a file's disk keeps `mtime` as the time that it has: disks cut times they cannot keep."""
    import tempfile  # it takes a while to load, and few comparisons need it

    try:
        with tempfile.TemporaryFile(dir=os.path.dirname(entry.path) or os.curdir) as probe:
            os.utime(probe.fileno(), (mtime, mtime))
            return int(os.fstat(probe.fileno()).st_mtime) == int(entry.mtime)
    except (OSError, OverflowError, TypeError):
        return False


async def read_batches(values: Iterable[_T]) -> AsyncGenerator[_T]:
    """Yield the values of a slow iterable one by one, and read it in other threads, 500 values at a time."""
    iterator = iter(values)
    while batch := await asyncio.to_thread(lambda: list(islice(iterator, _BATCH))):
        for one in batch:
            yield one


def _identify(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _describe(error: OSError) -> str:
    return error.strerror or str(error)

"""The files, objects and folders that the sources of a copy name. Wildcards are expanded here and in the cloud."""

import os
import stat
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from functools import partial

from forbear.adapters import dataclass, replace
from forbear_transfer.errors import HttpError, TransferError, why_not
from forbear_transfer.objects import Object, Url
from forbear_transfer.plans.filters import FOLLOW, LEFT_OUT, Links
from forbear_transfer.plans.sources import Source, check_version, find_folder_object
from forbear_transfer.plans.trees import Entry, is_folder, read_batches, walk
from forbear_transfer.plans.wildcards import compile_pattern, is_wild, literal_start
from forbear_transfer.storage.client import Storage

_BY_NAME = "copy folders with `recursive`, and an object of just this name with `literal`"
_PERMIT = "ask for the permission to read it, or copy what can be read by itself"


@dataclass(slots=True)
class Match:
    """A file, object or folder to copy. `name` is the name of its copy, empty if only the contents are copied.

    A folder in the cloud ends with a slash in `source`. `problem` says why the match cannot be copied, and `hint` what
    to do about it. `left_out` says that it is skipped then, and does not count as failed. `absent` says that nothing is
    there.
    """

    source: Url | str
    name: str
    folder: bool = False
    size: int | None = None
    object: Object | None = None
    problem: str = ""
    hint: str | None = None
    left_out: bool = False
    absent: bool = False


async def matches(storage: Storage, source: Source, *, recursive: bool, links: Links = FOLLOW) -> AsyncGenerator[Match]:
    """Yield the files, objects and folders that a source names, with wildcards expanded.

    If the source matches nothing, yield a Match with a problem. Without `recursive`, a folder is a Match with a
    problem, and the address of a single object is not looked up. `links` decides on what a pattern matches here.
    """
    at, nothing = source.at, True
    found = _match_in_cloud(storage, source, at, recursive) if isinstance(at, Url) else None
    async for match in read_batches(_match_here(str(at), source.wild, recursive, links)) if found is None else found:
        nothing = False
        yield match
    if nothing:
        if source.wild:
            problem, hint = f"nothing matches {source.text}", "quote the pattern if the shell may have read it"
        else:
            problem, hint = f"{source.text} does not exist", "check the name"
        yield Match(source.text, source.text, problem=problem, hint=hint, absent=True)


def _match_here(source: str, wild: bool, recursive: bool, links: Links) -> Iterator[Match]:
    try:
        os.lstat(source)
    except PermissionError as error:
        name = os.path.basename(source.rstrip(os.sep))
        yield Match(source, name, problem=why_not(source, error), hint="ask for the permission to read it")
        return
    except (OSError, ValueError):
        if not wild:
            return
    try:
        if not wild:
            if (match := _match(source, recursive, None)) is not None:
                yield match
            return
        leaves_out = partial(links.leaves_out, os.path.dirname(literal_start(source)))
        for path in expand(source, links):
            if (match := _match(path, recursive, leaves_out)) is not None:
                yield match
    except TransferError as error:  # other matches are still copied
        yield Match(source, source, problem=str(error), hint=error.hint)


def _match(path: str, recursive: bool, leaves_out: Callable[[str], bool] | None) -> Match | None:
    """Return the Match for the file or folder at a local path; None if nothing is there (any more).

    Without `recursive`, a folder is a Match with a problem. If a wildcard has matched the path, `leaves_out` says
    whether a link is left out; that folder, and a pipe or device, is left out, too, and does not count as failed. A
    pipe that the user named is copied.
    """
    name, wild = os.path.basename(path.rstrip(os.sep)), leaves_out is not None
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            if leaves_out is not None and leaves_out(path):
                return Match(path, name, problem=LEFT_OUT, left_out=True)
            with suppress(OSError):  # it leads nowhere
                status = os.stat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(status.st_mode):
        return Match(path, name, size=status.st_size)
    if not stat.S_ISDIR(status.st_mode):
        problem = "neither a file nor a folder" if wild else ""  # a user who names a pipe wants to copy it
        return Match(path, name, problem=problem, left_out=wild)
    if recursive:
        return Match(path, "" if name in {".", ".."} else name, folder=True)
    return _refuse_folder(path, name, left_out=wild)


def expand(pattern: str, links: Links = FOLLOW) -> Iterator[str]:
    """Yield the paths of the local files and folders that match a pattern.

    A hidden name matches a part with wildcards only if that part begins with a dot. From a part with `**` on, hidden
    names match as well, and folders do not. `links` decides on links to folders on the way. Raises TransferError for a
    folder that may not be listed: matches in it would be missed silently.
    """
    drive, rest = os.path.splitdrive(pattern)
    slashed = rest.replace(os.sep, "/")
    start = f"{drive}{os.sep}" if slashed.startswith("/") else drive
    return _expand(start, [part for part in slashed.split("/") if part], links)


def _expand(start: str, parts: list[str], links: Links) -> Iterator[str]:
    if not parts:
        yield start
        return
    first, rest = parts[0], parts[1:]
    if "**" in first:
        matching = compile_pattern("/".join(parts))
        unlisted: Entry | None = None
        for entry in walk(start or os.curdir, links=links):
            if entry.problem:
                unlisted = unlisted or entry
            elif not entry.note and matching.fullmatch(entry.name):
                yield os.path.join(start, entry.name)
        if unlisted is not None and os.path.lexists(start or os.curdir):
            raise TransferError(f"cannot list {unlisted.path}: {unlisted.problem}", _PERMIT)
    elif not is_wild(first):
        path = os.path.join(start, first)
        if os.path.lexists(path):
            yield from _expand(path, rest, links)
    else:
        matching = compile_pattern(first)
        try:
            with os.scandir(start or os.curdir) as entries:
                names = sorted(entry.name for entry in entries if not rest or is_folder(entry))
        except PermissionError as error:
            raise TransferError(f"cannot list {start or os.curdir}: {why_not(start, error)}", _PERMIT) from error
        except OSError:
            return
        inside, hidden = os.path.join(start, ""), first.startswith(".")
        for name in names:
            if matching.fullmatch(name) and (hidden or not name.startswith(".")):
                path = inside + name
                if not rest:
                    yield path
                elif not (os.path.islink(path) and links.leaves_out(start, path)):
                    yield from _expand(path, rest, links)


async def _match_in_cloud(storage: Storage, source: Source, url: Url, recursive: bool) -> AsyncGenerator[Match]:
    if source.wild:
        async for match in _expand_cloud(storage, url.bucket, "", url.name.split("/"), recursive):
            yield match
    elif (not url.name or url.name.endswith("/")) and url.generation is None:
        name = url.name.rstrip("/").rpartition("/")[2] or url.bucket
        if not recursive:
            there = await find_folder_object(storage, url, whole=not source.literal)
            refused = _refuse_folder(url, name) if not url.name else replace(_refuse_folder(url, name), hint=_BY_NAME)
            yield refused if there is None else _name_whole(there)
        elif await storage.is_folder(url) or not url.name:  # a bucket that can be listed exists, even if it is empty
            yield Match(url, name, folder=True)
    elif not recursive or url.generation is not None:
        yield Match(url, _find_last(url.name))
    else:
        listed = await storage.stat(url)
        if listed is not None:
            yield _match_object(listed)
        if await storage.is_folder(url):
            yield Match(Url(url.bucket, f"{url.name}/"), url.name.rpartition("/")[2], folder=True)


async def _expand_cloud(
    storage: Storage, bucket: str, start: str, parts: list[str], recursive: bool
) -> AsyncGenerator[Match]:
    """Yield what matches below `start`, by the rest of the pattern; no listing goes deeper than necessary."""
    first, rest = parts[0], parts[1:]
    if "**" in first:
        pattern = "/".join(parts)
        matching = compile_pattern(pattern)
        async for listed in storage.objects(bucket, start + literal_start(pattern)):
            if isinstance(listed, Object) and matching.fullmatch(listed.name, len(start)):
                yield _match_object(listed)
        return
    if not is_wild(first) and rest:
        async for match in _expand_cloud(storage, bucket, f"{start}{first}/", rest, recursive):
            yield match
        return
    if not first and start:  # the pattern ends with a slash: a folder
        yield _match_folder(Url(bucket, start), recursive)
        return
    matching = compile_pattern(first)
    async for listed in storage.objects(bucket, start + literal_start(first), delimiter="/"):
        name = listed.name[len(start) :].removesuffix("/")
        if not name or not matching.fullmatch(name):
            continue
        if isinstance(listed, Object):
            if not rest and not listed.name.endswith("/"):
                yield _match_object(listed)
        elif rest:
            async for match in _expand_cloud(storage, bucket, listed.name, rest, recursive):
                yield match
        else:
            yield _match_folder(listed, recursive)


def _match_object(listed: Object) -> Match:
    if listed.name.endswith("/"):
        return Match(Url(listed.bucket, listed.name), listed.name, problem="it stands for a folder", left_out=True)
    return Match(Url(listed.bucket, listed.name), listed.name.rpartition("/")[2], size=listed.size, object=listed)


def _name_whole(there: Object) -> Match:
    return Match(Url(there.bucket, there.name), _find_last(there.name), size=there.size, object=there)


def _find_last(name: str) -> str:
    return name[name.removesuffix("/").rfind("/") + 1 :]


def _match_folder(url: Url, recursive: bool) -> Match:
    name = url.name.removesuffix("/").rpartition("/")[2]
    return Match(url, name, folder=True) if recursive else _refuse_folder(url, name, left_out=True)


def _refuse_folder(source: Url | str, name: str, *, left_out: bool = False) -> Match:
    return Match(
        source, name, folder=True, problem="it is a folder", hint="copy folders with `recursive`", left_out=left_out
    )


async def versions_of(storage: Storage, url: Url) -> AsyncGenerator[Object]:
    """Yield all versions of the object at an address."""
    async for listed in storage.objects(url.bucket, url.name, versions=True):
        if not isinstance(listed, Object) or listed.name != url.name:
            return  # longer names follow
        yield listed


async def match_versions(storage: Storage, pattern: Url, *, recursive: bool) -> AsyncGenerator[Object]:
    """Yield all versions of the objects that match a pattern, with `recursive` also of those in folders that match."""
    whole, folder = compile_pattern(pattern.name), compile_pattern(pattern.name.rstrip("/"))
    async for listed in storage.objects(pattern.bucket, literal_start(pattern.name), versions=True):
        name = listed.name
        ends = (at for at, character in enumerate(name) if recursive and character == "/")
        if isinstance(listed, Object) and (whole.fullmatch(name) or any(folder.fullmatch(name, 0, at) for at in ends)):
            yield listed


async def settle(
    storage: Storage, source: Source, *, folders: bool = False, cautious: bool = False, versions: bool = False
) -> Source:
    """Return the source with what it means by what exists: the object of that whole name, else a pattern or version.

    With `folders`, a folder of that name counts, too, and with `versions` an object that has only noncurrent ones.
    ValueError for a `cautious` command, one that deletes, if both
    exist. A text in which every special character is escaped, as in a[*], means that name first.
    """
    if source.exact is None:
        return source
    is_there = await _exists(storage, source.exact, folders=folders, versions=versions)
    if not is_there:
        check_version(source)
        return replace(source, exact=None)
    meant = replace(source, exact=None)
    is_escaped = isinstance(source.at, Url) and not source.wild and source.at.generation is None
    if (cautious or is_escaped) and await _has_others(storage, meant, source.exact, folders=folders):
        if cautious:
            raise ValueError(
                f"{source.text} is the name of an object, and as a pattern or version it means others, so nothing is "
                "done; say which by --literal (`literal=True`) or --pattern (`literal=False`)"
            )
        return meant
    return Source(source.text, source.exact)


async def _exists(storage: Storage, url: Url, *, folders: bool, versions: bool = False) -> bool:
    if versions and url.name and await anext(versions_of(storage, url), None) is not None:
        return True
    try:
        is_named = url.generation is not None or not url.name.endswith("/")
        if url.name and is_named and await storage.stat(url) is not None:
            return True
    except HttpError as error:
        if error.status != 403:  # of a user who may only list
            raise
    may_be_folder = url.generation is None and (folders or url.name.endswith("/"))
    return may_be_folder and await storage.is_folder(url)


async def _has_others(storage: Storage, source: Source, exact: Url, *, folders: bool) -> bool:
    if not source.wild and isinstance(source.at, Url):
        return await _exists(storage, source.at, folders=folders)
    async for match in matches(storage, source, recursive=folders):
        if isinstance(match.source, Url) and match.source.name.rstrip("/") != exact.name.rstrip("/"):
            return True
    return False

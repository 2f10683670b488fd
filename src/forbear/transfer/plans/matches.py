"""The files, objects and folders that the sources of a copy name, with their wildcards expanded."""

import os
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from forbear.transfer.errors import TransferError, why_not
from forbear.transfer.objects import Object, Url, is_cloud
from forbear.transfer.plans.trees import batched, expand
from forbear.transfer.plans.wildcards import compiled, is_wild, literal_start
from forbear.transfer.storage.client import Storage


@dataclass(frozen=True, slots=True)
class Match:
    """A file, object or folder to copy. `name` is the name of its copy, empty if only the contents are copied.

    A folder in the cloud ends with a slash in `source`. `problem` says why the match cannot be copied, and `hint` what
    to do about it. `left_out` says that it is skipped then, and does not count as failed.
    """

    source: Url | str
    name: str
    folder: bool = False
    size: int | None = None
    object: Object | None = None
    problem: str = ""
    hint: str | None = None
    left_out: bool = False


async def matches(storage: Storage, source: str, *, recursive: bool) -> AsyncGenerator[Match]:
    """Yield what a source names; if it matches nothing, yield a Match with a problem."""
    url = Url.parse(source) if is_cloud(source) else None
    nothing = True
    async for match in batched(_here(source, recursive)) if url is None else _in_cloud(storage, url, recursive):
        nothing = False
        yield match
    if nothing:
        hint = "quote the pattern if the shell may have read it" if is_wild(source) else "check the name"
        yield Match(source, source, problem=f"there is nothing that {source} names", hint=hint)


def _here(source: str, recursive: bool) -> Iterator[Match]:
    try:
        os.lstat(source)
        wild = False
    except PermissionError as error:
        name = os.path.basename(source.rstrip(os.sep))
        yield Match(source, name, problem=why_not(source, error), hint="ask for the permission to read it")
        return
    except (OSError, ValueError):
        wild = is_wild(source)
    try:
        for path in expand(source) if wild else [source]:
            yield from _match(path, recursive, wild=wild)
    except TransferError as error:  # other matches are still copied
        yield Match(source, source, problem=str(error), hint=error.hint)


def _match(path: str, recursive: bool, *, wild: bool) -> Iterator[Match]:
    """Yield what a path names; nothing if it was removed meanwhile."""
    if os.path.lexists(path):
        name = os.path.basename(path.rstrip(os.sep))
        if os.path.isfile(path):
            yield Match(path, name, size=os.path.getsize(path))
        elif not os.path.isdir(path):
            problem = "neither a file nor a folder" if wild else ""  # a user who names a pipe wants to copy it
            yield Match(path, name, problem=problem, left_out=wild)
        elif recursive:
            yield Match(path, "" if name in {".", ".."} else name, folder=True)
        else:
            yield _folder_problem(path, name, left_out=wild)


async def _in_cloud(storage: Storage, url: Url, recursive: bool) -> AsyncGenerator[Match]:
    if is_wild(url.name):
        nothing = True
        async for match in _expanded(storage, url.bucket, "", url.name.split("/"), recursive):
            nothing = False
            yield match
        if not nothing:
            return
        listed = await storage.stat(url)  # nothing matches, but there may be an object of that very name
        if listed is not None:
            yield _object(listed)
    elif not url.name or url.name.endswith("/"):
        name = url.name.rstrip("/").rpartition("/")[2] or url.bucket
        if not recursive:
            yield _folder_problem(url, name)
        elif await storage.is_folder(url):
            yield Match(url, name, folder=True)
    elif not recursive or url.generation is not None:
        yield Match(url, url.name.rpartition("/")[2])
    else:
        listed = await storage.stat(url)
        if listed is not None:
            yield _object(listed)
        if await storage.is_folder(url):
            yield Match(Url(url.bucket, f"{url.name}/"), url.name.rpartition("/")[2], folder=True)


async def _expanded(
    storage: Storage, bucket: str, start: str, parts: list[str], recursive: bool
) -> AsyncGenerator[Match]:
    """Yield what matches below `start`, which is empty or ends with a slash. No listing goes deeper than necessary."""
    first, rest = parts[0], parts[1:]
    if "**" in first:
        pattern = "/".join(parts)
        matching = compiled(pattern)
        async for listed in storage.objects(bucket, start + literal_start(pattern)):
            if isinstance(listed, Object) and matching.fullmatch(listed.name, len(start)):
                yield _object(listed)
        return
    if not is_wild(first) and rest:
        async for match in _expanded(storage, bucket, f"{start}{first}/", rest, recursive):
            yield match
        return
    if not first and start:  # the pattern ends with a slash: a folder
        yield _folder(Url(bucket, start), recursive)
        return
    matching = compiled(first)
    async for listed in storage.objects(bucket, start + literal_start(first), delimiter="/"):
        name = listed.name[len(start) :].removesuffix("/")
        if not name or not matching.fullmatch(name):
            continue
        if isinstance(listed, Object):
            if not rest and not listed.name.endswith("/"):
                yield _object(listed)
        elif rest:
            async for match in _expanded(storage, bucket, listed.name, rest, recursive):
                yield match
        else:
            yield _folder(listed, recursive)


def _object(listed: Object) -> Match:
    if listed.name.endswith("/"):
        return Match(Url(listed.bucket, listed.name), listed.name, problem="it stands for a folder", left_out=True)
    return Match(Url(listed.bucket, listed.name), listed.name.rpartition("/")[2], size=listed.size, object=listed)


def _folder(url: Url, recursive: bool) -> Match:
    name = url.name.removesuffix("/").rpartition("/")[2]
    return Match(url, name, folder=True) if recursive else _folder_problem(url, name, left_out=True)


def _folder_problem(source: Url | str, name: str, *, left_out: bool = False) -> Match:
    return Match(
        source, name, folder=True, problem="it is a folder", hint="copy folders with `recursive`", left_out=left_out
    )

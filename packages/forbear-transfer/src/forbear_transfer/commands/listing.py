"""`ls` and `du`: list objects and folders, and add up what folders hold. Memory holds one page of a listing."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from functools import partial

from forbear.adapters import dataclass
from forbear_transfer.commands.selection import check_addresses
from forbear_transfer.errors import TransferError
from forbear_transfer.objects import Object, Url
from forbear_transfer.plans.matches import match_versions, matches, settle, versions_of
from forbear_transfer.plans.sources import Source, parse_source
from forbear_transfer.runs import list_blocking
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.workers.versions import explain_absence


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of one folder, object or pattern: the number of `objects` and their `bytes` as stored.

    Example: see `du`.
    """

    address: str
    objects: int
    bytes: int


def ls(
    addresses: str | Sequence[str],
    *,
    recursive: bool = False,
    versions: bool = False,
    literal: bool | None = None,
    settings: Settings | None = None,
) -> list[Object | Url]:
    """Return the objects and folders that `addresses` name; a folder is a Url that ends with a slash.

    A bucket or a folder is listed one level deep, or with everything below it if `recursive` is set. An address may
    have the wildcards of `cp`; folders that match are listed, too. With `versions`, all versions of the objects come,
    also noncurrent ones, and folders that match a pattern only if `recursive` is set. `literal` is that of `cp`.

    TransferError for an address that names nothing, or if the service cannot be queried. ValueError for an invalid
    address. RuntimeError inside a running event loop, since it blocks.

    >>> [(each.name, each.size) for each in ls("gs://my-bucket/photos/")]
    [('photos/1.jpg', 7)]
    """
    names = check_addresses(addresses, literal=literal)
    found = partial(als, addresses=names, recursive=recursive, versions=versions, literal=literal)
    return list_blocking(settings, found, "als")


async def als(
    storage: Storage,
    addresses: str | Sequence[str],
    *,
    recursive: bool = False,
    versions: bool = False,
    literal: bool | None = None,
) -> AsyncGenerator[Object | Url]:
    """Yield over an open Storage what `ls` returns, while the pages of the listings arrive. Example: see `ls`."""
    for address in check_addresses(addresses, literal=literal):
        source = await _settle(storage, address, literal, versions=versions)
        async for entry in _list_all(storage, source, recursive, versions=versions):
            yield entry


async def _settle(storage: Storage, address: str, literal: bool | None, *, versions: bool = False) -> Source:
    return await settle(storage, parse_source(address, literal), folders=True, versions=versions)


async def _list_all(
    storage: Storage, source: Source, recursive: bool, *, versions: bool = False
) -> AsyncGenerator[Object | Url]:
    nothing = True
    async for entry in _list(storage, source, recursive, versions=versions):
        nothing = False
        yield entry
    if nothing and source.wild:
        raise TransferError(f"nothing matches {source.text}", "check the name")
    if nothing and isinstance(source.at, Url) and source.at.name:
        raise await explain_absence(storage, source.at)


def _list(storage: Storage, source: Source, recursive: bool, *, versions: bool) -> AsyncIterator[Object | Url]:
    """Return the listing of a bucket or folder itself: each generator around it takes time for each entry."""
    url = source.at
    if isinstance(url, Url) and not source.wild and (not url.name or url.name.endswith("/")):
        return storage.objects(url.bucket, url.prefix, delimiter=None if recursive else "/", versions=versions)
    return _list_named(storage, source, recursive, versions=versions)


async def _list_named(
    storage: Storage, source: Source, recursive: bool, *, versions: bool
) -> AsyncGenerator[Object | Url]:
    url, delimiter = source.at, None if recursive else "/"
    if source.wild and versions and isinstance(url, Url):
        async for version in match_versions(storage, url, recursive=recursive):
            yield version
    elif source.wild:
        async for match in matches(storage, source, recursive=True):
            if match.object is not None:
                yield match.object
            elif isinstance(match.source, Url) and match.folder:
                async for entry in storage.objects(match.source.bucket, match.source.prefix, delimiter=delimiter):
                    yield entry
            elif isinstance(match.source, Url) and (there := await storage.stat(match.source)) is not None:
                yield there  # an object that stands for a folder
    elif isinstance(url, Url):
        if versions and url.generation is None:
            async for version in versions_of(storage, url):
                yield version
        else:
            there = await storage.stat(url)
            if there is not None:
                yield there
            if url.generation is not None:
                return
        async for entry in storage.objects(url.bucket, url.prefix, delimiter=delimiter, versions=versions):
            yield entry


def du(
    addresses: str | Sequence[str],
    *,
    summarize: bool = False,
    literal: bool | None = None,
    settings: Settings | None = None,
) -> list[Usage]:
    """Return what each folder below `addresses` holds, folders before the ones that they lie in, each address last.

    `summarize` leaves out all but the addresses themselves. `literal` and errors are those of `ls`.

    >>> du("gs://my-bucket/photos/")
    [Usage(address='gs://my-bucket/photos/', objects=1, bytes=7)]
    """
    names = check_addresses(addresses, literal=literal)
    return list_blocking(settings, partial(adu, addresses=names, summarize=summarize, literal=literal), "adu")


async def adu(
    storage: Storage, addresses: str | Sequence[str], *, summarize: bool = False, literal: bool | None = None
) -> AsyncGenerator[Usage]:
    """Yield over an open Storage what `du` returns; the usage of a folder comes when its last object is listed.

    Example: see `du`.
    """
    for address in check_addresses(addresses, literal=literal):
        source = await _settle(storage, address, literal)
        url = source.at
        assert isinstance(url, Url)  # noqa: S101
        total = _Folder("")
        start = 0 if source.wild else len(url.prefix)
        open_folders: list[_Folder] = []
        async with aclosing(_list_all(storage, source, True)) as entries:
            async for entry in entries:
                if not isinstance(entry, Object):
                    continue
                total.add(entry.size)
                if summarize or source.wild:
                    continue
                while open_folders and not entry.name.startswith(open_folders[-1].name):
                    yield _make_usage(url, open_folders.pop())
                deepest = open_folders[-1].name if open_folders else entry.name[:start]
                while (slash := entry.name.find("/", len(deepest))) >= 0:
                    deepest = entry.name[: slash + 1]
                    open_folders.append(_Folder(deepest))
                for folder in open_folders:
                    folder.add(entry.size)
        while open_folders:
            yield _make_usage(url, open_folders.pop())
        yield Usage(address, total.objects, total.bytes)


@dataclass(slots=True)
class _Folder:
    name: str
    objects: int = 0
    bytes: int = 0

    def add(self, size: int) -> None:
        self.objects += 1
        self.bytes += size


def _make_usage(url: Url, folder: _Folder) -> Usage:
    return Usage(str(Url(url.bucket, folder.name)), folder.objects, folder.bytes)

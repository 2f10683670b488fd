"""The objects that addresses such as gs://bucket/name, gs://bucket/*.gz or gs://bucket/folder/ name."""

from collections.abc import AsyncGenerator, Sequence

from forbear.adapters import replace
from forbear_transfer.errors import TransferError, describe, hint_of
from forbear_transfer.objects import Object, Url, is_cloud
from forbear_transfer.plans.cp import LISTING_FAILURES
from forbear_transfer.plans.matches import Match, matches, settle
from forbear_transfer.plans.sources import Source, find_folder_object, parse_source
from forbear_transfer.storage.client import Storage
from forbear_transfer.workers.versions import explain_absence


def check_addresses(
    addresses: str | Sequence[str], parameter: str = "addresses", literal: bool | None = None
) -> tuple[str, ...]:
    """Return the addresses as a tuple; ValueError, which names `parameter`, if there is none or one is not valid."""
    names = (addresses,) if isinstance(addresses, str) else tuple(addresses)
    if not names:
        raise ValueError(f"`{parameter}` must name at least one object, such as gs://bucket/name")
    for name in names:
        if not is_cloud(name):
            raise ValueError(
                f"`{parameter}` must begin with gs://, got {name!r}; write gs://bucket or gs://bucket/name"
            )
        parse_source(name, literal)
    return names


async def select(
    storage: Storage,
    addresses: Sequence[str],
    *,
    recursive: bool,
    literal: bool | None = None,
    cautious: bool = False,
    cure: str = "use `recursive`",
) -> AsyncGenerator[Match]:
    """Yield a Match for each object that the addresses name: with its `object` from the service, or with a problem.

    `recursive` includes all objects below folders, also those that stand for folders (their names end with a slash).
    Without it, a folder is a Match with a problem, whose hint is `cure`. A listing that fails is a problem of its
    address. `literal` and `cautious` are as for `settle`.
    """
    for address in addresses:
        try:
            source = await settle(storage, parse_source(address, literal), folders=recursive, cautious=cautious)
            async for match in _select(storage, source, recursive, cautious and literal is None, cure):
                yield match
        except LISTING_FAILURES as error:
            yield Match(address, address, problem=describe(error), hint=hint_of(error))


async def objects_at(
    storage: Storage, addresses: Sequence[str], *, cure: str, literal: bool | None = None
) -> AsyncGenerator[tuple[Url, Object]]:
    """Yield the address and the object for each object that the addresses name; folders that match are left out.

    The address has a generation only if the user has named one. TransferError for an address that names no object, and
    if only folders match; `cure` is the hint for a folder.
    """
    nothing = True
    async for match in select(storage, addresses, recursive=False, literal=literal, cure=cure):
        if match.left_out:
            continue
        if match.object is None or not isinstance(match.source, Url):
            raise TransferError(match.problem, match.hint)
        nothing = False
        yield match.source, match.object
    if nothing:
        what = f"only folders match {' '.join(addresses)}"
        raise TransferError(what, "use a pattern with ** for what lies in them")


async def _select(
    storage: Storage, source: Source, recursive: bool, cautious: bool, cure: str
) -> AsyncGenerator[Match]:
    url = source.at
    if not source.wild and not recursive and isinstance(url, Url) and url.name.endswith("/") and url.generation is None:
        there = await find_folder_object(storage, url, whole=cautious)
        if there is not None:
            yield _make_match(there)
            return
    async for match in matches(storage, source, recursive=recursive):
        if not isinstance(match.source, Url):
            yield match
        elif match.folder and not match.problem:
            async for listed in storage.objects(match.source.bucket, match.source.prefix):
                if isinstance(listed, Object):
                    yield _make_match(listed)
        elif match.folder:
            kind = "folder" if match.source.name else "bucket"
            is_both = cautious and match.source == url and bool(match.source.name)
            hint = f"{cure}, or `literal` for an object of just this name" if is_both else cure
            yield replace(match, problem=f"{match.source} is a {kind}", hint=hint)
        elif match.object is not None:
            yield match
        else:
            yield await _look_up(storage, match.source, cure)


async def _look_up(storage: Storage, url: Url, cure: str) -> Match:
    there = await storage.stat(url)
    if there is not None:
        return replace(_make_match(there), source=url)
    error = await explain_absence(storage, url, cure)
    return Match(url, url.name, problem=str(error), hint=error.hint)


def _make_match(there: Object) -> Match:
    return Match(Url(there.bucket, there.name), there.name, size=there.size, object=there)

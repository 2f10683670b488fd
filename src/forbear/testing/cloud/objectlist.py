"""Listing the objects of a bucket: order, prefix, delimiter and pages; pure, and knows no JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter
from typing import TypeAlias

from forbear.testing.cloud.errors import invalid
from forbear.testing.cloud.fields import query_flag
from forbear.testing.cloud.globs import Glob
from forbear.testing.cloud.model import Bucket, StoredObject
from forbear.testing.cloud.paging import key_before, page_size, token_after


@dataclass(slots=True)
class Listed:
    """One page: objects, the prefixes that stand for those behind a delimiter, and the token of the next page."""

    items: list[StoredObject] = field(default_factory=list[StoredObject])
    prefixes: list[str] = field(default_factory=list[str])
    token: str | None = None


def list_objects(bucket: Bucket, query: Mapping[str, str], *, versions: bool) -> Listed:
    """One page of the bucket's live objects, or of all versions."""
    prefix, delimiter, size = query.get("prefix", ""), query.get("delimiter", ""), page_size(query)
    after, generation, folded = _position(query)
    trailing = query_flag(query, "includeTrailingDelimiter") and bool(delimiter)
    found, last = Listed(), ""
    for name, number, item in _in_range(bucket, query, versions=versions):
        if (name, number) <= (after, generation) or (folded and name.startswith(folded)):
            continue
        cut = name.find(delimiter, len(prefix)) if delimiter else -1
        fold = name[: cut + len(delimiter)] if cut >= 0 else ""
        new = not (fold and found.prefixes and found.prefixes[-1] == fold)
        if new and len(found.items) + len(found.prefixes) >= size:
            found.token = token_after(last)
            break
        if new:
            last = f"p{fold}" if fold else f"{number}:{name}"
        if fold and new:
            found.prefixes.append(fold)
        # The object that stands for a folder is shown beside its prefix where the client wants it.
        if item is not None and (not fold or (trailing and name == fold)):
            found.items.append(item)
    return found


_Entry: TypeAlias = "tuple[str, int, StoredObject | None]"


def _in_range(bucket: Bucket, query: Mapping[str, str], *, versions: bool) -> Iterator[_Entry]:
    """Yield names with their generations and objects in order; folders, where they are wanted, have neither."""
    prefix, start, end = query.get("prefix", ""), query.get("startOffset", ""), query.get("endOffset", "")
    glob = Glob(query["matchGlob"]) if query.get("matchGlob") else None
    if glob is not None and query.get("delimiter") not in (None, "", "/"):
        raise invalid(f"Invalid value for delimiter: '{query['delimiter'][:80]}'. With matchGlob it must be '/'.")
    for entry in _entries(bucket, query, versions=versions):
        name = entry[0]
        if not name.startswith(prefix) or name < start or (end and name >= end):
            continue
        if glob is None or glob.matches(name):
            yield entry


def _entries(bucket: Bucket, query: Mapping[str, str], *, versions: bool) -> Iterator[_Entry]:
    if query_flag(query, "softDeleted"):
        if versions:
            raise invalid("softDeleted and versions exclude each other.")
        return iter(sorted((item.name, item.generation, item) for item in bucket.deleted_objects))
    objects = ((item.name, item.generation, item) for item in bucket.versions() if item.deleted is None or versions)
    if not (query_flag(query, "includeFoldersAsPrefixes") and query.get("delimiter") == "/"):
        return objects
    folders = [(name, -1, None) for name in sorted(bucket.folders) if name != query.get("prefix", "")]
    return merge(objects, folders, key=itemgetter(0))


def _position(query: Mapping[str, str]) -> tuple[str, int, str]:
    """Where the page begins: after a name and generation, or after everything under a folded prefix."""
    key = key_before(query)
    if key is None:
        return "", -1, ""
    if key.startswith("p"):
        return key[1:], -1, key[1:]
    generation, _, name = key.partition(":")
    if not generation.isdecimal() or len(generation) > 20:
        raise invalid("Invalid value for pageToken: it is not from a listing of objects.")
    return name, int(generation), ""

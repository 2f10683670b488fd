"""Listing the objects of a bucket: order, prefix, delimiter and pages; pure, and knows no JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from forbear.testing.cloud.errors import invalid
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
    found, last = Listed(), ""
    for item in _in_range(bucket, query, versions=versions):
        if (item.name, item.generation) <= (after, generation) or (folded and item.name.startswith(folded)):
            continue
        cut = item.name.find(delimiter, len(prefix)) if delimiter else -1
        fold = item.name[: cut + len(delimiter)] if cut >= 0 else ""
        if fold and found.prefixes and found.prefixes[-1] == fold:
            continue
        if len(found.items) + len(found.prefixes) == size:
            found.token = token_after(last)
            break
        if fold:
            found.prefixes.append(fold)
            last = f"p{fold}"
        else:
            found.items.append(item)
            last = f"{item.generation}:{item.name}"
    return found


def _in_range(bucket: Bucket, query: Mapping[str, str], *, versions: bool) -> Iterator[StoredObject]:
    prefix, start, end = query.get("prefix", ""), query.get("startOffset", ""), query.get("endOffset", "")
    glob = Glob(query["matchGlob"]) if query.get("matchGlob") else None
    if glob is not None and query.get("delimiter") not in (None, "", "/"):
        raise invalid(f"Invalid value for delimiter: '{query['delimiter'][:80]}'. With matchGlob it must be '/'.")
    for item in bucket.versions():
        if item.deleted is not None and not versions:
            continue
        if not item.name.startswith(prefix) or item.name < start or (end and item.name >= end):
            continue
        if glob is None or glob.matches(item.name):
            yield item


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

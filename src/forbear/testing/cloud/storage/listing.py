"""Listing the objects of a bucket: order, prefix, delimiter and pages; pure, and knows no JSON."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter
from typing import TypeAlias

from forbear.testing.cloud.http.errors import ApiError, invalid
from forbear.testing.cloud.storage.fields import key_before, page_size, query_flag, token_after
from forbear.testing.cloud.storage.model import Bucket, StoredObject


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


_LONGEST = 1024
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class _Name:
    """A name to match: the places before each character, those before any but a slash, and all of them."""

    text: str
    before: dict[str, int]
    inner: int
    every: int


_Step: TypeAlias = Callable[[_Name, int], int]


class Glob:
    """A pattern to match whole names with; 400 for one whose brackets, braces or escapes do not end."""

    def __init__(self, glob: str) -> None:
        if len(glob) > _LONGEST:
            raise invalid(f"Invalid value for matchGlob: it must have at most {_LONGEST} characters, got {len(glob)}.")
        reader = _Reader(glob)
        self._steps = reader.alternatives(0)
        if reader.place < len(glob):
            raise reader.unended()

    def matches(self, text: str) -> bool:
        """Return whether the pattern stands for the whole of a name."""
        before: dict[str, int] = {}
        for place, char in enumerate(text):
            before[char] = before.get(char, 0) | 1 << place
        every = (1 << len(text) + 1) - 1
        name = _Name(text, before, every >> 1 & ~before.get("/", 0), every)
        return bool(self._steps(name, 1) >> len(text))


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, glob: str) -> None:
        self._glob = glob
        self.place = 0

    def unended(self) -> ApiError:
        text = f"Invalid value for matchGlob: '{self._glob[:80]}'. A bracket, brace, range or escape in it has no end."
        return invalid(text)

    def alternatives(self, depth: int) -> _Step:
        """Read up to the brace that ends the alternatives, or to the end of the pattern outside of braces."""
        if depth > _DEEPEST:
            raise invalid(f"Invalid value for matchGlob: its braces are nested more than {_DEEPEST} deep.")
        ways: list[list[_Step]] = [[]]
        while self.place < len(self._glob):
            char = self._glob[self.place]
            if depth and char == "}":
                return _any_of(ways)
            self.place += 1
            if depth and char == ",":
                ways.append([])
            else:
                ways[-1].append(self._step(char, depth))
        if depth:
            raise self.unended()
        return _any_of(ways)

    def _step(self, char: str, depth: int) -> _Step:
        match char:
            case "*":
                deep = self._glob.startswith("*", self.place)
                self.place += deep
                return _anything if deep else _anything_inside
            case "?":
                return _one_inside
            case "[":
                return self._class()
            case "{":
                step = self.alternatives(depth + 1)
                self.place += 1
                return step
            case "\\":
                self.place += 1
                if self.place > len(self._glob):
                    raise self.unended()
                return _one(self._glob[self.place - 1])
            case _:
                return _one(char)

    def _class(self) -> _Step:
        """Read a class such as [a-z] after its bracket; [^a-z] is all but those, and a slash is never in it."""
        end = self._glob.find("]", self.place + 1)
        inside = self._glob[self.place : end] if end > 0 else ""
        negated = inside.startswith("^")
        starts, ends = _merged(self._ranges(inside[negated:]))
        self.place = end + 1

        def step(name: _Name, places: int) -> int:
            wanted = 0
            for char, before in name.before.items():
                index = bisect_right(starts, char) - 1
                if (index >= 0 and char <= ends[index]) is not negated:
                    wanted |= before
            return (places & wanted & name.inner) << 1

        return step

    def _ranges(self, inside: str) -> list[tuple[str, str]]:
        if not inside:
            raise self.unended()
        ranges: list[tuple[str, str]] = []
        place = 0
        while place < len(inside):
            low = high = inside[place]
            if inside[place + 1 : place + 2] == "-" and place + 2 < len(inside):
                high = inside[place + 2]
                place += 2
            if low > high:
                raise self.unended()
            ranges.append((low, high))
            place += 1
        return ranges


def _merged(ranges: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return the first and the last characters of ranges that do not overlap, in order."""
    starts: list[str] = []
    ends: list[str] = []
    for low, high in sorted(ranges):
        if ends and low <= ends[-1]:
            ends[-1] = max(ends[-1], high)
        else:
            starts.append(low)
            ends.append(high)
    return starts, ends


def _any_of(ways: list[list[_Step]]) -> _Step:
    def step(name: _Name, places: int) -> int:
        reached = 0
        for steps in ways:
            here = places
            for each in steps:
                here = each(name, here)
            reached |= here
        return reached

    return step


def _one(char: str) -> _Step:
    return lambda name, places: (places & name.before.get(char, 0)) << 1


def _one_inside(name: _Name, places: int) -> int:
    return (places & name.inner) << 1


def _anything(name: _Name, places: int) -> int:
    """Every place from the first one on."""
    first = places & -places
    return name.every & -first if first else 0


def _anything_inside(name: _Name, places: int) -> int:
    """Every place from one of these on, up to the next slash: adding carries a bit to the end of a run of ones."""
    inner = places & name.inner
    return places | (name.inner + inner ^ name.inner)

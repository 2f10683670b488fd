"""List the objects of a bucket: order, prefix, delimiter, glob patterns and pages."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter
from typing import TypeAlias

from forbear_cloud.http.messages import ApiError, invalid
from forbear_cloud.storage.fields import page_size, page_start, page_token, query_flag
from forbear_cloud.storage.model import Bucket, StoredObject

_MAX_GLOB = 1024
_MAX_DEPTH = 20

_Entry: TypeAlias = "tuple[str, int, StoredObject | None]"
"""A name, its generation and its object; a folder has the generation -1 and no object."""


@dataclass(slots=True)
class ObjectPage:
    """One page of a listing; `token` is that of the next page, None on the last one.

    A prefix in `prefixes` stands for all names that begin with it; it ends with the delimiter.
    """

    items: list[StoredObject] = field(default_factory=list[StoredObject])
    prefixes: list[str] = field(default_factory=list[str])
    token: str | None = None


def list_objects(bucket: Bucket, query: Mapping[str, str], *, versions: bool) -> ObjectPage:
    """Return one page of a bucket's objects, by name and then by age, as the parameters of the query say.

    The page has live objects, with `versions` also noncurrent ones, or soft-deleted ones if the query has
    softDeleted=true. With a delimiter in the query, names that contain it after the prefix are grouped as prefixes.
    """
    prefix, delimiter, size = query.get("prefix", ""), query.get("delimiter", ""), page_size(query)
    after, generation, folded = _position(query)
    trailing = query_flag(query, "includeTrailingDelimiter") and bool(delimiter)
    page, last = ObjectPage(), ""
    for name, number, item in _list_in_range(bucket, query, versions=versions):
        if (name, number) <= (after, generation) or (folded and name.startswith(folded)):
            continue
        cut = name.find(delimiter, len(prefix)) if delimiter else -1
        fold = name[: cut + len(delimiter)] if cut >= 0 else ""
        new = not (fold and page.prefixes and page.prefixes[-1] == fold)
        if new and len(page.items) + len(page.prefixes) >= size:
            page.token = page_token(last)
            break
        if new:
            last = f"p{fold}" if fold else f"{number}:{name}"
        if fold and new:
            page.prefixes.append(fold)
        # With includeTrailingDelimiter an object whose name is the prefix is listed beside it.
        if item is not None and (not fold or (trailing and name == fold)):
            page.items.append(item)
    return page


def _list_in_range(bucket: Bucket, query: Mapping[str, str], *, versions: bool) -> Iterator[_Entry]:
    """Yield the entries that match the prefix, the offsets and the glob pattern of the query, in order.

    An entry at endOffset is left out. Raise 400 for a wrong pattern, and for one with another delimiter than "/".
    """
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
    """Return all entries of a bucket that the query means, by name and then by age.

    With softDeleted=true they are the soft-deleted objects (400 if `versions` too); otherwise the live objects, with
    `versions` also noncurrent ones. With includeFoldersAsPrefixes=true and the delimiter "/" folders are among them,
    except the one that the prefix names.
    """
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
    """Return the name and generation after which the page begins, and the prefix whose names to skip ("" for none).

    On the first page they are "", -1 and "". Raise 400 if the query's `pageToken` is not from a listing of objects.
    """
    key = page_start(query)
    if key is None:
        return "", -1, ""
    if key.startswith("p"):
        return key[1:], -1, key[1:]
    generation, _, name = key.partition(":")
    if not generation.isdecimal() or len(generation) > 20:
        raise invalid("Invalid value for pageToken: it is not from a listing of objects.")
    return name, int(generation), ""


@dataclass(frozen=True, slots=True)
class _Name:
    """A name to match, with sets of positions in it.

    A set of positions is one integer: bit i is the position before character i. `before` has the positions before
    each character, `inner` those before any character but a slash, and `every` all of them.
    """

    text: str
    before: dict[str, int]
    inner: int
    every: int


_Step: TypeAlias = Callable[[_Name, int], int]
"""One part of a pattern: takes the positions reached so far and returns those reached after it.

A step costs the same however many positions there are, so matching never backtracks.
"""


class Glob:
    """A glob pattern for whole names: `*` and `?` do not match a slash, `**` does.

    It may have classes such as `[a-z]` and `[^a-z]`, alternatives such as `{a,b}`, and escapes with a backslash. Raise
    400 for more than 1024 characters, braces more than 20 deep, brackets, braces or escapes that do not end, and ranges
    that run backwards.
    """

    def __init__(self, glob: str) -> None:
        if len(glob) > _MAX_GLOB:
            raise invalid(f"Invalid value for matchGlob: it must have at most {_MAX_GLOB} characters, got {len(glob)}.")
        reader = _GlobReader(glob)
        self._steps = reader.alternatives(0)
        if reader.position < len(glob):
            raise reader.make_error()

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches the whole of `text`, the name of an object or a folder."""
        before: dict[str, int] = {}
        for position, char in enumerate(text):
            before[char] = before.get(char, 0) | 1 << position
        every = (1 << len(text) + 1) - 1
        name = _Name(text, before, every >> 1 & ~before.get("/", 0), every)
        return bool(self._steps(name, 1) >> len(text))


class _GlobReader:
    """Parses a glob pattern from left to right into steps; `position` is the index of the next character to parse."""

    def __init__(self, glob: str) -> None:
        self._glob = glob
        self.position = 0

    def make_error(self) -> ApiError:
        """Return, not raise, a 400 for a part of the pattern that does not end, or a range that runs backwards."""
        text = f"Invalid value for matchGlob: '{self._glob[:80]}'. A bracket, brace, range or escape in it has no end."
        return invalid(text)

    def alternatives(self, depth: int) -> _Step:
        """Parse alternatives up to their closing brace, or at depth 0 the whole pattern, in which commas are plain.

        Return a step that matches any of them. `depth` is the number of braces around; raise 400 if it exceeds 20 or
        the closing brace is missing.
        """
        if depth > _MAX_DEPTH:
            raise invalid(f"Invalid value for matchGlob: its braces are nested more than {_MAX_DEPTH} deep.")
        ways: list[list[_Step]] = [[]]
        while self.position < len(self._glob):
            char = self._glob[self.position]
            if depth and char == "}":
                return _match_any_of(ways)
            self.position += 1
            if depth and char == ",":
                ways.append([])
            else:
                ways[-1].append(self._step(char, depth))
        if depth:
            raise self.make_error()
        return _match_any_of(ways)

    def _step(self, char: str, depth: int) -> _Step:
        match char:
            case "*":
                deep = self._glob.startswith("*", self.position)
                self.position += deep
                return _match_anything if deep else _match_anything_inside
            case "?":
                return _match_one_inside
            case "[":
                return self._class()
            case "{":
                step = self.alternatives(depth + 1)
                self.position += 1
                return step
            case "\\":
                self.position += 1
                if self.position > len(self._glob):
                    raise self.make_error()
                return _match_one(self._glob[self.position - 1])
            case _:
                return _match_one(char)

    def _class(self) -> _Step:
        """Parse a class such as [a-z] or [^a-z] after its opening bracket, and return its step.

        No class matches a slash.
        """
        end = self._glob.find("]", self.position + 1)
        inside = self._glob[self.position : end] if end > 0 else ""
        negated = inside.startswith("^")
        starts, ends = _join_ranges(self._ranges(inside[negated:]))
        self.position = end + 1

        def step(name: _Name, positions: int) -> int:
            wanted = 0
            for char, before in name.before.items():
                index = bisect_right(starts, char) - 1
                if (index >= 0 and char <= ends[index]) is not negated:
                    wanted |= before
            return (positions & wanted & name.inner) << 1

        return step

    def _ranges(self, inside: str) -> list[tuple[str, str]]:
        """Return the inside of a class as pairs of a first and a last character; a single one is both.

        Raise 400 if the inside is empty, or a range runs backwards.
        """
        if not inside:
            raise self.make_error()
        ranges: list[tuple[str, str]] = []
        position = 0
        while position < len(inside):
            low = high = inside[position]
            if inside[position + 1 : position + 2] == "-" and position + 2 < len(inside):
                high = inside[position + 2]
                position += 2
            if low > high:
                raise self.make_error()
            ranges.append((low, high))
            position += 1
        return ranges


def _join_ranges(ranges: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Join overlapping ranges; return a list of their first characters and a list of their last ones, both in order."""
    starts: list[str] = []
    ends: list[str] = []
    for low, high in sorted(ranges):
        if ends and low <= ends[-1]:
            ends[-1] = max(ends[-1], high)
        else:
            starts.append(low)
            ends.append(high)
    return starts, ends


def _match_any_of(ways: list[list[_Step]]) -> _Step:
    """Return a step that matches any of the alternatives, each of which is a list of steps one after the other."""

    def step(name: _Name, positions: int) -> int:
        reached = 0
        for steps in ways:
            here = positions
            for each in steps:
                here = each(name, here)
            reached |= here
        return reached

    return step


def _match_one(char: str) -> _Step:
    return lambda name, positions: (positions & name.before.get(char, 0)) << 1


def _match_one_inside(name: _Name, positions: int) -> int:
    return (positions & name.inner) << 1


def _match_anything(name: _Name, positions: int) -> int:
    """Match `**`: return the first of the positions and every one after it, also the end of the name; 0 for none."""
    first = positions & -positions
    return name.every & -first if first else 0


def _match_anything_inside(name: _Name, positions: int) -> int:
    """Match `*`: return every position from one of `positions` up to the next slash.

    The addition carries a bit to the end of its run of ones.
    """
    inner = positions & name.inner
    return positions | (name.inner + inner ^ name.inner)

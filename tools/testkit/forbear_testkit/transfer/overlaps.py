"""Commands whose targets are the sources of others, drawn so that most are chains, and a model of what they do.

Paths begin with the bucket.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st

from forbear_cloud import Cloud, Fault, random_faults

T = TypeVar("T")
Contents = dict[str, bytes]
Pairs = list[tuple[str, str]]
BUCKETS = ("alt", "bkt")
COPY, DELETE, GET, LIST = (f"storage.objects.{name}" for name in ("rewrite", "delete", "get", "list"))


class Dice:
    """Choices by the bytes that hypothesis draws as one: what it draws piece by piece, it likes to repeat."""

    def __init__(self, data: bytes) -> None:
        self._left = iter(data)

    def number(self, end: int) -> int:
        """Return a number from 0 to below the end."""
        return next(self._left, 0) % end

    def one(self, options: Sequence[T]) -> T:
        """Return one of the options; the first is the simplest."""
        return options[self.number(len(options))]

    def some(self, options: Sequence[T], share: int = 2) -> list[T]:
        """Return one in so many of the options."""
        return [one for one in options if self.number(share) == share - 1]


_DICE = st.binary(min_size=80, max_size=80).map(Dice)


class Step(NamedTuple):
    """The objects after some pairs, one step at a time, and whether nothing was in their way."""

    after: Contents
    clean: bool


def take_steps(before: Contents, pairs: Pairs, *, moves: bool, skips: bool = False) -> Step | None:
    """Move or copy one pair after the other, each once no other reads its target; None for a circle.

    With `skips`, what would replace an object is skipped.
    """
    after, left, clean = dict(before), list(pairs), True
    sources, targets = {source for source, _ in pairs}, {target for _, target in pairs}
    while left:
        step = next((one for one in left if not any(other != one and other[0] == one[1] for other in left)), None)
        if step is None:
            return None
        left.remove(step)
        source, target = step
        if source == target or (skips and target in after):
            continue
        may_replace = not moves and (source not in targets or target in sources)
        clean = clean and source in after and (target not in after or may_replace)
        after[target] = after.get(source, b"")
        if moves:
            after.pop(source, None)
    return Step(after, clean)


class Graph(NamedTuple):
    """Objects, and items over them, no two of which have the same target; `broken` are those that fail, and where."""

    names: list[str]
    pairs: Pairs
    moves: bool
    broken: dict[str, str]
    seed: int


FLAWS = ["", "", "", "", "a circle", "a source for two", "a source is absent", "a target exists", "itself"]


def make_graph(dice: Dice) -> Graph:
    """Make items whose targets are mostly the sources of others; they succeed unless there is a flaw."""
    moves, flaw = dice.one([False, True]), dice.one(FLAWS)
    order = ["bkt/a", "alt/a", "bkt/b", "bkt/c", "alt/b", "alt/c"]
    Random(dice.number(256)).shuffle(order)
    pairs: Pairs = [(order[1], order[0])]
    for number, target in enumerate(order[1:-1], 1):
        others = [one for one in order[number + 1 :] if not (moves and one in dict(pairs))]
        step = dice.one([0, 0, 1, 1, 2, None])  # most targets have one of the next two sources
        if step is not None and step < len(others):
            pairs.append((others[step], target))
    names = {source for source, _ in pairs}
    end = next(source for source in reversed(order) if source not in {target for _, target in pairs})
    match flaw:
        case "a circle":
            pairs.append((pairs[0][1], end))
        case "a source for two":
            pairs.append((pairs[0][0], end))
        case "a source is absent":
            names.discard(dice.one(pairs)[0])
        case "a target exists":
            names.add(order[0])
        case "itself":
            names.add(end)
            pairs.append((end, end))
        case _:
            pass
    Random(dice.number(256)).shuffle(pairs)
    broken = {source: dice.one(["before", "after"]) for source, _ in dice.some(pairs, 6)}
    return Graph(sorted(names), pairs, moves, broken, dice.number(256))


class Trouble(NamedTuple):
    """The trouble of a run: one request is slow, and one is refused, or several fail for a while."""

    slow: tuple[str, int]
    refused: tuple[str, int] | None
    seed: int | None

    def befall(self, cloud: Cloud) -> None:
        """Let it happen to the requests to come."""
        cloud.fault(Fault.delay(0.004, operation=self.slow[0], nth=self.slow[1]))
        if self.refused is not None:
            cloud.fault(Fault.status(403, operation=self.refused[0], nth=self.refused[1]))
        if self.seed is not None:
            cloud.fault(random_faults(self.seed))


class Case(NamedTuple):
    """Objects, and a command over them: sources may end with a pattern; a target with a slash is a folder."""

    names: list[str]
    sources: list[str]
    target: str
    moves: bool
    how: str
    options: dict[str, Any]
    trouble: Trouble


PATTERNS = ["", "", "/*", "/*", "/**", "/*/x"]
OPTIONS: list[dict[str, Any]] = [
    {}, {}, {}, {}, {"no_clobber": True}, {"cache_control": "x"}, {"storage_class": "NEARLINE"},
]  # fmt: skip


def make_case(dice: Dice) -> Case:
    """Make a command whose sources and target are folders of the objects that exist.

    A path and its ends lie in the target. If each source is a folder of one of them, or a pattern for all in it, the
    copies of one end are the sources of the next.
    """
    moves, literal = dice.one([False, True]), dice.number(5) == 4
    letters = "x*" if literal else "xyz"
    inside = "/".join(["bkt", *(dice.one(letters) for _ in range(dice.number(2)))])
    stem = [dice.one(letters) for _ in range(3 + dice.number(3))]
    ends = ["/".join([inside, *stem[number:]]) for number in range(len(stem))]
    first = dice.number(len(stem) - 2)
    last = first + 1 + dice.number(len(stem) - 2 - first)
    names, sources, target = set[str](), list[str](), f"{inside}/"
    for number in range(first, last + 1):
        names |= {f"{ends[number]}/{leaf}" for leaf in dice.one(["1", "1", "12"])}
        by_pattern = not literal and dice.number(2)
        sources.append("/".join([inside, *stem[number : number + 2 - by_pattern], *["*"] * by_pattern]))
    if dice.number(3) == 2:
        names |= {f"{bucket}/{end[4:]}" for bucket in BUCKETS for end in dice.some(ends, 3)}
    form = dice.one(["chains", "chains", "chains", "anything", "anything", "in place", "twice", "inside"])
    if form == "in place":
        moves = False
        sources, target = [f"{inside}/{stem[0]}/*"], f"{inside}/{stem[0]}/"
        names |= {f"{target}{one}" for one in "12"}
    if form == "twice":
        sources, target = ["/".join([inside, *stem[:number]]) for number in (1, 2)], "alt/elsewhere/"
        names.add(f"{ends[0]}/1")
    if form == "inside":  # a folder into itself: an object in it must not be replaced by the others
        sources, target = [f"{inside}/{stem[0]}/*"], f"{inside}/{stem[0]}/{stem[1]}/"
        names |= {f"{inside}/{stem[0]}/1", f"{target}1"}
    if form == "anything":
        folders = sorted({name[:at] for name in names for at, letter in enumerate(name) if letter == "/"})
        places = sorted({*names, *folders})
        patterns = [""] if literal else PATTERNS
        sources = [f"{dice.one(places)}{dice.one(patterns)}" for _ in range(1 + dice.number(3))]
        target = dice.one([f"{dice.one(folders)}/", dice.one(places), "alt/elsewhere/"])
    options = dice.one(OPTIONS[5:] if form == "in place" else OPTIONS)
    options = options if "no_clobber" in options or not moves else {}
    options = {**options, "recursive": dice.number(6) < 5, **({"literal": True} if literal else {})}
    how = dice.one(["run", "dry run first", "run" if moves else "plan"])
    return Case(sorted(names), [*dict.fromkeys(sources)], target, moves, how, options, make_trouble(dice))


def make_trouble(dice: Dice) -> Trouble:
    """Make a request slow, mostly a copy, and refuse one in a third of the runs."""
    operations = [COPY, COPY, COPY, DELETE, LIST, GET]
    slow, refused = (dice.one(operations), 1 + dice.number(3)), (dice.one(operations), dice.one([1, 1, 2, 3]))
    return Trouble(slow, refused if dice.number(5) > 2 else None, dice.number(256) if dice.number(4) == 3 else None)


class Match(NamedTuple):
    """An object or folder that a source names, by its path; `name` is the last part of it."""

    path: str
    name: str
    is_folder: bool


def matches_of(case: Case, source: str) -> list[Match]:
    """Return what a source names."""
    parts, star = source.split("/"), None if "literal" in case.options else "*"
    found: set[Match] = set()
    for name in case.names:
        path = name.split("/")
        if parts[-1] == "**" and star:
            if len(path) >= len(parts) and path[: len(parts) - 1] == parts[:-1]:
                found.add(Match(name, path[-1], is_folder=False))
        elif len(path) >= len(parts) and all(one in (star, part) for one, part in zip(parts, path, strict=False)):
            is_folder = len(path) > len(parts)
            if case.options["recursive"] or not is_folder:
                found.add(Match("/".join(path[: len(parts)]), path[len(parts) - 1], is_folder))
    return sorted(found)


class Meant(NamedTuple):
    """The meaning of a command by the rules of cp: its pairs, whether some fail, and whether all are refused."""

    pairs: Pairs
    dirty: bool
    refused: bool


def read(case: Case) -> Meant:
    """Return what a command means."""
    is_wild = "literal" not in case.options and any("*" in source for source in case.sources)
    several = len(case.sources) > 1 or is_wild
    inside = case.target.rstrip("/") + "/"
    is_folder = inside == case.target or "/" not in case.target
    if several or case.options["recursive"]:
        is_folder = is_folder or any(name.startswith(inside) for name in case.names)
    refused, dirty = several and not is_folder, False
    changes = bool({*case.options} & {"cache_control", "storage_class"})
    pairs: Pairs = []
    taken: set[tuple[str, bool]] = set()
    for source in case.sources:
        found = matches_of(case, source)
        dirty = dirty or not found
        for path, name, is_below in found:
            refused = refused or (name, is_below) in taken
            taken.add((name, is_below))
            if not is_below:
                pairs.append((path, f"{inside}{name}" if is_folder else case.target))
                continue
            base = f"{inside}{name}/" if is_folder else inside
            if base.startswith(f"{path}/") and not (changes and base == f"{path}/"):
                dirty = True
                pairs += [(one, one) for one in case.names if one.startswith(f"{path}/")]
            else:
                pairs += [(one, base + one[len(path) + 1 :]) for one in case.names if one.startswith(f"{path}/")]
    sources = [source for source, target in pairs if source != target]
    dirty = dirty or (not changes and any(one == other for one, other in pairs))
    return Meant(pairs, dirty, refused or (case.moves and len({*sources}) < len(sources)))


GRAPHS, CASES = _DICE.map(make_graph), _DICE.map(make_case)

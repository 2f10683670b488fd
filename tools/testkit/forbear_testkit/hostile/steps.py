"""Count the steps that a backtracking matcher needs, so that a test can tell linear patterns from quadratic ones.

Time says nothing on a shared machine, and nothing can look into `re`. So this matcher walks the tree that `re` itself
makes of a pattern, in the order in which `re` tries, and counts every character and branch that it looks at. It finds
what `re` finds (the tests compare them), without the shortcuts of `re`, which save less than a constant factor.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

codes: Any = import_module("re._constants")
parser: Any = import_module("re._parser")

Nodes = list[tuple[Any, Any]]

_CATEGORIES = {codes.CATEGORY_DIGIT: r"\d", codes.CATEGORY_SPACE: r"\s", codes.CATEGORY_WORD: r"\w"} | {
    codes.CATEGORY_NOT_DIGIT: r"\D", codes.CATEGORY_NOT_SPACE: r"\S", codes.CATEGORY_NOT_WORD: r"\W"
}  # fmt: skip
_SINGLE = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)


def spans(pattern: "re.Pattern[str]", text: str, *, whole: bool = False) -> tuple[list[tuple[int, int]], int]:
    """Return where `pattern` matches in `text`, as `finditer` (or, if `whole`, `fullmatch`) does, and the steps."""
    matcher = _Matcher(pattern, text)
    if whole:
        return [(0, end) for end in matcher.ends(0) if end == len(text)][:1], matcher.steps
    found: list[tuple[int, int]] = []
    at = 0
    while at <= len(text):
        end = next(matcher.ends(at), None)
        if end is not None:
            found.append((at, end))
        at = at + 1 if end is None or end == at else end
    return found, matcher.steps


class _Matcher:
    """One pattern on one text; `steps` counts."""

    def __init__(self, pattern: "re.Pattern[str]", text: str) -> None:
        self.steps = 0
        self._text = text
        tree, self._flags = _parsed(pattern)
        self._tree: Nodes = tree

    def ends(self, at: int) -> Iterator[int]:
        """Yield the ends of all matches that begin at `at`, in the order in which `re` finds them."""
        return self._ways(self._tree, 0, at, self._flags)

    def _ways(self, nodes: Nodes, index: int, at: int, flags: int) -> Iterator[int]:
        while index < len(nodes):
            self.steps += 1
            code, value = nodes[index]
            if code in _SINGLE:
                if at >= len(self._text) or not _is_in(_key(code, value), self._text[at], flags):
                    return
                at += 1
            elif code in (codes.ASSERT, codes.ASSERT_NOT):
                if self._looks(value, at, flags) is (code is codes.ASSERT_NOT):
                    return
            elif code is codes.AT:
                if not self._is_at(value, at):
                    return
            else:
                for end in self._inner(code, value, at, flags):
                    yield from self._ways(nodes, index + 1, end, flags)
                return
            index += 1
        yield at

    def _inner(self, code: Any, value: Any, at: int, flags: int) -> Iterator[int]:
        if code is codes.SUBPATTERN:
            _, add, remove, nodes = value
            yield from self._ways(list(nodes), 0, at, (flags | add) & ~remove)
        elif code is codes.BRANCH:
            for nodes in value[1]:
                yield from self._ways(list(nodes), 0, at, flags)
        elif code is codes.ATOMIC_GROUP:
            yield from self._first(list(value), at, flags)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            least, most, nodes = value
            yield from self._repeated(code, least, most, list(nodes), at, flags)
        else:
            raise NotImplementedError(f"the step counter does not know {code}")

    def _repeated(self, code: Any, least: int, most: int, nodes: Nodes, at: int, flags: int) -> Iterator[int]:
        if code is codes.POSSESSIVE_REPEAT:
            ends = self._greedy(least, most, nodes, at, flags)
            yield from ends[-1:] if len(ends) > least else ()
        elif len(nodes) == 1 and nodes[0][0] in _SINGLE:  # no recursion for each character
            if code is codes.MAX_REPEAT:
                yield from reversed(self._greedy(least, most, nodes, at, flags)[least:])
            else:
                yield from self._lazy(least, most, nodes, at, flags)
        else:
            more = self._more(code, least, most, nodes, at, flags)
            if code is codes.MAX_REPEAT:
                yield from more
            if least == 0:
                yield at
            if code is codes.MIN_REPEAT:
                yield from more

    def _more(self, code: Any, least: int, most: int, nodes: Nodes, at: int, flags: int) -> Iterator[int]:
        if most:
            rest = most if most is codes.MAXREPEAT else most - 1
            for end in self._ways(nodes, 0, at, flags):
                if end > at or least:
                    yield from self._repeated(code, max(least - 1, 0), rest, nodes, end, flags)

    def _greedy(self, least: int, most: int, nodes: Nodes, at: int, flags: int) -> list[int]:
        """Return where each further repetition ends, from none on."""
        ends = [at]
        while len(ends) <= most:
            end = next(self._ways(nodes, 0, ends[-1], flags), None)
            if end is None or (end == ends[-1] and len(ends) > least):
                break
            ends.append(end)
        return ends

    def _lazy(self, least: int, most: int, nodes: Nodes, at: int, flags: int) -> Iterator[int]:
        count = 0
        while count <= most:
            if count >= least:
                yield at
            end = next(self._ways(nodes, 0, at, flags), None)
            if end is None:
                return
            at, count = end, count + 1

    def _first(self, nodes: Nodes, at: int, flags: int) -> list[int]:
        end = next(self._ways(nodes, 0, at, flags), None)
        return [] if end is None else [end]

    def _looks(self, value: Any, at: int, flags: int) -> bool:
        """Return whether a look ahead or behind finds what it looks for."""
        direction, nodes = value
        if direction < 0:
            at -= nodes.getwidth()[0]
        return at >= 0 and bool(self._first(list(nodes), at, flags))

    def _is_at(self, where: Any, at: int) -> bool:
        if where in (codes.AT_BOUNDARY, codes.AT_NON_BOUNDARY):
            around = [0 <= place < len(self._text) and _is_word(self._text[place]) for place in (at - 1, at)]
            return (around[0] != around[1]) is (where is codes.AT_BOUNDARY)
        if where in (codes.AT_BEGINNING, codes.AT_BEGINNING_STRING):
            return at == 0
        if where is codes.AT_END:
            return self._text[at:] in {"", "\n"}
        if where is codes.AT_END_STRING:
            return at == len(self._text)
        raise NotImplementedError(f"the step counter does not know {where}")


@cache
def _parsed(pattern: "re.Pattern[str]") -> tuple[Nodes, int]:
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE.value)
    return list(tree), tree.state.flags


def _key(code: Any, value: Any) -> Any:
    return (code, tuple(value)) if code is codes.IN else (code, value)


@cache
def _is_word(character: str) -> bool:
    return re.fullmatch(r"\w", character) is not None


@cache
def _is_in(key: Any, character: str, flags: int) -> bool:
    code, value = key
    cases = {character, character.lower(), character.upper()} if flags & re.IGNORECASE else {character}
    if code is codes.ANY:
        return character != "\n" or bool(flags & re.DOTALL)
    if code is codes.IN:
        members = [member for member in value if member[0] is not codes.NEGATE]
        return any(_is_member(member, case, flags) for member in members for case in cases) is (
            len(members) == len(value)
        )
    return (chr(value) in cases) is (code is codes.LITERAL)


def _is_member(member: Any, character: str, flags: int) -> bool:
    code, value = member
    if code is codes.LITERAL:
        return ord(character) == value if len(character) == 1 else False
    if code is codes.RANGE:
        return len(character) == 1 and value[0] <= ord(character) <= value[1]
    if code is codes.CATEGORY:
        return re.fullmatch(_CATEGORIES[value], character, flags & re.ASCII) is not None
    raise NotImplementedError(f"the step counter does not know {code}")

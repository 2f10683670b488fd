"""`Comments`: what the comments of a file suppress, which of them suppress nothing, and which name no rule."""

import io
import tokenize
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from forbear_audit.reading.patterns import IGNORE_COMMENT, OUR_COMMENTS
from forbear_audit.rules.catalog import RULES


@dataclass
class _Comment:
    """A comment that suppresses rules: in its line, in the line below if it stands alone, or in the whole file."""

    line: int
    rules: frozenset[str]
    whole_file: bool
    alone: bool
    used: bool = False


@dataclass
class Comments:
    """The comments of a file that suppress findings.

    `unknown` has the line and the text of each id that is no rule, `wrong` those of the comments that are for forbear
    but say nothing that it knows.
    """

    comments: list[_Comment] = field(default_factory=list[_Comment])
    unknown: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    wrong: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    @cached_property
    def _places(self) -> dict[tuple[int, str], _Comment]:
        """By line, 0 for the whole file, and rule: a file may have very many. The first of several counts."""
        return {(0 if c.whole_file else c.line, rule): c for c in self.comments[::-1] for rule in c.rules}

    def suppress(self, rule: str, first: int, last: int) -> bool:
        """Return whether a comment suppresses a rule in the lines from `first` to `last`, and remember which."""
        found = (self._places.get((line, rule)) for line in (0, *range(max(first - 1, 1), last + 1)))
        hits = [c for c in found if c is not None and (c.whole_file or c.alone or c.line >= first)]
        for comment in hits:
            comment.used = True
        return bool(hits)

    def list_unused(self, counted: Collection[str]) -> Iterator[int]:
        """Yield the lines of the comments that suppressed nothing, though all their rules are in `counted`."""
        for comment in self.comments:
            if not comment.used and comment.rules and comment.rules <= frozenset(counted):
                yield comment.line


def read_comments(text: str) -> Comments:
    """Return the comments of a text that begin with `# forbear:`."""
    result = Comments()
    if "forbear:" not in text.lower():
        return result
    for line, comment, alone in _comments(text):
        match = IGNORE_COMMENT.search(comment)
        if match is None:
            result.wrong.append((line, comment.partition(" #")[0].strip()))
            continue
        named = match[2] is not None
        names = {name.upper() for name in (match[2] or "").replace(",", " ").split()}
        if named and not match[3]:
            names = {f"[{match[2].strip()}"}  # the bracket is not closed
        result.unknown += [(line, name) for name in sorted(names - set(RULES))]
        rules = frozenset(names & set(RULES)) if named else frozenset(RULES)
        result.comments.append(_Comment(line, rules, bool(match[1]), alone))
    return result


def _comments(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the line and the text of each comment, and whether it stands alone in its line."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                starts = [match.start() for match in OUR_COMMENTS.finditer(token.string)]
                alone = bool(starts) and not token.line[: token.start[1]].strip()
                for start, end in pairwise([*starts, len(token.string)]):
                    yield token.start[0], token.string[start:end], alone
    except (SyntaxError, tokenize.TokenError):
        return  # the rest of a text that is no Python

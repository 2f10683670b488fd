"""Wildcards: `*`, `?` and `[abc]` within a part of a name, `**` across parts.

Names come from servers, so matching must not take exponential time. Between two `**`, each piece of a pattern matches
where it first fits and is never moved again (an atomic group). That loses no match, because whatever may follow reaches
at least as far from there. Matching takes at most the square of the name's length.
"""

import re

_WILD = re.compile(r"[*?\[]")


def is_wild(text: str) -> bool:
    """Return whether a text holds a wildcard."""
    return _WILD.search(text) is not None


def literal_start(pattern: str) -> str:
    """Return the beginning that all matching names share."""
    match = _WILD.search(pattern)
    return pattern if match is None else pattern[: match.start()]


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a regular expression to be used with `fullmatch`; `**/` also matches no folder at all."""
    pieces: list[tuple[str, list[str]]] = [("", [""])]  # the gap before each piece, and its segments between `*`
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            pieces.append(("(?:.*?/)??", [""]))
            at += 3
        elif pattern.startswith("**", at):
            pieces.append((".*?", [""]))
            at += 2
        elif pattern[at] == "*":
            pieces[-1][1].append("")
            at += 1
        else:
            one, at = _one(pattern, at)
            pieces[-1][1][-1] += one
    *others, (gap, segments) = pieces
    return re.compile("".join(f"(?>{gap}{_first(piece)})" for gap, piece in others) + gap + _last(segments), re.DOTALL)


def _first(segments: list[str]) -> str:
    """Return the expression for a piece that ends as early as possible."""
    return segments[0] + "".join(f"(?>[^/]*?{segment})" for segment in segments[1:])


def _last(segments: list[str]) -> str:
    """Return the expression for the piece that ends with the name."""
    if len(segments) == 1:
        return rf"{segments[0]}\Z"
    return rf"{_first(segments[:-1])}(?>[^/]*{segments[-1]})\Z"


def _one(pattern: str, at: int) -> tuple[str, int]:
    """Return the expression for one character of a name, and the position after it in the pattern."""
    if pattern[at] == "?":
        return "[^/]", at + 1
    if pattern[at] == "[":
        negated = pattern.startswith("!", at + 1)
        start = at + 2 if negated else at + 1
        end = pattern.find("]", start + 1)  # a bracket right at the start is a member
        if end > 0:
            return _set(negated, pattern[start:end]), end + 1
    return re.escape(pattern[at]), at + 1


def _set(negated: bool, members: str) -> str:
    """Return the expression for one character of a set such as "abc" or "a-z"; a backward range is empty."""
    written = ""
    at = 0
    while at < len(members):
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            first, last = members[at], members[at + 2]
            if first <= last:
                written += f"{re.escape(first)}-{re.escape(last)}"
            at += 3
        else:
            written += re.escape(members[at])
            at += 1
    if not written:
        return "[^/]" if negated else r"(?!)"
    return f"(?!/)[{'^' if negated else ''}{written}]"

"""Wildcards in addresses and paths: `*`, `?` and `[abc]` match within a part of a name, `**` across parts.

Names come from servers, so matching must not take exponential time. Between two `**`, each piece of a pattern matches
at the first place where it fits and is never moved again (an atomic group). That loses no match: the rest of the
pattern can match at least as much text from there. Matching takes at most the square of the name's length.
"""

import re

_WILD = re.compile(r"[*?\[]")


def is_wild(text: str) -> bool:
    """Return whether a text contains a wildcard character: `*`, `?` or `[`."""
    return _WILD.search(text) is not None


def literal_start(pattern: str) -> str:
    """Return the text of a pattern before its first wildcard: all matching names begin with it."""
    match = _WILD.search(pattern)
    return pattern if match is None else pattern[: match.start()]


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the regular expression for a pattern with wildcards, to be used with `fullmatch`.

    `**/` at the start of a part also matches nothing, so that files in no folder match.
    """
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
            one, at = _parse_character(pattern, at)
            pieces[-1][1][-1] += one
    *others, (gap, segments) = pieces
    return re.compile(
        "".join(f"(?>{gap}{_match_early(piece)})" for gap, piece in others) + gap + _match_to_end(segments), re.DOTALL
    )


def _match_early(segments: list[str]) -> str:
    """Return the regular expression for a piece between two `**`, which ends as early as possible."""
    return segments[0] + "".join(f"(?>[^/]*?{segment})" for segment in segments[1:])


def _match_to_end(segments: list[str]) -> str:
    """Return the regular expression for the piece after the last `**`, which ends with the name."""
    if len(segments) == 1:
        return rf"{segments[0]}\Z"
    return rf"{_match_early(segments[:-1])}(?>[^/]*{segments[-1]})\Z"


def _parse_character(pattern: str, at: int) -> tuple[str, int]:
    """Return the regular expression for one character of a name, and the position after its part."""
    if pattern[at] == "?":
        return "[^/]", at + 1
    if pattern[at] == "[":
        negated = pattern.startswith("!", at + 1)
        start = at + 2 if negated else at + 1
        end = pattern.find("]", start + 1)  # a bracket right at the start is a member
        if end > 0:
            return _parse_set(negated, pattern[start:end]), end + 1
    return re.escape(pattern[at]), at + 1


def _parse_set(negated: bool, members: str) -> str:
    """Return the regular expression for one character of a set; it never matches a slash."""
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

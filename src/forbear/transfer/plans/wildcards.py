"""Wildcards: `*`, `?` and `[abc]` within a part of a name, `**` across parts. They list nothing."""

import re

_WILD = re.compile(r"[*?\[]")
_SETS = re.compile(r"\[(!?+)(\][^\]]*|[^\]]+)\]")


def is_wild(text: str) -> bool:
    """Whether it holds a wildcard."""
    return _WILD.search(text) is not None


def literal_start(pattern: str) -> str:
    """What all names that match begin with."""
    found = _WILD.search(pattern)
    return pattern if found is None else pattern[: found.start()]


def compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression to be used with `fullmatch`; `**/` also stands for no folder at all."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            parts.append(".*")
            at += 2
        elif pattern[at] == "*":
            parts.append("[^/]*")
            at += 1
        elif pattern[at] == "?":
            parts.append("[^/]")
            at += 1
        elif found := _SETS.match(pattern, at):
            parts.append(_set(found[1], found[2]))
            at = found.end()
        else:
            parts.append(re.escape(pattern[at]))
            at += 1
    return re.compile("".join(parts), re.DOTALL)


def _set(negated: str, members: str) -> str:
    """One character of a set such as "abc" or "a-z"; a range that runs backwards has none."""
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

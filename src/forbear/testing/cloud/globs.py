"""Glob patterns of a listing as expressions; `*` and `?` stop at a slash, `**` does not. Knows no objects."""

import re

from forbear.testing.cloud.errors import invalid


def glob_pattern(glob: str) -> re.Pattern[str]:
    """The expression that matches whole names; 400 for a glob whose brackets, braces or escapes do not end."""
    parts: list[str] = []
    place = depth = 0
    while place < len(glob):
        char = glob[place]
        place += 1
        if char == "*":
            deep = glob.startswith("*", place)
            place += deep
            parts.append(".*" if deep else "[^/]*")
        elif char == "?":
            parts.append("[^/]")
        elif char == "[":
            end = glob.find("]", place + 1)
            inside = glob[place:end].removeprefix("^") if end > 0 else ""
            if not inside:
                raise _unended(glob)
            parts.append(f"(?!/)[{'^' if glob[place] == '^' else ''}{_escaped_class(inside)}]")
            place = end + 1
        elif char == "{":
            depth += 1
            parts.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            parts.append(")")
        elif char == "," and depth:
            parts.append("|")
        elif char == "\\":
            if place == len(glob):
                raise _unended(glob)
            parts.append(re.escape(glob[place]))
            place += 1
        else:
            parts.append(re.escape(char))
    if depth:
        raise _unended(glob)
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error:
        raise _unended(glob) from None


def _escaped_class(inside: str) -> str:
    """What stands in brackets, with nothing special in it but ranges."""
    return re.sub(r"([\\\[\]^&~|])", r"\\\1", inside)


def _unended(glob: str) -> Exception:
    return invalid(f"Invalid value for matchGlob: '{glob[:80]}'. A bracket, brace, range or escape in it has no end.")

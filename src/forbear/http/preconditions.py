"""Reading preconditions off a request: query parameters, entity tags, an etag in the body. It knows no operation.

A precondition counts only in a form that the server must understand and enforce; whatever is doubtful does not count.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BODY = 1024 * 1024
"""Larger bodies are not searched, in bytes: no policy or key resource comes near it."""


def split(target: str) -> tuple[str, str]:
    """The path and the query of a request target, both still percent-encoded."""
    path, _, query = target.partition("?")
    return path, query


def is_cut(target: str) -> bool:
    """Whether a request target has a `#`, which belongs in none: the server may take what follows for no part of it."""
    return "#" in target


def values(query: str, name: str) -> list[str]:
    """All values of the query parameter `name`, decoded, in order; keys are compared decoded and by case."""
    if name not in query and "%" not in query:
        return []
    found: list[str] = []
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        if key == name or ("%" in key and _decode(key) == name):
            found.append(_decode(value) if "%" in value else value)
    return found


def value(query: str, name: str) -> str | None:
    """The one value of the query parameter `name`; None where it is absent or repeated with different values."""
    found = values(query, name)
    if not found or found.count(found[0]) != len(found):
        return None
    return found[0]


def is_integer(text: str) -> bool:
    """Whether `text` is a decimal integer without a sign, 0 included."""
    return text.isascii() and text.isdigit()


def is_positive(text: str) -> bool:
    """Whether `text` is a decimal integer above 0."""
    return is_integer(text) and text.strip("0") != ""


def is_uuid(text: str) -> bool:
    """Whether `text` is a UUID in its usual spelling, other than the one of zeros only, which names nothing."""
    digits = text.replace("-", "")
    return (
        [len(part) for part in text.split("-")] == [8, 4, 4, 4, 12]
        and all(digit in "0123456789abcdefABCDEF" for digit in digits)
        and digits.strip("0") != ""
    )


def has_tag(headers: "Mapping[str, str]", name: str = "if-match") -> bool:
    """Whether the header `name` demands one or more entity tags; `*` demands mere existence and does not count."""
    tags = headers.get(name, "")
    return bool(tags.strip(" \t,")) and "*" not in tags


def has_strong_tag(headers: "Mapping[str, str]", name: str = "if-match") -> bool:
    """Whether the header `name` lists strong entity tags (RFC 9110 §8.8.3) and nothing else."""
    return all(is_strong(tag.strip(" \t")) for tag in headers.get(name, "").split(","))


def is_strong(tag: str) -> bool:
    """Whether `tag` is one strong entity tag: in double quotes, without the prefix `W/`."""
    return len(tag) > 2 and tag[0] == tag[-1] == '"' and '"' not in tag[1:-1]


def has_field(body: bytes | None, path: str, text: str | None = None) -> bool:
    """Whether `body` is a JSON object with a string at `path` ("etag", "policy.etag") that is not empty.

    With `text` it must be that string.
    """
    *outer, name = path.split(".")
    if body is None or len(body) > MAX_BODY or f'"{name}"'.encode() not in body:
        return False
    import json  # on a rare path, and not cheap to import

    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return False
    for key in (*outer, name):
        if not isinstance(value, dict):
            return False
        value = value.get(key)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return isinstance(value, str) and (value != "" if text is None else value == text)


def lacks_field(body: bytes | None, name: bytes, alias: bytes) -> bool:
    """Whether neither `name` nor `alias` can name any field of a JSON `body`; inside a text they count as there."""
    # Any letter may be spelt as an escape.
    return body is not None and name not in body and alias not in body and b"\\u" not in body


def _decode(text: str) -> str:
    from urllib.parse import unquote  # on a rare path, and not cheap to import

    return unquote(text)

"""Read the preconditions of a request: query parameters, entity tags, an etag in a JSON body.

A precondition counts only in a form that the server must understand and enforce; a doubtful one does not count.
"""

from collections.abc import Mapping

MAX_BODY = 1024 * 1024
"""The largest JSON body that `has_field` searches, in bytes; no policy or key resource comes near it."""


def split(target: str) -> tuple[str, str]:
    """Split a request target at its first `?` into path and query ("" without one), both still percent-encoded."""
    path, _, query = target.partition("?")
    return path, query


def is_cut(target: str) -> bool:
    """Return whether a request target has a `#`, which is not allowed there: a server may ignore all that follows."""
    return "#" in target


def values(query: str, name: str) -> list[str]:
    """Return all values of the query parameter `name`, percent-decoded, in order; case counts, and `+` stays."""
    if name not in query and "%" not in query:
        return []
    matches: list[str] = []
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        if key == name or ("%" in key and _decode(key) == name):
            matches.append(_decode(value) if "%" in value else value)
    return matches


def value(query: str, name: str) -> str | None:
    """Return the value of the query parameter `name`, None if it is absent or has several different values."""
    distinct = set(values(query, name))
    return distinct.pop() if len(distinct) == 1 else None


def is_integer(text: str) -> bool:
    """Return whether `text` is a decimal integer without a sign; 0 is one."""
    return text.isascii() and text.isdigit()


def is_positive(text: str) -> bool:
    """Return whether `text` is a decimal integer above 0."""
    return is_integer(text) and text.strip("0") != ""


def is_uuid(text: str) -> bool:
    """Return whether `text` is a UUID of 8-4-4-4-12 hexadecimal digits and not the nil UUID of zeros."""
    digits = text.replace("-", "")
    return (
        [len(part) for part in text.split("-")] == [8, 4, 4, 4, 12]
        and all(digit in "0123456789abcdefABCDEF" for digit in digits)
        and digits.strip("0") != ""
    )


def has_tag(headers: Mapping[str, str]) -> bool:
    """Return whether If-Match is present, has more than spaces and commas, and contains no `*`.

    A `*` matches any version, so it is no precondition. The form of the entity tags is not checked. `headers` has
    lower-case names.
    """
    tags = headers.get("if-match", "")
    return bool(tags.strip(" \t,")) and "*" not in tags


def has_strong_tag(headers: Mapping[str, str]) -> bool:
    """Return whether If-Match lists strong entity tags (RFC 9110 §8.8.3) and nothing else; False without it.

    `headers` has lower-case names. A tag that contains a comma does not count as one.
    """
    return all(is_strong(tag.strip(" \t")) for tag in headers.get("if-match", "").split(","))


def is_strong(tag: str) -> bool:
    """Return whether `tag` is one strong entity tag: in double quotes, not empty, without the prefix `W/`."""
    return len(tag) > 2 and tag[0] == tag[-1] == '"' and '"' not in tag[1:-1]


def has_field(body: bytes | None, path: str, text: str | None = None) -> bool:
    """Return whether `body` is a JSON object with a non-empty string at `path`, such as "etag" or "policy.etag".

    With `text`, the string must equal it instead. False for a body that is None, no JSON or larger than MAX_BODY.
    """
    *outer, name = path.split(".")
    if body is None or len(body) > MAX_BODY or f'"{name}"'.encode() not in body:
        return False
    import json  # on a rare path, and expensive to import

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
    """Return whether it is certain that no field of a JSON `body` is called `name` or `alias`.

    It only searches for bytes: False if either is anywhere in the body, if the body has a Unicode escape, or if it is
    None.
    """
    # JSON may write any letter as an escape.
    return body is not None and name not in body and alias not in body and b"\\u" not in body


def _decode(text: str) -> str:
    from urllib.parse import unquote  # on a rare path, and expensive to import

    return unquote(text)

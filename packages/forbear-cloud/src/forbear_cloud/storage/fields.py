"""Read typed values from queries and JSON bodies, and cut sorted listings into pages.

A value that is wrong, or required and missing, raises a 400 that names it.
"""

import base64
import binascii
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import TypeVar, cast

from forbear_cloud.http.messages import ApiError, Json, JsonObject, invalid, required

_INT64 = 2**63
_MAX_DEPTH = 100
_MAX_SIZE = 262_144
_MAX_PAGE = 1000

_Entry = TypeVar("_Entry")


def json_value(body: bytes, largest: int = _MAX_SIZE) -> Json:
    """Parse JSON of any type; raise 413 for more than `largest` bytes.

    Raise 400 for invalid JSON, NaN and Infinity, and for more than 100 levels. The limit on the size is low because
    parsed values take many times the memory of their text.
    """
    if len(body) > largest:
        raise ApiError(413, f"The JSON of a request must have at most {largest} bytes, got {len(body)}.")
    try:
        value = cast("Json", _decode(body.decode(json.detect_encoding(body), "surrogatepass")))
    except (ValueError, RecursionError):
        raise ApiError(400, "Parse Error: the request body is not valid JSON.", "parseError") from None
    if body.count(b"{") + body.count(b"[") > _MAX_DEPTH and _is_too_deep(value):
        raise ApiError(
            400, f"Parse Error: the request body is nested more than {_MAX_DEPTH} levels deep.", "parseError"
        )
    return value


def _refuse_constant(text: str) -> float:
    """Raise ValueError for NaN and infinities, which Python's parser accepts although JSON has no such values."""
    raise ValueError(text)


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode  # `json.loads` would make one for each call


def _is_too_deep(value: Json) -> bool:
    """Return whether the value has more than 100 levels, so that reading or writing it could exhaust the stack."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        containers = [each for each in level if isinstance(each, list | dict)]
        level = [child for each in containers for child in (each.values() if isinstance(each, dict) else each)]
        if not level:
            return False
    return True


def json_object(body: bytes) -> JsonObject:
    """Return the JSON object in a body, empty for an empty body and for null, which Go clients send.

    Raise 400 for any other JSON and for invalid JSON, and 413 for more than 256 KiB.
    """
    value = json_value(body) if body else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ApiError(400, "Parse Error: the request body must be a JSON object.", "parseError")
    return value


def integer(value: Json, name: str) -> int:
    """Return a 64-bit integer, from a JSON number or from a string of digits with an optional minus.

    Raise 400 for any other value, also for a boolean or a fraction. `name` is the field that the error names.
    """
    if isinstance(value, str) and value.isascii() and value.lstrip("-").isdigit() and len(value) < 21:
        try:
            value = int(value)
        except ValueError:
            raise invalid(f"Invalid value for {name}: '{value}'. It must be an integer.") from None
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT64 <= value < _INT64:
        raise _invalid(name, value, "an integer")
    return value


def query_integer(query: Mapping[str, str], name: str) -> int | None:
    """Return the query parameter `name` as an integer, or None if it is absent; raise 400 if it is not one."""
    value = query.get(name)
    return None if value is None else integer(value, name)


def require_integer(query: Mapping[str, str], name: str) -> int:
    """Return the query parameter `name` as an integer; raise 400 if it is absent, empty or not one."""
    return integer(text(query, name), name)


def query_flag(query: Mapping[str, str], name: str) -> bool:
    """Return the query parameter `name`, true or false in any case, as a bool; False if it is absent.

    Raise 400 for any other value.
    """
    value = query.get(name, "false").lower()
    if value not in {"true", "false"}:
        raise _invalid(name, value, "true or false")
    return value == "true"


def text(body: Mapping[str, Json], name: str) -> str:
    """Return the string in the field `name`; raise 400 if it is absent, null, empty or not a string."""
    value = optional_text(body, name)
    if not value:
        raise required(name)
    return value


def optional_text(body: Mapping[str, Json], name: str) -> str | None:
    """Return the string in the field `name`, or None if it is absent or null; raise 400 if it is not a string."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise _invalid(name, value, "a string")
    return value


def enum_name(body: Mapping[str, Json], name: str, enum: Mapping[int, str]) -> str:
    """Return the enum value in the field `name` by its name; clients may send its name or its number.

    `enum` maps the allowed numbers to names. Its first name is the default of an absent or empty field. Raise 400 for
    any other value.
    """
    value = body.get(name)
    if value is None or value == "":
        return next(iter(enum.values()))
    for number, label in enum.items():
        if value in (label, number, str(number)) and not isinstance(value, bool):
            return label
    raise _invalid(name, value, f"one of {', '.join(enum.values())}")


def with_enum_names(body: Mapping[str, Json], enums: Mapping[str, Mapping[int, str]]) -> JsonObject:
    """Return a copy of the body in which the numbers of enum values are replaced by their names.

    `enums` has the names by number for each field with enum values. A number without a name stays as it is.
    """
    return {
        name: enums[name].get(value, value) if name in enums and type(value) is int else value
        for name, value in body.items()
    }


def update_mask(mask: str, writable: Collection[str]) -> list[str]:
    """Return the field names in an update mask, which commas separate; raise 400 unless all of them are `writable`."""
    names = [name.strip() for name in mask.split(",")]
    unknown = next((name for name in names if name not in writable), None)
    if unknown is not None:
        allowed = ", ".join(sorted(writable))
        raise invalid(f"Invalid value for updateMask: '{unknown[:80]}' cannot be changed. It may name {allowed}.")
    return names


def instant(value: str, name: str) -> datetime:
    """Return the time that a text with a UTC offset states, such as 2026-01-31T12:00:00Z; raise 400 for any other.

    `name` is the field that the error names.
    """
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise invalid(f"Invalid value for {name}: '{value[:80]}'. It must be a time such as 2026-01-31T12:00:00Z.")
    return parsed


def mapping(body: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """Return the JSON object in the field `name`, empty if it is absent or null; raise 400 for another type."""
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _invalid(name, value, "an object")
    return value


def texts(body: Mapping[str, Json], name: str) -> list[str]:
    """Return the list of strings in the field `name`, empty if it is absent or null; raise 400 for another type."""
    return _entries(body, name, lambda entry: entry if isinstance(entry, str) else None, "string")


def items(body: Mapping[str, Json], name: str) -> list[Mapping[str, Json]]:
    """Return the list of JSON objects in the field `name`, empty if it is absent or null.

    Raise 400 for another type.
    """
    return _entries(body, name, lambda entry: entry if isinstance(entry, Mapping) else None, "object")


def _entries(body: Mapping[str, Json], name: str, checked: Callable[[Json], _Entry | None], word: str) -> list[_Entry]:
    """Return the list in the field `name`, empty if it is absent or null; raise 400 if it is not a list.

    `checked` returns an entry, or None if the entry has the wrong type, which raises 400. `word` is the type that the
    error names.
    """
    values = body.get(name)
    if values is None:
        return []
    if not isinstance(values, list):
        raise _invalid(name, values, f"a list of {word}s")
    entries: list[_Entry] = []
    for value in values:
        entry = checked(value)
        if entry is None:
            raise invalid(f"Invalid value in {name}: {json.dumps(value)[:80]}. Each entry must be of type {word}.")
        entries.append(entry)
    return entries


def _invalid(name: str, value: Json, rule: str) -> ApiError:
    return invalid(f"Invalid value for {name}: {json.dumps(value)[:80]}. It must be {rule}.")


def page_size(
    query: Mapping[str, str], name: str = "maxResults", *, default: int = _MAX_PAGE, maximum: int = _MAX_PAGE
) -> int:
    """Return how many entries a page has: the number in the query parameter `name`, but at most `maximum`.

    An absent parameter and 0 mean `default`. Raise 400 if it is negative or not an integer.
    """
    size = query_integer(query, name)
    if size is not None and size < 0:
        raise invalid(f"Invalid value for {name}: {size}. It must not be negative.")
    return min(size or default, maximum)


def page_token(key: str) -> str:
    """Return the token of the page that begins after `key`: the key in URL-safe base64."""
    return base64.urlsafe_b64encode(key.encode()).decode()


def page_start(query: Mapping[str, str]) -> str | None:
    """Return the key after which the page begins, from the query's `pageToken`; None without one, for the first page.

    Raise 400 if the token cannot be decoded.
    """
    token = query.get("pageToken")
    if not token:
        return None
    try:
        return base64.b64decode(token.encode(), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise invalid(f"Invalid value for pageToken: '{token[:80]}'. Use the nextPageToken of a page.") from None


def page(
    keys: Iterable[str],
    query: Mapping[str, str],
    size_name: str = "maxResults",
    *,
    default: int = _MAX_PAGE,
    maximum: int = _MAX_PAGE,
) -> tuple[list[str], str | None]:
    """Return one page of the keys in sorted order, and the token of the next page (None if this is the last one).

    The page begins after the key in the query's `pageToken`. The query parameter `size_name` sets its size, as in
    `page_size`.
    """
    start, size = page_start(query), page_size(query, size_name, default=default, maximum=maximum)
    rest = sorted(key for key in keys if start is None or key > start)
    return rest[:size], page_token(rest[size - 1]) if len(rest) > size else None

"""Reads typed values out of queries and JSON bodies, answering 400 for what does not fit; knows no resource."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import cast

from forbear.testing.cloud.http.errors import ApiError, invalid, required
from forbear.testing.cloud.http.messages import Json, JsonObject

_INT64 = 2**63
_DEEPEST = 100
_LARGEST = 262_144


def _no_constant(text: str) -> float:
    raise ValueError(text)


def json_value(body: bytes, largest: int = _LARGEST) -> Json:
    """Parse JSON of any kind, of at most `largest` bytes: as values it takes many times as much memory."""
    if len(body) > largest:
        raise ApiError(413, f"The JSON of a request must have at most {largest} bytes, got {len(body)}.")
    try:
        value = cast("Json", json.loads(body, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        raise ApiError(400, "Parse Error: the request body is not valid JSON.", "parseError") from None
    if _too_deep(value):
        raise ApiError(400, f"Parse Error: the request body is nested more than {_DEEPEST} levels deep.", "parseError")
    return value


def _too_deep(value: Json) -> bool:
    """Whether handling the value could exhaust the stack, on the way in or when it is written out again."""
    level = [value]
    for _ in range(_DEEPEST):
        nested = [each for each in level if isinstance(each, list | dict)]
        level = [child for each in nested for child in (each.values() if isinstance(each, dict) else each)]
        if not level:
            return False
    return True


def json_object(body: bytes) -> JsonObject:
    """Parse a JSON object; an empty body and null are an empty object, as clients in Go send them."""
    value = json_value(body) if body else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ApiError(400, "Parse Error: the request body must be a JSON object.", "parseError")
    return value


def integer(value: Json, name: str) -> int:
    """A 64-bit integer; the API writes them as strings, and takes both."""
    if isinstance(value, str) and value.isascii() and value.lstrip("-").isdigit() and len(value) < 21:
        try:
            value = int(value)
        except ValueError:
            raise invalid(f"Invalid value for {name}: '{value}'. It must be an integer.") from None
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT64 <= value < _INT64:
        raise invalid(f"Invalid value for {name}: {_shown(value)}. It must be an integer.")
    return value


def query_integer(query: Mapping[str, str], name: str) -> int | None:
    """An integer query parameter, None when absent."""
    text = query.get(name)
    return None if text is None else integer(text, name)


def query_flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean query parameter, False when absent."""
    text = query.get(name, "false").lower()
    if text not in {"true", "false"}:
        raise invalid(f"Invalid value for {name}: {_shown(text)}. It must be true or false.")
    return text == "true"


def text(body: Mapping[str, Json], name: str) -> str:
    """A string that must be there and not be empty."""
    value = body.get(name)
    if value is None or value == "":
        raise required(name)
    if not isinstance(value, str):
        raise invalid(f"Invalid value for {name}: {_shown(value)}. It must be a string.")
    return value


def optional_text(body: Mapping[str, Json], name: str) -> str | None:
    """A string, None when absent."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid(f"Invalid value for {name}: {_shown(value)}. It must be a string.")
    return value


def one_of(body: Mapping[str, Json], name: str, allowed: Sequence[str]) -> str:
    """One of a few words; the first of them when absent."""
    value = optional_text(body, name) or allowed[0]
    if value not in allowed:
        raise invalid(f"Invalid value for {name}: {_shown(value)}. It must be one of {', '.join(allowed)}.")
    return value


def texts(body: Mapping[str, Json], name: str) -> list[str]:
    """A list of strings, empty when absent."""
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid(f"Invalid value for {name}: {_shown(value)}. It must be a list of strings.")
    found: list[str] = []
    for entry in value:
        if not isinstance(entry, str):
            raise invalid(f"Invalid value in {name}: {_shown(entry)}. It must be a string.")
        found.append(entry)
    return found


def mapping(body: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """A nested object, empty when absent."""
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise invalid(f"Invalid value for {name}: {_shown(value)}. It must be an object.")
    return value


def items(body: Mapping[str, Json], name: str) -> list[Mapping[str, Json]]:
    """A list of objects, empty when absent."""
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid(f"Invalid value for {name}: {_shown(value)}. It must be a list of objects.")
    found: list[Mapping[str, Json]] = []
    for entry in value:
        if not isinstance(entry, Mapping):
            raise invalid(f"Invalid value in {name}: {_shown(entry)}. It must be an object.")
        found.append(entry)
    return found


def _shown(value: Json) -> str:
    return json.dumps(value)[:80]


_MOST = 1000


def page_size(query: Mapping[str, str], name: str = "maxResults", *, usual: int = _MOST, most: int = _MOST) -> int:
    """How many entries the query asks for: `usual` where it does not say, and at most `most`."""
    wanted = query_integer(query, name)
    if wanted is not None and wanted < 0:
        raise invalid(f"Invalid value for {name}: {wanted}. It must not be negative.")
    return min(wanted or usual, most)


def token_after(key: str) -> str:
    """The token of the page that begins after `key`."""
    return base64.urlsafe_b64encode(key.encode()).decode()


def key_before(query: Mapping[str, str]) -> str | None:
    """The key that the query's page token stands for, None on the first page."""
    token = query.get("pageToken")
    if not token:
        return None
    try:
        return base64.b64decode(token.encode(), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise invalid(f"Invalid value for pageToken: '{token[:80]}'. Use the nextPageToken of a page.") from None


def page(
    names: Sequence[str],
    query: Mapping[str, str],
    size_name: str = "maxResults",
    *,
    usual: int = _MOST,
    most: int = _MOST,
) -> tuple[Sequence[str], str | None]:
    """One page of sorted names, and the token of the next one if there is more."""
    before, size = key_before(query), page_size(query, size_name, usual=usual, most=most)
    left = names if before is None else [name for name in names if name > before]
    return left[:size], token_after(left[size - 1]) if len(left) > size else None

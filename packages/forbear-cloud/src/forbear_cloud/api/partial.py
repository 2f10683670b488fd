"""Partial responses: the query parameter `fields` selects the parts of the JSON that a client gets."""

import json
import re
from collections import deque
from collections.abc import Mapping
from typing import TypeAlias, cast

from forbear_cloud.http.content import Content
from forbear_cloud.http.messages import ApiError, HttpResponse, Json, json_response

Selection: TypeAlias = "dict[str, Selection]"
"""Field names, or "*" for every field, each with a selection inside of it; an empty selection selects everything."""

_TOKEN = re.compile(r"[A-Za-z0-9_.*-]+|[,/()]")
_MAX_DEPTH = 20


def read_fields(text: str) -> Selection:
    """Parse a selection such as "nextPageToken,items(name,acl/role)" into nested dicts by field name.

    Raise 400 if it is malformed, empty, or has parentheses more than 20 deep.
    """
    words = _TOKEN.findall(text)
    if "".join(words) != text:
        raise _invalid(text)
    tokens = deque[str]((*words, ""))
    selection = _selection(tokens, text, 0)
    if len(tokens) != 1:
        raise _invalid(text)
    return selection


def select(response: HttpResponse, selection: Selection) -> HttpResponse:
    """Remove the fields that are not selected from a JSON response of status 200.

    Return any other response unchanged.
    """
    kind = dict(response.headers).get("Content-Type", "")
    if response.status != 200 or isinstance(response.body, Content) or not kind.startswith("application/json"):
        return response
    value = cast("Json", json.loads(response.body))
    return response._replace(body=json_response(_select(value, selection)).body)


def _selection(tokens: deque[str], text: str, depth: int) -> Selection:
    """Parse fields up to a closing parenthesis or the end (""), and leave that token in the queue.

    `text` is the whole selection, for the error, and `depth` the number of parentheses around. Raise 400 if it is
    malformed.
    """
    selection: Selection = {}
    while True:
        names = [_name(tokens, text)]
        while tokens[0] == "/":
            tokens.popleft()
            names.append(_name(tokens, text))
        inner: Selection = {}
        if tokens[0] == "(" and depth < _MAX_DEPTH:
            tokens.popleft()
            inner = _selection(tokens, text, depth + 1)
            if tokens.popleft() != ")":
                raise _invalid(text)
        for name in reversed(names[1:]):
            inner = {name: inner}
        selection[names[0]] = {**selection.get(names[0], {}), **inner}
        if tokens[0] != ",":
            return selection
        tokens.popleft()


def _name(tokens: deque[str], text: str) -> str:
    name = tokens.popleft()
    if not name or name in ",/()":
        raise _invalid(text)
    return name


def _select(value: Json, selection: Selection) -> Json:
    """Return the selected parts of a value; an empty selection selects all of it.

    A selection applies to each entry of a list. A value that is neither a list nor an object stays as it is.
    """
    if not selection:
        return value
    if isinstance(value, list):
        return [_select(each, selection) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: _select(each, selection.get(name, selection.get("*", {})))
        for name, each in value.items()
        if name in selection or "*" in selection
    }


def _invalid(text: str) -> ApiError:
    return ApiError(400, f"Invalid field selection {text[:80]}", "invalidParameter")

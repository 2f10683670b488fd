"""Partial replies: `fields` says which parts of the JSON the client wants; knows no resource."""

import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias, cast

from forbear.testing.cloud.http.content import Content
from forbear.testing.cloud.http.errors import ApiError
from forbear.testing.cloud.http.messages import Json, Reply, json_reply

Wanted: TypeAlias = "dict[str, Wanted]"
"""Names, or "*" for all, each with what is wanted of it: all where nothing is named."""

_TOKEN = re.compile(r"[A-Za-z0-9_.*-]+|[,/()]")
_DEEPEST = 20


def read_fields(text: str) -> Wanted:
    """Read a selection such as "nextPageToken,items(name,acl/role)"; 400 for what is none."""
    found = _TOKEN.findall(text)
    if "".join(found) != text:
        raise _invalid(text)
    tokens = deque[str]((*found, ""))
    wanted = _selection(tokens, text, 0)
    if len(tokens) != 1:
        raise _invalid(text)
    return wanted


def select(reply: Reply, wanted: Wanted) -> Reply:
    """Leave out of a JSON reply what is not wanted; other replies stay as they are."""
    kind = dict(reply.headers).get("Content-Type", "")
    if reply.status != 200 or isinstance(reply.body, Content) or not kind.startswith("application/json"):
        return reply
    return replace(reply, body=json_reply(_chosen(cast("Json", json.loads(reply.body)), wanted)).body)


def _selection(tokens: deque[str], text: str, depth: int) -> Wanted:
    """Read fields until a closing parenthesis or the end, which are left in place."""
    wanted: Wanted = {}
    while True:
        names = [_name(tokens, text)]
        while tokens[0] == "/":
            tokens.popleft()
            names.append(_name(tokens, text))
        inner: Wanted = {}
        if tokens[0] == "(" and depth < _DEEPEST:
            tokens.popleft()
            inner = _selection(tokens, text, depth + 1)
            if tokens.popleft() != ")":
                raise _invalid(text)
        for name in reversed(names[1:]):
            inner = {name: inner}
        wanted[names[0]] = {**wanted.get(names[0], {}), **inner}
        if tokens[0] != ",":
            return wanted
        tokens.popleft()


def _name(tokens: deque[str], text: str) -> str:
    name = tokens.popleft()
    if not name or name in ",/()":
        raise _invalid(text)
    return name


def _chosen(value: Json, wanted: Wanted) -> Json:
    if not wanted:
        return value
    if isinstance(value, list):
        return [_chosen(each, wanted) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: _chosen(each, wanted.get(name, wanted.get("*", {})))
        for name, each in value.items()
        if name in wanted or "*" in wanted
    }


def _invalid(text: str) -> ApiError:
    return ApiError(400, f"Invalid field selection {text[:80]}", "invalidParameter")

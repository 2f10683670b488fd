"""Find the conditions of a request that are there, but in a form that does not count: `ifGenerationMatch=abc`.

Such a request looks guarded and is not. The texts of a judgement's conditions say where each one would be.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from forbear.core.check import is_mapping
from forbear.core.service import Judgement
from forbear.grpc.call import GrpcCall, field
from forbear.http import preconditions
from forbear.http.request import Request
from forbear.services import rfc9110
from forbear.tables.conditions import RULES, ValueTest, is_integer, is_positive, is_uuid

_IN_BODY = " in the body"
_IN_ENTRIES = " in every "
_FORMS: dict[ValueTest, str] = {
    is_integer: "a whole number such as 0 or 1700000000000001",
    is_positive: "a whole number above 0",
    is_uuid: "a UUID that is not all zeros",
}


def find_in_request(request: Request, judgement: Judgement) -> tuple[str, ...]:
    """Return a text for each condition of the operation that is in the request in a form that does not count."""
    return tuple(dict.fromkeys(_search_request(request, judgement)))


def find_in_call(call: GrpcCall, judgement: Judgement) -> tuple[str, ...]:
    """Return a text for each condition in the fields of an RPC's request that cannot be read."""
    texts: list[str] = []
    for name in _terms(judgement):
        rule = RULES.get(name.rpartition(".")[2])
        value = None if rule is None else field(call.message, name)
        if rule is not None and value is not None and not rule(value):
            texts.append(_text(name, rule))
    return tuple(texts)


def _search_request(request: Request, judgement: Judgement) -> Iterator[str]:
    query = preconditions.split(request.target)[1]
    if judgement.service == rfc9110.RFC9110.name and request.method == "PATCH" and not judgement.repeatable:
        yield from _search_header(request.headers.get("if-match"), "If-Match")  # names no condition of a PATCH
    for term in _terms(judgement):
        if term.endswith(_IN_BODY):
            yield from _search_body(request.body, term.removesuffix(_IN_BODY))
        elif _IN_ENTRIES in term:
            if request.body and b"<" not in request.body:
                yield f"the body is no XML, so {term} is not read"
        elif term.endswith("="):
            yield from _search_query(query, term[:-1])
        elif term.endswith(":"):
            yield from _search_header(request.headers.get(term[:-1].lower()), term[:-1])


def _terms(judgement: Judgement) -> Iterator[str]:
    """Yield the conditions of the operation one by one, without those that are met and those of absence."""
    for text in judgement.conditions:
        if text != judgement.met:
            yield from (term for term in text.split(" and ") if not term.startswith("no "))


def _search_query(query: str, name: str) -> Iterator[str]:
    values = preconditions.values(query, name)
    rule = RULES.get(name)
    if len(set(values)) > 1:
        yield f"`{name}` is in the query with several values, so it does not count; keep one"
    elif values and rule is not None and not rule(values[0]):
        yield _text(name, rule)
    elif not values:
        for pair in query.split("&"):
            other = pair.partition("=")[0]
            if other != name and other.lower() == name.lower():
                yield f"`{other}` does not count; write `{name}`, with its capital letters"


def _search_header(value: str | None, name: str) -> Iterator[str]:
    if value is None:
        return
    rule = RULES.get(name)
    if rule is not None and not rule(value.strip()):
        yield _text(name, rule)
    elif name == "If-Match" and not preconditions.has_strong_tag({"if-match": value}):
        yield '`If-Match` does not count; write strong entity tags in double quotes, such as "abc", without * and W/'


def _search_body(body: bytes | None, name: str) -> Iterator[str]:
    """Yield the reason why the field `name`, or "NAME=VALUE", of a JSON body cannot be read, if there is one."""
    path, equals, _ = name.partition("=")
    if body is None:
        yield f"the body is not known, so {path} in it is not read; pass it as `body`"
        return
    if not body:
        return
    if len(body) > preconditions.MAX_BODY:
        yield f"the body has more than {preconditions.MAX_BODY >> 20} MiB, so {path} in it is not read"
        return
    value: Any = None
    with suppress(ValueError, RecursionError):
        value = json.loads(body)
    if not is_mapping(value):
        yield f"the body is no JSON object, so {path} in it is not read; pass the JSON that is sent"
        return
    for key in path.split("."):
        value = value.get(key) if is_mapping(value) else None
    if value is not None and not equals and not (isinstance(value, str) and value):
        yield f"`{path}` in the body does not count; it must be a text that is not empty"


def _text(name: str, rule: ValueTest) -> str:
    """Return the text for a value that breaks `rule`; the value is not shown, because it may be secret."""
    return f"the value of `{name}` does not count; it must be {_FORMS.get(rule, 'a text that is not empty')}"

"""The grammar of conditions in the tables, and how each is read off an HTTP request. It knows no operation.

Alternatives are joined by "|", what must hold together by "&"; a term is a prefix and a name:

- `q:` a query parameter, `h:` a request header;
- `b:` a field of the JSON body ("policy.etag"), with "=" also its value; `!b:` that there is no such field;
- `x:` an element that every entry of an XML body has ("Object/VersionId");
- `f:` a field of a gRPC message, with "=" also its value; `!f:` that it is not set;
- `const:true` nothing at all.

A row that describes an HTTP request and an RPC lists the alternatives of both; each takes those it can read.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from forbear.http import preconditions
from forbear.http.request import Request
from forbear.services import xml_body
from forbear.services.fields import field
from forbear.services.values import RULES, Rule

Term = tuple[str, str]
Alternatives = tuple[tuple[Term, ...], ...]
HttpTest = Callable[[Request, str], bool]
"""Given a request and the query of its target, whether a condition is present in a form that counts."""
FieldTest = Callable[[object], bool]
"""The same, given the message of a call."""

T = TypeVar("T")

_PREFIXES = ("q", "h", "b", "!b", "x", "f", "!f", "const")


@dataclass(frozen=True, slots=True)
class Condition(Generic[T]):
    """One alternative, in the spelling of the request and as a test."""

    text: str
    holds: T


def parse(text: str) -> Alternatives:
    """The alternatives in `text`, each a conjunction of terms; none for an empty text. Raises ValueError."""
    if not text:
        return ()
    return tuple(tuple(_term(term.strip()) for term in alternative.split("&")) for alternative in text.split("|"))


def _term(text: str) -> Term:
    prefix, colon, name = text.partition(":")
    if not colon or not name or prefix not in _PREFIXES or (prefix == "const" and name != "true"):
        raise ValueError(f"a condition must be one of {', '.join(_PREFIXES)}, a colon and a name, got {text!r}")
    if prefix == "x" and name.count("/") != 1:
        raise ValueError(f"a condition on XML must be x:ENTRY/ELEMENT, got {text!r}")
    return prefix, name


def compiled(alternatives: Alternatives) -> tuple[Condition[HttpTest], ...]:
    """The alternatives that an HTTP request can meet, as tests. Raises ValueError for a name whose rule is unknown."""
    return tuple(
        Condition(_text(terms), _conjunction([_http_test(*term) for term in terms]))
        for terms in alternatives
        if not any(prefix in ("f", "!f") for prefix, _ in terms)
    )


def compiled_fields(alternatives: Alternatives) -> tuple[Condition[FieldTest], ...]:
    """The alternatives that the message of a call can meet, as tests. Raises ValueError as `compiled` does."""
    return tuple(
        Condition(_text(terms), _all([_field_test(*term) for term in terms]))
        for terms in alternatives
        if all(prefix in ("f", "!f", "const") for prefix, _ in terms)
    )


def _text(terms: tuple[Term, ...]) -> str:
    return " and ".join(_spelling(prefix, name) for prefix, name in terms)


def _spelling(prefix: str, name: str) -> str:
    entry, _, element = name.partition("/")
    return {
        "q": f"{name}=", "h": f"{name}:", "b": f"{name} in the body", "!b": f"no {name} in the body",
        "x": f"{element} in every {entry}", "f": name, "!f": f"no {name}", "const": "nothing",
    }[prefix]  # fmt: skip


def _conjunction(tests: list[HttpTest]) -> HttpTest:
    if len(tests) == 1:
        return tests[0]
    return lambda request, query: all(test(request, query) for test in tests)


def _all(tests: list[FieldTest]) -> FieldTest:
    def hold(message: object) -> bool:
        try:
            return all(test(message) for test in tests)
        except Exception:  # a stranger's own attributes may raise anything; what cannot be read is not known to hold
            return False

    return hold


def _rule(name: str) -> Rule:
    if name not in RULES:
        raise ValueError(f"a condition must be on a value whose rule is known, got {name!r}; add it to values.RULES")
    return RULES[name]


def _http_test(prefix: str, name: str) -> HttpTest:
    if prefix == "const":
        return lambda _, __: True
    if prefix == "b":
        path, equals, value = name.partition("=")
        return lambda request, _: preconditions.has_field(request.body, path, value if equals else None)
    if prefix == "!b":
        camel, snake = name.encode(), re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name).encode()
        return lambda request, _: preconditions.lacks_field(request.body, camel, snake)  # servers read both
    if prefix == "x":
        entry, _, element = name.partition("/")
        valid = _rule(element)
        return lambda request, _: xml_body.every(request.body, entry, element, valid)
    if name == "If-Match":
        return lambda request, _: preconditions.has_tag(request.headers)
    rule, read = _rule(name), _parameter if prefix == "q" else _header
    return lambda request, query: rule(read(request, query, name))


def _parameter(_: Request, query: str, name: str) -> str | None:
    return preconditions.value(query, name)


def _header(request: Request, _: str, name: str) -> str:
    return request.headers.get(name, "").strip(" \t")


def _field_test(prefix: str, name: str) -> FieldTest:
    if prefix == "const":
        return lambda _: True
    path, equals, value = name.partition("=")
    if prefix == "!f":
        return lambda message: field(message, path) is None
    if equals:
        return lambda message: field(message, path) == value
    rule = _rule(path.rpartition(".")[2])
    return lambda message: rule(field(message, path))

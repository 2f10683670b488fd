"""The grammar of conditions in the tables, and how each is read off an HTTP request. It knows no operation.

Alternatives are joined by "|", what must hold together by "&"; a term is a prefix and a name: `q:` a query parameter,
`h:` a request header, `b:` a field of the JSON body, `const:true` nothing at all.
"""

from collections.abc import Callable
from dataclasses import dataclass

from forbear.http import preconditions
from forbear.http.request import Request

Term = tuple[str, str]
Alternatives = tuple[tuple[Term, ...], ...]
Test = Callable[[Request, str], bool]
"""Given a request and the query of its target, whether a condition is present in a form that counts."""

_PREFIXES = ("q", "h", "b", "const")


@dataclass(frozen=True, slots=True)
class Condition:
    """One alternative, in the spelling of the request and as a test."""

    text: str
    holds: Test


def parse(text: str) -> Alternatives:
    """The alternatives in `text`, each a conjunction of terms; none for an empty text. Raises ValueError."""
    if not text:
        return ()
    return tuple(tuple(_term(term.strip()) for term in alternative.split("&")) for alternative in text.split("|"))


def _term(text: str) -> Term:
    prefix, colon, name = text.partition(":")
    if not colon or not name or prefix not in _PREFIXES or (prefix == "const" and name != "true"):
        raise ValueError(f"a condition must be q:NAME, h:NAME, b:NAME or const:true, got {text!r}")
    return prefix, name


def compiled(alternatives: Alternatives) -> tuple[Condition, ...]:
    """The alternatives, ready to be tested on requests. Raises ValueError for a header whose rule is not known."""
    return tuple(Condition(" and ".join(map(_spelling, terms)), _conjunction(terms)) for terms in alternatives)


def _spelling(term: Term) -> str:
    prefix, name = term
    return {"q": f"{name}=", "h": f"{name}:", "b": f"{name} in the body", "const": "nothing"}[prefix]


def _conjunction(terms: tuple[Term, ...]) -> Test:
    tests = [_test(term) for term in terms]
    if len(tests) == 1:
        return tests[0]
    return lambda request, query: all(test(request, query) for test in tests)


def _test(term: Term) -> Test:
    prefix, name = term
    if prefix == "q":
        # 0 says "must not exist" in a condition, but names no generation of an object.
        positive = name == "generation"
        return lambda _, query: preconditions.has_integer(query, name, positive=positive)
    if prefix == "b":
        return lambda request, _: preconditions.has_field(request.body, name)
    if prefix == "const":
        return lambda _, __: True
    if name != "If-Match":
        raise ValueError(f"a header condition must be If-Match, whose values have a known rule, got {name!r}")
    return lambda request, _: preconditions.has_tag(request.headers)

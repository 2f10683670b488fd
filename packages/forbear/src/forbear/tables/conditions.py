"""The grammar of conditions in the tables, and the tests that look for a condition in a request or a message.

"|" joins alternatives, "&" joins terms that must all hold. A term is a prefix and a name:

- `q:` a query parameter, `h:` a request header;
- `b:` a field of the JSON body ("policy.etag"), with "=" also its value; `!b:` the absence of a field;
- `x:` an element that every entry of an XML body has ("Object/VersionId");
- `f:` a field of a gRPC message, with "=" also its value; `!f:` the absence of a value;
- `const:true` always holds.

A row for both HTTP and gRPC lists the alternatives of both; each protocol uses those that it can read. A value counts
only in a form that the server must understand and enforce: 0 counts, an empty text does not.
"""

import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from xml.parsers import expat

from forbear.core.dataclass import dataclass
from forbear.grpc.call import field
from forbear.http import preconditions
from forbear.http.preconditions import MAX_BODY
from forbear.http.request import Request

Term = tuple[str, str]
Alternatives = tuple[tuple[Term, ...], ...]
HttpTest = Callable[[Request, str], bool]
"""A test of a request and its query: True if the condition is present in a form that counts."""
FieldTest = Callable[[object], bool]
"""A test of a gRPC message: True if the condition is present in a form that counts."""

ValueTest = Callable[[object], bool]
"""A test of a value: True if it counts as a condition."""

T = TypeVar("T")

_PREFIXES = ("q", "h", "b", "!b", "x", "f", "!f", "const")


def is_integer(value: object) -> bool:
    """Return whether a value is a version to compare with: an integer from 0 ("must not exist"), also as digits."""
    if isinstance(value, int):
        return value >= 0 and not isinstance(value, bool)
    return isinstance(value, str) and preconditions.is_integer(value)


def is_positive(value: object) -> bool:
    """Return whether a value names a version: an integer above 0, also as decimal digits, but no bool."""
    if isinstance(value, int):
        return value > 0 and not isinstance(value, bool)
    return isinstance(value, str) and preconditions.is_positive(value)


def is_uuid(value: object) -> bool:
    """Return whether a value is a request id: a text that is a UUID in its usual spelling, but not all zeros."""
    return isinstance(value, str) and preconditions.is_uuid(value)


def is_not_empty(value: object) -> bool:
    """Return whether a value is a str or bytes that is not empty."""
    return isinstance(value, str | bytes) and len(value) > 0


RULES: dict[str, ValueTest] = {
    **dict.fromkeys(("ifGenerationMatch", "ifMetagenerationMatch"), is_integer),
    **dict.fromkeys(("x-goog-if-generation-match", "x-goog-if-metageneration-match"), is_integer),
    **dict.fromkeys(("if_generation_match", "if_metageneration_match", "if_source_generation_match"), is_integer),
    **dict.fromkeys(("generation", "VersionId"), is_positive),
    **dict.fromkeys(("requestId", "request_id"), is_uuid),
    **dict.fromkeys(("etag", "backup_id", "upload_id", "project_id"), is_not_empty),
}
"""The tests by name: a query parameter, a header, the last part of a field's path, or an element of XML."""


@dataclass(frozen=True, slots=True)
class Condition(Generic[T]):
    """One alternative: `text`, its words in judgements, such as "etag in the body", and its test `holds`."""

    text: str
    holds: T


def _term(text: str) -> Term:
    prefix, colon, name = text.partition(":")
    if not colon or not name or prefix not in _PREFIXES or (prefix == "const" and name != "true"):
        raise ValueError(f"a condition must be one of {', '.join(_PREFIXES)}, a colon and a name, got {text!r}")
    if prefix == "x" and name.count("/") != 1:
        raise ValueError(f"a condition on XML must be x:ENTRY/ELEMENT, got {text!r}")
    return prefix, name


def parse(text: str, read: Callable[[str], Term] = _term) -> Alternatives:
    """Return the alternatives in a text, each a tuple of terms; `read` reads one, or raises ValueError."""
    if not text:
        return ()
    return tuple(tuple(read(term.strip()) for term in alternative.split("&")) for alternative in text.split("|"))


def compile_http(alternatives: Alternatives) -> tuple[Condition[HttpTest], ...]:
    """Return the alternatives for HTTP requests as conditions; ValueError for a name that needs a rule in `RULES`."""
    return tuple(
        Condition(_text(terms), _conjunction([_http_test(*term) for term in terms]))
        for terms in alternatives
        if not any(prefix in ("f", "!f") for prefix, _ in terms)
    )


def compile_fields(alternatives: Alternatives) -> tuple[Condition[FieldTest], ...]:
    """Return the alternatives for gRPC messages as conditions; ValueError for a name without a rule in `RULES`."""
    return tuple(
        Condition(_text(terms), _require_all([_field_test(*term) for term in terms]))
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


def _require_all(tests: list[FieldTest]) -> FieldTest:
    def hold(message: object) -> bool:
        try:
            return all(test(message) for test in tests)
        except Exception:  # attributes of an unknown object may raise anything; such a condition does not count
            return False

    return hold


def _rule(name: str) -> ValueTest:
    if name not in RULES:
        raise ValueError(f"a condition must be on a value whose rule is known, got {name!r}; add it to RULES")
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
        return lambda request, _: has_in_every_entry(request.body, entry, element, valid)
    if name == "If-Match":
        return lambda request, _: preconditions.has_tag(request.headers)
    rule = _rule(name)
    if prefix == "q":
        return lambda _, query: rule(preconditions.value(query, name))
    return lambda request, _: rule(request.headers.get(name, "").strip(" \t"))


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


_DEEPEST = 32
_LONGEST_TEXT = 4096


class _Refused(Exception):
    """The body is not in the expected form: too deep, with too long a text, or with a document type."""


class _Entries:
    """The texts of the elements called `element` in each `entry` of an XML body, by the handlers of a parser."""

    def __init__(self, entry: str, element: str) -> None:
        self.texts: list[list[str]] = []
        self._path = (entry, element)
        self._open: list[str] = []  # below the root
        self._depth = 0

    def start(self, name: str, _: Any) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Refused
        if self._depth > 1:
            self._open.append(name.rpartition(":")[2])
        if self._depth == 2 and self._open[0] == self._path[0]:
            self.texts.append([])
        elif self._is_inside():
            self.texts[-1].append("")

    def end(self, _: str) -> None:
        self._depth -= 1
        if self._open:
            self._open.pop()

    def text(self, data: str) -> None:
        if self._is_inside():
            self.texts[-1][-1] += data
            if len(self.texts[-1][-1]) > _LONGEST_TEXT:  # adding small pieces one by one would take quadratic time
                raise _Refused

    def refuse(self, *_: Any) -> None:
        raise _Refused

    def _is_inside(self) -> bool:
        return self._depth == 3 and (self._open[0], self._open[1]) == self._path


def has_in_every_entry(body: bytes | None, entry: str, element: str, valid: Callable[[object], bool]) -> bool:
    """Return whether all entries below the root, at least one, have one child `element` each, with a valid text."""
    if body is None or len(body) > MAX_BODY:
        return False
    entries = _Entries(entry, element)
    parser = expat.ParserCreate()
    parser.StartElementHandler = entries.start
    parser.EndElementHandler = entries.end
    parser.CharacterDataHandler = entries.text
    parser.StartDoctypeDeclHandler = entries.refuse
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, _Refused, ValueError, LookupError):
        return False
    return bool(entries.texts) and all(len(texts) == 1 and valid(texts[0].strip()) for texts in entries.texts)

"""Parse DynamoDB's expressions, and tell whether a condition is false on an item of which some attributes are known.

A condition has three values: True, False, and None where what is known does not decide. Only False protects a write
from being executed again. A parsed condition is a function, so that one text is parsed once, whatever its values. What
the update has written is known by then: a path of the condition becomes the placeholder whose value stands there.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from operator import ge, gt, le, lt
from types import MappingProxyType
from typing import Any, cast

from forbear.core.check import is_mapping

Path = tuple[str | int, ...]
"""The names that lead to an attribute, and numbers for elements of lists."""


class State(Enum):
    """The state of an attribute whose value is not known."""

    ABSENT = "absent"
    PRESENT = "present"
    UNKNOWN = "unknown"


Value = Mapping[str, Any] | State
"""A value with its type, such as {"N": "1"}, or what is known instead."""


Written = Mapping[Path, str | State]
"""The paths that an update has written, each with a placeholder, or with what is known of its value."""


KnownValues = tuple[Mapping[str, Value], Mapping[str, Any]]
"""The facts on which a condition is evaluated: the key of the item, and the values of placeholders."""

Operand = Callable[[KnownValues], Value]
Condition = Callable[[KnownValues], bool | None]

BROKEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors of an expression, or of a value, that cannot be parsed."""

_TOKENS = re.compile(r"\s*([#:]?\w+|<>|<=|>=|[=<>().,\[\]+-]|\S)", re.ASCII)
_NAME = re.compile(r"\w+", re.ASCII)
_LONGEST = 4096  # DynamoDB's limit, in bytes
_DEEPEST = 50
NOTHING: Written = MappingProxyType({})
_TYPES = {"attribute_type", "begins_with", "contains"}


class Scanner:
    """The words of one expression, in order; `names` are what its placeholders for names stand for.

    `written` is what is known of the item. Every method raises one of `BROKEN` for an expression that cannot be parsed.
    """

    def __init__(self, text: object, names: Mapping[str, Any], written: Written = NOTHING) -> None:
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise ValueError("an expression must be a text of at most 4 KB")
        self._tokens: list[str] = _TOKENS.findall(text)
        self._words = [*(token.upper() for token in self._tokens), ""]
        self._at = 0
        self._names = names
        self.written = written

    @property
    def word(self) -> str:
        """The next word in upper case, "" at the end."""
        return self._words[self._at]

    def take(self, *words: str) -> bool:
        """Skip the next word and return True if it is one of `words`."""
        found = self._words[self._at] in words
        self._at += found
        return found

    def expect(self, word: str) -> None:
        """Skip the next word, which must be `word`."""
        if not self.take(word):
            raise ValueError(f"the expression must have {word} here")

    def name(self) -> str:
        """Skip the next word and return it as it is written."""
        token = self._tokens[self._at]
        self._at += 1
        return token

    def path(self) -> Path:
        """Skip a path, and return it with its placeholders replaced."""
        parts: list[str | int] = [self._part()]
        while self.word in (".", "["):
            if self.take("."):
                parts.append(self._part())
            else:
                self.expect("[")
                parts.append(int(self.name()))
                self.expect("]")
        return tuple(parts)

    def value(self) -> str:
        """Skip a placeholder for a value, and return it."""
        name = self.name()
        if not name.startswith(":"):
            raise ValueError("the expression must have a value here")
        return name

    def _part(self) -> str:
        name = self.name()
        if name.startswith("#"):
            name = self._names[name]
        elif not _NAME.fullmatch(name):
            raise ValueError("the expression must have a name here")
        if not isinstance(name, str):
            raise ValueError("a name must be a text")
        return name


def value_of(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the value of a placeholder, with its type; one of `BROKEN` for a value that is missing or has no type."""
    value: Any = values[name]
    if not (value.__class__ is dict or is_mapping(value)) or len(value) != 1:
        raise ValueError("a value must have one type")
    return cast("Mapping[str, Any]", value)


def parse_condition(text: object, names: Mapping[str, Any], written: Written) -> Condition | None:
    """Return a condition as a function; None for one that cannot be parsed. The function may raise one of `BROKEN`."""
    try:
        scanner = Scanner(text, names, written)
        condition = _parse_or(scanner, 0)
    except BROKEN:
        return None
    return None if scanner.word else condition


def _parse_or(scanner: Scanner, depth: int) -> Condition:
    """Parse terms that are joined by OR: false only if every one is."""
    terms = [_parse_and(scanner, depth)]
    while scanner.take("OR"):
        terms.append(_parse_and(scanner, depth))
    return terms[0] if len(terms) == 1 else lambda facts: _is_any([term(facts) for term in terms])


def _parse_and(scanner: Scanner, depth: int) -> Condition:
    terms = [_parse_term(scanner, depth)]
    while scanner.take("AND"):
        terms.append(_parse_term(scanner, depth))
    return terms[0] if len(terms) == 1 else lambda facts: _negate(_is_any([_negate(term(facts)) for term in terms]))


def _parse_term(scanner: Scanner, depth: int) -> Condition:
    if depth > _DEEPEST:
        raise ValueError("the condition is too deep")
    if scanner.take("NOT"):
        term = _parse_term(scanner, depth + 1)
        return lambda facts: _negate(term(facts))
    if scanner.take("("):
        inner = _parse_or(scanner, depth + 1)
        scanner.expect(")")
        return inner
    if scanner.take("ATTRIBUTE_EXISTS"):
        return _parse_presence(scanner)
    if scanner.take("ATTRIBUTE_NOT_EXISTS"):
        present = _parse_presence(scanner)
        return lambda facts: _negate(present(facts))
    if scanner.word.lower() in _TYPES:
        scanner.name()
        scanner.expect("(")
        _parse_operand(scanner)
        scanner.expect(",")
        _parse_operand(scanner)
        scanner.expect(")")
        return lambda facts: None
    return _parse_comparison(scanner)


def _parse_presence(scanner: Scanner) -> Condition:
    scanner.expect("(")
    operand = _parse_path(scanner)
    scanner.expect(")")
    return lambda facts: _is_present(operand(facts))


def _parse_comparison(scanner: Scanner) -> Condition:
    left = _parse_operand(scanner)
    if scanner.take("BETWEEN"):
        _parse_operand(scanner)
        scanner.expect("AND")
        _parse_operand(scanner)
        return lambda facts: None
    if scanner.take("IN"):
        scanner.expect("(")
        listed = [_parse_operand(scanner)]
        while scanner.take(","):
            listed.append(_parse_operand(scanner))
        scanner.expect(")")
        return lambda facts: _is_any([_compare("=", left(facts), each(facts)) for each in listed])
    sign = scanner.word
    if not scanner.take("=", "<>", "<", "<=", ">", ">="):
        raise ValueError("the condition must have a comparison here")
    right = _parse_operand(scanner)
    return lambda facts: _compare(sign, left(facts), right(facts))


def _parse_operand(scanner: Scanner) -> Operand:
    if scanner.word.startswith(":"):
        return _find_value(scanner.value())
    if scanner.take("SIZE"):
        scanner.expect("(")
        scanner.path()
        scanner.expect(")")
        return lambda facts: State.UNKNOWN
    return _parse_path(scanner)


def _parse_path(scanner: Scanner) -> Operand:
    path = scanner.path()
    written = scanner.written.get(path)
    if isinstance(written, str):
        return _find_value(written)
    if written is None and len(path) == 1:
        name = path[0]
        return lambda facts: facts[0].get(cast("str", name), State.UNKNOWN)
    state = written or State.UNKNOWN
    return lambda facts: state


def _find_value(placeholder: str) -> Operand:
    return lambda facts: cast("Value", facts[1][placeholder])


def _is_any(truths: list[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False


def _negate(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _is_present(value: Value) -> bool | None:
    return None if value is State.UNKNOWN else value is not State.ABSENT


def _compare(sign: str, left: Value, right: Value) -> bool | None:
    """Return the outcome of a comparison, None if it is not known. A missing attribute equals nothing."""
    if isinstance(left, State) or isinstance(right, State):
        return False if sign == "=" and State.ABSENT in (left, right) else None
    ((kind, first),) = left.items()
    ((other, second),) = right.items()
    read, read_other = _READERS.get(kind), _READERS.get(other)
    if read is None or read_other is None:
        return None
    first, second = read(first), read_other(second)
    if sign in ("=", "<>"):
        return (kind == other and first == second) is (sign == "=")
    if kind != other or kind not in ("N", "S"):
        return None
    return _ORDERS[sign](first, second)


_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def _read_as_it_is(content: Any) -> Any:
    return content


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "N": Decimal,
    "NS": lambda numbers: frozenset(map(Decimal, numbers)),
    "S": lambda text: text.encode("utf-8", "surrogatepass"),
    "SS": frozenset,
    "BS": frozenset,
    "B": _read_as_it_is,
    "BOOL": _read_as_it_is,
    "NULL": _read_as_it_is,
}
"""The functions that make equal values equal, by type; lists and maps have none."""

"""Parse DynamoDB's expressions, and tell whether a condition is false on an item of which some attributes are known.

A condition has three values: True, False, and None where what is known does not decide. Only False protects a write
from being executed again.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
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

BROKEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors of an expression, or of a value, that cannot be parsed."""

_TOKENS = re.compile(r"\s*([#:]?\w+|<>|<=|>=|[=<>().,\[\]+-]|\S)", re.ASCII)
_MOST_TOKENS = 5000  # an expression has at most 4 KB
_DEEPEST = 50
_TYPES = {"attribute_type", "begins_with", "contains"}


class Scanner:
    """The words of one expression, in order; `names` and `values` are what its placeholders stand for.

    Every method raises one of `BROKEN` for an expression that cannot be parsed.
    """

    def __init__(self, text: object, parameters: Mapping[str, Any]) -> None:
        if not isinstance(text, str):
            raise ValueError("an expression must be a text")
        self._tokens: list[str] = _TOKENS.findall(text)[: _MOST_TOKENS + 1]
        if len(self._tokens) > _MOST_TOKENS:
            raise ValueError("the expression is too long")
        self._at = 0
        self._names: Mapping[str, Any] = parameters.get("ExpressionAttributeNames") or {}
        self._values: Mapping[str, Any] = parameters.get("ExpressionAttributeValues") or {}

    @property
    def word(self) -> str:
        """The next word in upper case, "" at the end."""
        return self._tokens[self._at].upper() if self._at < len(self._tokens) else ""

    def take(self, *words: str) -> bool:
        """Skip the next word and return True if it is one of `words`."""
        found = self.word in words
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

    def value(self) -> Mapping[str, Any]:
        """Skip a placeholder for a value, and return the value with its type."""
        value = self._values[self.name()]
        if not is_mapping(value) or len(value) != 1:
            raise ValueError("a value must have one type")
        return cast("Mapping[str, Any]", value)

    def _part(self) -> str:
        name = self.name()
        if name.startswith("#"):
            name = self._names[name]
        elif not re.fullmatch(r"\w+", name, re.ASCII):
            raise ValueError("the expression must have a name here")
        if not isinstance(name, str):
            raise ValueError("a name must be a text")
        return name


def is_false(text: object, parameters: Mapping[str, Any], known: Mapping[Path, Value]) -> bool:
    """Return whether a condition is certainly false on an item with the `known` attributes; False if in doubt."""
    try:
        scanner = Scanner(text, parameters)
        truth = _Condition(scanner, known).evaluate(0)
        return truth is False and not scanner.word
    except BROKEN:
        return False


class _Condition:
    """The evaluation of one condition while it is parsed."""

    def __init__(self, scanner: Scanner, known: Mapping[Path, Value]) -> None:
        self._scanner = scanner
        self._known = known

    def evaluate(self, depth: int) -> bool | None:
        """Evaluate terms that are joined by OR: false only if every one is."""
        truth = self._evaluate_and(depth)
        while self._scanner.take("OR"):
            other = self._evaluate_and(depth)
            truth = True if True in (truth, other) else None if None in (truth, other) else False
        return truth

    def _evaluate_and(self, depth: int) -> bool | None:
        truth = self._evaluate_one(depth)
        while self._scanner.take("AND"):
            other = self._evaluate_one(depth)
            truth = False if False in (truth, other) else None if None in (truth, other) else True
        return truth

    def _evaluate_one(self, depth: int) -> bool | None:
        scanner = self._scanner
        if depth > _DEEPEST:
            raise ValueError("the condition is too deep")
        if scanner.take("NOT"):
            truth = self._evaluate_one(depth + 1)
            return None if truth is None else not truth
        if scanner.take("("):
            truth = self.evaluate(depth + 1)
            scanner.expect(")")
            return truth
        if scanner.take("ATTRIBUTE_EXISTS"):
            return self._is_present()
        if scanner.take("ATTRIBUTE_NOT_EXISTS"):
            present = self._is_present()
            return None if present is None else not present
        if scanner.word.lower() in _TYPES:
            scanner.name()
            scanner.expect("(")
            self._operand()
            scanner.expect(",")
            self._operand()
            scanner.expect(")")
            return None
        return self._comparison()

    def _is_present(self) -> bool | None:
        self._scanner.expect("(")
        value = self._known.get(self._scanner.path(), State.UNKNOWN)
        self._scanner.expect(")")
        return None if value is State.UNKNOWN else value is not State.ABSENT

    def _comparison(self) -> bool | None:
        scanner, left = self._scanner, self._operand()
        if scanner.take("BETWEEN"):
            self._operand()
            scanner.expect("AND")
            self._operand()
            return None
        if scanner.take("IN"):
            scanner.expect("(")
            found = [_compare("=", left, self._operand())]
            while scanner.take(","):
                found.append(_compare("=", left, self._operand()))
            scanner.expect(")")
            return True if True in found else None if None in found else False
        sign = scanner.word
        if not scanner.take("=", "<>", "<", "<=", ">", ">="):
            raise ValueError("the condition must have a comparison here")
        return _compare(sign, left, self._operand())

    def _operand(self) -> Value:
        scanner = self._scanner
        if scanner.word.startswith(":"):
            return scanner.value()
        if scanner.take("SIZE"):
            scanner.expect("(")
            scanner.path()
            scanner.expect(")")
            return State.UNKNOWN
        return self._known.get(scanner.path(), State.UNKNOWN)


def _compare(sign: str, left: Value, right: Value) -> bool | None:
    """Return the outcome of a comparison, None if it is not known. A missing attribute equals nothing."""
    if State.ABSENT in (left, right):
        return False if sign == "=" else None
    if isinstance(left, State) or isinstance(right, State):
        return None
    first, second = _comparable(left), _comparable(right)
    if first is None or second is None:
        return None
    if sign in ("=", "<>"):
        return (first == second) is (sign == "=")
    if first[0] != second[0] or first[0] not in ("N", "S"):
        return None
    return {"<": first < second, "<=": first <= second, ">": first > second, ">=": first >= second}[sign]


def _comparable(value: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Return the type of a value, and the value such that equal ones are equal; None for lists and maps."""
    ((kind, content),) = value.items()
    if kind == "N":
        return kind, Decimal(content)
    if kind == "NS":
        return kind, frozenset(map(Decimal, content))
    if kind in ("SS", "BS"):
        return kind, frozenset(content)
    if kind == "S":
        return kind, content.encode("utf-8", "surrogatepass")
    return (kind, content) if kind in ("B", "BOOL", "NULL") else None
